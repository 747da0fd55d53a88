/* decode.c - the right answers: the lengths that the engine's decoder finds. */
#include "decode.h"

#include "probes/insn/insn.h"

unsigned insn_length(const uint8_t *code)
{
    struct insn insn;

    return insn_decode(&insn, code, INSN_MAX_LEN, 0) ? 0 : insn.len;
}
