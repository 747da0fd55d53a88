/* gdb_memory.h - memory as the program has it: without what probes have changed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* gdb_memory_read - as many of @len bytes at @addr as can be read. Text is the original;
 * a return address that a probe has exchanged is the one that the caller has pushed.
 * Return: how many. Context: serving.
 */
size_t gdb_memory_read(void *out, uintptr_t addr, size_t len);

/* gdb_memory_write - change @len bytes at @addr, which may be text.
 * Return: NULL: done; else a sentence that says why not. Context: serving.
 */
const char *gdb_memory_write(uintptr_t addr, const void *bytes, size_t len);
