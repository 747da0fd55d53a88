/* trace_host.h - a small kernel for tests of definitions: a few symbols, and a heap that
 * counts its blocks.
 */
#pragma once

#include "probes/trace/language/def.h"

#define VFS_READ 0xffffffff80001000ul
#define VFS_WRITE 0xffffffff80002000ul
#define JIFFIES 0xffffffff80009000ul /* data */

/* The symbols are vfs_read, vfs_write, do.part.0, jiffies, and two with the name `twice`.
 * The module `mod` has mod_init at 0xffffffffa0000000; a module `gone` is not loaded.
 */
extern struct def_host trace_host;

/* trace_host_fail_after - let the @n-th allocation from now fail; 0: none fails. */
void trace_host_fail_after(long n);
/* trace_host_blocks - return the number of blocks that are not freed yet. */
long trace_host_blocks(void);
