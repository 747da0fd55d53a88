/* watcher.c - a module with probes on functions of guest.c, which it does not need:
 * guest.c may be loaded and unloaded before or after this module is.
 */
#include "kernel/base/compiler.h"
#include "kernel/fs/vfs.h"
#include "probes/kprobe.h"
#include "tests/kernel/loaded.h"

long watcher_hits, watcher_returns, watcher_calls;

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

static struct watch watch = { .kind = WATCH_WRITE, .len = 8 };

static void touched(struct watch *w UNUSED, struct pt_regs *regs UNUSED)
{
}

static uint64_t called(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    return (uint64_t)++watcher_calls;
}

static const struct kprobe_op ops[] = { KPROBE_CALL(called) };
static struct kprobe_program program = { .ops = ops, .count = 1 };

/* The module unregisters nothing: when it is unloaded, the kernel unregisters its probes
 * and watches, and those of others that would call it.
 */
__attribute__((constructor)) static void watcher_init(void)
{
    register_kprobe(&probe);
    register_kretprobe(&ret);
    watch.addr = (uintptr_t)&guest_total;
    register_watch(&watch);
    lent_watch = (struct watch){ .addr = watch.addr, .len = 8, .handler = touched };
    register_watch(&lent_watch);
    lent_probe = (struct kprobe){ .addr = (uintptr_t)vfs_stat, .program = &program };
    register_kprobe(&lent_probe);
}
