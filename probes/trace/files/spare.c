/* spare.c - the second set of rings, which a snapshot is taken with.
 *
 * It is empty, and of the same size as the buffer. A hit that wants a snapshot exchanges
 * the two sets, CPU by CPU: a record that is under way ends in the ring in which it has
 * begun. Then a thread, which looks a hundred times a second, sets aside what was taken, and
 * lays the next empty set there. Of two snapshots within that time the first is taken.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/thread/thread.h"
#include "probes/trace/files/buffer.h"
#include "probes/trace/files/snapshot.h"

#define LOOK_NS UINT64_C(10000000)

enum {
    SPARE_NONE,  /* there is no second set */
    SPARE_READY, /* it is empty */
    SPARE_BUSY,  /* it is being exchanged, or renewed */
    SPARE_TAKEN, /* it has what was recorded */
};

static uint32_t state;   /* [a] */
static bool is_followed; /* [T] the thread runs */
static bool is_asked;    /* [T] a snapshot may come */
static bool is_held;     /* [T] no snapshot is taken until snapshot_release() */

static bool move(uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&state, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* renew - from state @from. */
static int renew(uint32_t from)
{
    int err;

    if (!move(from, SPARE_BUSY))
        return 0;
    err = buffer_spare_renew(from == SPARE_TAKEN);
    __atomic_store_n(&state, err ? SPARE_NONE : SPARE_READY, __ATOMIC_RELEASE);
    return err;
}

static int follow(void *arg UNUSED)
{
    for (;;) {
        thread_sleep_ns(LOOK_NS);
        if (READ_ONCE(state) != SPARE_TAKEN)
            continue;
        trace_lock();
        renew(SPARE_TAKEN);
        trace_unlock();
    }
    return 0;
}

int snapshot_prepare(void)
{
    struct clone_args args = { .fn = follow, .name = "snapshot", .detached = true };
    int err = buffer_expand();

    if (!err)
        err = renew(SPARE_TAKEN);
    if (!err)
        err = renew(SPARE_NONE);
    is_asked |= !err;
    if (err || is_followed)
        return err;
    err = kernel_clone(&args);
    is_followed = err > 0;
    return err > 0 ? 0 : err;
}

bool snapshot_is_allocated(void)
{
    return is_asked;
}

void snapshot_forget(void)
{
    is_asked = false;
}

void snapshot_settle(void)
{
    renew(SPARE_TAKEN);
}

void snapshot_hold(void)
{
    while (READ_ONCE(state) != SPARE_NONE) {
        if (move(SPARE_READY, SPARE_BUSY)) {
            is_held = true;
            return;
        }
        if (move(SPARE_TAKEN, SPARE_BUSY)) {
            is_held = true;
            buffer_spare_renew(true); /* the empty set is made anew at the end */
            return;
        }
        pause(); /* a hit on another CPU exchanges them */
    }
}

void snapshot_release(void)
{
    int err;

    if (!is_held)
        return;
    is_held = false;
    err = buffer_spare_renew(false);
    __atomic_store_n(&state, err ? SPARE_NONE : SPARE_READY, __ATOMIC_RELEASE);
}

bool snapshot_take(void)
{
    if (!move(SPARE_READY, SPARE_BUSY))
        return false;
    buffer_spare_exchange();
    __atomic_store_n(&state, SPARE_TAKEN, __ATOMIC_RELEASE);
    return true;
}
