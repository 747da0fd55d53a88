/* work_memory.c - workloads about memory: heap, frames, mappings, faults. */
#include "kernel/base/err.h"
#include "kernel/memmap.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/paging.h"
#include "kernel/mm/vmap.h"
#include "kernel/work/work.h"

#include <string.h>

/* -- heap: blocks of all sizes, freed in another order than they were taken ---------- */

#define HEAP_BLOCKS 16
#define HEAP_BLOCK_MAX 6000

struct held {
    uint8_t *block;
    size_t len;
    uint8_t mark;
};

/* let_go - free a block, and check that its bytes have not changed. */
static int let_go(struct held *h)
{
    int err = 0;

    for (size_t i = 0; h->block && i < h->len; i += 97)
        err = h->block[i] == h->mark ? err : -EIO;
    kfree(h->block);
    h->block = NULL;
    return err;
}

static int take_block(struct work_task *t, struct held *h)
{
    h->len = 1 + work_next(&t->seed) % HEAP_BLOCK_MAX;
    h->mark = (uint8_t)work_next(&t->seed);
    h->block = kmalloc(h->len);
    t->calls++;
    if (!h->block)
        return -ENOMEM;
    memset(h->block, h->mark, h->len);
    t->result = work_hash(t->result ^ h->len ^ h->mark);
    return 0;
}

static int heap_task(struct work_task *t)
{
    struct held held[HEAP_BLOCKS] = { 0 };
    int err = 0;

    for (unsigned i = 0; !err && i < 60; i++) {
        struct held *h = &held[work_next(&t->seed) % HEAP_BLOCKS];

        err = let_go(h);
        if (!err)
            err = take_block(t, h);
        if (!err)
            err = work_stop();
    }
    for (unsigned i = 0; i < HEAP_BLOCKS; i++) {
        int one = let_go(&held[i]);

        err = err ? err : one;
    }
    return err;
}

static int heap_run(struct work *w)
{
    w->function = "kmalloc";
    return work_spread(w, heap_task, NULL);
}
WORKLOAD(heap, heap_run, "threads on all CPUs allocate, check and free blocks");

/* -- frame: physical memory ---------------------------------------------------------- */

static int use_frame(struct work *w, uint64_t phys)
{
    uint64_t *words = phys_to_virt(phys);
    uint64_t stamp = work_random(w);

    for (size_t i = 0; i < PAGE_SIZE / sizeof(*words); i++) {
        if (words[i])
            return -EIO;
        words[i] = stamp ^ i;
    }
    work_mix(w, words[stamp % (PAGE_SIZE / sizeof(*words))]);
    return 0;
}

static int frame_run(struct work *w)
{
    int err = 0;

    w->function = "frame_alloc";
    for (unsigned i = 0; !err && i < 50; i++) {
        uint64_t phys = frame_alloc();

        w->calls++;
        if (phys == FRAME_NONE)
            return -ENOMEM;
        err = use_frame(w, phys);
        frame_free(phys);
    }
    return err;
}
WORKLOAD(frame, frame_run, "take frames of physical memory, zeroed, and give them back");

/* -- map: page tables and shootdowns ------------------------------------------------- */

static int use_mapping(struct work *w, uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i += PAGE_SIZE)
        p[i] = (uint8_t)work_random(w);
    if (page_protect((uintptr_t)p, PROT_R))
        return -EIO;
    if (copy_nofault(p, "x", 1) != -EFAULT)
        return -EIO;
    for (size_t i = 0; i < len; i += PAGE_SIZE)
        work_mix(w, p[i]);
    return 0;
}

static int map_run(struct work *w)
{
    int err = 0;

    w->function = "vmap_alloc";
    for (unsigned i = 0; !err && i < 8; i++) {
        size_t len = PAGE_SIZE * (1 + work_random(w) % 8);
        void *p = vmap_alloc(len, PROT_W);

        w->calls++;
        if (!p)
            return -ENOMEM;
        err = use_mapping(w, p, len);
        vmap_free(p, len);
    }
    return err;
}
WORKLOAD(map, map_run, "map memory, make it read-only, unmap it on all CPUs");

/* -- fault: copies from bad addresses ------------------------------------------------ */

/* The 2 MiB below the image are never mapped. The second address is not canonical, and
 * the third one is in the zero page.
 */
static const uintptr_t bad_addresses[] = { KERNEL_VMA + 0x1000, 0x8000000000000000,
                                           0x10 };

static int fault_task(struct work_task *t)
{
    char from[64], to[64];

    for (unsigned i = 0; i < 30; i++) {
        uint64_t random = work_next(&t->seed);
        bool bad = random % 2;
        const void *src = bad ? (void *)bad_addresses[random % 3] : from;
        int err;

        memset(from, (int)(random >> 8), sizeof(from));
        err = copy_nofault(to, src, sizeof(to));
        t->calls++;
        if (err != (bad ? -EFAULT : 0))
            return -EIO;
        if (!bad)
            t->result = work_hash(t->result ^ work_hash_text(to, sizeof(to)));
        else
            t->result = work_hash(t->result + 1);
    }
    return 0;
}

static int fault_run(struct work *w)
{
    w->function = "copy_nofault";
    return work_spread(w, fault_task, NULL);
}
WORKLOAD(fault, fault_run, "threads on all CPUs copy from good and from bad addresses");
