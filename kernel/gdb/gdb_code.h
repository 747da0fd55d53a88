/* gdb_code.h - what a breakpoint asks before it stops, and does instead of stopping: programs
 * of gdb's (probes/agent).
 */
#pragma once

#include "kernel/base/regs.h"
#include "kernel/gdb/gdb_session.h"

#include <stdint.h>

struct gdb_code;

/* gdb_code_take - read what is behind the length in `Z`:
 *
 *     [;X LENGTH , CODE]...  [;cmds: PERSIST , [X LENGTH , CODE]...]
 *
 * @out: receives memory of the engine's reserve; NULL: there are no programs
 * Return: NULL; or why not, in words. Context: serving.
 */
const char *gdb_code_take(struct gdb_request *r, struct gdb_code **out);

/* gdb_code_equal - do both do the same? Either may be NULL. Context: serving. */
bool gdb_code_equal(const struct gdb_code *a, const struct gdb_code *b);

/* gdb_code_retire - no hit that comes now runs @code, which may be NULL; a hit that has come
 * already still may. Context: serving.
 * gdb_code_free - no hit runs it any more. Context: any.
 * gdb_code_free_retired - free what is retired, when no hit runs it. Context: thread.
 */
void gdb_code_retire(struct gdb_code *code);
void gdb_code_free(struct gdb_code *code);
void gdb_code_free_retired(void);

/* gdb_code_is_false - at a hit of a breakpoint at @addr: are there conditions, and is none of
 * them true? Nothing is told and written, so that no more is asked before that.
 * @code: NULL: it has no conditions
 *
 * Context: any.
 * Return:  false, too, where a condition cannot be computed.
 */
bool gdb_code_is_false(const struct gdb_code *code, uintptr_t addr,
                       const struct pt_regs *regs);

/* gdb_code_ask - at a hit of a breakpoint at @addr: is the kernel to stop? If there are
 * commands, and one of the conditions holds, the commands are run instead.
 * @code: NULL: it has no conditions
 *
 * Context: any.
 * Return:  1: stop; 0: go on; less: a condition could not be computed.
 */
int gdb_code_ask(const struct gdb_code *code, uintptr_t addr, const struct pt_regs *regs);
