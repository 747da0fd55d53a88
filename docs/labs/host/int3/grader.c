/* grader.c - grades lab 3: makes functions of random instructions, with breakpoints. */
#define _GNU_SOURCE
#include "docs/labs/host/grader.h"

#include "int3.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define INSNS 12
#define MANY 300
#define RET 0xc3
#define TF 0x100u
#define THREADS 40
#define CALLS 100
#define SEEN_MAX 512
#define AGAIN 20000
#define PAGE 4096
#define DF 0x400u

static uint8_t *code;
static pthread_barrier_t ready;
static unsigned count = INSNS; /* instructions of the function */
static struct breakpoint points[MANY];
static _Atomic unsigned long hits[MANY];
static greg_t seen[SEEN_MAX][NGREG]; /* by note_hit(); rip is relative to bp->at */
static unsigned seen_count;
static const void *stack; /* an address in the frame of hit() */
static unsigned stale_hits;
static uint64_t flags_stated; /* 0 but in the line `step` */

/* Make a function of @count instructions, the first of which is the longest, and a
 * breakpoint in points[] for each instruction. No breakpoint is set yet.
 */
static void make_function(void)
{
    uint8_t *at = code = lab_text_new(4096);

    for (unsigned i = 0; i < count; i++) {
        points[i].at = at;
        points[i].len = i ? lab_insn_random(at) : lab_insn_longest(at);
        at += points[i].len;
    }
    *at = RET;
}

static void note_hit(struct breakpoint *bp, ucontext_t *context)
{
    greg_t *row = seen[seen_count % SEEN_MAX];

    hits[bp - points]++;
    memcpy(row, context->uc_mcontext.gregs, sizeof(seen[0]));
    row[REG_RIP] -= (greg_t)bp->at;
    row[REG_RSP] -= (greg_t)stack;
    seen_count++;
}

static void count_hit(struct breakpoint *bp, ucontext_t *context)
{
    (void)context;
    hits[bp - points]++;
}

/* Skip the word that the function has pushed last. */
static void change_stack(struct breakpoint *bp, ucontext_t *context)
{
    context->uc_mcontext.gregs[REG_RSP] += 8;
    hits[bp - points]++;
}

/* Change each register but rip and rsp, and CF. */
static void change_registers(struct breakpoint *bp, ucontext_t *context)
{
    for (int reg = REG_R8; reg <= REG_RCX; reg++)
        context->uc_mcontext.gregs[reg] += bp->len + reg;
    context->uc_mcontext.gregs[REG_EFL] ^= 1;
    hits[bp - points]++;
}

/* The handler of a breakpoint that was cleared. It must not be called. */
static void note_stale(struct breakpoint *bp, ucontext_t *context)
{
    (void)bp;
    (void)context;
    stale_hits++;
}

/* The fields that are for the student's code have no meaning before breakpoint_set(). */
static void set(unsigned i, void (*handler)(struct breakpoint *, ucontext_t *))
{
    const size_t theirs = offsetof(struct breakpoint, original);

    points[i].handler = handler;
    memset((char *)&points[i] + theirs, 0xa5, sizeof(points[i]) - theirs);
    breakpoint_set(&points[i]);
}

/* State the registers behind the function. The flags are for the line `step`: the function
 * reads few of them, so in another line a lost flag would show by luck.
 */
static void regs_facts(struct lab_regs *regs)
{
    lab_fact("TF behind the function: %s", regs->flags & TF ? "still set" : "clear");
    regs->flags &= flags_stated;
    lab_regs_fact(regs);
}

static void call_random(void)
{
    struct lab_regs regs;

    lab_regs_random(&regs);
    if (flags_stated) /* no instruction of the function has a string */
        regs.flags |= regs.r15 & DF;
    lab_call(&regs, code);
    lab_fact("DF behind the function: %s", regs.flags & DF ? "set" : "clear");
    regs_facts(&regs);
}

static void hits_fact(void)
{
    for (unsigned i = 0; i < count; i++)
        lab_fact("instruction %u: %lu hits", i, (unsigned long)hits[i]);
}

static void seen_facts(void)
{
    for (unsigned i = 0; i < seen_count && i < SEEN_MAX; i++) {
        lab_fact("hit %u: the handler saw rip: bp->at + %#llx", i, seen[i][REG_RIP]);
        lab_fact("hit %u: the handler saw rdi: %#llx", i, seen[i][REG_RDI]);
        lab_fact("hit %u: the handler saw r15: %#llx", i, seen[i][REG_R15]);
        lab_fact("hit %u: the handler saw the flags: %#llx", i,
                 seen[i][REG_EFL] & (LAB_FLAGS | TF));
        lab_fact("hit %u: all registers: %#lx", i,
                 lab_digest(0, seen[i], (REG_RIP + 1) * sizeof(greg_t)));
    }
}

static void signal_fact(void)
{
    struct sigaction action;

    sigaction(SIGTRAP, NULL, &action);
    lab_fact("the handler of SIGTRAP is %s SA_SIGINFO",
             action.sa_flags & SA_SIGINFO ? "with" : "without");
}

static void hit(void)
{
    struct lab_regs regs;
    unsigned calls = 1 + lab_below(9);

    stack = &regs;
    make_function();
    set(lab_below(INSNS), note_hit);
    while (calls--) {
        lab_regs_random(&regs);
        lab_call(&regs, code);
    }
    hits_fact();
    seen_facts();
    signal_fact();
}

/* The first case has a function of many instructions with a breakpoint at each one, so that
 * each flag is set behind some of them.
 */
static void step(void)
{
    flags_stated = LAB_FLAGS;
    count = lab_case ? INSNS : MANY;
    make_function();
    for (unsigned i = 0; i < count; i++)
        if (!lab_case || lab_below(2) || i == lab_case % INSNS)
            set(i, note_hit);
    call_random();
    call_random();
    hits_fact();
    for (unsigned i = 0; i < seen_count && i < SEEN_MAX; i++)
        lab_fact("in front of hit %u the flags were: %#llx", i,
                 seen[i][REG_EFL] & LAB_FLAGS);
}

/* mov %rsp,%rdi; push %rbx; push %rcx; pop %rax; mov %rdi,%rsp; ret. The breakpoint is
 * at pop.
 */
static void change_rsp(void)
{
    static const uint8_t bytes[] = { 0x48, 0x89, 0xe7, 0x53, 0x51,
                                     0x58, 0x48, 0x89, 0xfc, RET };
    struct lab_regs regs;

    code = lab_text_new(4096);
    memcpy(code, bytes, sizeof(bytes));
    points[0] = (struct breakpoint){ .at = code + 5, .len = 1 };
    set(0, change_stack);
    lab_regs_random(&regs);
    lab_call(&regs, code);
    lab_fact("pop behind a handler that adds 8 to rsp: %#lx", regs.ax);
}

/* clc; adc $0,%rax; ret. The breakpoint is at adc, whose result shows CF. */
static void change_all(void)
{
    static const uint8_t bytes[] = { 0xf8, 0x48, 0x83, 0xd0, 0x00, RET };
    struct lab_regs regs;

    code = lab_text_new(4096);
    memcpy(code, bytes, sizeof(bytes));
    points[0] = (struct breakpoint){ .at = code + 1, .len = 4 };
    set(0, change_registers);
    lab_regs_random(&regs);
    lab_call(&regs, code);
    lab_fact("adc $0,%%rax behind a handler that sets CF and adds 17 to rax: %#lx",
             regs.ax);
    lab_regs_fact(&regs);
}

static void change(void)
{
    if (lab_case == 0) {
        change_rsp();
    } else if (lab_case == 1) {
        change_all();
    } else {
        make_function();
        set(lab_below(INSNS), change_registers);
        call_random();
        hits_fact();
    }
}

/* Reuse the memory of @cleared: copy all of @other but the link and the handler. If a
 * list of the student's code still has @cleared, a hit of @other calls the wrong handler.
 */
static void reuse(struct breakpoint *cleared, const struct breakpoint *other)
{
    struct breakpoint *next = cleared->next;

    *cleared = *other;
    cleared->next = next;
    cleared->handler = note_stale;
}

/* Check that @chosen, which was cleared, is in no list. Try it with a breakpoint that was
 * set before @chosen and with a breakpoint that was set after it.
 */
static void reuse_fact(unsigned chosen)
{
    struct breakpoint kept = points[chosen];
    struct lab_regs regs;

    for (unsigned other = 0; other < INSNS; other += INSNS - 1) {
        reuse(&points[chosen], &points[other]);
        lab_regs_random(&regs);
        lab_call(&regs, code);
    }
    points[chosen] = kept;
    lab_fact("breakpoint_clear() has left its bp in a list: %s",
             stale_hits ? "yes" : "no");
}

/* Return the pages of memory that the process has. */
static unsigned long pages(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long count = 0;

    if (file && fscanf(file, "%lu", &count) != 1)
        count = 0;
    if (file)
        fclose(file);
    return count;
}

/* The last breakpoint of many at one instruction works, and the next one, which stays
 * meanwhile. They leave no memory. points[0] is at the same instruction by now.
 */
static void many_again(unsigned chosen)
{
    unsigned long before = pages();

    set(chosen + 1, count_hit);
    for (unsigned i = 0; i < AGAIN; i++) {
        set(chosen, count_hit);
        breakpoint_clear(&points[chosen]);
    }
    set(chosen, count_hit);
    call_random();
    lab_fact("behind %u breakpoints that were cleared:", AGAIN);
    hits_fact();
    breakpoint_clear(&points[chosen]);
    breakpoint_clear(&points[chosen + 1]);
    lab_fact("they have left more than a page for twenty: %s",
             pages() > before + AGAIN / 20 ? "yes" : "no");
}

/* Two functions at the same place of two pages: mov $1,%eax; ret, and push %rbx; pop %rax;
 * ret, where a breakpoint is cleared that is a byte in front of another one.
 */
static void neighbours(void)
{
    static const uint8_t mov[] = { 0xb8, 1, 0, 0, 0, RET }, push[] = { 0x53, 0x58, RET };
    struct lab_regs regs;

    count = 3;
    code = lab_text_new(2 * PAGE);
    memcpy(code, mov, sizeof(mov));
    memcpy(code + PAGE, push, sizeof(push));
    points[0] = (struct breakpoint){ .at = code, .len = 5 };
    points[1] = (struct breakpoint){ .at = code + PAGE, .len = 1 };
    points[2] = (struct breakpoint){ .at = code + PAGE + 1, .len = 1 };
    for (unsigned i = 0; i < count; i++)
        set(i, count_hit);
    for (unsigned i = 0; i < 2; i++) {
        lab_regs_random(&regs);
        lab_call(&regs, code);
        lab_fact("mov $1,%%eax: %#lx", regs.ax);
        lab_regs_random(&regs);
        regs.bx &= ~(uint64_t)TF;
        lab_call(&regs, code + PAGE);
        lab_fact("push %%rbx; pop %%rax: %#lx", regs.ax);
        if (!i)
            breakpoint_clear(&points[1]);
    }
    hits_fact();
    breakpoint_clear(&points[0]);
    breakpoint_clear(&points[2]);
}

static void clear(void)
{
    uint8_t before[LAB_INSN_LONGEST + INSNS * LAB_INSN_MAX];
    unsigned chosen = 1 + lab_below(INSNS - 2);

    make_function();
    memcpy(before, code, sizeof(before));
    for (unsigned i = 0; i < INSNS; i++)
        set(i, note_hit);
    call_random();
    breakpoint_clear(&points[chosen]);
    lab_fact("byte %#x, before %#x", *points[chosen].at,
             before[points[chosen].at - code]);
    reuse_fact(chosen);
    if (stale_hits) /* the list may have no end later */
        return;
    call_random();
    hits_fact();
    for (unsigned i = 0; i < INSNS; i++)
        if (i != chosen)
            breakpoint_clear(&points[i]);
    lab_fact("the bytes are %s",
             memcmp(before, code, sizeof(before)) ? "changed" : "back");
    call_random();
    hits_fact();
    points[0].at = points[chosen].at; /* its first byte is another one */
    points[0].len = points[chosen].len;
    set(0, count_hit);
    call_random();
    hits_fact();
    breakpoint_clear(&points[0]);
    lab_fact("behind a breakpoint whose memory was used before, the bytes are %s",
             memcmp(before, code, sizeof(before)) ? "changed" : "back");
    many_again(chosen);
    neighbours();
}

/* A push and a pop. Of the words that are no flags, bit 8 is the program's. */
static const struct pushing {
    const char *text;
    uint8_t bytes[8];
    uint8_t push_len, pop_len;
} pushing[] = {
    { "pushf", { 0x9c, 0x58 }, 1, 1 },
    { "pushf of 16 bits (66 9c)", { 0x66, 0x9c, 0x66, 0x58 }, 2, 2 },
    { "pushf with REX.W (48 9c)", { 0x48, 0x9c, 0x58 }, 2, 1 },
    { "pushf with REX.B (41 9c)", { 0x41, 0x9c, 0x58 }, 2, 1 },
    { "pushf with REX (4c 9c)", { 0x4c, 0x9c, 0x58 }, 2, 1 },
    { "pushf with REX (4f 9c)", { 0x4f, 0x9c, 0x58 }, 2, 1 },
    { "pushf with a segment (26 9c)", { 0x26, 0x9c, 0x58 }, 2, 1 },
    { "pushf with a segment (2e 9c)", { 0x2e, 0x9c, 0x58 }, 2, 1 },
    { "pushf with a segment (36 9c)", { 0x36, 0x9c, 0x58 }, 2, 1 },
    { "pushf with a segment (3e 9c)", { 0x3e, 0x9c, 0x58 }, 2, 1 },
    { "pushf with a segment (64 9c)", { 0x64, 0x9c, 0x58 }, 2, 1 },
    { "pushf with a segment (65 9c)", { 0x65, 0x9c, 0x58 }, 2, 1 },
    { "pushf with 67 (67 9c)", { 0x67, 0x9c, 0x58 }, 2, 1 },
    { "pushf with 66 48 (66 48 9c)", { 0x66, 0x48, 0x9c, 0x58 }, 3, 1 },
    { "push %rbx", { 0x53, 0x58 }, 1, 1 },
    { "push %r12", { 0x41, 0x54, 0x58 }, 2, 1 },
    { "push $-100 (6a 9c)", { 0x6a, 0x9c, 0x58 }, 2, 1 },
    { "push $0x9c000100", { 0x68, 0x00, 0x01, 0x00, 0x9c, 0x58 }, 5, 1 },
};
_Static_assert(sizeof(pushing) / sizeof(pushing[0]) == 18, "the rubric has 18 cases");

static void pushf(void)
{
    const struct pushing *what = &pushing[lab_case];
    const unsigned len = what->push_len + what->pop_len;
    struct lab_regs regs;

    count = 2;
    code = lab_text_new(2 * PAGE) + PAGE - len - 1; /* no memory is behind its ret */
    mprotect(code + len + 1, PAGE, PROT_NONE);
    memcpy(code, what->bytes, len);
    code[len] = RET;
    points[0] = (struct breakpoint){ .at = code, .len = what->push_len };
    points[1] = (struct breakpoint){ .at = code + what->push_len, .len = what->pop_len };
    set(0, count_hit);
    set(1, count_hit);
    lab_regs_random(&regs);
    regs.bx |= TF;
    regs.r12 |= TF;
    lab_call(&regs, code);
    lab_fact("%s; pop %%rax; then rax: %#lx", what->text, regs.ax);
    hits_fact();
}

static void *runner(void *arg)
{
    struct lab_regs regs = *(struct lab_regs *)arg;

    pthread_barrier_wait(&ready);
    for (unsigned i = 0; i < CALLS; i++)
        lab_call(&regs, code);
    *(struct lab_regs *)arg = regs;
    return NULL;
}

static void threads(void)
{
    pthread_t ids[THREADS];
    struct lab_regs regs[THREADS];

    make_function();
    pthread_barrier_init(&ready, NULL, THREADS);
    for (unsigned i = 0; i < INSNS; i += 4)
        set(i, count_hit);
    for (unsigned i = 0; i < THREADS; i++) {
        lab_regs_random(&regs[i]);
        pthread_create(&ids[i], NULL, runner, &regs[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        regs_facts(&regs[i]);
    }
    hits_fact();
}

const struct lab_line lab_lines[] = {
    { "hit", hit },
    { "step", step },
    { "change", change },
    { "clear", clear },
    { "pushf", pushf },
    { "threads", threads },
    { 0 },
};
