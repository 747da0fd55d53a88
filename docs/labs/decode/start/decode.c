/* decode.c - your decoder. */
#include "decode.h"

unsigned insn_length(const uint8_t *code)
{
    (void)code;
    return 1;
}
