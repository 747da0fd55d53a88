/* gdb_code.h - runs the conditions and commands of breakpoints: programs that gdb has
 * compiled (probes/agent).
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/gdb/gdb_packet.h"

#include <stdint.h>

struct gdb_code;

/* gdb_code_take - read the programs that stand behind the length in `Z`:
 *
 *     [;X LENGTH , CODE]...  [;cmds: PERSIST , [X LENGTH , CODE]...]
 *
 * @out: receives them, in memory of the engine's reserve; NULL: there are no programs
 * Return: NULL; or why not, in words. Context: held.
 */
const char *gdb_code_take(struct gdb_request *r, struct gdb_code **out);

/* gdb_code_equal - are both the same programs? Either may be NULL. Context: held. */
bool gdb_code_equal(const struct gdb_code *a, const struct gdb_code *b);

/* gdb_code_retire - put @code, which a later hit will not find any more, into the list of
 * retired code. A hit that has begun may still run it. @code may be NULL. Context: held.
 * gdb_code_free - free @code, which no hit runs any more. Context: any.
 * gdb_code_free_retired - wait until no hit runs retired code, and free it.
 * Context: thread.
 */
void gdb_code_retire(struct gdb_code *code);
void gdb_code_free(struct gdb_code *code);
void gdb_code_free_retired(void);

/* gdb_code_is_false - at a hit of the breakpoint at @addr: are there conditions, and is
 * none of them true? Nothing is reported or written, so a hit may ask this before it
 * checks anything else.
 * @code: NULL: it has no conditions
 *
 * Context: any.
 * Return:  false, too, if a condition cannot be computed.
 */
bool gdb_code_is_false(const struct gdb_code *code, uintptr_t addr,
                       const struct pt_regs *regs);

/* gdb_code_ask - decide at a hit of the breakpoint at @addr: shall the kernel stop? If
 * there are commands, and a condition holds or there is none, the commands are run
 * instead.
 * @code: NULL: it has no conditions
 *
 * Context: any.
 * Return:  1: stop; 0: go on; less than 0: a condition could not be computed.
 */
int gdb_code_ask(const struct gdb_code *code, uintptr_t addr, const struct pt_regs *regs);
