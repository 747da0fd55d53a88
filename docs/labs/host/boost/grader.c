/* grader.c - grades lab 5: lets one instruction of a function run in a cell far away.
 * The function is:
 *
 *      head      random instructions
 *      here      nops, or the jump to the cell
 *      insn      the instruction of the case, padded to 8 bytes with nops
 *      through   random instructions; ret
 *      there     other random instructions; ret       (the target of branches)
 */
#define _GNU_SOURCE
#include "docs/labs/host/grader.h"

#include "boost.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define LOWEST 0x10000000u
#define SPACE 0x60000000u
#define HERE 56u
#define INSN 64u
#define ROOM 8u
#define THERE 128u
#define DATA 512u
#define PIECE 5
#define RET 0xc3
#define NOP 0x90
#define JMP32 0xe9
#define INT3 0xcc
#define FAR_AWAY 0x7fffff00

static uint8_t *code;
static struct insn insn;

/* Map an executable page at a random free address in the first 2 GiB, full of int3. */
static uint8_t *page_anywhere(void)
{
    for (;;) {
        uintptr_t at = (LOWEST + lab_below(SPACE)) & ~(uintptr_t)(PAGE - 1);
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

/* Make the function around an instruction of @len bytes. */
static void make_function(const void *bytes, unsigned len, enum kind kind)
{
    uint8_t *end;

    code = page_anywhere();
    memset(code, NOP, INSN + ROOM);
    random_piece(code);
    memcpy(code + INSN, bytes, len);
    end = random_piece(code + INSN + ROOM);
    *end = RET;
    end = random_piece(code + THERE);
    *end = RET;
    for (unsigned i = DATA; i < PAGE; i++)
        code[i] = (uint8_t)lab_random();
    insn = (struct insn){ .bytes = code + INSN,
                          .len = len,
                          .addr = (uint64_t)code + INSN,
                          .kind = kind,
                          .target = (uint64_t)code + THERE };
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
    if (lab_below(2))
        before.cx = lab_below(2);
    regs = before;
    memcpy(saved, code + DATA, ROOM);
    lab_call(&regs, code);
    lab_regs_fact(&regs);
    right = regs;
    memory = lab_digest(0, code + DATA, PAGE - DATA);
    lab_fact("memory: %#lx", memory);
    memcpy(code + DATA, saved, ROOM);

    memcpy(bytes, insn.bytes, insn.len);
    insn.bytes = bytes;
    used = boost(cell, (uint64_t)cell, &insn);
    if (!used || used > CELL_SIZE) {
        lab_fact("there is no copy");
        return;
    }
    code[HERE] = JMP32;
    disp = (int32_t)(cell - (code + HERE + 5));
    memcpy(code + HERE + 1, &disp, sizeof(disp));
    regs = before;
    lab_call(&regs, code);
    lab_fact("with the copy");
    lab_regs_fact(&regs);
    lab_fact("memory: %#lx", lab_digest(0, code + DATA, PAGE - DATA));
    if (memcmp(&regs, &right, sizeof(regs)) ||
        memory != lab_digest(0, code + DATA, PAGE - DATA))
        lab_fact(LAB_WRONG "the copy does something else");
}

static void plain(void)
{
    uint8_t bytes[LAB_INSN_MAX];

    make_function(bytes, lab_insn_random(bytes), PLAIN);
    run_both();
}

/* Make one of: mov from memory, mov to memory, lea, add to memory. The register is rax.
 */
static void make_rip_relative(void)
{
    static const uint8_t opcodes[] = { 0x8b, 0x89, 0x8d, 0x01 };
    uint8_t bytes[7] = { 0x48, opcodes[lab_below(4)], 0x05 };
    int32_t disp = (int32_t)(DATA - INSN - sizeof(bytes));

    memcpy(bytes + 3, &disp, sizeof(disp));
    make_function(bytes, sizeof(bytes), RIP_RELATIVE);
    insn.disp_offset = 3;
}

static void rip_relative(void)
{
    make_rip_relative();
    run_both();
}

/* Make a branch to THERE: @opcode and a displacement of one byte or, @is_wide, of four.
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
}

static void jmp(void)
{
    bool is_wide = lab_case % 2;

    make_branch(1, is_wide ? 0xe9 : 0xeb, is_wide, JMP);
    run_both();
}

static void jcc(void)
{
    if (lab_below(2))
        make_branch(2, 0x800fu | lab_case << 8, true, JCC);
    else
        make_branch(1, 0x70u | lab_case, false, JCC);
    run_both();
}

/* The called function puts its return address into r11. */
static void call(void)
{
    static const uint8_t take[] = { 0x4c, 0x8b, 0x1c, 0x24, RET }; /* mov r11, [rsp] */

    make_branch(1, 0xe8, true, CALL);
    memcpy(code + THERE, take, sizeof(take));
    code[INSN + ROOM] = RET;
    run_both();
}

/* Has no random instructions in front of the loop: they could change rcx. */
static void loop(void)
{
    make_branch(1, 0xe0u + lab_case % 4, false, LOOP);
    memset(code, NOP, INSN);
    run_both();
}

static void far(void)
{
    static const char *const what[] = { "plain", "rip-relative", "call" };
    uint8_t cell[CELL_SIZE], bytes[LAB_INSN_MAX];
    uint64_t reach = FAR_AWAY;

    if (lab_case % 3 == 0)
        make_function(bytes, lab_insn_random(bytes), PLAIN);
    else if (lab_case % 3 == 1)
        make_rip_relative();
    else
        make_branch(1, 0xe8, true, CALL);
    if (lab_below(2))
        reach = 0 - reach;
    lab_fact("%s, just near enough: %s", what[lab_case % 3],
             boost(cell, insn.addr + reach, &insn) ? "a copy" : "none");
    reach *= 2;
    lab_fact("too far: %s", boost(cell, insn.addr + reach, &insn) ? "a copy" : "none");
    reach *= 2; /* the low 32 bits of this distance look like a short one */
    lab_fact("4 GiB further: %s",
             boost(cell, insn.addr + reach, &insn) ? "a copy" : "none");
}

const struct lab_line lab_lines[] = {
    { "plain", plain }, { "rip-relative", rip_relative },
    { "jmp", jmp },     { "jcc", jcc },
    { "call", call },   { "loop", loop },
    { "far", far },     { 0 },
};
