/* insn_window.h - between the stages of insn_decode. Private to probes/insn. */
#pragma once

#include "probes/insn/insn.h"

#define REX 0x40
#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

/* The bytes that may be read: those the caller has, up to the architecture's limit.
 * insn->len is the cursor.
 */
struct insn_window {
    size_t limit;
    int end; /* errno: what it means to need more */
};

/* insn_bytes_take - the next @count bytes belong to the instruction.
 * insn_byte_take - the next one does, and here it is.
 *
 * Context: any.
 * Return:  0; window->end.
 */
static inline int insn_bytes_take(struct insn *insn, const struct insn_window *window,
                                  size_t count)
{
    if (insn->len + count > window->limit)
        return window->end;
    insn->len = (uint8_t)(insn->len + count);
    return 0;
}

static inline int insn_byte_take(struct insn *insn, const struct insn_window *window,
                                 uint8_t *byte)
{
    int err = insn_bytes_take(insn, window, 1);

    if (err)
        return err;
    *byte = insn->bytes[insn->len - 1];
    return 0;
}

/* insn_prefixes_read - legacy prefixes in any order and number; a REX counts only right
 * before the opcode. Leaves the first byte that is no prefix in @byte.
 *
 * Context: any.
 * Return:  0; window->end.
 */
int insn_prefixes_read(struct insn *insn, const struct insn_window *window,
                       uint8_t *byte);

/* insn_opcode_read - escapes, VEX, EVEX or XOP, and the opcode, which starts with @byte.
 * Fills op and form from the opcode map.
 *
 * Context: any.
 * Return:  0; window->end; -EILSEQ not defined.
 */
int insn_opcode_read(struct insn *insn, const struct insn_window *window, uint8_t byte);
