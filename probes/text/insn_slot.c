/* insn_slot.c - pages of cells.
 *
 *   page:  | header | cell 1 | cell 2 | ... | cell 127 |
 *   cell:  | code, then int3 ...      24 | owner     8 |
 *
 * The header says where the page's bookkeeping lies. A free cell is all int3, owner
 * included.
 */
#include "probes/text/insn_slot.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "kernel/base/list.h"
#include "probes/platform.h"

#define PAGE_LEN 4096
#define CELLS (PAGE_LEN / INSN_SLOT_LEN)
#define FREE_OWNER UINT64_C(0xcccccccccccccccc)

/* Locks: P PLAT_PROBES   I immutable */
struct slot_page {
    struct list link;          /* [P] in with_room or full */
    uint8_t *base;             /* [I] */
    uint64_t used[CELLS / 64]; /* [P] bit i: cell i is handed out; the header always is */
    unsigned count;            /* [P] cells handed out */
};

/* What lies in the header cell; written once, before the page is known to anybody. */
struct slot_header {
    struct slot_page *page;
};

static struct list with_room = LIST_INIT(with_room);
static struct list full = LIST_INIT(full);
static size_t page_count;

/* Which pages of the executable window hold cells; read by hits without locks. A bit is
 * set before anybody can run into the page, and cleared when nobody can any more.
 */
static struct {
    uintptr_t start;
    size_t pages;
    uint64_t *bits;
} map;

int insn_slot_init(void)
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

static struct slot_page *page_new(void)
{
    struct slot_page *page = plat_alloc(sizeof(*page));
    struct slot_header header = { page };

    if (!page)
        return NULL;
    page->base = plat_exec_alloc(PAGE_LEN);
    if (!page->base) {
        plat_free(page);
        return NULL;
    }
    plat_lock(PLAT_TEXT);
    if (plat_text_write((uintptr_t)page->base, &header, sizeof(header)))
        plat_bug("a fresh executable page is not writable", (uintptr_t)page->base);
    plat_unlock(PLAT_TEXT);
    map_set(page->base, true);
    page->used[0] = 1;
    list_append(&with_room, &page->link);
    page_count++;
    return page;
}

static unsigned cell_take(struct slot_page *page)
{
    unsigned word = 0, bit;

    while (page->used[word] == UINT64_MAX)
        word++;
    bit = bit_lowest(~page->used[word]);
    page->used[word] |= BIT(bit);
    if (++page->count == CELLS - 1) {
        list_remove(&page->link);
        list_append(&full, &page->link);
    }
    return word * 64 + bit;
}

uint8_t *insn_slot_reserve(void)
{
    struct slot_page *page;

    page = list_empty(&with_room) ? page_new()
                                  : list_first(&with_room, struct slot_page, link);
    if (!page)
        return NULL;
    return page->base + cell_take(page) * INSN_SLOT_LEN;
}

static void cell_write(uint8_t *slot, const uint8_t cell[INSN_SLOT_LEN])
{
    if (plat_text_write((uintptr_t)slot, cell, INSN_SLOT_LEN))
        plat_bug("a cell is not writable", (uintptr_t)slot);
}

static void cell_compose(uint8_t cell[INSN_SLOT_LEN], const uint8_t *code, size_t len,
                         uint64_t owner)
{
    for (size_t i = 0; i < INSN_SLOT_CODE_MAX; i++)
        cell[i] = i < len ? code[i] : 0xcc;
    for (size_t i = 0; i < 8; i++)
        cell[INSN_SLOT_CODE_MAX + i] = (uint8_t)(owner >> (8 * i));
}

void insn_slot_fill(uint8_t *slot, struct site *owner, const uint8_t *code, size_t len)
{
    uint8_t cell[INSN_SLOT_LEN];

    if (len > INSN_SLOT_CODE_MAX)
        plat_bug("a copy does not fit its cell", (uintptr_t)slot);
    cell_compose(cell, code, len, (uintptr_t)owner);
    cell_write(slot, cell);
}

static struct slot_header *header_of(uintptr_t ip)
{
    return (struct slot_header *)align_down(ip, PAGE_LEN);
}

void insn_slot_put(uint8_t *slot)
{
    struct slot_page *page;
    uint8_t cell[INSN_SLOT_LEN];
    size_t i;

    if (!slot)
        return;
    page = header_of((uintptr_t)slot)->page;
    i = (size_t)(slot - page->base) / INSN_SLOT_LEN;
    cell_compose(cell, NULL, 0, FREE_OWNER);
    cell_write(slot, cell);
    page->used[i / 64] &= ~BIT(i % 64);
    page->count--;
    list_remove(&page->link);
    list_append(&with_room, &page->link);
}

struct site *insn_slot_owner(uintptr_t ip, size_t *off)
{
    uintptr_t cell = align_down(ip, INSN_SLOT_LEN);
    uint64_t owner;

    if (!is_cell_page(ip) || ip % PAGE_LEN < INSN_SLOT_LEN)
        return NULL;
    owner = *(const uint64_t *)(cell + INSN_SLOT_CODE_MAX);
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

void insn_slot_exit(void)
{
    struct slot_page *page, *tmp;

    list_for_each_safe(page, tmp, &with_room, link) {
        if (page->count)
            continue;
        list_remove(&page->link);
        map_set(page->base, false);
        plat_exec_free(page->base, PAGE_LEN);
        plat_free(page);
        page_count--;
    }
}
