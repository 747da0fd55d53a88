/* gdb_frame.h - shows the debugger a trace frame in place of the kernel, while the
 * debugger has selected one.
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* gdb_frame_init - allocate memory in which frames of @rings rings are put together.
 * Context: boot. Return: false: there is no memory.
 */
bool gdb_frame_init(unsigned rings);

/* gdb_frame_is_selected - is a frame selected? Context: held. */
bool gdb_frame_is_selected(void);

/* gdb_frame_regs - return the registers of the selected frame, as collected; NULL: they
 * were not.
 * gdb_frame_ip - return the address of its tracepoint.
 * Context: held. A frame is selected.
 */
const struct pt_regs *gdb_frame_regs(void);
uintptr_t gdb_frame_ip(void);

/* gdb_frame_read - read as many of @len bytes at @addr as the selected frame has. If it
 * has none, memory that is never written is read from the kernel.
 * Return: how many bytes. Context: as gdb_frame_regs().
 */
size_t gdb_frame_read(void *out, uintptr_t addr, size_t len);

/* gdb_frame_constant_add - let [@start, @end) be memory that is never written, as the
 * debugger says. Return: false: there is no room for a further range.
 * gdb_frame_constants_clear - forget all of these. Context: held.
 */
bool gdb_frame_constant_add(uintptr_t start, uintptr_t end);
void gdb_frame_constants_clear(void);

/* gdb_frame_forget - select no frame, since the kernel runs again. Context: held. */
void gdb_frame_forget(void);
