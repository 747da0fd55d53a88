/* truth_nmi.c - sends NMIs from one CPU to another. Each is sent after the NMI before it
 * was handled: a CPU holds only one pending NMI, so a further one would be lost.
 */
#include "tests/truth/truth_nmi.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/thread/thread.h"
#include "kernel/work/work.h"

static bool storming;
static uint64_t taken; /* written by the CPU that takes them */
static uint64_t mixed; /* likewise: a hash of the interrupted addresses */

static bool storm_nmi(struct pt_regs *regs)
{
    if (!READ_ONCE(storming))
        return false;
    mixed ^= work_hash(regs->ip);
    __atomic_store_n(&taken, taken + 1, __ATOMIC_RELEASE);
    return true;
}

void truth_storm_init(void)
{
    trap_set_handler(TRAP_NMI, storm_nmi);
}

static int send(void *arg)
{
    struct truth_storm *s = arg;
    unsigned target = cpu_count() - 1;

    for (uint64_t i = 0; i < s->count && !READ_ONCE(s->is_enough); i++) {
        smp_send_nmi(target);
        while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) == i)
            pause();
        WRITE_ONCE(s->sent, i + 1);
    }
    return 0;
}

int truth_storm_start(struct truth_storm *s)
{
    struct clone_args args = { .fn = send, .arg = s, .name = "nmis", .cpus = BIT(0) };

    if (cpu_count() < 2)
        return -EINVAL;
    s->sent = 0;
    s->is_enough = false;
    taken = 0;
    WRITE_ONCE(storming, true);
    s->tid = kernel_clone(&args);
    return s->tid < 0 ? s->tid : 0;
}

bool truth_storm_running(const struct truth_storm *s)
{
    return READ_ONCE(s->sent) < s->count;
}

void truth_storm_end(struct truth_storm *s)
{
    WRITE_ONCE(s->is_enough, true);
    thread_join(s->tid, NULL);
    WRITE_ONCE(storming, false);
}
