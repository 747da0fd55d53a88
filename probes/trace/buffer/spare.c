/* spare.c - keeps the second set of rings, with which a snapshot is taken.
 *
 * The second set is empty, and has the size of the buffer. A hit that takes a snapshot
 * exchanges the two sets, CPU by CPU. A record that is being written then is completed in
 * the ring in which it was begun. A thread looks a hundred times a second: it keeps the
 * exchanged rings as the snapshot, and makes the next empty set. A second snapshot within
 * that time is not taken.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/sync/wait_check.h"
#include "kernel/thread/thread.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/snapshot.h"

#define LOOK_NS UINT64_C(10000000)

enum {
    SPARE_NONE,  /* there is no second set */
    SPARE_READY, /* the second set is empty */
    SPARE_BUSY,  /* the second set is being exchanged or renewed, or is held */
    SPARE_TAKEN, /* the second set has the events of a snapshot */
};

/* Locks:  T the trace lock   a any, atomically */
static uint32_t state;      /* [a] */
static bool is_followed;    /* [T] the thread runs */
bool snapshot_is_allocated; /* [T] the file or a trigger has asked for snapshots */
static bool is_held;        /* [T] no snapshot is taken until snapshot_release() */

static bool spare_move(uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&state, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* renew - make an empty second set, if the state is @from. */
static int renew(uint32_t from)
{
    int err;

    if (!spare_move(from, SPARE_BUSY))
        return 0;
    err = buffer_spare_renew(from == SPARE_TAKEN);
    __atomic_store_n(&state, err ? SPARE_NONE : SPARE_READY, __ATOMIC_RELEASE);
    return err;
}

static int spare_follow(void *arg UNUSED)
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
    struct clone_args args = { .fn = spare_follow, .name = "snapshot", .detached = true };
    int err = wait_check(__func__);

    if (!err)
        err = buffer_expand();
    if (!err)
        err = renew(SPARE_TAKEN);
    if (!err)
        err = renew(SPARE_NONE);
    snapshot_is_allocated |= !err;
    if (err || is_followed)
        return err;
    err = kernel_clone(&args);
    is_followed = err > 0;
    return err > 0 ? 0 : err;
}

void snapshot_settle(void)
{
    renew(SPARE_TAKEN);
}

void snapshot_hold(void)
{
    while (READ_ONCE(state) != SPARE_NONE) {
        if (spare_move(SPARE_READY, SPARE_BUSY)) {
            is_held = true;
            return;
        }
        if (spare_move(SPARE_TAKEN, SPARE_BUSY)) {
            is_held = true;
            buffer_spare_renew(true); /* snapshot_release() makes another empty set */
            return;
        }
        pause(); /* a hit on another CPU is exchanging the sets */
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
    if (!spare_move(SPARE_READY, SPARE_BUSY))
        return false;
    buffer_spare_exchange();
    __atomic_store_n(&state, SPARE_TAKEN, __ATOMIC_RELEASE);
    return true;
}
