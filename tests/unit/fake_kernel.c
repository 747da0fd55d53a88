/* fake_kernel.c - defines the kernel's functions for heap and mutexes, for host programs;
 * see fake_kernel.h.
 */
#include "tests/unit/fake_kernel.h"

#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"

#include <stdlib.h>
#include <string.h>

static size_t blocks;
static long until_failure; /* 0: none fails; 1: the next allocation and all later ones */
static int held;

void fake_heap_fail_after(long n)
{
    until_failure = n;
}

size_t fake_heap_blocks(void)
{
    return blocks;
}

int fake_mutex_depth(void)
{
    return held;
}

static int must_fail(void)
{
    if (until_failure > 1) {
        until_failure--;
        return 0;
    }
    return until_failure == 1;
}

void *kmalloc(size_t len)
{
    void *p;

    if (must_fail())
        return NULL;
    p = malloc(len ? len : 1);
    if (!p)
        abort();
    memset(p, 0xa5, len);
    blocks++;
    return p;
}

void *kzalloc(size_t len)
{
    void *p = kmalloc(len);

    if (p)
        memset(p, 0, len);
    return p;
}

void *krealloc(void *old, size_t len)
{
    void *p;

    if (must_fail())
        return NULL;
    p = realloc(old, len ? len : 1);
    if (!p)
        abort();
    blocks += old == NULL;
    return p;
}

void kfree(void *p)
{
    blocks -= p != NULL;
    free(p);
}

bool mutex_any_held(void)
{
    return held;
}

void mutex_lock(struct mutex *m)
{
    if (m->owner)
        abort();
    m->owner = (void *)m;
    held++;
}

void mutex_unlock(struct mutex *m)
{
    if (!m->owner)
        abort();
    m->owner = NULL;
    held--;
}
