/* user.c - a module that uses guest.c, and registers probes that it does not take back. */
#include "probes/kprobe.h"
#include "tests/kernel/modules/guest.h"

long user_hits;

static int before(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    user_hits++;
    return 0;
}

static struct kprobe on_guest = { .symbol_name = "guest:guest_twice",
                                  .pre_handler = before };

static int at_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    user_hits++;
    return 0;
}

static struct kretprobe on_image = { .kp.symbol_name = "vfs_stat", .handler = at_return };

__attribute__((constructor)) static void user_init(void)
{
    register_kprobe(&on_guest);
    register_kretprobe(&on_image);
    guest_twice(3);
}
