/* insn_opcode.c - the first half of decoding: prefixes, opcode, opcode map. Pure. */
#include "kernel/base/err.h"
#include "probes/insn/insn_window.h"
#include "probes/insn/opcode_map.h"

static bool legacy_prefix_note(struct insn *insn, uint8_t byte)
{
    switch (byte) {
    case 0x66:
        insn->opsize66 = true;
        return true;
    case 0x67:
        insn->addr67 = true;
        return true;
    case 0xf0:
        insn->lock = true;
        return true;
    case 0xf2:
        insn->rep = INSN_PREFIX_F2;
        return true;
    case 0xf3:
        insn->rep = INSN_PREFIX_F3;
        return true;
    case 0x64:
        insn->seg = INSN_SEG_FS;
        return true;
    case 0x65:
        insn->seg = INSN_SEG_GS;
        return true;
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
        return true;
    default:
        return false;
    }
}

int insn_prefixes_read(struct insn *insn, const struct insn_window *window, uint8_t *byte)
{
    for (;;) {
        int err = insn_byte_take(insn, window, byte);

        if (err)
            return err;
        if (legacy_prefix_note(insn, *byte)) {
            insn->rex_lost |= insn->rex != 0;
            insn->rex = 0;
            insn->legacy_len = insn->len;
        } else if ((*byte & 0xf0) == REX) {
            insn->rex = *byte;
        } else {
            return 0;
        }
    }
}

/* Read a legacy opcode. @byte: its first byte, which was read already */
static int legacy_opcode_read(struct insn *insn, const struct insn_window *window,
                              uint8_t byte)
{
    int err;

    insn->addrsize = insn->addr67 ? 4 : 8;
    insn->prefix = insn->rep ? insn->rep : insn->opsize66 ? INSN_PREFIX_66 : 0;
    insn->opcode = byte;
    if (byte != 0x0f)
        return 0;
    insn->map = 1;
    err = insn_byte_take(insn, window, &insn->opcode);
    if (err || (insn->opcode != 0x38 && insn->opcode != 0x3a))
        return err;
    insn->map = insn->opcode == 0x38 ? 2 : 3;
    return insn_byte_take(insn, window, &insn->opcode);
}

/* The field pp of VEX, XOP and EVEX has the values of enum insn_prefix: 1 is 66, 2 is f3, 3
 * is f2.
 */
static void wvvvvpp_note(struct insn *insn, uint8_t byte)
{
    insn->rex |= byte >> 7 ? REX_W : 0;
    insn->vvvv = ~byte >> 3 & 15;
    insn->prefix = byte & 3;
}

static void rxb_note(struct insn *insn, uint8_t byte)
{
    insn->rex = (uint8_t)(REX | (~byte >> 5 & 7));
}

static int vex2_read(struct insn *insn, const struct insn_window *window)
{
    uint8_t byte;
    int err = insn_byte_take(insn, window, &byte);

    if (err)
        return err;
    insn->map = 1;
    insn->rex = byte & 0x80 ? REX : REX | REX_R;
    insn->vvvv = ~byte >> 3 & 15;
    insn->prefix = byte & 3;
    return 0;
}

/* Behind their first byte, VEX3 and XOP have two bytes of the same layout. */
static int vex3_read(struct insn *insn, const struct insn_window *window)
{
    uint8_t rxbm, wvp;
    int err = insn_byte_take(insn, window, &rxbm);

    if (!err)
        err = insn_byte_take(insn, window, &wvp);
    if (err)
        return err;
    insn->map = rxbm & 31;
    rxb_note(insn, rxbm);
    wvvvvpp_note(insn, wvp);
    return 0;
}

static int evex_read(struct insn *insn, const struct insn_window *window)
{
    uint8_t p0, p1, p2;
    int err = insn_byte_take(insn, window, &p0);

    if (!err)
        err = insn_byte_take(insn, window, &p1);
    if (!err)
        err = insn_byte_take(insn, window, &p2);
    if (err)
        return err;
    if (p0 & 8 || !(p1 & 4))
        return -EILSEQ;
    insn->map = p0 & 7;
    rxb_note(insn, p0);
    wvvvvpp_note(insn, p1);
    return 0;
}

/* Read VEX, EVEX or XOP, and the opcode behind it. VEX, EVEX and XOP have fields in place
 * of REX and of the prefixes 66, f2 and f3. So these prefixes must not stand in front of
 * them, nor may lock. Segment overrides and 67 may stand there.
 */
static int vector_opcode_read(struct insn *insn, const struct insn_window *window)
{
    int err;

    if (insn->rex || insn->opsize66 || insn->rep || insn->lock)
        return -EILSEQ;
    insn->addrsize = insn->addr67 ? 4 : 8;
    if (insn->encoding == INSN_EVEX)
        err = evex_read(insn, window);
    else if (insn->bytes[insn->len - 1] == 0xc5)
        err = vex2_read(insn, window);
    else
        err = vex3_read(insn, window);
    if (err)
        return err;
    return insn_byte_take(insn, window, &insn->opcode);
}

/* 8f begins XOP if the next byte could not be the modrm byte of a pop. */
static bool is_xop(const struct insn *insn, const struct insn_window *window,
                   uint8_t byte)
{
    return byte == 0x8f && insn->len < window->limit &&
           (insn->bytes[insn->len] & 0x1f) >= 8;
}

int insn_opcode_read(struct insn *insn, const struct insn_window *window, uint8_t byte)
{
    int err;

    if (byte == 0x62)
        insn->encoding = INSN_EVEX;
    else if (byte == 0xc4 || byte == 0xc5)
        insn->encoding = INSN_VEX;
    else if (is_xop(insn, window, byte))
        insn->encoding = INSN_XOP;
    if (insn->encoding == INSN_LEGACY)
        err = legacy_opcode_read(insn, window, byte);
    else
        err = vector_opcode_read(insn, window);
    if (err)
        return err;
    insn->opcode_off = (uint8_t)(insn->len - 1);
    return opcode_map_find(insn);
}
