/* relocate.c - copy an instruction to another address, with the same effect. Pure; any
 * context.
 *
 * A copy is made in a local buffer, and copied to the caller's buffer when it is complete.
 * So the caller's buffer is not changed on error.
 */
#include "probes/insn/relocate.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/insn/encode.h"

#define HOP_LEN (2 + INSN_JMP8_LEN + INSN_JMP32_LEN)

struct copy {
    uint8_t bytes[INSN_RELOCATED_MAX_LEN];
    size_t len;
};

static void bytes_put(uint8_t *dst, const uint8_t *src, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        dst[i] = src[i];
        barrier(); /* else the compiler makes the loop a call of memcpy() */
    }
}

/* plain_copy - copy all bytes, except the displacement of a rip-relative operand, which
 * gets a new value. The displacement counts from the end of the instruction, so an
 * immediate behind it does not matter. With an address size of 4 the address wraps at 4
 * GiB, so every displacement reaches.
 */
static int plain_copy(struct copy *copy, const struct insn *insn, uintptr_t to)
{
    int64_t disp = (int64_t)(insn->mem - (to + insn->len));

    bytes_put(copy->bytes, insn->bytes, insn->len);
    copy->len = insn->len;
    if (!insn->rip_relative)
        return 0;
    if (insn->addrsize == 8 && disp != (int32_t)disp)
        return -ERANGE;
    for (unsigned i = 0; i < 4; i++)
        copy->bytes[insn->disp_off + i] = (uint8_t)(disp >> 8 * i);
    return 0;
}

/* hop_copy - copy loop or jrcxz, which have no near form, as three jumps:
 *                      loop  .taken
 *                      jmp   .next
 *              .taken: jmp   target
 *              .next:
 */
static int hop_copy(struct copy *copy, const struct insn *insn, uintptr_t to)
{
    uint8_t *out = copy->bytes;
    size_t len = 0;

    if (insn->addr67)
        out[len++] = 0x67;
    out[len++] = insn->opcode;
    out[len++] = INSN_JMP8_LEN;
    insn_encode_jmp8(out + len, to + len, to + len + INSN_JMP8_LEN + INSN_JMP32_LEN);
    len += INSN_JMP8_LEN;
    copy->len = len + INSN_JMP32_LEN;
    return insn_encode_jmp32(out + len, to + len, insn->target);
}

static int copy_make(struct copy *copy, const struct insn *insn, uintptr_t to)
{
    switch (insn->kind) {
    case INSN_JMP_REL:
        copy->len = INSN_JMP32_LEN;
        return insn_encode_jmp32(copy->bytes, to, insn->target);
    case INSN_JCC:
        copy->len = INSN_JCC32_LEN;
        return insn_encode_jcc32(copy->bytes, insn->cond, to, insn->target);
    case INSN_LOOP:
    case INSN_JRCXZ:
        return hop_copy(copy, insn, to);
    default:
        return plain_copy(copy, insn, to);
    }
}

int insn_relocate(uint8_t *out, size_t out_cap, const struct insn *insn, uintptr_t to,
                  size_t *out_len)
{
    struct copy copy;
    int err = insn_can_move(insn) ? copy_make(&copy, insn, to) : -EOPNOTSUPP;

    if (err)
        return err;
    if (copy.len > out_cap)
        return -E2BIG;
    bytes_put(out, copy.bytes, copy.len);
    *out_len = copy.len;
    return 0;
}

size_t insn_relocated_len(const struct insn *insn)
{
    if (!insn_can_move(insn))
        return 0;
    switch (insn->kind) {
    case INSN_JMP_REL:
        return INSN_JMP32_LEN;
    case INSN_JCC:
        return INSN_JCC32_LEN;
    case INSN_LOOP:
    case INSN_JRCXZ:
        return HOP_LEN + insn->addr67;
    default:
        return insn->len;
    }
}
