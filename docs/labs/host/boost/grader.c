/* grader.c - grades lab 5: lets one instruction of a function run in a cell far away.
 * The function is:
 *
 *      head      random instructions
 *      here      nops, or the jump to the cell
 *      insn      the instruction of the case; int3 while its copy runs
 *      through   random instructions; ret
 *      there     other random instructions; ret       (the target of branches)
 */
#define _GNU_SOURCE
#include "docs/labs/host/grader.h"

#include "boost.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define DF 0x400u
#define SPACE 0x60000000u
#define HERE 56u
#define INSN 64u
#define ROOM 16u
#define THERE 136u
#define BEHIND 1u
#define DATA 512u
#define PIECE 5
#define RET 0xc3
#define NOP 0x90
#define JMP32 0xe9
#define INT3 0xcc
#define FAR_AWAY 0x7fffff00
#define EDGE UINT64_C(0x80000000)
#define FAR_OPERAND 0x70000000

static uint8_t *code;
static uint8_t *data; /* the page whose second part is memory; mostly that of the code */
static struct insn insn;

static void (*prepare)(struct lab_regs *before); /* chooses registers of the case */
static char chosen[64];                          /* what it has chosen, in words */

/* Map an executable page at a random free address, full of int3: below 2 GiB, below 4 GiB
 * or far above, by the case. 32 bits of the last two look negative.
 */
static uint8_t *page_anywhere(void)
{
    static const uint64_t all[] = { 0x10000000, 0x80000000, 0x123480000000 };
    uint64_t lowest = all[lab_case % 3];

    for (;;) {
        uintptr_t at = (lowest + lab_below(SPACE)) & ~(uintptr_t)(PAGE - 1);
        void *page = mmap((void *)at, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

        if (page == (void *)at)
            return memset(page, INT3, PAGE);
        if (page != MAP_FAILED)
            munmap(page, PAGE);
    }
}

static uint8_t *random_piece(uint8_t *at)
{
    for (unsigned i = 0; i < PIECE; i++)
        at += lab_insn_random(at);
    return at;
}

/* mov %rbx,-8(%rsp) and mov %rbx,-16(%rsp) at the head of the function, and lea
 * (%rax,%rsi),%rax; mov -8(%rsp),%rsi at its ends: the program keeps data in its red zone.
 * A register is added to rax before it is overwritten, so that a change of it shows.
 */
static const uint8_t keep[] = {
    0x48, 0x89, 0x5c, 0x24, 0xf8, 0x48, 0x89, 0x5c, 0x24, 0xf0
};
static const uint8_t load[] = { 0x48, 0x8d, 0x04, 0x30, 0x48, 0x8b, 0x74, 0x24, 0xf8 };

static void end_function(uint8_t *at)
{
    memcpy(at, load, sizeof(load));
    at[sizeof(load)] = RET;
}

/* lea (%rax,%r8),%rax; mov $number,%r8d, which change no flag; and the end of the function.
 */
static void quiet_end(uint8_t *at, uint8_t number)
{
    const uint8_t mov[] = { 0x4a, 0x8d, 0x04, 0x00, 0x41, 0xb8, number, 0, 0, 0 };

    memcpy(at, mov, sizeof(mov));
    end_function(at + sizeof(mov));
}

/* Make the function around an instruction of @len bytes. */
static void make_function(const void *bytes, unsigned len, enum kind kind)
{
    code = data = page_anywhere();
    memset(code, NOP, INSN);
    memcpy(code, keep, sizeof(keep));
    random_piece(code + sizeof(keep));
    memcpy(code + INSN, bytes, len);
    end_function(random_piece(code + INSN + len));
    end_function(random_piece(code + THERE));
    for (unsigned i = DATA; i < PAGE; i++)
        data[i] = (uint8_t)lab_random();
    insn = (struct insn){ .bytes = code + INSN,
                          .len = len,
                          .addr = (uint64_t)code + INSN,
                          .kind = kind,
                          .target = (uint64_t)code + THERE };
}

/* Print code for the reader of a case. grade.py disassembles such a line. */
static void code_print(const char *what, uint64_t addr, const uint8_t *bytes,
                       unsigned len)
{
    printf("code %s at %" PRIx64 ":", what, addr);
    for (unsigned i = 0; i < len; i++)
        printf(" %02x", bytes[i]);
    printf("\n");
    fflush(stdout); /* the copy may end the program */
}

static void regs_fact(const struct lab_regs *regs)
{
    if (insn.kind == CALL) {
        lab_fact("the called function finds the return address (r11): %#lx", regs->r11);
        lab_fact("it finds what the program keeps 16 bytes below rsp (r10): %#lx",
                 regs->r10);
    }
    if (insn.kind == JMP || insn.kind == JCC || insn.kind == LOOP)
        lab_fact("%sthe program goes on (r8 tells): %s", chosen,
                 regs->r8 == THERE    ? "at the target"
                 : regs->r8 == BEHIND ? "behind the instruction"
                                      : "nowhere");
    lab_regs_fact(regs);
    lab_fact("DF: %s", regs->flags & DF ? "set" : "clear");
}

/* Any thread may execute a copy at any time, so it keeps nothing in its cell. */
static void seal(uint8_t *cell)
{
    for (unsigned i = 0; i <= CELL_SIZE; i += CELL_SIZE)
        mprotect((void *)((uintptr_t)(cell + i) & ~(uintptr_t)(PAGE - 1)), PAGE,
                 PROT_READ | PROT_EXEC);
}

/* Call the function as it is, and then with a jump to the copy. Both calls must have
 * the same effect.
 */
static void run_both(void)
{
    uint8_t saved[ROOM], bytes[15], *cell = page_anywhere() + lab_below(64);
    struct lab_regs before, regs, right;
    uint64_t memory;
    unsigned used;
    int32_t disp;

    lab_regs_random(&before);
    if (prepare)
        prepare(&before);
    before.flags |= lab_case % 2 ? DF : 0; /* no instruction has a string */
    regs = before;
    memcpy(saved, data + DATA, ROOM);
    lab_call(&regs, code);
    regs_fact(&regs);
    right = regs;
    memory = lab_digest(0, data + DATA, PAGE - DATA);
    lab_fact("memory, its checksum: %#lx", memory);
    memcpy(data + DATA, saved, ROOM);

    memcpy(bytes, insn.bytes, insn.len);
    insn.bytes = bytes;
    memset(code + INSN, INT3,
           insn.len); /* what the text has now is not the instruction */
    used = boost(cell, (uint64_t)cell, &insn);
    code_print("of the instruction", insn.addr, bytes, insn.len);
    lab_fact("boost() returned a number from 1 to %u: %s", CELL_SIZE,
             used && used <= CELL_SIZE ? "yes" : "no");
    if (!used || used > CELL_SIZE)
        return;
    code_print("of your copy", (uint64_t)cell, cell, used);
    memset(cell + used, INT3, CELL_SIZE - used); /* these bytes are not returned */
    seal(cell);
    code[HERE] = JMP32;
    disp = (int32_t)(cell - (code + HERE + 5));
    memcpy(code + HERE + 1, &disp, sizeof(disp));
    regs = before;
    lab_call(&regs, code);
    lab_fact("with the copy");
    regs_fact(&regs);
    lab_fact("memory, its checksum: %#lx", lab_digest(0, data + DATA, PAGE - DATA));
    if (memcmp(&regs, &right, sizeof(regs)) ||
        memory != lab_digest(0, data + DATA, PAGE - DATA))
        lab_fact(LAB_WRONG "the copy does something else");
}

/* The first case has an instruction of 15 bytes. */
static void plain(void)
{
    uint8_t bytes[LAB_INSN_LONGEST];

    make_function(bytes, lab_case ? lab_insn_random(bytes) : lab_insn_longest(bytes),
                  PLAIN);
    run_both();
}

/* Take a page for the memory that is far below the code, or far above it. */
static void move_data(void)
{
    bool is_below = lab_case / 2 % 2;
    uint8_t *page;

    do
        page = page_anywhere();
    while ((page < code) != is_below);
    data = memcpy(page, code, PAGE);
}

/* Make an instruction with a memory operand relative to rip. The register is rax. In some
 * of them an immediate follows the displacement.
 */
static void make_rip_relative(bool is_far)
{
    static const struct {
        uint8_t head[3], head_len, imm_len;
    } all[] = {
        { { 0x48, 0x8b, 0x05 }, 3, 0 }, /* mov from memory */
        { { 0x48, 0x89, 0x05 }, 3, 0 }, /* mov to memory */
        { { 0x48, 0x8d, 0x05 }, 3, 0 }, /* lea */
        { { 0x48, 0x01, 0x05 }, 3, 0 }, /* add to memory */
        { { 0x83, 0x05 }, 2, 1 },       /* add an immediate of one byte */
        { { 0xc7, 0x05 }, 2, 4 },       /* mov of an immediate of four bytes */
        { { 0x48, 0x81, 0x05 }, 3, 4 }, /* add an immediate of four bytes */
        { { 0x66, 0xc7, 0x05 }, 3, 2 }, /* mov of an immediate of two bytes */
        { { 0x8b, 0x05 }, 2, 0 },       /* mov from memory, without a prefix */
        { { 0xf6, 0x05 }, 2, 1 },       /* test with an immediate */
    };
    unsigned i = lab_case % (sizeof(all) / sizeof(all[0]));
    unsigned len = all[i].head_len + 4u + all[i].imm_len;
    int32_t disp, imm = (int32_t)lab_random();
    uint8_t bytes[15] = { 0 };

    memcpy(bytes, all[i].head, all[i].head_len);
    memcpy(bytes + all[i].head_len + 4, &imm, all[i].imm_len);
    make_function(bytes, len, RIP_RELATIVE);
    if (is_far)
        move_data();
    disp = (int32_t)(data + DATA - (code + INSN + len));
    memcpy(code + INSN + all[i].head_len, &disp, sizeof(disp));
    insn.disp_offset = all[i].head_len;
}

static void rip_relative(void)
{
    make_rip_relative(true);
    run_both();
}

/* Make a branch to THERE: @opcode and a displacement of one byte or, @is_wide, of four.
 * No other instruction of the function changes a flag or rcx, so these are compared as
 * the branch has left them. r8 shows where the branch went.
 */
static void make_branch(unsigned opcode_len, unsigned opcode, bool is_wide,
                        enum kind kind)
{
    unsigned len = opcode_len + (is_wide ? 4 : 1);
    int32_t disp = (int32_t)(THERE - INSN - len);
    uint8_t bytes[8];

    memcpy(bytes, &opcode, opcode_len);
    memcpy(bytes + opcode_len, &disp, is_wide ? 4 : 1);
    make_function(bytes, len, kind);
    memset(code + sizeof(keep), NOP, INSN - sizeof(keep));
    quiet_end(code + INSN + len, BEHIND);
    quiet_end(code + THERE, THERE);
}

static void jmp(void)
{
    bool is_wide = lab_case % 2;

    make_branch(1, is_wide ? 0xe9 : 0xeb, is_wide, JMP);
    run_both();
}

/* Is condition @cc true with these flags? */
static bool is_true(unsigned cc, uint64_t flags)
{
    bool cf = flags & 1, pf = flags & 4, zf = flags & 0x40, sf = flags & 0x80;
    bool of = flags & 0x800;
    const bool all[] = { of, cf, zf, cf || zf, sf, pf, sf != of, zf || sf != of };

    return all[cc >> 1] != (cc & 1);
}

/* There are 64 cases: each condition, short and long, taken and not taken. */
static void choose_flags(struct lab_regs *before)
{
    bool is_taken = lab_case / 32 % 2;

    while (is_true(lab_case % 16, before->flags) != is_taken)
        before->flags = lab_random() & LAB_FLAGS;
    snprintf(chosen, sizeof(chosen),
             "condition %x is %s, so it is %staken: ", lab_case % 16,
             is_taken ? "true" : "false", is_taken ? "" : "not ");
}

static void jcc(void)
{
    unsigned cc = lab_case % 16;

    prepare = choose_flags;
    if (lab_case / 16 % 2)
        make_branch(2, 0x800fu | cc << 8, true, JCC);
    else
        make_branch(1, 0x70u | cc, false, JCC);
    run_both();
}

/* The called function puts its return address into r11, and into r10 what the program keeps
 * below: lea (%rax,%r11),%rax; lea (%rax,%r10),%rax; mov (%rsp),%r11; mov
 * -8(%rsp),%r10; ret.
 */
static void call(void)
{
    static const uint8_t take[] = { 0x4a, 0x8d, 0x04, 0x18, 0x4a, 0x8d, 0x04, 0x10, 0x4c,
                                    0x8b, 0x1c, 0x24, 0x4c, 0x8b, 0x54, 0x24, 0xf8, RET };

    make_branch(1, 0xe8, true, CALL);
    memcpy(code + THERE, take, sizeof(take));
    code[INSN + insn.len] = RET;
    run_both();
}

/* There are 16 cases: each instruction, with and without ZF, and with a last and another
 * rcx.
 */
static void choose_rcx(struct lab_regs *before)
{
    bool is_jrcxz = lab_case % 4 == 3;

    before->cx = lab_case / 4 % 2 ? UINT64_C(5) << 32 | !is_jrcxz : !is_jrcxz;
    before->flags = lab_case / 8 % 2 ? LAB_FLAGS : 0;
    snprintf(chosen, sizeof(chosen), "rcx is %lu and ZF is %u: ", before->cx,
             lab_case / 8 % 2);
}

static void loop(void)
{
    prepare = choose_rcx;
    make_branch(1, 0xe0u + lab_case % 4, false, LOOP);
    run_both();
}

static void reach_fact(const char *what, const char *which, uint64_t cell)
{
    uint8_t out[CELL_SIZE];

    lab_fact("%s, %s: %s", what, which, boost(out, cell, &insn) ? "a copy" : "none");
}

/* Put @reach bytes between the instruction and its target, or the cell. Return the cell. */
static uint64_t spread(uint64_t reach, bool is_target, uint64_t there)
{
    if (is_target) /* the cell is near, and the target is far */
        insn.target = insn.addr + reach;
    else if (insn.kind == JCC || insn.kind == LOOP) /* only the way back is far */
        insn.target = insn.addr + reach + 0x40;
    else
        insn.target = there;
    return is_target ? insn.addr : insn.addr + reach;
}

/* Does a displacement in the code lead to @target in 32 bits, but not in 64? Its instruction
 * ends @behind bytes after it.
 */
static bool wraps(uint64_t target, const uint8_t *out, unsigned len, uint64_t cell,
                  unsigned behind)
{
    for (unsigned end = 4; end <= len && end <= CELL_SIZE; end++) {
        int32_t disp;
        uint64_t away;

        memcpy(&disp, out + end - 4, sizeof(disp));
        away = cell + end + behind + (uint64_t)(int64_t)disp - target;
        if (away && !(uint32_t)away)
            return true;
    }
    return false;
}

static bool copy_wraps(const uint8_t *out, unsigned len, uint64_t cell)
{
    uint64_t behind = insn.addr + insn.len;
    unsigned imm_len = insn.len - insn.disp_offset - 4;
    int32_t disp;

    if (insn.kind == RIP_RELATIVE) {
        memcpy(&disp, insn.bytes + insn.disp_offset, sizeof(disp));
        if (wraps(behind + (uint64_t)(int64_t)disp, out, len, cell, imm_len))
            return true;
    }
    if (insn.kind >= JMP && wraps(insn.target, out, len, cell, 0))
        return true;
    return insn.kind != JMP && insn.kind != CALL && wraps(behind, out, len, cell, 0);
}

/* Three distances: 32 bits reach the first one. The second is twice as long, and the
 * third four times: the low 32 bits of the third look like a short distance. Then all
 * distances near the end of the reach: where it ends depends on the copy, but no copy may
 * have a displacement that is cut.
 */
static void distances(const char *what, bool is_target)
{
    static const char *const which[] = { "just near enough", "too far", "4 GiB further" };
    bool is_up = lab_case / 8 % 2;
    uint64_t reach = is_up ? FAR_AWAY : 0 - (uint64_t)FAR_AWAY, there = insn.target;
    uint8_t out[CELL_SIZE];
    unsigned cut = 0;

    for (unsigned i = 0; i < 3; i++, reach *= 2)
        reach_fact(what, which[i], spread(reach, is_target, there));
    for (unsigned i = 0; i < 4 * CELL_SIZE; i++) {
        uint64_t cell =
            spread((is_up ? EDGE : 0 - EDGE) + i - 2 * CELL_SIZE, is_target, there);
        unsigned len = boost(out, cell, &insn);

        cut += copy_wraps(out, len, cell);
    }
    lab_fact("%s, copies near the end of the reach that have a cut displacement: %u",
             what, cut);
}

/* The operand is far away on one side of the instruction. So a cell may be near both, or
 * near only one of them.
 */
static void far_operand(void)
{
    int32_t disp = lab_case / 8 % 2 ? FAR_OPERAND : -FAR_OPERAND;
    uint64_t half = (uint64_t)(disp / 2);

    memcpy(code + INSN + insn.disp_offset, &disp, sizeof(disp));
    reach_fact("rip-relative", "between", insn.addr + half);
    reach_fact("rip-relative", "the operand too far", insn.addr - half);
    reach_fact("rip-relative", "the way back too far", insn.addr + 3 * half);
}

static void far(void)
{
    uint8_t bytes[LAB_INSN_MAX];

    switch (lab_case % 8) {
    case 0:
        make_function(bytes, lab_insn_random(bytes), PLAIN);
        distances("plain, the way back", false);
        break;
    case 1:
        make_rip_relative(false);
        distances("rip-relative", false);
        far_operand();
        break;
    case 2:
        make_branch(1, 0xe8, true, CALL);
        distances("call", false);
        distances("call, its target", true);
        break;
    case 3:
        make_branch(1, 0x74, false, JCC);
        distances("jcc, its target", true);
        break;
    case 4:
        make_branch(1, 0x74, false, JCC);
        distances("jcc, the way back", false);
        break;
    case 5:
        make_branch(1, 0xe2, false, LOOP);
        distances("loop, its target", true);
        break;
    case 6:
        make_branch(1, 0xe2, false, LOOP);
        distances("loop, the way back", false);
        break;
    default:
        make_branch(1, 0xe9, true, JMP);
        distances("jmp, its target", true);
    }
}

const struct lab_line lab_lines[] = {
    { "plain", plain }, { "rip-relative", rip_relative },
    { "jmp", jmp },     { "jcc", jcc },
    { "call", call },   { "loop", loop },
    { "far", far },     { 0 },
};
