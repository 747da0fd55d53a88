/* watcher.c - a module with handlers on another one, which it does not need: guest.c may come
 * and go before it and behind it.
 */
#include "kernel/base/compiler.h"
#include "probes/kprobe.h"

long watcher_hits, watcher_returns;

static int before(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    watcher_hits++;
    return 0;
}

static int at_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    watcher_returns++;
    return 0;
}

static struct kprobe probe = { .symbol_name = "guest:guest_twice",
                               .pre_handler = before,
                               .flags = KPROBE_FLAG_PENDING };
static struct kretprobe ret = { .kp = { .symbol_name = "guest:guest_twice",
                                        .flags = KPROBE_FLAG_PENDING },
                                .handler = at_return };

/* It takes nothing back: what is left is taken out with it. */
__attribute__((constructor)) static void watcher_init(void)
{
    register_kprobe(&probe);
    register_kretprobe(&ret);
}
