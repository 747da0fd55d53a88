/* program_ways.c - runs programs of hits in C and as code, and says what each way has left.
 * program_model.py makes the programs and has a model of them; test_program_model.py
 * compares. The first line of the output says where the numbers of the model come from:
 *
 *     MEMORY TOP_OF_STACK CPU THREAD PLACE ...    the places by kind and number
 *
 * A line of the input is a case, with a seed for registers, flags and memory. An empty line
 * runs those before it.
 *
 *     KIND SEED NAME,SOURCE,SUB,SKIP,AT,IMM ... [+ NAME,...]
 *
 * The programs of a case stand at one place. The answer is a line for each way, or the word
 * `refused` with the operation and the reason.
 */
#include "probes/insn/insn.h"
#include "probes/jump/optimize.h"
#include "probes/kprobe.h"
#include "probes/program/platform_program.h"
#include "probes/program/program_parts.h"
#include "tests/hosted/fixture.h"
#include "tests/hosted/posix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KINDS 3
#define PLACES 32  /* program_places.asm */
#define TOGETHER 4 /* programs at a place, at most */
#define HITS 3
#define WORDS 80
#define TABLE 64 /* places */
#define TABLES 2
#define LINE 65536
#define LIMIT 100 /* seconds */
#define SEPARATORS " \n"

extern const struct {
    uintptr_t start, probed;
} program_places[KINDS][PLACES];

static const char *const kinds[KINDS] = { "live", "dead", "call" };

struct one {
    struct kprobe p;
    struct kprobe_program program;
    struct kprobe_op ops[KPROBE_OPS_MAX + 2];
    uint64_t calls, reserved, commits, record[8];
};

static struct slot {
    uint64_t tables[TABLES][TABLE] __attribute__((aligned(128)));
    struct one ones[TOGETHER];
    unsigned count, kind;
    uint64_t seed;
    struct outcome right[HITS];
    struct kprobe_program_problem problem; /* @why: the case is refused */
} slots[PLACES];

static const uint8_t switches[2] = { 0, 1 };
static struct bench bench;

/* ---- functions that programs call ---- */

/* spoil - change what a function may change, but for @result. */
static uint64_t spoil(uint64_t result)
{
    __asm__ volatile("mov $-1, %%rcx; mov $-1, %%rdx; mov $-1, %%rsi; mov $-1, %%rdi;"
                     "mov $-1, %%r8; mov $-1, %%r9; mov $-1, %%r10; mov $-1, %%r11"
                     : "+a"(result)::"rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",
                       "r11");
    return result;
}

static struct one *one_of(struct kprobe *p, uintptr_t ip)
{
    struct one *one = (struct one *)(void *)p; /* its first field */

    one->calls += ip == p->addr ? 0 : 1000;
    return one;
}

/* The first function uses no register that it must preserve, and the engine knows that. It
 * knows nothing of the second one.
 */
static uint64_t called(struct kprobe *p, uintptr_t ip)
{
    return spoil(one_of(p, ip)->calls++ * 7 + 1);
}

static kprobe_call_t volatile any_function = called;

static uint64_t called_blindly(struct kprobe *p, uintptr_t ip)
{
    return any_function(p, ip);
}

/* Every third time there is no room. */
static struct kprobe_room reserve(struct kprobe *p, uintptr_t ip,
                                  const struct pt_regs *regs UNUSED)
{
    struct one *one = one_of(p, ip);

    spoil(0);
    if (++one->reserved % 3 == 0)
        return (struct kprobe_room){ 0 };
    return (struct kprobe_room){ one->record, one };
}

static void commit(void *token)
{
    ((struct one *)token)->commits++;
    spoil(0);
}

/* ---- reading ---- */

static uintptr_t address_for(struct slot *s, const struct kprobe_op *op)
{
    switch (op->code) {
    case KPROBE_OP_CALL:
        return (uintptr_t)(op->imm % 2 ? called_blindly : called);
    case KPROBE_OP_RESERVE:
        return (uintptr_t)reserve;
    case KPROBE_OP_COMMIT:
        return (uintptr_t)commit;
    case KPROBE_OP_UNLESS:
        return (uintptr_t)&switches[op->imm % 2];
    case KPROBE_OP_BY:
        return (uintptr_t)s->tables[op->imm % TABLES];
    default:
        return op->imm;
    }
}

static uint64_t next_number(char **text)
{
    return **text == ',' ? strtoull(*text + 1, text, 0) : 0;
}

static struct kprobe_op read_op(struct slot *s, char *text)
{
    struct kprobe_op op = { .code = KPROBE_OPCODES };
    size_t len = strcspn(text, ",");

    for (uint8_t code = 0; code < KPROBE_OPCODES; code++)
        if (strlen(program_rows[code]->name) == len &&
            !memcmp(program_rows[code]->name, text, len))
            op.code = code;
    text += len;
    op.source = (uint8_t)next_number(&text);
    op.sub = (uint8_t)next_number(&text);
    op.skip = (uint8_t)next_number(&text);
    op.at = (uint32_t)next_number(&text);
    op.imm = next_number(&text);
    op.imm = address_for(s, &op);
    return op;
}

static void one_begin(struct slot *s, uintptr_t addr)
{
    struct one *one = &s->ones[s->count++];

    one->p = (struct kprobe){ .addr = addr, .program = &one->program };
    one->program = (struct kprobe_program){ .ops = one->ops, .words = WORDS };
}

static void one_end(struct slot *s)
{
    if (!s->problem.why)
        program_verify(&s->ones[s->count - 1].program, &s->problem);
}

static void read_case(struct slot *s, char *line)
{
    uintptr_t addr;

    memset(s, 0, sizeof(*s));
    for (char *word = strtok(line, SEPARATORS); s->kind < KINDS - 1; s->kind++)
        if (!strcmp(word, kinds[s->kind]))
            break;
    s->seed = strtoull(strtok(NULL, SEPARATORS), NULL, 0);
    addr = program_places[s->kind][s - slots].probed;
    one_begin(s, addr);
    for (char *word; (word = strtok(NULL, SEPARATORS));) {
        struct one *one = &s->ones[s->count - 1];

        if (strcmp(word, "+")) {
            one->ops[one->program.count] = read_op(s, word);
            if (one->program.count <= KPROBE_OPS_MAX)
                one->program.count++;
        } else if (s->count < TOGETHER) {
            one_end(s);
            one_begin(s, addr);
        }
    }
    one_end(s);
}

/* ---- running and telling ---- */

static struct outcome run_hit(const struct slot *s, unsigned hit)
{
    struct fixture f = { .start = program_places[s->kind][s - slots].start };

    return bench_run(&bench, &f, s->seed + hit);
}

static bool is_refused(const struct slot *s)
{
    return s->problem.why;
}

static void slot_clear(struct slot *s)
{
    memset(s->tables, 0, sizeof(s->tables));
    for (struct one *one = s->ones; one < s->ones + s->count; one++) {
        one->p = (struct kprobe){ .addr = one->p.addr, .program = one->p.program };
        one->calls = one->reserved = one->commits = 0;
        memset(one->record, 0, sizeof(one->record));
    }
}

static void tell_numbers(const char *name, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i])
            printf(" %s%zu=%lx", name, i, numbers[i]);
}

static void tell_one(const struct one *one)
{
    uint64_t words[WORDS + 1] = { 0 };

    for (size_t i = 0; i < program_words(&one->program); i++)
        words[i] = program_word_of(&one->program, plat_fact(PLAT_FACT_CPU), i);
    printf(" + hits=%lu calls=%lu reserved=%lu commits=%lu", kprobe_hits(&one->p),
           one->calls, one->reserved, one->commits);
    tell_numbers("w", words, WORDS + 1);
    tell_numbers("r", one->record, sizeof(one->record) / sizeof(one->record[0]));
}

static void tell(const struct slot *s)
{
    bool same = true;

    if (is_refused(s)) {
        printf("refused %u %s\n", s->problem.at, s->problem.why);
        return;
    }
    for (unsigned hit = 0; hit < HITS; hit++)
        same &= !outcomes_differ(run_hit(s, hit), s->right[hit], false);
    printf("%s %s", s->ones[0].p.flags & KPROBE_FLAG_OPTIMIZED ? "jump" : "trap",
           same ? "same" : "CHANGED");
    for (unsigned i = 0; i < s->count; i++)
        tell_one(&s->ones[i]);
    tell_numbers("t", s->tables[0], (size_t)TABLES * TABLE);
    printf("\n");
}

static void run_way(size_t count, enum optimize_method method)
{
    static struct kprobe *set[PLACES * TOGETHER];
    size_t n = 0;

    optimize_set_method(method);
    for (struct slot *s = slots; s < slots + count; s++) {
        slot_clear(s);
        for (unsigned i = 0; !is_refused(s) && i < s->count; i++)
            set[n++] = &s->ones[i].p;
    }
    if (n && register_kprobes(set, n))
        abort();
    optimize_run();
    for (size_t i = 0; i < count; i++)
        tell(&slots[i]);
    if (n && unregister_kprobes(set, n))
        abort();
}

/* run_cases - an answer for each case by a trap, then an answer for each by a jump. */
static void run_cases(size_t count)
{
    alarm(LIMIT); /* code that is wrong may never come back */
    for (struct slot *s = slots; s < slots + count; s++)
        for (unsigned hit = 0; hit < HITS; hit++)
            s->right[hit] = run_hit(s, hit);
    run_way(count, OPTIMIZE_OFF);
    run_way(count, OPTIMIZE_PUN);
    fflush(stdout);
}

int main(void)
{
    static char line[LINE];
    size_t count = 0;

    posix_init();
    bench_init(&bench);
    printf("%lx %lx %x %x", (uintptr_t)bench.mem, (uintptr_t)bench.stack + FIXTURE_STACK,
           plat_fact(PLAT_FACT_CPU), plat_fact(PLAT_FACT_THREAD));
    for (size_t i = 0; i < (size_t)KINDS * PLACES; i++)
        printf(" %lx", program_places[i / PLACES][i % PLACES].probed);
    printf("\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (*line != '\n')
            read_case(&slots[count++], line);
        if (count && (*line == '\n' || count == PLACES)) {
            run_cases(count);
            count = 0;
        }
    }
    return 0;
}
