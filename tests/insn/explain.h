/* explain.h - the differences from Zydis and objdump that are understood. Host only. */
#pragma once

#include "probes/insn/insn.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* explain_accepted - why do we decode @insn, though Zydis does not?
 * explain_refused - why do we not, though Zydis does?
 * explain_objdump - why does objdump cut differently?
 *
 * Return:  whether a row of the table explains it; the row is counted.
 */
bool explain_accepted(const ZydisDecoder *decoder, const struct insn *insn);
bool explain_refused(const ZydisDecodedInstruction *theirs);
bool explain_objdump(const ZydisDecoder *decoder, const uint8_t *bytes, size_t len,
                     const char *text);

/* explain_report - the rows that were used, as TAP comments. */
void explain_report(void);
