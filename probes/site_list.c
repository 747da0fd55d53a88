/* site_list.c - sites that go through a stage together, to pay once for its synchronisation.
 */
#include "probes/life.h"

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
