/* programs.c - see programs.h. */
#include "tests/conformance/programs.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/percpu.h"

#include <stdio.h>
#include <string.h>

#define TABLE_BITS 5

static uint8_t off = 1;
static uint64_t table[1 << TABLE_BITS] ALIGNED(128);

/* What the functions have done that a program calls. */
static struct effects {
    uint64_t calls, commits, record[4];
} done;

static uint64_t called(struct kprobe *p UNUSED, uintptr_t ip)
{
    done.calls++;
    return ip;
}

static struct kprobe_room reserve(struct kprobe *p UNUSED, uintptr_t ip UNUSED,
                                  const struct pt_regs *regs UNUSED)
{
    memset(done.record, 0, sizeof(done.record));
    return (struct kprobe_room){ done.record, &done };
}

static void commit(void *token)
{
    ((struct effects *)token)->commits++;
}

/* The first load reads what rdi points to, which may be no memory. */
#define WORK                                                                             \
    KPROBE_GET(KPROBE_REG_DI), KPROBE_LOAD_OR_ZERO(4, 8, 0), KPROBE_GET(KPROBE_REG_AX),  \
        KPROBE_ADD(KPROBE_REG_CX, 0), KPROBE_SUB(KPROBE_REG_DX, 0),                      \
        KPROBE_XOR(KPROBE_REG_BX, 0), KPROBE_OR(KPROBE_REG_SI, 0),                       \
        KPROBE_AND(KPROBE_IMM, 0xffffff), KPROBE_SHL(4), KPROBE_SHR(1), KPROBE_SAR(1),   \
        KPROBE_EXTEND(2, KPROBE_SIGNED), KPROBE_SUM(0, KPROBE_VALUE, 0),                 \
        KPROBE_KEY_LOG2(KPROBE_REG_R8), KPROBE_COUNT_KEYED(8),                           \
        KPROBE_KEY_LINEAR(KPROBE_REG_R9, -100, 1000, 20), KPROBE_COUNT_KEYED(80),        \
        KPROBE_KEY_SMALL(KPROBE_REG_R10, 63), KPROBE_COUNT_KEYED(110),                   \
        KPROBE_IF(KPROBE_REG_R11, KPROBE_NE, 5, 1), KPROBE_COUNT(1),                     \
        KPROBE_EVERY(2, 3, 1), KPROBE_COUNT(3), KPROBE_MIN(4, KPROBE_REG_SI, 0),         \
        KPROBE_MAX(5, KPROBE_REG_DI, KPROBE_SIGNED)

static const struct kprobe_op words[] = {
    WORK,
    KPROBE_GET(KPROBE_CPU),
    KPROBE_BY(table, TABLE_BITS),
    KPROBE_COUNT_KEYED(180),
    KPROBE_UNLESS(&off, 1),
    KPROBE_END,
    KPROBE_GET(KPROBE_REG_SP),
    KPROBE_SUM(6, KPROBE_VALUE, 0),
};

static const struct kprobe_op calls[] = {
    WORK,
    KPROBE_CALL(called),
    KPROBE_SUM(6, KPROBE_VALUE, 0),
    KPROBE_RESERVE(reserve, 4),
    KPROBE_STORE(8, 0, KPROBE_REG_AX, 0),
    KPROBE_STORE(4, 8, KPROBE_REG_R8, 0),
    KPROBE_STORE(2, 16, KPROBE_REG_SP, 0),
    KPROBE_COMMIT(commit),
};

#define PROGRAM(list)                                                                    \
    {                                                                                    \
        .ops = list, .count = ARRAY_LEN(list), .words = PROGRAM_PASS_WORDS               \
    }
const struct kprobe_program program_of_words = PROGRAM(words);
const struct kprobe_program program_of_calls = PROGRAM(calls);

/* ---- the words ---- */

static uint64_t before[PROGRAM_PASS_WORDS + 1];

static void words_now(const struct attempt *a, uint64_t *out)
{
    for (size_t i = 0; i <= PROGRAM_PASS_WORDS; i++)
        out[i] = program_word_of(a->program, cpu_id(), i);
}

void programs_before(const struct attempt *a)
{
    words_now(a, before);
    memset(&done, 0, sizeof(done));
}

static void run_in_c(const struct attempt *a)
{
    const struct image *image = &a->setup->image;
    struct kprobe p = { .addr = a->insn->addr };
    struct pt_regs regs = { .ip = a->insn->addr + 1 };

    memcpy(&regs.r15, &image->r15, IMAGE_REGS * sizeof(image->r15));
    regs.flags = image->flags;
    regs.sp = image->sp;
    program_run(a->program, before,
                &(struct program_hit){ .p = &p, .ip = p.addr, .regs = &regs });
}

const char *programs_check(const struct attempt *a)
{
    static uint64_t after[PROGRAM_PASS_WORDS + 1];
    static char text[64];
    struct effects by_hit = done;

    words_now(a, after);
    memset(&done, 0, sizeof(done));
    run_in_c(a);
    for (size_t i = 0; i <= PROGRAM_PASS_WORDS; i++)
        if (after[i] != before[i]) {
            snprintf(text, sizeof(text), "word %zu is 0x%lx, in C 0x%lx", i,
                     (unsigned long)after[i], (unsigned long)before[i]);
            return text;
        }
    return memcmp(&by_hit, &done, sizeof(done)) ? "its calls or its record differ" : NULL;
}
