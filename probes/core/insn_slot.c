/* insn_slot.c - owns the pages of cells.
 *
 *   page:  | header | cell | cell | ... | cell |
 *   cell:  | code, then int3 ...      24 | owner     8 |
 *
 * A page has cells of one size: 32, 40, 64, 352 or 992 bytes. The last cell ends where
 * the page ends. The header lies in front of the first cell, and says which size the
 * cells have, and where the struct slot_page of the page is. A free cell is full of int3,
 * owner included.
 */
#include "probes/core/insn_slot.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/base/list.h"
#include "probes/core/platform.h"
#include "probes/insn/encode.h"

#define PAGE_LEN 4096
#define OWNER_LEN 8
#define HEADER_LEN sizeof(struct slot_header)
#define FREE_OWNER UINT64_C(0xcccccccccccccccc)

/* Locks: P PLAT_PROBES   I immutable */
struct slot_page {
    struct list link;                             /* [P] in one of the lists below */
    uint8_t *base;                                /* [I] */
    uint64_t used[PAGE_LEN / INSN_SLOT_LEN / 64]; /* [P] bit i: cell i is handed out */
    unsigned count;                               /* [P] cells handed out */
    unsigned max;                                 /* [I] cells it has */
    struct slot_size *size;                       /* [I] of its cells */
};

/* The header of a page. It is written once, before any CPU can reach the page. */
struct slot_header {
    struct slot_page *page;
    size_t cell_len;
};

static struct slot_size {
    size_t cell_len;         /* bytes, with the owner */
    size_t pages, pages_max; /* that have such cells, and may have such cells */
    struct list with_room;   /* those with a free cell */
} sizes[] = {
    { INSN_SLOT_LEN, 0, SIZE_MAX, LIST_INIT(sizes[0].with_room) },
    { INSN_SLOT_COUNTED_LEN, 0, SIZE_MAX, LIST_INIT(sizes[1].with_room) },
    { INSN_SLOT_LARGE_LEN, 0, SIZE_MAX, LIST_INIT(sizes[2].with_room) },
    { INSN_SLOT_DETOUR_LEN, 0, INSN_SLOT_PAGES_MAX, LIST_INIT(sizes[3].with_room) },
    { INSN_SLOT_LONG_LEN, 0, INSN_SLOT_PAGES_MAX, LIST_INIT(sizes[4].with_room) },
};
static struct list full = LIST_INIT(full); /* pages of any size */

/* The map tells which pages of the executable window hold cells; hits read it without
 * locks. The bit of a page is set before a CPU can run into the page, and cleared when no
 * CPU can do so any more.
 */
static struct {
    uintptr_t start;
    size_t pages;
    uint64_t *bits;
} map;

INIT int insn_slot_init(void)
{
    size_t len;

    plat_exec_window(&map.start, &len);
    map.bits = plat_alloc((len / PAGE_LEN / 64 + 1) * sizeof(uint64_t));
    if (!map.bits)
        return -ENOMEM;
    map.pages = len / PAGE_LEN;
    return 0;
}

static void map_set(const uint8_t *base, bool used)
{
    size_t i = ((uintptr_t)base - map.start) / PAGE_LEN;

    if (used)
        __atomic_or_fetch(&map.bits[i / 64], BIT(i % 64), __ATOMIC_RELEASE);
    else
        __atomic_and_fetch(&map.bits[i / 64], ~BIT(i % 64), __ATOMIC_RELEASE);
}

NOKPROBE_INLINE bool is_cell_page(uintptr_t ip)
{
    size_t i = (ip - map.start) / PAGE_LEN;

    return i < map.pages && (READ_ONCE(map.bits[i / 64]) & BIT(i % 64));
}

/* first_cell - return the offset of the first cell in a page. The header takes the bytes
 * that whole cells leave over. If these are too few, it takes the place of a cell.
 */
NOKPROBE_INLINE size_t first_cell(size_t cell_len)
{
    size_t rest = PAGE_LEN % cell_len;

    return rest >= HEADER_LEN ? rest : cell_len;
}

/* size_for - return the smallest size of cells of at least @len bytes. */
static struct slot_size *size_for(size_t len)
{
    struct slot_size *size = sizes;

    while (size->cell_len < len)
        size++;
    return size;
}

size_t insn_slot_len(size_t code_len)
{
    return size_for(code_len + OWNER_LEN)->cell_len;
}

static void page_write(uint8_t *at, const void *bytes, size_t len)
{
    plat_lock(PLAT_TEXT);
    if (plat_text_write((uintptr_t)at, bytes, len))
        plat_bug("a page of cells is not writable", (uintptr_t)at);
    plat_unlock(PLAT_TEXT);
}

static struct slot_page *page_new(struct slot_size *size)
{
    struct slot_page *page = plat_alloc(sizeof(*page));

    if (!page)
        return NULL;
    page->base = plat_exec_alloc(PAGE_LEN);
    if (!page->base) {
        plat_free(page);
        return NULL;
    }
    page->size = size;
    page->max = (unsigned)((PAGE_LEN - first_cell(size->cell_len)) / size->cell_len);
    page_write(page->base, &(struct slot_header){ page, size->cell_len }, HEADER_LEN);
    map_set(page->base, true);
    list_append(&size->with_room, &page->link);
    size->pages++;
    return page;
}

static unsigned cell_take(struct slot_page *page)
{
    unsigned word = 0, bit;

    while (page->used[word] == UINT64_MAX)
        word++;
    bit = bit_lowest(~page->used[word]);
    page->used[word] |= BIT(bit);
    if (++page->count == page->max) {
        list_remove(&page->link);
        list_append(&full, &page->link);
    }
    return word * 64 + bit;
}

uint8_t *insn_slot_reserve(size_t cell_len)
{
    struct slot_size *size = size_for(cell_len);
    struct list *room = &size->with_room;
    struct slot_page *page;

    if (size->pages + list_empty(room) > size->pages_max)
        return NULL;
    page = list_empty(room) ? page_new(size) : list_first(room, struct slot_page, link);
    if (!page)
        return NULL;
    return page->base + first_cell(cell_len) + cell_take(page) * cell_len;
}

NOKPROBE_INLINE const struct slot_header *header_of(uintptr_t ip)
{
    return (const struct slot_header *)align_down(ip, PAGE_LEN);
}

uint8_t *insn_slot_start(const uint8_t *at)
{
    size_t len = header_of((uintptr_t)at)->cell_len;

    return (uint8_t *)at - ((uintptr_t)at % PAGE_LEN - first_cell(len)) % len;
}

size_t insn_slot_room(const uint8_t *at)
{
    size_t cell_len = header_of((uintptr_t)at)->cell_len;

    return cell_len - OWNER_LEN - (size_t)(at - insn_slot_start(at));
}

static void cell_write(uint8_t *slot, const uint8_t *code, size_t len, uint64_t owner)
{
    size_t cell_len = header_of((uintptr_t)slot)->cell_len;
    uint8_t cell[INSN_SLOT_LONG_LEN];

    if (len > cell_len - OWNER_LEN)
        plat_bug("a copy does not fit its cell", (uintptr_t)slot);
    for (size_t i = 0; i < cell_len; i++)
        cell[i] = i < len ? code[i] : INSN_INT3;
    for (size_t i = 0; i < OWNER_LEN; i++)
        cell[cell_len - OWNER_LEN + i] = (uint8_t)(owner >> (8 * i));
    page_write(slot, cell, cell_len);
}

void insn_slot_fill(uint8_t *slot, struct site *owner, const uint8_t *code, size_t len)
{
    cell_write(slot, code, len, (uintptr_t)owner);
}

void insn_slot_put(uint8_t *slot)
{
    struct slot_page *page;
    size_t len, i;

    if (!slot)
        return;
    page = header_of((uintptr_t)slot)->page;
    len = page->size->cell_len;
    slot = insn_slot_start(slot);
    i = ((size_t)(slot - page->base) - first_cell(len)) / len;
    cell_write(slot, NULL, 0, FREE_OWNER);
    page->used[i / 64] &= ~BIT(i % 64);
    page->count--;
    list_remove(&page->link);
    list_append(&page->size->with_room, &page->link);
}

struct site *insn_slot_owner(uintptr_t ip, size_t *off)
{
    uintptr_t cell;
    uint64_t owner;
    size_t len, first;

    if (!is_cell_page(ip))
        return NULL;
    len = header_of(ip)->cell_len;
    first = first_cell(len);
    if (ip % PAGE_LEN < first)
        return NULL;
    cell = ip - (ip % PAGE_LEN - first) % len;
    owner = *(const uint64_t *)(cell + len - OWNER_LEN);
    if (owner == FREE_OWNER)
        return NULL;
    *off = ip - cell;
    return (struct site *)owner;
}
NOKPROBE(insn_slot_owner);

size_t insn_slot_pages(void)
{
    size_t pages = 0;

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        pages += sizes[i].pages;
    return pages;
}

size_t insn_slot_detour_bytes(void)
{
    return size_for(INSN_SLOT_DETOUR_LEN)->pages * PAGE_LEN;
}

size_t insn_slot_detour_limit(size_t pages)
{
    struct slot_size *size = size_for(INSN_SLOT_DETOUR_LEN);
    size_t before = size->pages_max;

    size->pages_max = pages;
    return before;
}

static void pages_free_empty(struct slot_size *size)
{
    struct slot_page *page, *tmp;

    list_for_each_safe(page, tmp, &size->with_room, link) {
        if (page->count)
            continue;
        list_remove(&page->link);
        map_set(page->base, false);
        plat_exec_free(page->base, PAGE_LEN);
        plat_free(page);
        size->pages--;
    }
}

void insn_slot_exit(void)
{
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        pages_free_empty(&sizes[i]);
}
