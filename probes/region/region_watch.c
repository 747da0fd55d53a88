/* region_watch.c - where threads may still be while jumps over several instructions are
 * written.
 *
 * How a region is opened. Any thread may have been interrupted or preempted between two of
 * its instructions, and would go on in the middle of the jump.
 *
 *   1. int3 stands over the first byte           no CPU falls in from above any more, but
 *                                                for those the engine sends on behind it
 *   2. it sends them to copies from now on       no CPU comes from there either; a cell
 *                                                that jumps back in here counts as a place
 *                                                to be waited for, as always
 *   3. the region is watched; plat_quiesce()     threads inside have left. None entered
 *                                                meanwhile: 1 and 2, and the rules say that
 *                                                there is no other way in
 *   4. the region is watched no longer; the rest of the jump, then its first byte
 *
 * Back is simpler: int3, the original bytes, and when no thread can be in the copies any
 * more, these are freed.
 *
 * Written under PLAT_PROBES, read by quiescence on any CPU. Several threads may wait for
 * quiescence at a time. A thread that waits for something else may see the list change:
 * that can only make it look once more.
 */
#include "kernel/base/compiler.h"
#include "probes/core/platform.h"
#include "probes/region/region.h"

static uintptr_t watched[REGION_WATCH_MAX]; /* ascending */
static size_t watched_count;

void region_watch(const uintptr_t *addrs, size_t count)
{
    if (count > REGION_WATCH_MAX || watched_count)
        plat_bug("more regions are watched than fit", count ? addrs[0] : 0);
    for (size_t i = 0; i < count; i++)
        WRITE_ONCE(watched[i], addrs[i]);
    __atomic_store_n(&watched_count, count, __ATOMIC_RELEASE);
}

void region_unwatch(void)
{
    __atomic_store_n(&watched_count, 0, __ATOMIC_RELEASE);
}

bool region_is_watched(uintptr_t ip)
{
    size_t low = 0, high = __atomic_load_n(&watched_count, __ATOMIC_ACQUIRE);

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uintptr_t addr = READ_ONCE(watched[middle]);

        if (ip <= addr)
            high = middle;
        else if (ip >= addr + REGION_JUMP_LEN)
            low = middle + 1;
        else
            return true;
    }
    return false;
}
