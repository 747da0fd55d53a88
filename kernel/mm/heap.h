/* heap.h - kmalloc(): small blocks from size classes, larger blocks as runs of frames.
 *
 * New blocks hold 0xa5, freed blocks 0x6b. A red zone ends each block; it is checked when
 * the block is freed. The bytes of a freed block are checked before the block is used
 * again. If a check finds an overflow, a double free, a write after free, or an address
 * that is no block, it panics and names the block.
 */
#pragma once

#include <stddef.h>

/* Context of all: thread or boot or held, interrupts on or off.
 * Locks of all:   takes the heap lock.
 */

/* kmalloc, kzalloc - allocate @len bytes, aligned to 16. @len may be 0.
 * Return: the block; NULL without memory.
 */
void *kmalloc(size_t len);
void *kzalloc(size_t len); /* zeroed */

/* krealloc - allocate a block of @len bytes, copy the content of @p to it, and free @p.
 * Bytes behind the content are 0xa5.
 * @p: a block, or NULL
 * Return: the block; NULL without memory, and @p is as before.
 */
void *krealloc(void *p, size_t len);

/* kfree - free @p: a block, or NULL. */
void kfree(void *p);

/* heap_in_use - get how many bytes are allocated.
 * heap_block_count - get how many blocks are allocated.
 */
size_t heap_in_use(void);
size_t heap_block_count(void);

/* heap_fail_after - let the @n-th allocation from now fail. @n: 1 and up; -1: off. */
void heap_fail_after(long n);
