/* boost.c - your copies. */
#include "boost.h"

#include <string.h>

unsigned boost(uint8_t *out, uint64_t cell, const struct insn *insn)
{
    (void)cell;
    memcpy(out, insn->bytes, insn->len);
    return insn->len;
}
