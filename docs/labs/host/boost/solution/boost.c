/* boost.c - copies of instructions, with branches of 32 bits and a jump back. */
#include "boost.h"

#include <stdbool.h>
#include <string.h>

#define JMP32 0xe9
#define PUSH32 0x68
#define JMP32_LEN 5

/* A cell that is being written. */
struct writer {
    uint8_t *out;
    uint64_t cell;
    unsigned len;
    bool is_too_far;
};

static void put(struct writer *to, const void *bytes, unsigned len)
{
    memcpy(to->out + to->len, bytes, len);
    to->len += len;
}

static void put_byte(struct writer *to, unsigned byte)
{
    uint8_t one = (uint8_t)byte;

    put(to, &one, 1);
}

/* Write a 32-bit displacement to @target. The instruction ends @behind bytes after it. */
static void put_disp(struct writer *to, uint64_t target, unsigned behind)
{
    int64_t disp = (int64_t)(target - (to->cell + to->len + 4 + behind));
    int32_t low = (int32_t)disp;

    if (low != disp)
        to->is_too_far = true;
    put(to, &low, 4);
}

static void put_jmp(struct writer *to, uint64_t target)
{
    put_byte(to, JMP32);
    put_disp(to, target, 0);
}

static void put_rip_relative(struct writer *to, const struct insn *insn)
{
    unsigned behind = insn->len - insn->disp_offset - 4;
    int32_t disp;

    memcpy(&disp, insn->bytes + insn->disp_offset, 4);
    put(to, insn->bytes, insn->disp_offset);
    put_disp(to, insn->addr + insn->len + (uint64_t)(int64_t)disp, behind);
    put(to, insn->bytes + insn->disp_offset + 4, behind);
}

static void put_jcc(struct writer *to, const struct insn *insn)
{
    unsigned opcode = insn->bytes[insn->bytes[0] == 0x0f];

    put_byte(to, 0x0f);
    put_byte(to, 0x80 | (opcode & 0xf));
    put_disp(to, insn->target, 0);
}

/* The return address on the stack without a change of registers: a push writes its low half,
 * sign-extended, and a mov the high one.
 */
static void put_call(struct writer *to, const struct insn *insn)
{
    static const uint8_t mov[] = { 0xc7, 0x44, 0x24,
                                   0x04 }; /* mov dword [rsp + 4], ... */
    uint64_t back = insn->addr + insn->len;

    put_byte(to, PUSH32);
    put(to, &back, 4);
    put(to, mov, sizeof(mov));
    put(to, (uint8_t *)&back + 4, 4);
    put_jmp(to, insn->target);
}

/*      loop taken
 *      jmp  behind
 * taken:
 *      jmp  target
 */
static void put_loop(struct writer *to, const struct insn *insn)
{
    put_byte(to, insn->bytes[0]);
    put_byte(to, JMP32_LEN);
    put_jmp(to, insn->addr + insn->len);
    put_jmp(to, insn->target);
}

unsigned boost(uint8_t *out, uint64_t cell, const struct insn *insn)
{
    struct writer to = { .out = out, .cell = cell };

    switch (insn->kind) {
    case PLAIN:
        put(&to, insn->bytes, insn->len);
        break;
    case RIP_RELATIVE:
        put_rip_relative(&to, insn);
        break;
    case JMP:
        put_jmp(&to, insn->target);
        break;
    case JCC:
        put_jcc(&to, insn);
        break;
    case CALL:
        put_call(&to, insn);
        break;
    case LOOP:
        put_loop(&to, insn);
        break;
    }
    if (insn->kind != JMP && insn->kind != CALL && insn->kind != LOOP)
        put_jmp(&to, insn->addr + insn->len);
    return to.is_too_far ? 0 : to.len;
}
