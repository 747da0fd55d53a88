/* insn_slot.c - owns the pages of cells.
 *
 *   page:  | header | cell | cell | ... | cell |
 *   cell:  | code, then int3 ...      24 | owner     8 |
 *
 * A page has cells of one size: 32, 64 or 352 bytes. The last cell ends where the page
 * ends. The header lies in front of the first cell, and says which size the cells have,
 * and where the struct slot_page of the page is. A free cell is full of int3, owner
 * included.
 */
#include "probes/core/insn_slot.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/base/list.h"
#include "probes/core/platform.h"
#include "probes/insn/encode.h"

#define PAGE_LEN 4096
#define CELLS (PAGE_LEN / INSN_SLOT_LEN) /* a page has fewer */
#define OWNER_LEN 8
#define FREE_OWNER UINT64_C(0xcccccccccccccccc)

/* Locks: P PLAT_PROBES   I immutable */
struct slot_page {
    struct list link;          /* [P] in one of the lists below */
    uint8_t *base;             /* [I] */
    uint64_t used[CELLS / 64]; /* [P] bit i: cell i is handed out */
    unsigned count;            /* [P] cells handed out */
    unsigned max;              /* [I] cells it has */
    size_t cell_len;           /* [I] bytes */
};

/* The header of a page. It is written once, before any CPU can reach the page. */
struct slot_header {
    struct slot_page *page;
    size_t cell_len;
};

static struct list with_room = LIST_INIT(with_room);
static struct list with_large_room = LIST_INIT(with_large_room);
static struct list with_detour_room = LIST_INIT(with_detour_room);
static struct list full = LIST_INIT(full);
static size_t page_count, detour_page_count, detour_page_max = INSN_SLOT_DETOUR_PAGES_MAX;

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

    return rest >= sizeof(struct slot_header) ? rest : cell_len;
}

static struct list *list_with_room(size_t cell_len)
{
    if (cell_len == INSN_SLOT_DETOUR_LEN)
        return &with_detour_room;
    return cell_len == INSN_SLOT_LEN ? &with_room : &with_large_room;
}

static void header_write(struct slot_page *page)
{
    struct slot_header header = { page, page->cell_len };

    plat_lock(PLAT_TEXT);
    if (plat_text_write((uintptr_t)page->base, &header, sizeof(header)))
        plat_bug("a fresh executable page is not writable", (uintptr_t)page->base);
    plat_unlock(PLAT_TEXT);
}

static struct slot_page *page_new(size_t cell_len)
{
    struct slot_page *page = plat_alloc(sizeof(*page));

    if (!page)
        return NULL;
    page->base = plat_exec_alloc(PAGE_LEN);
    if (!page->base) {
        plat_free(page);
        return NULL;
    }
    page->cell_len = cell_len;
    page->max = (unsigned)((PAGE_LEN - first_cell(cell_len)) / cell_len);
    header_write(page);
    map_set(page->base, true);
    list_append(list_with_room(cell_len), &page->link);
    page_count++;
    detour_page_count += cell_len == INSN_SLOT_DETOUR_LEN;
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
    struct list *room = list_with_room(cell_len);
    struct slot_page *page;

    if (cell_len == INSN_SLOT_DETOUR_LEN &&
        detour_page_count + list_empty(room) > detour_page_max)
        return NULL;
    page =
        list_empty(room) ? page_new(cell_len) : list_first(room, struct slot_page, link);
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
    uint8_t cell[INSN_SLOT_DETOUR_LEN];

    if (len > cell_len - OWNER_LEN)
        plat_bug("a copy does not fit its cell", (uintptr_t)slot);
    for (size_t i = 0; i < cell_len - OWNER_LEN; i++)
        cell[i] = i < len ? code[i] : INSN_INT3;
    for (size_t i = 0; i < OWNER_LEN; i++)
        cell[cell_len - OWNER_LEN + i] = (uint8_t)(owner >> (8 * i));
    if (plat_text_write((uintptr_t)slot, cell, cell_len))
        plat_bug("a cell is not writable", (uintptr_t)slot);
}

void insn_slot_fill(uint8_t *slot, struct site *owner, const uint8_t *code, size_t len)
{
    cell_write(slot, code, len, (uintptr_t)owner);
}

void insn_slot_put(uint8_t *slot)
{
    struct slot_page *page;
    size_t i;

    if (!slot)
        return;
    page = header_of((uintptr_t)slot)->page;
    slot = insn_slot_start(slot);
    i = ((size_t)(slot - page->base) - first_cell(page->cell_len)) / page->cell_len;
    cell_write(slot, NULL, 0, FREE_OWNER);
    page->used[i / 64] &= ~BIT(i % 64);
    page->count--;
    list_remove(&page->link);
    list_append(list_with_room(page->cell_len), &page->link);
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
    return page_count;
}

size_t insn_slot_detour_bytes(void)
{
    return detour_page_count * PAGE_LEN;
}

size_t insn_slot_detour_limit(size_t pages)
{
    size_t before = detour_page_max;

    detour_page_max = pages;
    return before;
}

static void pages_free_empty(struct list *pages)
{
    struct slot_page *page, *tmp;

    list_for_each_safe(page, tmp, pages, link) {
        if (page->count)
            continue;
        list_remove(&page->link);
        map_set(page->base, false);
        plat_exec_free(page->base, PAGE_LEN);
        detour_page_count -= page->cell_len == INSN_SLOT_DETOUR_LEN;
        plat_free(page);
        page_count--;
    }
}

void insn_slot_exit(void)
{
    pages_free_empty(&with_room);
    pages_free_empty(&with_large_room);
    pages_free_empty(&with_detour_room);
}
