/* region_watch.c - let plat_quiesce() wait for threads that are where the jumps of
 * regions will be written.
 *
 * Any thread may have been interrupted or preempted between two instructions of a region.
 * If the jump were written now, such a thread would go on in the middle of the jump. So a
 * region is opened in these steps:
 *
 *   1. There is an int3 over the first byte.     No CPU comes in from the instruction in
 *                                                front any more. Only hits can still go
 *                                                on behind the first instruction
 *   2. region_open(): hits go on at the copies   Hits do not come in any more, either. A
 *                                                thread may still be in a cell that jumps
 *                                                back in here; plat_quiesce() waits for
 *                                                threads in cells anyway
 *   3. The region is watched; plat_quiesce()     All threads that were inside have left.
 *                                                No thread has come in meanwhile, because
 *                                                of steps 1 and 2, and because the rules
 *                                                allow no other way in
 *   4. The region is not watched any more. The rest of the jump is written, then its
 *      first byte
 *
 * The way back is simpler: the int3 is written, then the original bytes. The copies are
 * freed when no thread can be in them any more.
 *
 * The list of watched regions is written under PLAT_PROBES, and read by plat_quiesce() on
 * any CPU. Several threads may call plat_quiesce() at a time. If the list changes while a
 * thread waits there for another reason, that thread at most waits a little longer.
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
