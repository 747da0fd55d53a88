/* port_optimizer.c - the thread in which the optimizer works.
 *
 * The thread waits a moment before it begins. A caller that arms probes one by one usually
 * arms many. All sites that wait by then are changed together, with shared synchronisations
 * and one quiescence.
 */
#include "kernel/base/compiler.h"
#include "kernel/sync/wait.h"
#include "kernel/thread/thread.h"
#include "probes/jump/optimize.h"
#include "probes/jump/platform_jump.h"
#include "probes/port/port.h"

#define DELAY_NS UINT64_C(5000000)

static struct wait_queue work = WAIT_QUEUE_INIT(work);
static bool wanted, is_busy;
static bool others_want; /* not only threads that work for the tracer */

void plat_optimize_soon(void)
{
    if (!thread_current()->own_work)
        WRITE_ONCE(others_want, true);
    WRITE_ONCE(wanted, true);
    wake_all(&work);
}

void plat_optimize_settle(void)
{
    wait_event(&work, !READ_ONCE(wanted) && !READ_ONCE(is_busy));
}

static int optimizer_thread(void *unused UNUSED)
{
    while (!wait_event_until(&work, READ_ONCE(wanted), WAIT_FOREVER)) {
        WRITE_ONCE(is_busy, true);
        thread_sleep_ns(DELAY_NS);
        WRITE_ONCE(wanted, false); /* first: a request during the pass is kept */
        thread_set_own_work(!__atomic_exchange_n(&others_want, false, __ATOMIC_RELAXED));
        optimize_run();
        WRITE_ONCE(is_busy, false);
        wake_all(&work);
    }
    return 0;
}

INIT int port_optimizer_start(void)
{
    int tid = kernel_clone(&(struct clone_args){
        .fn = optimizer_thread, .name = "optimizer", .detached = true });

    return tid < 0 ? tid : 0;
}
