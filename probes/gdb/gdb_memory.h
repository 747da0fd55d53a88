/* gdb_memory.h - reads and writes memory as the program sees it: without the changes of
 * probes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* gdb_memory_read - read as many of @len bytes at @addr as can be read. Text is read as
 * the original text. If a probe has exchanged a return address, the address that the
 * caller has pushed is read.
 * Return: how many bytes. Context: any, preemption off.
 */
size_t gdb_memory_read(void *out, uintptr_t addr, size_t len);

/* gdb_memory_write - change @len bytes at @addr, which may be text.
 * Return: NULL; or why not, in words. Context: held.
 */
const char *gdb_memory_write(uintptr_t addr, const void *bytes, size_t len);

/* gdb_memory_must_tell - while the kernel stood, text has changed, or a debug register no
 * longer stops CPUs at an instruction. The stub's thread will tell the engine. Atomic.
 */
extern bool gdb_memory_must_tell;
