/* insn_window.h - what the stages of insn_decode() share: the bytes that they may read.
 * Private to probes/insn.
 */
#pragma once

#include "probes/insn/insn.h"

#define REX 0x40
#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

/* The bytes that may be read: those that the caller has, up to the limit of the
 * architecture. insn->len is the cursor: the number of bytes that have been read.
 */
struct insn_window {
    size_t limit; /* bytes, 0..INSN_MAX_LEN */
    int end;      /* the error for an instruction that needs more than @limit bytes */
};

/* insn_bytes_take - move the cursor behind the next @count bytes.
 * insn_byte_take - read the next byte to *@byte, and move the cursor behind it.
 * Context: any.
 * Return:  0; the errno in window->end: the window ends before.
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

/* insn_prefixes_read - read the legacy prefixes, in any order and number, and REX. A REX
 * has an effect only right before the opcode.
 * @byte: receives the first byte that is no prefix
 *
 * Context: any.
 * Return:  0; the errno in window->end: the window ends before.
 */
int insn_prefixes_read(struct insn *insn, const struct insn_window *window,
                       uint8_t *byte);

/* insn_opcode_read - read the escape bytes, or VEX, EVEX or XOP, and the opcode. Fill in
 * op and form from the opcode map.
 * @byte: the first of these bytes; insn_prefixes_read() has read it
 *
 * Context: any.
 * Return:  0; the errno in window->end: the window ends before; -EILSEQ the opcode is
 *          not defined.
 */
int insn_opcode_read(struct insn *insn, const struct insn_window *window, uint8_t byte);
