/* pun.h - jumps in the place of instructions that are shorter. You write pun.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PAD_LEN 5 /* a pad is a jump as well */

struct text {
    uint64_t start;       /* its address */
    const uint8_t *bytes; /* as they are now: bytes[0] is at start */
    size_t len;           /* all of them may be read, some behind the last site too */

    /* A pad may lie at [pads_start, hole_start) and at [hole_end, pads_end), with all five of
     * its bytes. The hole has the text.
     */
    uint64_t pads_start, hole_start, hole_end, pads_end;
};

/* An instruction that shall become a jump. */
struct site {
    size_t offset; /* in the text */
    unsigned len;  /* 1 to 15 */

    /* Your answer. jump_len: how many bytes of jump[] are to be written; 0: there is no plan,
     * and the instruction stays. pad: where the jump leads.
     */
    unsigned jump_len;
    uint8_t jump[15];
    uint64_t pad;
};

/* plan - find a jump for as many of the @count sites as you can.
 * @sites: ascending, they do not overlap; between two there may be other instructions
 *
 * When all plans are written, what a CPU finds at each site with a plan is a jump to the pad:
 * E9 and a displacement of four bytes, with up to ten prefixes in front of it that a jump
 * ignores (26 2e 36 3e 64 65, and then at most one of 40 to 4f). A plan writes bytes of its
 * own instruction only, jump_len <= len. So the last bytes of a displacement may be those of
 * the text behind the instruction, as they are when all plans are written. No two pads
 * overlap.
 */
void plan(const struct text *text, struct site *sites, size_t count);
