/* heap.h - kmalloc. Small blocks from size classes, larger ones as runs of frames.
 *
 * Fresh blocks hold 0xa5, freed ones 0x6b. A red zone ends each block; it is checked on
 * free. A freed block's bytes are checked before it is handed out again. What is found -
 * overflow, double free, write after free, an address that is no block - is a panic that
 * names the block.
 */
#pragma once

#include <stddef.h>

/* Context of all of these: thread or boot, also with interrupts off or a spinlock held;
 * not irq, trap or nmi.  Locks: take the heap lock.
 */

/* kmalloc, kzalloc - @len bytes, aligned to 16; any @len, 0 too, gives a block.
 * Return: the block; NULL without memory.
 */
void *kmalloc(size_t len);
void *kzalloc(size_t len); /* zeroed */

/* krealloc - a block of @len bytes that starts with the content of @p. New bytes are 0xa5.
 * @p: a block, gone on success; or NULL
 * Return: the block; NULL without memory, and @p is as before.
 */
void *krealloc(void *p, size_t len);

/* kfree - @p: a block, or NULL. */
void kfree(void *p);

/* heap_in_use - bytes asked for and not freed; heap_block_count - blocks. */
size_t heap_in_use(void);
size_t heap_block_count(void);

/* heap_fail_after - let the @n-th allocation from now fail, once. @n: 1 and up; -1 off. */
void heap_fail_after(long n);
