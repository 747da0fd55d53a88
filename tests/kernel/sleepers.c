/* sleepers.c - makes threads that sleep in one function, and wakes them together. */
#include "tests/kernel/sleepers.h"

#include "kernel/base/compiler.h"
#include "kernel/sync/wait.h"
#include "kernel/thread/thread.h"

#include <stdbool.h>

static struct wait_queue gate = WAIT_QUEUE_INIT(gate);
static volatile bool gate_open;

struct sleepers sleepers;

NOINLINE long sleep_inside(long x)
{
    __atomic_add_fetch(&sleepers.inside, 1, __ATOMIC_RELAXED);
    wait_event(&gate, gate_open);
    return 2 * x;
}

static int sleeper(void *arg)
{
    long x = (long)(uintptr_t)arg;

    if (sleep_inside(x) == 2 * x)
        __atomic_add_fetch(&sleepers.came_back, 1, __ATOMIC_RELAXED);
    return 0;
}

unsigned sleepers_start(int *tids, unsigned count)
{
    unsigned made = 0;

    gate_open = false;
    sleepers = (struct sleepers){ 0 };
    for (unsigned i = 0; i < count; i++) {
        tids[i] = kernel_clone(&(struct clone_args){
            .fn = sleeper, .arg = (void *)(uintptr_t)(i + 1), .name = "sleeper" });
        made += tids[i] > 0;
    }
    while (READ_ONCE(sleepers.inside) < made)
        thread_yield();
    return made;
}

void sleepers_end(const int *tids, unsigned count)
{
    gate_open = true;
    wake_all(&gate);
    for (unsigned i = 0; i < count; i++)
        if (tids[i] > 0)
            thread_join(tids[i], NULL);
}
