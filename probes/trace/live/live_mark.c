/* live_mark.c - makes the markers of the kernel events, events/markers/NAME. No line
 * defines such an event, and no line deletes it. While the event is armed, its marker is
 * connected.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/log.h"
#include "probes/marker/marker.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/language/def_mark.h"
#include "probes/trace/live/live.h"

struct marker_wish live_mark_wish(struct live_probe *p)
{
    return (struct marker_wish){ p->def->event, p->mark, live_mark_hit, p };
}

/* remove_mark - delete the event of a marker, unless a marker has its name and format. An
 * event that is in use stays, and has no hits until such a marker is loaded. If one of
 * another format is loaded when the event is not in use any more, the event makes room.
 */
static void remove_mark(const char *name)
{
    struct live_event *e = live_event_find(DEF_MARK_GROUP, name);
    struct live_probe *p = e ? live_mark(e) : NULL;

    if (p && !marker_exists(name, p->mark))
        live_withdraw(p);
}

static void live_marks_change(const struct marker_site *sites, size_t count, bool come)
{
    trace_lock();
    for (size_t i = 0; i < count; i++) {
        int err;

        remove_mark(sites[i].name);
        err = come ? live_add_mark(sites[i].name, sites[i].format) : 0;
        if (err && err != -EEXIST)
            log_warn("trace: the marker %s is no event: %s", sites[i].name,
                     err_text(err));
    }
    trace_unlock();
}

INIT void live_add_marks(void)
{
    marker_set_watch(live_marks_change);
}
