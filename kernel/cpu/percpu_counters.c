/* percpu_counters.c - counters behind each CPU's area, mapped when they are needed.
 *
 * They are there on all CPUs or on none, since code that counts does not know where it runs.
 */
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"

#define PER_PAGE (PAGE_SIZE / sizeof(uint64_t))

static size_t mapped; /* counters; the caller's lock */

/* page_add - Return: 0, also when it is there from an attempt that failed later; -ENOMEM. */
static int page_add(unsigned cpu, size_t first)
{
    uint64_t frame = frame_alloc();
    int err;

    if (frame == FRAME_NONE)
        return -ENOMEM;
    err = page_map((uintptr_t)percpu_counter(cpu, first), frame, PROT_W);
    if (err)
        frame_free(frame);
    return err == -EEXIST ? 0 : err;
}

size_t percpu_counters_bytes(void)
{
    return mapped * sizeof(uint64_t) * cpu_count();
}

int percpu_counters_map(size_t count)
{
    if (count > PERCPU_COUNTERS_MAX)
        return -ENOMEM;
    for (; mapped < count; mapped += PER_PAGE) {
        for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
            int err = page_add(cpu, mapped);

            if (err)
                return err;
        }
    }
    return 0;
}
