/* percpu_counters.c - maps counters behind each CPU's area when they are needed.
 *
 * A counter exists on all CPUs or on none, since code that counts does not know its CPU.
 */
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"

#define PER_PAGE (PAGE_SIZE / sizeof(uint64_t))

static size_t mapped; /* how many counters; guarded by the caller's lock */

/* page_add - map the page of CPU @cpu for the counters from @first on.
 * Return: 0, also if an earlier call of percpu_counters_map() has mapped the page and
 *         failed later; -ENOMEM.
 */
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
