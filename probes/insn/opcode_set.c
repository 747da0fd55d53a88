/* opcode_set.c - which opcodes exist with which prefix. Pure.
 *
 * A row has sixteen digits for the sixteen columns of the opcode map. A digit is a set of
 * mandatory prefixes (pp in VEX and EVEX): 1 none, 2 66, 4 f3, 8 f2. Each line of an
 * array has four rows.
 *
 * Source: SDM vol. 2, "Opcode Map"; ISA Extensions Programming Reference for what is
 * newer; APM vol. 3 and vol. 6 for XOP and 3DNow!.
 */
#include "probes/insn/opcode_map.h"

/* clang-format off */
static const uint64_t legacy_0f[16] = {
    0xffff0fffff0f0fff, 0xfff33373ffffffff, 0xffff000033ffff33, 0xffffff0100000000,
    0xffffffffffffffff, 0x3f553333fff7ffff, 0x3333333333332237, 0xf3333331bb00aa77,
    0xffffffffffffffff, 0xffffffffffffffff, 0xffffff47ffffffff, 0xffffffff4fffffff,
    0xfff1333fffffffff, 0xa33333e333333333, 0x333333e333333333, 0x833333333333333f,
};

static const uint64_t legacy_0f38[16] = {
    0x3333333333330000, 0x2000220200003330, 0x2222220022220000, 0x2222220222222222,
    0x2200000000000000, 0,                  0,                  0,
    0x2220000000000000, 0,                  0,                  0,
    0x0000000011111102, 0x0000000040026666, 0,                  0xbb000270e144f000,
};

static const uint64_t legacy_0f3a[16] = {
    0x0000000022222223, 0x0000222200000000, 0x2220000000000000, 0,
    0x2220200000000000, 0,                  0x2222000000000000, 0,
    0,                  0,                  0,                  0,
    0x0000000000001022, 0x0000000000000002, 0,                  0x4000000000000000,
};

static const uint64_t vex_0f[16] = {
    0,                  0xfff3337300000000, 0x0000000033c3cc33, 0,
    0x0330333300330000, 0x3f553333fff7ffff, 0x2222222222222226, 0xe22222210000aa66,
    0,                  0x33bb000033000000, 0x0000000000000010, 0,
    0x00f0223000000000, 0xa222222222222222, 0x222222e222222222, 0x8222222222222220,
};

static const uint64_t vex_0f38[16] = {
    0x2222222222222222, 0x0002002222202220, 0x2222220022222222, 0x2222222222222222,
    0x220002220b0e0000, 0xff2200002220c0f0, 0x0000000000003000, 0x0040000022000000,
    0x0000000000002020, 0x2222002222222222, 0x0000002222222222, 0xf600222222222222,
    0x0000000000088802, 0x0077000000f22222, 0x2222222222222222, 0x00110d8f00000000,
};

static const uint64_t vex_0f3a[16] = {
    0x2220222022222222, 0x0000222222000200, 0x2220000000000000, 0x2222000022000000,
    0x2220202022222000, 0x0000000000002222, 0x2222000022222222, 0x0000000022222222,
    0,                  0,                  0,                  0,
    0x0000000000000022, 0x0000000000000022, 0,                  0x8000000000000000,
};

static const uint64_t evex_0f[16] = {
    0,                  0xfff3337300000000, 0x0000000033c3cc33, 0,
    0,                  0x0f003333fff7ffff, 0x222222222222222e, 0xe2222220ffee006e,
    0,                  0,                  0,                  0,
    0x00f0223000000000, 0x0222222022222222, 0x222222e222222222, 0x0222222022222220,
};

static const uint64_t evex_0f38[16] = {
    0x2000200000022200, 0x6666662022222222, 0x6666666666622200, 0x6666662266622222,
    0x2022222200002222, 0x22ea220022220000, 0x0022222080000000, 0x22e2022222222222,
    0x0002000022220202, 0x2222002222aa2222, 0x2222002222aa2222, 0x0000222222222222,
    0x0000202220222202, 0x0000000000002222, 0,                  0,
};

static const uint64_t evex_0f3a[16] = {
    0x2202220032320002, 0x0000222222220222, 0x2222023300000000, 0x0000000022220022,
    0x0022200000000000, 0x2200223300000000, 0x0000003300000000, 0x2222000000000000,
    0,                  0,                  0,                  0,
    0x0050000000000022, 0,                  0,                  0,
};

static const uint64_t evex_5[16] = {
    0,                  0x4400000000000300, 0x0000000000404411, 0,
    0,                  0x0500000055f75555, 0x0000000000000020, 0x0000000077a63f20,
};

static const uint64_t evex_6[16] = {
    0,                  0x0003000000000000, 0x0000000000002200, 0,
    0x0022000000002222, 0x000000cc00000000, 0,                  0,
    0,                  0x0000002222222222, 0x0000002222222222, 0x0000002222222222,
    0,                  0x000000cc00000000,
};

static const uint64_t xop_8[16] = {
    [0x8] = 0x0000011100000011, 0x0000011100000011, 0x0011001000000000,
    0x0000001000000000,         0x1111000000001111, 0,
    0x0000000000001111,
};

static const uint64_t xop_9[16] = {
    0x0110000000000000,         0x0010000000000000,
    [0x8] = 0x1111000000000000, 0x1111111111110000, 0,
    0,                          0x0111001100010000, 0x0111001100010000,
    0x0111000000000000,
};

static const uint64_t xop_a[16] = { 0, 0x1010000000000000 };

/* clang-format on */

static const uint64_t *const sets[][16] = {
    [INSN_LEGACY] = { NULL, legacy_0f, legacy_0f38, legacy_0f3a },
    [INSN_VEX] = { NULL, vex_0f, vex_0f38, vex_0f3a },
    [INSN_EVEX] = { NULL, evex_0f, evex_0f38, evex_0f3a, NULL, evex_5, evex_6 },
    [INSN_XOP] = { [8] = xop_8, xop_9, xop_a },
};

bool opcode_set_has(const struct insn *insn)
{
    const uint64_t *set = insn->map < 16 ? sets[insn->encoding][insn->map] : NULL;
    unsigned digit;

    if (!set)
        return false;
    digit = set[insn->opcode >> 4] >> (60 - 4 * (insn->opcode & 15)) & 15;
    return digit >> insn->prefix & 1;
}
