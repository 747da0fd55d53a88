/* explain.h - explains the differences from Zydis and objdump that are known. Host
 * only.
 */
#pragma once

#include "probes/insn/insn.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* explain_accepted - explain why probes/insn decodes @insn, and Zydis does not.
 * explain_refused - explain why Zydis decodes @theirs, and probes/insn does not.
 * explain_objdump - explain why objdump takes other bytes for an instruction.
 *
 * Return:  whether a row of the table explains the difference. The row is counted.
 */
bool explain_accepted(const ZydisDecoder *decoder, const struct insn *insn);
bool explain_refused(const ZydisDecodedInstruction *theirs);
bool explain_objdump(const ZydisDecoder *decoder, const uint8_t *bytes, size_t len,
                     const char *text);

/* explain_report - print the rows that were used, as TAP comments. */
void explain_report(void);
