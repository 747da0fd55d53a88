/* held.c - has the operations on lists of held locks that are too rare to be inline. */
#include "kernel/sync/held.h"

#include "kernel/debug/ksyms.h"

#include <stdio.h>

/* The search ends there: the memory of a lock that was left may be overwritten. */
#define HELD_MAX 64

void held_remove(struct held_lock **list, struct held_lock *lock)
{
    for (unsigned i = 0; i < HELD_MAX && *list; i++, list = &(*list)->outer) {
        if (*list != lock)
            continue;
        *list = lock->outer;
        return;
    }
}

struct held_lock *held_leave(struct held_lock **list, uintptr_t low, uintptr_t high,
                             uintptr_t probe)
{
    struct held_lock *lock = *list;

    if (!lock || lock->taken_sp < low || lock->taken_sp >= high)
        return NULL;
    *list = lock->outer;
    WRITE_ONCE(lock->left_by, probe);
    return lock;
}

static int held_put_place(char *buf, size_t len, uintptr_t addr)
{
    struct ksym sym;

    if (ksyms_at(addr, &sym))
        return scnprintf(buf, len, "0x%lx", addr);
    return scnprintf(buf, len, "%s+0x%lx", sym.name, addr - sym.start);
}

const char *held_text(char buf[HELD_TEXT_MAX], const struct held_lock *lock)
{
    uintptr_t probe = READ_ONCE(lock->left_by);
    int n = scnprintf(buf, HELD_TEXT_MAX, "taken at ");

    n += held_put_place(buf + n, HELD_TEXT_MAX - (size_t)n, lock->taken_at);
    if (!probe)
        return buf;
    n += scnprintf(buf + n, HELD_TEXT_MAX - (size_t)n,
                   ", by the handler of the probe at ");
    n += held_put_place(buf + n, HELD_TEXT_MAX - (size_t)n, probe);
    scnprintf(buf + n, HELD_TEXT_MAX - (size_t)n, ", which was given up");
    return buf;
}
