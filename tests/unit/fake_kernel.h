/* fake_kernel.h - provides heap and mutexes for host programs that link files of kernel/.
 *
 * Memory comes from malloc() of the host, so that the sanitizers watch it. A test can let
 * allocations fail.
 */
#pragma once

#include <stddef.h>

/* fake_heap_fail_after - let the @n-th allocation from now, and all after it, fail.
 * @n: 1 and up; 0: none fails
 */
void fake_heap_fail_after(long n);

/* fake_heap_blocks - return the number of blocks that are not freed yet. */
size_t fake_heap_blocks(void);

/* fake_mutex_depth - return the number of mutexes that are held now. */
int fake_mutex_depth(void);
