/* grader.c - grades lab 9: asks for plans for the sites in the input, which judge.c
 * checks later, and for plans for a function, which it then executes with the jumps.
 */
#define _GNU_SOURCE
#include "docs/labs/host/grader.h"

#include "docs/labs/host/pun/shared.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define INSNS 40
#define RET 0xc3
#define JMP 0xe9
#define JMP_LEN 5
#define STUB_SIZE 64

static uint8_t bytes[TEXT_MAX];
static struct site sites[SITES_MAX];
static struct text text;

static void each_alone(void)
{
    size_t count = shared_read(&text, bytes, sites);

    for (size_t i = 0; i < count; i++) {
        plan(&text, &sites[i], 1);
        plan_tell(&sites[i]);
    }
}

static void all_at_once(void)
{
    size_t count = shared_read(&text, bytes, sites);

    plan(&text, sites, count);
    for (size_t i = 0; i < count; i++)
        plan_tell(&sites[i]);
}

/* ---- on this processor ---- */

/* Map the page of @addr and the next page, if they are not mapped yet. */
static void pages_at(uint64_t addr)
{
    for (unsigned i = 0; i < 2; i++)
        mmap((void *)((addr & ~(uint64_t)(PAGE - 1)) + i * PAGE), PAGE,
             PROT_READ | PROT_WRITE | PROT_EXEC,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static unsigned short_insn_random(uint8_t *out)
{
    static const uint8_t registers[] = { 0, 1, 2, 3, 5, 6, 7 }; /* not rsp */
    static const uint8_t one[] = { 0x98, 0x99, 0xf5, 0xf8, 0xf9 };
    static const uint8_t two[] = { 0x01, 0x29, 0x31, 0x21, 0x09, 0x89, 0x39, 0x85 };

    if (lab_below(3) == 0) {
        out[0] = one[lab_below(sizeof(one))];
        return 1;
    }
    if (lab_below(2))
        return lab_insn_random(out);
    out[0] = two[lab_below(sizeof(two))];
    out[1] = (uint8_t)(0xc0 | registers[lab_below(sizeof(registers))] << 3 |
                       registers[lab_below(sizeof(registers))]);
    return 2;
}

static void jump_to(uint8_t *at, uint64_t target)
{
    int32_t disp = (int32_t)(target - ((uint64_t)at + JMP_LEN));

    *at = JMP;
    memcpy(at + 1, &disp, sizeof(disp));
}

/* Write the code to which a pad leads: it adds 1 to *@hits, executes the instruction, and
 * jumps back. The code saves rax on the stack, and adds by lea, which changes no flags.
 */
static void make_stub(uint8_t *stub, const struct site *s, uint64_t *hits)
{
    uint64_t addr = (uint64_t)hits;

    *stub++ = 0x50; /* push %rax */
    memcpy(stub, "\x48\xa1", 2);
    memcpy(stub + 2, &addr, sizeof(addr)); /* movabs hits, %rax */
    stub += 10;
    memcpy(stub, "\x48\x8d\x40\x01", 4); /* lea 1(%rax), %rax */
    stub += 4;
    memcpy(stub, "\x48\xa3", 2);
    memcpy(stub + 2, &addr, sizeof(addr)); /* movabs %rax, hits */
    stub += 10;
    *stub++ = 0x58; /* pop %rax */
    memcpy(stub, bytes + s->offset, s->len);
    jump_to(stub + s->len, text.start + s->offset + s->len);
}

static size_t make_function(void)
{
    size_t at = 0;

    for (size_t i = 0; i < INSNS; i++) {
        sites[i].offset = at;
        sites[i].len = short_insn_random(bytes + at);
        at += sites[i].len;
    }
    for (size_t i = at + 1; i < TEXT_MAX; i++)
        bytes[i] = (uint8_t)lab_random();
    bytes[at] = RET;
    return INSNS;
}

static bool is_written(const struct site *s)
{
    return s->jump_len && s->jump_len <= s->len;
}

static void run(void)
{
    static uint64_t hits[INSNS];
    size_t count = make_function(), planned = 0, narrow = 0, narrow_planned = 0, hit = 0;
    unsigned foreign = 0;
    struct lab_regs regs, before;
    uint8_t *code, *stubs;

    text = shared_text(bytes, TEXT_MAX);
    pages_at(text.start);
    pages_at(text.start + PAGE);
    code = (void *)text.start;
    memcpy(code, bytes, TEXT_MAX);
    lab_regs_random(&before);
    regs = before;
    lab_call(&regs, code);
    lab_regs_fact(&regs);

    plan(&text, sites, count);
    stubs = (void *)text.hole_start; /* every pad can reach this address by a jump */
    for (size_t i = 0; i < count; i++)
        if (is_written(&sites[i])) {
            pages_at(sites[i].pad);
            pages_at((uint64_t)(stubs + i * STUB_SIZE));
            memcpy(code + sites[i].offset, sites[i].jump, sites[i].jump_len);
            make_stub(stubs + i * STUB_SIZE, &sites[i], &hits[i]);
            jump_to((void *)sites[i].pad, (uint64_t)(stubs + i * STUB_SIZE));
            planned++;
        }
    for (size_t i = 0; i < count; i++)
        if (is_written(&sites[i])) {
            const uint8_t *at = code + sites[i].offset;

            foreign += at[shared_prefixes(at)] != JMP;
        }
    lab_fact("jumps with other prefixes than those that pun.h names: %u", foreign);
    regs = before;
    lab_call(&regs, code);
    lab_regs_fact(&regs);
    for (size_t i = 0; i < count; i++) {
        narrow += sites[i].len < JMP_LEN;
        narrow_planned += sites[i].len < JMP_LEN && sites[i].jump_len;
        hit += hits[i] == 1;
    }
    lab_fact("jumps that were not executed exactly once: %zu", planned - hit);
    lab_fact("a quarter of the short instructions have one: %s",
             4 * narrow_planned >= narrow ? "yes" : "no");
}

const struct lab_line lab_lines[] = {
    { "four", each_alone },
    { "three", each_alone },
    { "short", each_alone },
    { "all", all_at_once },
    { "most", all_at_once },
    { "run", run },
    { 0 },
};
