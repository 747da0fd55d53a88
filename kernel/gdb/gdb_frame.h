/* gdb_frame.h - the trace frame that the debugger looks at, instead of at the kernel. */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* gdb_frame_is_selected - Context: serving. */
bool gdb_frame_is_selected(void);

/* gdb_frame_regs - its registers, as they were collected; NULL: they were not.
 * gdb_frame_ip - the address of its tracepoint.
 * Context: serving, a frame is selected.
 */
const struct pt_regs *gdb_frame_regs(void);
uintptr_t gdb_frame_ip(void);

/* gdb_frame_read - as many of @len bytes at @addr as it has, or as never change.
 * Return: how many. Context: as gdb_frame_regs().
 */
size_t gdb_frame_read(void *out, uintptr_t addr, size_t len);

/* gdb_frame_forget - the kernel runs again: no frame is selected. Context: serving. */
void gdb_frame_forget(void);
