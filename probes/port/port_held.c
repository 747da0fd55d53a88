/* port_held.c - has the engine's locks, and its reserve of memory: blocks, and some
 * pages for code.
 *
 * Only one CPU takes blocks, while the machine is held. But any CPU may give blocks back,
 * at any time. So each word of the map of used blocks is changed by atomic instructions.
 */
#include "probes/port/port_held.h"

#include "kernel/base/bits.h"
#include "kernel/base/list.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/paging.h"
#include "kernel/sync/mutex.h"
#include "kernel/thread/sched.h"
#include "probes/core/platform.h"
#include "probes/jump/optimize.h"
#include "probes/jump/platform_jump.h"
#include "probes/port/port.h"

#include <string.h>

#define THREADS_MAX 65536 /* a list in the middle of a change may have a cycle */
#define BLOCK 64u
#define BLOCKS 2048u
#define WORDS (BLOCKS / 64)
#define LATE_PAGES_MAX 8
/* A page has cells of one size, and breakpoints need two sizes: 102 and 127 in a page.
 * With three pages any 200 new breakpoints have their cells.
 */
#define PAGES 3

static struct mutex locks[] = { MUTEX_INIT(locks[PLAT_PROBES]),
                                MUTEX_INIT(locks[PLAT_TEXT]) };

static uint8_t blocks[BLOCKS][BLOCK] ALIGNED(64);
static uint64_t used[WORDS];     /* bit i: block i is handed out; atomic */
static uint16_t lengths[BLOCKS]; /* of the memory that begins at each block, in blocks */
static void *pages[PAGES];       /* the pages for code; NULL: it is in use */
static struct late {
    struct late *next;
} * late_blocks; /* memory of the heap that was freed while the machine was held */
static void *late_pages[LATE_PAGES_MAX];
static bool uses_reserve, wants_optimizer;

bool port_can_arm(void)
{
    return mutex_is_free(&locks[PLAT_PROBES]) && mutex_is_free(&locks[PLAT_TEXT]);
}

void port_reserve(bool on)
{
    WRITE_ONCE(uses_reserve, on);
    wants_optimizer = true;
}

bool port_uses_reserve(void)
{
    return READ_ONCE(uses_reserve);
}

/* A CPU may have stopped while it searched a table that was replaced and freed in the
 * stop. A synchronisation ends all such searches.
 */
static void free_late(void)
{
    struct late *block = __atomic_exchange_n(&late_blocks, NULL, __ATOMIC_ACQ_REL);

    if (block)
        plat_sync_cores();
    while (block) {
        struct late *next = block->next;

        kfree(block);
        block = next;
    }
    for (size_t i = 0; i < LATE_PAGES_MAX; i++) {
        void *late = __atomic_exchange_n(&late_pages[i], NULL, __ATOMIC_ACQ_REL);

        if (late)
            exec_free(late, PAGE_SIZE);
    }
}

void port_held_refill(void)
{
    for (size_t i = 0; i < PAGES; i++)
        if (!pages[i])
            pages[i] = exec_alloc(PAGE_SIZE);
    free_late();
    if (!wants_optimizer)
        return;
    wants_optimizer = false;
    optimize_kick();
}

/* ---- locks ---- */

void plat_lock(enum plat_lock lock)
{
    mutex_lock(&locks[lock]);
}

void plat_unlock(enum plat_lock lock)
{
    mutex_unlock(&locks[lock]);
}

bool plat_lock_held(enum plat_lock lock)
{
    return mutex_held(&locks[lock]);
}

/* ---- blocks ---- */

static bool is_block_used(size_t block)
{
    return __atomic_load_n(&used[block / 64], __ATOMIC_ACQUIRE) & BIT(block % 64);
}

static bool are_free(size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (is_block_used(i))
            return false;
    return true;
}

void *port_held_alloc(size_t len)
{
    size_t count = len / BLOCK + 1;

    for (size_t first = 0; first + count <= BLOCKS; first++) {
        if (!are_free(first, count))
            continue;
        for (size_t i = first; i < first + count; i++)
            __atomic_or_fetch(&used[i / 64], BIT(i % 64), __ATOMIC_RELAXED);
        lengths[first] = (uint16_t)count;
        return memset(blocks[first], 0, count * BLOCK);
    }
    return NULL;
}

/* The list uses a pointer in the block itself. Every block of the heap has room for one. */
void port_held_free_late(void *p)
{
    struct late *block = p;

    if (!block)
        return;
    block->next = late_blocks;
    late_blocks = block;
}

void port_held_free_page(void *p)
{
    for (size_t i = 0; i < LATE_PAGES_MAX; i++) {
        if (late_pages[i])
            continue;
        late_pages[i] = p;
        return;
    }
}

bool port_held_free(void *p)
{
    size_t first = ((uintptr_t)p - (uintptr_t)blocks) / BLOCK;
    size_t count;

    if ((uintptr_t)p < (uintptr_t)blocks || first >= BLOCKS)
        return false;
    count = lengths[first];
    for (size_t i = first; i < first + count; i++)
        __atomic_and_fetch(&used[i / 64], ~BIT(i % 64), __ATOMIC_RELEASE);
    return true;
}

void *port_held_page(void)
{
    for (size_t i = 0; i < PAGES; i++) {
        void *taken = pages[i];

        pages[i] = NULL;
        if (taken)
            return taken;
    }
    return NULL;
}

/* ---- threads ---- */

void port_threads(bool (*fn)(struct thread *t, void *arg), void *arg)
{
    struct list *link = sched_all.next;
    struct thread copy;

    for (size_t n = 0; link && link != &sched_all && n < THREADS_MAX; n++) {
        struct thread *t = CONTAINER_OF(link, struct thread, all_link);

        if (copy_nofault(&copy, t, sizeof(copy)) || !fn(t, arg))
            return;
        link = copy.all_link.next;
    }
}
