/* pad_page.c - keeps the pages with landing pads: it finds a page by its address, and
 * knows which bytes each page uses. The pages are in a hash table that grows. PLAT_PROBES
 * guards all of it.
 */
#include "kernel/base/err.h"
#include "probes/core/platform.h"
#include "probes/jump/pad_parts.h"

#define BUCKETS_MIN 256u
#define BUCKET_PAGES 4u /* on average; with more the number of buckets is doubled */

static struct pad_page *first_buckets[BUCKETS_MIN];

static struct {
    struct pad_page **buckets;
    size_t mask;
    size_t pages;
} table = { first_buckets, BUCKETS_MIN - 1, 0 };

static struct pad_page **page_bucket(uintptr_t addr)
{
    uintptr_t page = addr / PAD_PAGE_LEN;

    return &table.buckets[(page ^ page >> 9) & table.mask];
}

struct pad_page *pad_page_find(uintptr_t addr)
{
    struct pad_page *page = *page_bucket(addr);

    while (page && page->addr != addr)
        page = page->next;
    return page;
}

static void link_in(struct pad_page *page)
{
    struct pad_page **bucket = page_bucket(page->addr);

    page->next = *bucket;
    *bucket = page;
}

static void buckets_swap(struct pad_page **buckets, size_t count)
{
    struct pad_page **old = table.buckets, *page, *next;
    size_t old_mask = table.mask;

    table.buckets = buckets;
    table.mask = count - 1;
    for (size_t i = 0; i <= old_mask; i++) {
        for (page = old[i]; page; page = next) {
            next = page->next;
            link_in(page);
        }
        old[i] = NULL;
    }
    if (old != first_buckets)
        plat_free(old);
}

/* Without memory for more buckets the table stays as it is, and gets slower. Their number
 * changes nothing but the time of a search.
 */
static void buckets_grow(void)
{
    size_t count = 2 * (table.mask + 1);
    struct pad_page **buckets;

    if (table.pages < BUCKET_PAGES * (table.mask + 1))
        return;
    buckets = plat_alloc(count * sizeof(struct pad_page *));
    if (buckets)
        buckets_swap(buckets, count);
}

struct pad_page *pad_page_get(uintptr_t addr)
{
    struct pad_page *page = pad_page_find(addr);

    if (page)
        return page;
    page = plat_alloc(sizeof(*page));
    if (!page)
        return NULL;
    buckets_grow();
    page->addr = addr;
    page->room = PAD_FEW;
    link_in(page);
    table.pages++;
    return page;
}

void pad_page_forget(struct pad_page *page)
{
    struct pad_page **link = page_bucket(page->addr);

    while (*link != page)
        link = &(*link)->next;
    *link = page->next;
    if (page->room > PAD_FEW)
        plat_free(page->many);
    plat_free(page);
    if (--table.pages == 0 && table.buckets != first_buckets)
        buckets_swap(first_buckets, BUCKETS_MIN);
}

static bool starts_grow(struct pad_page *page)
{
    uint16_t room = (uint16_t)(2 * page->room);
    uint16_t *starts = plat_alloc(room * sizeof(starts[0]));

    if (!starts)
        return false;
    for (unsigned i = 0; i < page->count; i++)
        starts[i] = pad_page_starts(page)[i];
    if (page->room > PAD_FEW)
        plat_free(page->many);
    page->many = starts;
    page->room = room;
    return true;
}

bool pad_page_add(struct pad_page *page, uint16_t start)
{
    if (page->count == page->room && !starts_grow(page))
        return false;
    pad_page_starts(page)[page->count++] = start;
    return true;
}

void pad_page_remove(struct pad_page *page, uint16_t start)
{
    uint16_t *starts = pad_page_starts(page);
    unsigned i = page->count;

    while (i-- > 0) {
        if (starts[i] != start)
            continue;
        starts[i] = starts[--page->count];
        return;
    }
    plat_bug("a pad is given back that was not reserved", page->addr);
}

bool pad_page_overlaps(struct pad_page *page, uint16_t start)
{
    const uint16_t *starts = pad_page_starts(page);

    for (unsigned i = 0; i < page->count; i++) {
        if (starts[i] < start + PAD_LEN && start < starts[i] + PAD_LEN)
            return true;
    }
    return false;
}

struct pad_page *pad_page_showing(const struct pad_frame *frame)
{
    for (size_t i = 0; i <= table.mask; i++) {
        for (struct pad_page *page = table.buckets[i]; page; page = page->next) {
            if (page->frame == frame)
                return page;
        }
    }
    return NULL;
}

void pad_pages_forget_foreign(void)
{
    for (size_t i = 0; i <= table.mask; i++) {
        struct pad_page *page = table.buckets[i], *next;

        for (; page; page = next) {
            next = page->next;
            if (page->is_foreign)
                pad_page_forget(page);
        }
    }
}

size_t pad_pages(void)
{
    size_t count = 0;

    for (size_t i = 0; i <= table.mask; i++) {
        for (const struct pad_page *page = table.buckets[i]; page; page = page->next)
            count += page->frame != NULL;
    }
    return count;
}

size_t pad_page_bytes(void)
{
    size_t bytes = table.pages * sizeof(struct pad_page);

    if (table.buckets != first_buckets)
        bytes += (table.mask + 1) * sizeof(table.buckets[0]);
    for (size_t i = 0; i <= table.mask; i++) {
        for (const struct pad_page *page = table.buckets[i]; page; page = page->next)
            if (page->room > PAD_FEW)
                bytes += page->room * sizeof(page->many[0]);
    }
    return bytes;
}
