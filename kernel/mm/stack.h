/* stack.h - allocates stacks, each above a guard page that is never mapped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* stack_init - Context: boot. It is called by paging_init(). */
void stack_init(void);

/* stack_alloc - allocate a zeroed stack.
 * @len: bytes, 1 and up; rounded up to pages
 *
 * Context: boot or thread.  Locks: takes the stack lock.
 * Return:  its top: the address behind its last byte, page-aligned; NULL without memory.
 */
void *stack_alloc(size_t len);

/* stack_free - free a stack.
 * @top: from stack_alloc(), or NULL   @len: as for stack_alloc()
 *
 * Context: thread, interrupts on; boot. The caller is not on that stack; it shoots down.
 */
void stack_free(void *top, size_t len);

/* stack_guard_hit - does @addr lie in the guard page of a stack in use? A fault there is
 * a stack overflow. The CPU cannot push the frame of the #PF on the full stack: so it
 * raises #DF.
 * @base: gets the lowest usable address of that stack; may be NULL
 *
 * Context: any.
 */
bool stack_guard_hit(uintptr_t addr, uintptr_t *base);
