/* pun.h - plans for jumps in the place of shorter instructions. You write pun.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PAD_LEN 5 /* a pad is itself a jump */

struct text {
    uint64_t start;       /* the address of the text */
    const uint8_t *bytes; /* the bytes as they are now: bytes[0] is at start */
    size_t len;           /* all len bytes may be read; some are behind the last site */

    /* All five bytes of a pad must lie in [pads_start, hole_start) or in [hole_end,
     * pads_end). The hole between these areas has the text. An area may be as small as one
     * pad, or smaller.
     */
    uint64_t pads_start, hole_start, hole_end, pads_end;
};

/* An instruction that shall become a jump. */
struct site {
    size_t offset; /* from the start of the text */
    unsigned len;  /* of the instruction, 1 to 15 */

    /* Your answer. jump_len: how many bytes of jump[] shall be written; 0: there is no
     * plan, and the instruction stays as it is. pad: the address to which the jump leads.
     */
    unsigned jump_len;
    uint8_t jump[15];
    uint64_t pad;
};

/* plan - find a jump for as many of the @count sites as you can.
 * @sites: in ascending order, not overlapping; between them may be other instructions
 *
 * When all plans are written, each site with a plan must have a jump to its pad: E9 and a
 * displacement of four bytes. In front of E9 there may be up to ten prefixes that a jump
 * ignores (26 2e 36 3e 64 65, and then at most one of 40 to 4f). A plan writes only bytes
 * of its own instruction, so jump_len <= len. The other bytes of the displacement are
 * then the bytes of the text behind the instruction, as they are when all plans are
 * written. No two pads may overlap.
 */
void plan(const struct text *text, struct site *sites, size_t count);
