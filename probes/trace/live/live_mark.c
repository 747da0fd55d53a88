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

static void live_marks_came(const struct marker_site *sites, size_t count)
{
    trace_lock();
    for (size_t i = 0; i < count; i++) {
        int err = live_add_mark(sites[i].name, sites[i].format);

        if (err && err != -EEXIST)
            log_warn("trace: the marker %s is no event: %s", sites[i].name,
                     err_text(err));
    }
    trace_unlock();
}

static void live_marks_went(const struct marker_site *sites, size_t count)
{
    trace_lock();
    for (size_t i = 0; i < count; i++)
        if (!marker_exists(sites[i].name))
            live_remove_mark(sites[i].name);
    trace_unlock();
}

INIT void live_add_marks(void)
{
    marker_set_watch(live_marks_came, live_marks_went);
}
