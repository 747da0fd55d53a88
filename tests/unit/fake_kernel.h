/* fake_kernel.h - heap and mutex for host programs that link files of kernel/.
 *
 * The heap is the host's, so that its sanitizers watch; allocations can be made to fail.
 */
#pragma once

#include <stddef.h>

/* fake_heap_fail_after - let the @n-th allocation from now, and all after it, fail.
 * @n: 1 and up; 0 none
 */
void fake_heap_fail_after(long n);

/* fake_heap_blocks - blocks that are not freed. */
size_t fake_heap_blocks(void);

/* fake_mutex_depth - mutexes that are held now. */
int fake_mutex_depth(void);
