/* watcher.c - a module with probes on functions of guest.c, which it does not need:
 * guest.c may be loaded and unloaded before or after this module is.
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

/* The module unregisters nothing: when it is unloaded, the kernel unregisters its probes.
 */
__attribute__((constructor)) static void watcher_init(void)
{
    register_kprobe(&probe);
    register_kretprobe(&ret);
}
