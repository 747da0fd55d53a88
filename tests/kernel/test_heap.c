/* test_heap.c - kmalloc() in the kernel: its counters, blocks that CPUs share, and
 * running out of memory. Tests on the host check how the heap divides memory into blocks.
 */

#include "kernel/mm/frame.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"

static bool holds(const uint8_t *p, uint8_t value, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i] != value)
            return false;
    }
    return true;
}

KTEST(heap, blocks_are_counted)
{
    size_t bytes = heap_in_use(), blocks = heap_block_count();
    uint8_t *a = kmalloc(100), *b = kzalloc(100000), *c = kmalloc(0);

    ktest_report(holds(a, 0xa5, 100), "a new block holds 0xa5");
    ktest_report(holds(b, 0, 100000), "a zeroed one zeroes");
    ktest_report(c != NULL, "a block of no bytes is a block");
    ktest_report(heap_in_use() == bytes + 100100, "their bytes are counted");
    ktest_report(heap_block_count() == blocks + 3, "and the blocks");
    kfree(a);
    kfree(b);
    kfree(c);
    kfree(NULL);
    ktest_report(kmalloc((size_t)64 * GiB) == NULL, "64 GiB are refused");
    ktest_report(heap_in_use() == bytes && heap_block_count() == blocks,
                 "and discounted");
}

KTEST(heap, works_with_interrupts_off)
{
    unsigned long flags = irq_save();
    void *small = kmalloc(64), *large = kmalloc(1 * MiB);
    bool off = !irqs_enabled();

    kfree(small);
    kfree(large);
    off &= !irqs_enabled();
    irq_restore(flags);
    ktest_report(small && large && off, "small and large ones, and they stay off");
}

#define BLOCKS 20000
#define BLOCK_LEN 100 /* about the memory of a probe */

KTEST(heap, small_blocks_are_cheap)
{
    struct frame_stats before, with, after;
    void **blocks = kmalloc(BLOCKS * sizeof(*blocks));
    size_t frames;

    frame_stats_get(&before);
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = kmalloc(BLOCK_LEN);
    frame_stats_get(&with);
    for (unsigned i = 0; i < BLOCKS; i++)
        kfree(blocks[i]);
    frame_stats_get(&after);
    frames = before.free - with.free;
    ktest_report(frames * PAGE_SIZE <= BLOCKS * (BLOCK_LEN + 16),
                 "%u blocks of %u bytes cost %zu frames", BLOCKS, BLOCK_LEN, frames);
    ktest_report(before.free - after.free <= 8, "which go back, but for a spare");
    kfree(blocks);
}

#define SLOTS 64
#define ROUNDS 3000

/* Blocks that one CPU allocates and another frees. */
static void *shared[SLOTS];

static int exchange_blocks(void *arg UNUSED)
{
    uint64_t state = (uint64_t)thread_tid() * 77777;
    int bad = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        size_t len = 2 + (state >> 33) % ((state >> 60) ? 200 : 20000);
        uint8_t *p = kmalloc(len), *old;

        p[0] = p[len - 1] = (uint8_t)len;
        old = __atomic_exchange_n(&shared[(state >> 20) % SLOTS], p, __ATOMIC_ACQ_REL);
        bad += old && old[0] == 0x6b && old[1] == 0x6b;
        kfree(old);
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    }
    return bad;
}

KTEST(heap, cpus_share_it)
{
    size_t blocks = heap_block_count();
    unsigned bad = each_cpu_run(exchange_blocks, NULL);

    for (unsigned i = 0; i < SLOTS; i++) {
        kfree(shared[i]);
        shared[i] = NULL;
    }
    ktest_report(bad == 0, "no block was given away while in use");
    ktest_report(heap_block_count() <= blocks + 2, "nothing is left over");
}
