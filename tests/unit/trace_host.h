/* trace_host.h - a small kernel for definitions: a few symbols, a heap that is counted. */
#pragma once

#include "probes/trace/def.h"

#define VFS_READ 0xffffffff80001000ul
#define VFS_WRITE 0xffffffff80002000ul
#define JIFFIES 0xffffffff80009000ul /* data */

/* Symbols: vfs_read, vfs_write, do.part.0, jiffies, and two that are called twice. Module
 * `mod` has mod_init at 0xffffffffa0000000; module `gone` is not there.
 */
extern struct def_host trace_host;

/* trace_host_fail_after - let the @n-th allocation from now fail; 0: none. */
void trace_host_fail_after(long n);
/* trace_host_blocks - blocks that are not freed. */
long trace_host_blocks(void);
