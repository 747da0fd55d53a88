/* site_list.c - keeps lists of sites that go through a stage together, and so share its
 * synchronisations.
 */
#include "probes/core/life.h"

int site_list_make(struct site_list *list, size_t max, struct probe_reject *why)
{
    list->count = 0;
    list->sites = max > 1 ? plat_alloc(max * sizeof(list->sites[0])) : &list->one;
    return list->sites ? 0 : probe_refuse(why, PROBE_NO_MEMORY, 0);
}

void site_list_add(struct site_list *list, struct site *site)
{
    if (site->queued)
        return;
    site->queued = true;
    list->sites[list->count++] = site;
}

void site_list_close(struct site_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        list->sites[i]->queued = false;
}

void site_list_free(struct site_list *list)
{
    if (list->sites != &list->one)
        plat_free(list->sites);
}

size_t site_to_front(struct site **sites, size_t count,
                     bool (*is_wanted)(const struct site *site))
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        struct site *site = sites[i];

        if (!is_wanted(site))
            continue;
        sites[i] = sites[n];
        sites[n++] = site;
    }
    return n;
}

/* ---- in order ---- */

static bool site_list_is_sorted(struct site **sites, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (sites[i]->addr < sites[i - 1]->addr)
            return false;
    return true;
}

/* site_list_sink - move sites[i] down in the heap of @count sites, until no site below it
 * in the heap has a higher address.
 */
static void site_list_sink(struct site **sites, size_t count, size_t i)
{
    struct site *site = sites[i];

    for (size_t child = 2 * i + 1; child < count; child = 2 * i + 1) {
        if (child + 1 < count && sites[child + 1]->addr > sites[child]->addr)
            child++;
        if (site->addr >= sites[child]->addr)
            break;
        sites[i] = sites[child];
        i = child;
    }
    sites[i] = site;
}

/* Most lists are in order already. Other lists are sorted by a heap sort: it needs no
 * memory, and no function of the library, because any of these may carry a probe right
 * now.
 */
void site_list_sort(struct site_list *list)
{
    struct site **sites = list->sites;
    size_t count = list->count;

    if (site_list_is_sorted(sites, count))
        return;
    for (size_t i = count / 2; i-- > 0;)
        site_list_sink(sites, count, i);
    while (count-- > 1) {
        struct site *highest = sites[0];

        sites[0] = sites[count];
        sites[count] = highest;
        site_list_sink(sites, count, 0);
    }
}
