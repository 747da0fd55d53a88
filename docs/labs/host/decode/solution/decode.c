/* decode.c - the length of an integer instruction, by two tables of opcodes. */
#include "decode.h"

#include <stdbool.h>

/* The bytes that follow an opcode. */
#define NO 0 /* nothing */
#define B 1  /* an immediate of one byte; W of two, EN of three, D of four */
#define W 2
#define EN 3
#define D 4
#define Z 5 /* four, or two with the prefix 66 */
#define V 6 /* the same, or eight with REX.W */
#define A 7 /* an address: eight, or four with the prefix 67 */
#define IMM 7
#define M 8  /* ModRM */
#define T 16 /* ModRM; an immediate follows only if its middle three bits are 0 or 1 */

/* clang-format off */
#define ALU M, M, M, M, B, Z, NO, NO
static const uint8_t one[256] = {
    ALU, ALU, ALU, ALU, ALU, ALU, ALU, ALU,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,        /* 40 */
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, M, NO, NO, NO, NO, Z, M | Z, B, M | B, NO, NO, NO, NO,     /* 60 */
    B, B, B, B, B, B, B, B, B, B, B, B, B, B, B, B,
    M | B, M | Z, M | B, M | B, M, M, M, M, M, M, M, M, M, M, M, M,        /* 80 */
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    A, A, A, A, NO, NO, NO, NO, B, Z, NO, NO, NO, NO, NO, NO,              /* a0 */
    B, B, B, B, B, B, B, B, V, V, V, V, V, V, V, V,
    M | B, M | B, W, NO, NO, NO, M | B, M | Z,                             /* c0 */
    EN, NO, W, NO, NO, B, NO, NO,
    M, M, M, M, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    B, B, B, B, B, B, B, B, D, D, NO, B, NO, NO, NO, NO,                   /* e0 */
    NO, NO, NO, NO, NO, NO, M | T | B, M | T | Z, NO, NO, NO, NO, NO, NO, M, M,
};
/* clang-format on */

static unsigned behind_0f(unsigned opcode)
{
    if ((opcode & 0xf0) == 0x80)
        return D;
    if (opcode == 0xa4 || opcode == 0xac || opcode == 0xba)
        return M | B;
    switch (opcode) {
    case 0x05 ... 0x09:
    case 0x0b:
    case 0x30 ... 0x37:
    case 0xa0 ... 0xa2:
    case 0xa8 ... 0xaa:
    case 0xc8 ... 0xcf:
        return NO;
    default:
        return M;
    }
}

/* Return the number of bytes of ModRM, SIB and displacement together. */
static unsigned modrm_length(const uint8_t *modrm)
{
    unsigned mod = *modrm >> 6, rm = *modrm & 7, len = 1;

    if (mod == 3)
        return len;
    if (rm == 4) {
        len++;
        rm = modrm[1] & 7;
    }
    if (mod == 1)
        return len + 1;
    return len + (mod == 2 || rm == 5 ? 4 : 0);
}

static unsigned immediate_length(unsigned what, bool is_66, bool is_67, unsigned rex)
{
    bool is_wide = rex & 8;

    switch (what & IMM) {
    case A:
        return is_67 ? 4 : 8;
    case V:
        if (is_wide)
            return 8;
        /* fall through */
    case Z:
        return is_66 && !is_wide ? 2 : 4;
    default:
        return what & IMM;
    }
}

static bool is_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64 ... 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
        return true;
    default:
        return false;
    }
}

unsigned insn_length(const uint8_t *code)
{
    bool is_66 = false, is_67 = false;
    const uint8_t *at = code;
    unsigned rex = 0, what;

    /* A REX prefix counts only right in front of the opcode. */
    for (; is_prefix(*at) || (*at & 0xf0) == 0x40; at++) {
        rex = (*at & 0xf0) == 0x40 ? *at : 0;
        is_66 |= *at == 0x66;
        is_67 |= *at == 0x67;
    }
    what = *at == 0x0f ? behind_0f(*++at) : one[*at];
    at++;
    if (what & T && (*at >> 3 & 7) > 1)
        what = M;
    if (what & M)
        at += modrm_length(at);
    return (unsigned)(at - code) + immediate_length(what, is_66, is_67, rex);
}
