/* gdb_place.c - owns the probes of tracepoints: one for each address, in a struct gdb_place.
 *
 * QTStart arms all places while all CPUs stand, so all tracepoints begin at once. QTStop
 * leaves the probes; the stub's thread takes them out later, as those of breakpoints.
 * Until then a hit finds no tracepoint, and does nothing.
 */
#include "probes/gdb/gdb_place.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "probes/gdb/gdb_break.h"
#include "probes/gdb/gdb_stop.h"
#include "probes/kprobe.h"

#include <string.h>

#define PLACES_MAX 128

/* An address at which tracepoints are armed.
 * Locks:  s written while serving, read by hits   w written by the stub's thread as well
 */
static struct gdb_place {
    enum { FREE, THERE, LEAVING } state; /* [s, w] */
    struct gdb_tracepoint *first;        /* [s] NULL: the place is not wanted */
    struct kprobe kp;
} places[PLACES_MAX];

static int place_hit(struct kprobe *kp, struct pt_regs *regs)
{
    struct gdb_place *place = CONTAINER_OF(kp, struct gdb_place, kp);
    struct gdb_tracepoint *first = READ_ONCE(place->first);

    if (first && READ_ONCE(gdb_trace_state.runs) && !gdb_is_serving())
        gdb_collect(first, regs);
    return 0;
}

static struct gdb_place *place_at(uintptr_t addr)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        if (places[i].state == THERE && (uintptr_t)places[i].kp.addr == addr &&
            gdb_break_is_armed(&places[i].kp))
            return &places[i];
    return NULL;
}

static struct gdb_place *free_place(void)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        if (places[i].state == FREE)
            return &places[i];
    return NULL;
}

COLD const char *gdb_place_arm(struct gdb_tracepoint *tp)
{
    struct gdb_place *place = place_at(tp->addr);
    struct gdb_tracepoint **end;
    const char *why;

    if (!place) {
        place = free_place();
        if (!place)
            return "128 addresses have tracepoints already: let the kernel run first";
        memset(place, 0, sizeof(*place));
        place->kp.pre_handler = place_hit;
        why = gdb_break_arm(&place->kp, tp->addr);
        if (why)
            return why;
        place->state = THERE;
    }
    for (end = &place->first; *end && *end != tp; end = &(*end)->next)
        continue;
    WRITE_ONCE(*end, tp);
    return NULL;
}

COLD static void place_leave(struct gdb_place *place)
{
    struct gdb_tracepoint *tp = place->first, *next;

    WRITE_ONCE(place->first, NULL);
    for (; tp; tp = next) {
        next = tp->next;
        tp->next = NULL;
    }
}

COLD void gdb_place_leave_all(void)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        place_leave(&places[i]);
}

/* place_take_out - take out the probe of @place, if it is not wanted. If the kernel stops in
 * the middle of this, the place is LEAVING: then place_at() does not find it, and another
 * place is used.
 */
COLD static void place_take_out(struct gdb_place *place)
{
    unsigned long flags = irq_save();
    bool goes = place->state == THERE && !place->first;

    if (goes)
        place->state = LEAVING;
    irq_restore(flags);
    if (!goes)
        return;
    unregister_kprobe(&place->kp);
    __atomic_store_n(&place->state, FREE, __ATOMIC_RELEASE);
}

COLD void gdb_place_work(void)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        place_take_out(&places[i]);
}
