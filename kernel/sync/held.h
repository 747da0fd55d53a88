/* held.h - lists the locks that a CPU or a thread holds, latest first.
 *
 * The lists serve reports: a handler that is given up keeps the locks that it has taken,
 * and the log names these locks. Only the owner of a list, which is the CPU or the
 * thread, changes the list. An interrupt in the middle of a change finds a valid list,
 * and leaves the list as it was.
 */
#pragma once

#include "kernel/base/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct held_lock {
    struct held_lock *outer; /* taken before this one, and still held */
    uintptr_t taken_at;      /* ip of the code that has taken it */
    uintptr_t taken_sp;      /* the stack pointer of that code */
    uintptr_t left_by;       /* address of the probe with the given-up handler; 0: none */
};

/* held_here - store the ip and the stack pointer of the caller, which takes @lock now. */
static ALWAYS_INLINE void held_here(struct held_lock *lock)
{
    __asm__ volatile("leaq 0(%%rip), %0; movq %%rsp, %1"
                     : "=r"(lock->taken_at), "=r"(lock->taken_sp));
}

/* held_push - put @lock, which has just been taken, into @list.
 * Context: any, preemption off. The caller is the owner of @list.
 */
static ALWAYS_INLINE void held_push(struct held_lock **list, struct held_lock *lock)
{
    lock->left_by = 0;
    lock->outer = *list;
    *list = lock;
}

/* held_remove - take @lock out of @list, wherever it is; if it is not there, do nothing. */
void held_remove(struct held_lock **list, struct held_lock *lock);

/* held_pop - take @lock, which is about to be given back, out of @list.
 * Context: as held_push().
 */
static ALWAYS_INLINE void held_pop(struct held_lock **list, struct held_lock *lock)
{
    if (likely(*list == lock))
        *list = lock->outer;
    else
        held_remove(list, lock);
}

/* held_leave - take the latest lock out of @list if it was taken with a stack pointer in
 * [@low, @high), by a handler of the probe at @probe that will not give it back.
 * Context: as held_push().  Return: the lock; NULL: there is no such lock.
 */
struct held_lock *held_leave(struct held_lock **list, uintptr_t low, uintptr_t high,
                             uintptr_t probe);

#define HELD_TEXT_MAX 320
/* held_text - write "taken at SYM+OFF", and for a lock that a given-up handler holds also
 * ", by the handler of the probe at SYM+OFF, which was given up". Context: any.
 * Return: @buf.
 */
const char *held_text(char buf[HELD_TEXT_MAX], const struct held_lock *lock);
