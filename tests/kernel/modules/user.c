/* user.c - a module that calls a function of guest.c, so that it needs guest.c. It
 * registers probes that it does not unregister.
 */
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
