/* grader.c - grades lab 4: states the lengths of the instructions in the input. Each line
 * of the input has 15 bytes.
 */
#include "docs/labs/host/grader.h"

#include "decode.h"

#include <stdio.h>

#define BYTES 15

static void lengths(void)
{
    unsigned bytes[BYTES];
    uint8_t code[BYTES];
    char text[3 * BYTES + 1];

    for (;;) {
        for (unsigned i = 0; i < BYTES; i++) {
            if (scanf("%2x", &bytes[i]) != 1)
                return;
            code[i] = (uint8_t)bytes[i];
        }
        for (unsigned i = 0; i < BYTES; i++)
            snprintf(text + 3 * i, 4, " %02x", code[i]);
        lab_fact("%s: %u bytes", text + 1, insn_length(code));
    }
}

const struct lab_line lab_lines[] = {
    { "one-byte", lengths },
    { "modrm", lengths },
    { "immediate", lengths },
    { "prefixes", lengths },
    { "two-byte", lengths },
    { "programs", lengths },
    { 0 },
};
