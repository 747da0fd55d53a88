/* sweep.c - compares every opcode of every map.
 *
 * Random bytes reach an instruction only by luck. So all combinations of these are tried:
 * map, opcode, modrm, and the prefixes and VEX or EVEX fields that choose between
 * instructions. The bytes behind them are fixed.
 */
#include "tests/insn/sweep.h"

#include "probes/insn/insn.h"
#include "tests/insn/compare.h"

#include <string.h>

#define SWEEP_ADDR UINT64_C(0xffffffff81234567)

static const uint8_t tail[INSN_MAX_LEN] = { 0x9e, 0x25, 0x11, 0x82, 0x43,
                                            0x64, 0x75, 0x06, 0x17, 0x28,
                                            0x39, 0x4a, 0x5b, 0x6c, 0x7d };

/* modrms_sweep - compare @head, then @opcode, then each modrm byte. */
static unsigned long modrms_sweep(uint8_t *edge, const uint8_t *head, size_t len,
                                  unsigned opcode)
{
    uint8_t *window = edge - INSN_MAX_LEN;

    for (unsigned modrm = 0; modrm < 256; modrm++) {
        memcpy(window, head, len);
        window[len] = (uint8_t)opcode;
        window[len + 1] = (uint8_t)modrm;
        memcpy(window + len + 2, tail, INSN_MAX_LEN - len - 2);
        compare_window(window, INSN_MAX_LEN, SWEEP_ADDR, opcode * 256 + modrm);
    }
    return 256;
}

static unsigned long opcodes_sweep(uint8_t *edge, const uint8_t *head, size_t len)
{
    unsigned long count = 0;

    for (unsigned opcode = 0; opcode < 256; opcode++)
        count += modrms_sweep(edge, head, len, opcode);
    return count;
}

/* legacy_sweep - compare the four legacy maps, each with prefixes and REX in front. */
static unsigned long legacy_sweep(uint8_t *edge)
{
    static const uint8_t prefixes[][3] = {
        { 0 },       { 1, 0x66 }, { 1, 0xf3 },       { 1, 0xf2 },
        { 1, 0x67 }, { 1, 0xf0 }, { 2, 0x66, 0xf3 }, { 2, 0xf2, 0x66 }
    };
    static const uint8_t rexes[] = { 0, 0x40, 0x48, 0x47 };
    static const uint8_t escapes[][3] = {
        { 0 }, { 1, 0x0f }, { 2, 0x0f, 0x38 }, { 2, 0x0f, 0x3a }
    };
    unsigned long count = 0;

    for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
        for (size_t r = 0; r < sizeof(rexes); r++) {
            for (size_t e = 0; e < 4; e++) {
                uint8_t head[8];
                size_t len = prefixes[p][0];

                memcpy(head, prefixes[p] + 1, len);
                if (rexes[r])
                    head[len++] = rexes[r];
                memcpy(head + len, escapes[e] + 1, escapes[e][0]);
                count += opcodes_sweep(edge, head, len + escapes[e][0]);
            }
        }
    }
    return count;
}

/* vex_sweep - compare @map of three-byte VEX or XOP, with all values of pp, W and L,
 * without a third operand and with one.
 */
static unsigned long vex_sweep(uint8_t *edge, uint8_t escape, unsigned map)
{
    unsigned long count = 0;

    for (unsigned fields = 0; fields < 32; fields++) {
        unsigned wlpp = (fields & 7) | (fields & 8) << 4;
        uint8_t head[] = { escape, (uint8_t)(0xe0 | map),
                           (uint8_t)(wlpp | (fields & 16 ? 0x78 : 0x70)) };

        count += opcodes_sweep(edge, head, sizeof(head));
    }
    return count;
}

/* evex_sweep - compare @map of EVEX, with all values of pp, W, length and broadcast, and
 * with a mask.
 */
static unsigned long evex_sweep(uint8_t *edge, unsigned map)
{
    unsigned long count = 0;

    for (unsigned fields = 0; fields < 64; fields++) {
        uint8_t head[] = { 0x62, (uint8_t)(0xf0 | map),
                           (uint8_t)(0x7c | (fields & 3) | (fields & 4) << 5),
                           (uint8_t)(0x09 | (fields >> 3 & 7) << 4) };

        count += opcodes_sweep(edge, head, sizeof(head));
    }
    return count;
}

unsigned long sweep_all(uint8_t *edge)
{
    unsigned long count = legacy_sweep(edge);

    for (unsigned map = 0; map < 4; map++)
        count += vex_sweep(edge, 0xc4, map);
    for (unsigned map = 8; map < 12; map++)
        count += vex_sweep(edge, 0x8f, map);
    for (unsigned map = 0; map < 8; map++)
        count += evex_sweep(edge, map);
    return count;
}
