/* waiting.c - stage 1: probes that are registered and have no text, and text that goes. */
#include "probes/text/text_part.h"

#include "probes/core/life.h"

static struct site waiting; /* PLAT_PROBES: all probes that have no text */
static struct list parts = LIST_INIT(parts); /* PLAT_PROBES: text beside the image */

struct site *waiting_site(void)
{
    return &waiting;
}

void waiting_add(struct kprobe *p)
{
    p->site = &waiting;
    aggr_add(&waiting, p);
}

void text_part_add(struct text_part *t)
{
    t->closed = false;
    list_append(&parts, &t->link);
}

bool text_part_closed(uintptr_t addr)
{
    const struct text_part *t;

    list_for_each(t, &parts, link) {
        if (addr >= t->start && addr < t->end)
            return t->closed;
    }
    return false;
}
