/* test_fault.c - faults in handlers and in the instructions under probes. */
#include "kernel/cpu/trap.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/paging.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"
#include "tests/kernel/nothing.h"
#include "tests/kernel/own_steps.h"

static volatile char *volatile nowhere = (volatile char *)0x10;

KTEST_TARGET(target, a, a * 3 + 1)

static uint64_t entered;
static int faulty(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    entered++;
    return *nowhere;
}

KTEST(fault, a_handler_that_faults_is_given_up)
{
    struct kprobe bad = { .addr = (uintptr_t)target, .pre_handler = faulty };
    struct kprobe good = { .addr = (uintptr_t)target, .pre_handler = no_pre };
    long sum = 0;

    entered = 0;
    register_kprobe(&bad);
    register_kprobe(&good);
    for (long i = 0; i < 10; i++)
        sum += target(i) - (i * 3 + 1);
    ktest_report(entered == 1, "it ran once");
    ktest_report(bad.flags & KPROBE_FLAG_TRIPPED,
                 "its probe is switched off, and says why");
    ktest_report(good.hits == 10,
                 "the other probe there sees all hits, this one included");
    ktest_report(sum == 0, "the function returns what it should");
    ktest_report(preempt_count() == 0, "nothing is left behind");
    ktest_report(enable_kprobe(&bad) == 0 && !(bad.flags & KPROBE_FLAG_TRIPPED),
                 "it can be switched on again");
    target(0);
    ktest_report(entered == 2, "and is given up again");
    unregister_kprobe(&bad);
    unregister_kprobe(&good);
}

/* fixed_up_load - return the byte at @at; -EFAULT: the load has faulted, and its fix-up
 * has returned this.
 */
int fixed_up_load(const volatile char *at);
KTEST_ASM(fixed_up_load,
          "xor %eax, %eax; 1: movzbl (%rdi), %eax; ret; 2: mov $-14, %eax; ret\n" EXTABLE(
              "1b", "2b"))

static void load_under(kprobe_post_handler_t post, const char *how)
{
    struct kprobe p = { .addr = (uintptr_t)fixed_up_load + 2, .post_handler = post };
    char byte = 42;

    register_kprobe(&p);
    ktest_report(fixed_up_load(&byte) == 42, "%s: a good load loads", how);
    ktest_report(fixed_up_load(nowhere) == -EFAULT, "%s: a bad one is fixed up", how);
    ktest_report(p.hits == 2, "%s: both were hits", how);
    unregister_kprobe(&p);
}

KTEST(fault, the_copy_faults_as_the_instruction_would)
{
    load_under(NULL, "boosted");
    load_under(no_post, "stepped by int3");
    step_set_engine(STEP_TF);
    load_under(no_post, "stepped by TF");
    step_set_engine(STEP_INT3);
}

static const volatile char *noted; /* faults at the next bytes are noted */
static bool noting;
static unsigned long reported_ip, reported_flags, reported_cr2;

static bool note_fault(struct pt_regs *regs)
{
    if (regs->cr2 - (uintptr_t)noted >= 16)
        return false;
    reported_ip = regs->ip;
    reported_flags = regs->flags;
    reported_cr2 = regs->cr2;
    return false;
}

static void note_faults(const volatile char *at)
{
    noted = at;
    if (!noting)
        trap_set_handler(TRAP_PF, note_fault);
    noting = true;
}

KTEST(fault, and_is_reported_where_the_instruction_lies)
{
    struct kprobe p = { .addr = (uintptr_t)fixed_up_load + 2, .post_handler = no_post };

    note_faults(nowhere);
    step_set_engine(STEP_TF);
    register_kprobe(&p);
    fixed_up_load(nowhere);
    ktest_report(reported_ip == p.addr, "ip is the original address");
    ktest_report(!(reported_flags & FLAGS_TF), "and no TF of ours is seen");
    unregister_kprobe(&p);
    step_set_engine(STEP_INT3);
}

/* fixed_up_jump, fixed_up_call - jump to the address at @at, or call it; -EFAULT as above.
 */
int fixed_up_jump(const volatile char *at), fixed_up_call(const volatile char *at);
KTEST_ASM(fixed_up_jump, "1: jmp *(%rdi); 2: mov $-14, %eax; ret\n" EXTABLE("1b", "2b"))
KTEST_ASM(fixed_up_call,
          "1: call *(%rdi); ret; 2: mov $-14, %eax; ret\n" EXTABLE("1b", "2b"))

KTEST(fault, an_operand_that_begins_in_good_memory_faults_behind_it)
{
    struct kprobe p = { .addr = (uintptr_t)fixed_up_jump, .pre_handler = no_pre };
    char *page = vmap_alloc(PAGE_SIZE, PROT_W);
    uintptr_t bad = (uintptr_t)page + PAGE_SIZE;

    note_faults(page + PAGE_SIZE - 8);
    reported_cr2 = 0;
    fixed_up_jump(noted + 4);
    ktest_report(reported_cr2 == bad, "a CPU reports the first byte that is absent");
    register_kprobe(&p);
    for (unsigned i = 1; i < 8; i++) {
        reported_cr2 = 0;
        fixed_up_jump((char *)bad - i);
        ktest_report(reported_cr2 == bad, "so does an emulated jump, behind %u bytes", i);
    }
    ktest_report(p.hits == 7, "each was a hit");
    unregister_kprobe(&p);
    vmap_free(page, PAGE_SIZE);
}

/* All of that is done in an NMI as well. */
static volatile uint64_t nmi_results;
static volatile bool nmi_wanted;

static bool in_nmi(struct pt_regs *regs UNUSED)
{
    if (!nmi_wanted)
        return false;
    nmi_results += target(3) == 10;
    nmi_results += fixed_up_load(nowhere) == -EFAULT;
    nmi_wanted = false;
    return true;
}

KTEST(fault, nmi_code_may_do_all_that)
{
    struct kprobe bad = { .addr = (uintptr_t)target, .pre_handler = faulty };
    struct kprobe load = { .addr = (uintptr_t)fixed_up_load + 2 };

    nmi_take(in_nmi);
    entered = 0;
    nmi_results = 0;
    register_kprobe(&bad);
    register_kprobe(&load);
    for (int i = 0; i < 5; i++) {
        nmi_wanted = true;
        smp_send_nmi(cpu_id());
        for (unsigned spins = 0; nmi_wanted && spins < 100000000; spins++)
            barrier();
    }
    ktest_report(nmi_results == 10, "five NMIs, all results right (%lu)", nmi_results);
    ktest_report(entered == 1 && bad.flags & KPROBE_FLAG_TRIPPED,
                 "the handler that faults is given up there too");
    ktest_report(load.hits == 5, "the load that is fixed up was hit each time");
    unregister_kprobe(&bad);
    unregister_kprobe(&load);
}

/* ---- other vectors --------------------------------------------------------------------- */

/* divide_by_zero - let the FPU divide by 0, which raises #MF at the fwait. Return: -EFAULT,
 * by the fix-up.
 */
#define DIVIDE                                                                           \
    "fninit; push $0x33b; fldcw (%rsp); pop %rax; fld1; fldz; fdivrp; xor %eax, %eax;"
int divide_by_zero(void);
KTEST_ASM(divide_by_zero,
          DIVIDE "1: fwait; 2: fninit; mov $-14, %eax; ret\n" EXTABLE("1b", "2b"))
#define DIVIDE_WAIT 19 /* the offset of its fwait */

static int divides(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    entered++;
    __asm__ volatile(DIVIDE "fwait"); /* rax is free here */
    return 0;
}

KTEST(fault, one_of_the_fpu_is_one_as_well)
{
    struct kprobe wait = { .addr = (uintptr_t)divide_by_zero + DIVIDE_WAIT };
    struct kprobe bad = { .addr = (uintptr_t)target, .pre_handler = divides };

    register_kprobe(&wait);
    ktest_report(divide_by_zero() == -EFAULT && wait.hits == 1, "#MF is fixed up");
    unregister_kprobe(&wait);
    entered = 0;
    register_kprobe(&bad);
    ktest_report(target(1) == 4 && target(2) == 7 && entered == 1 &&
                     bad.flags & KPROBE_FLAG_TRIPPED,
                 "a handler that raises it is given up");
    __asm__ volatile("fninit");
    unregister_kprobe(&bad);
}

/* ---- a handler that moves the stack pointer down --------------------------------------- */

/* lowered_call - return 2 * @x + 1. lowered_pushf - return the flags. lowered_pushfw - only
 * their lower half. What pushes is at the offset LOWERED.
 */
long lowered_call(long x), lowered_pushf(long x), lowered_pushfw(long x);
#define ENTER "push %rbp; mov %rsp, %rbp; xor %eax, %eax; "
#define LOWERED 6
KTEST_ASM(lowered_call,
          ENTER "call 1f; inc %rax; leave; ret; 1: lea (%rdi, %rdi), %rax; ret")
KTEST_ASM(lowered_pushf, ENTER "pushfq; pop %rax; leave; ret")
KTEST_ASM(lowered_pushfw, ENTER "pushfw; pop %ax; leave; ret")

static unsigned long lowers_by, sets;
static int lowers(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    regs->sp -= lowers_by;
    regs->flags |= sets;
    return 0;
}

static void lowered(long (*fn)(long x), kprobe_post_handler_t post, const char *how)
{
    struct kprobe p = { .addr = (uintptr_t)fn + LOWERED,
                        .pre_handler = lowers,
                        .post_handler = post };
    long plain = fn(20);
    unsigned right = 0;

    register_kprobe(&p);
    optimize_run();
    for (lowers_by = 0; lowers_by <= 512; lowers_by += 8) {
        right += fn(20) == plain;
        __asm__ volatile("push %0\n\tpopfq" ::"r"(read_flags() & ~FLAGS_TF)
                         : "memory", "cc");
    }
    ktest_report(right == 65 && kprobe_hits(&p) == 65, "%s, %s: %u of 65 are right", how,
                 p.flags & KPROBE_FLAG_OPTIMIZED ? "jump" : "breakpoint", right);
    unregister_kprobe(&p);
}

KTEST(fault, no_push_writes_over_the_image)
{
    static struct own_steps steps;

    own_steps_begin(&steps);
    for (int way = 0; way < 4; way++) {
        kprobe_post_handler_t post = way & 1 ? no_post : NULL;

        jumps_by(way & 2 ? OPTIMIZE_PUN : OPTIMIZE_OFF);
        lowered(lowered_call, post, "a call");
        lowered(lowered_pushf, post, "pushf");
        lowered(lowered_pushfw, post, "pushfw");
        sets = FLAGS_TF;
        lowered(lowered_call, post, "a call and steps");
        sets = 0;
    }
    own_steps_end();
}

/* ---- a fault that another handler repairs ---------------------------------------------- */

uint64_t second_try(const uint64_t *at);
KTEST_ASM(second_try, "nop; mov (%rdi), %rax; add $1, %rax; ret")

static const uint64_t repaired = 41;
static uintptr_t repairs_at; /* computed: a constant of the linker would be a target */

static bool repair(struct pt_regs *regs)
{
    if (regs->ip != repairs_at)
        return false;
    regs->di = (uintptr_t)&repaired;
    return true;
}

KTEST(fault, a_second_try_is_made_under_a_jump)
{
    struct kprobe p = { .addr = (uintptr_t)second_try, .pre_handler = no_pre };

    trap_set_handler(TRAP_PF, repair);
    repairs_at = p.addr + 1;
    jumps_by(OPTIMIZE_REGION);
    register_kprobe(&p);
    optimize_run();
    ktest_report(p.flags & KPROBE_FLAG_OPTIMIZED, "a jump displaces the load");
    ktest_report(second_try((const uint64_t *)nowhere) == 42, "the second try loads");
    unregister_kprobe(&p);
    repairs_at = 0;
}

/* ---- interrupts that fault ------------------------------------------------------------- */

static void change_cr2(void *arg UNUSED)
{
    fixed_up_load(nowhere);
}

static volatile bool interrupts;
static int interrupt(void *arg UNUSED)
{
    while (interrupts)
        smp_call(0, change_cr2, NULL);
    return 0;
}

KTEST(fault, an_interrupt_that_faults_changes_no_address)
{
    struct kprobe p = { .addr = (uintptr_t)fixed_up_call, .pre_handler = no_pre };
    char *page = vmap_alloc(PAGE_SIZE, PROT_W);
    uintptr_t bad = (uintptr_t)page + PAGE_SIZE;
    unsigned right = 0, i;
    int other;

    thread_set_affinity(BIT(0));
    jumps_by(OPTIMIZE_PUN);
    register_kprobe(&p);
    optimize_run();
    note_faults((char *)bad - 8);
    interrupts = true;
    other = ktest_thread(interrupt, NULL, BIT(cpu_count() - 1));
    for (i = 0; i < 20000; i++) {
        fixed_up_call(noted + 4);
        right += reported_cr2 == bad;
    }
    interrupts = false;
    thread_join(other, NULL);
    ktest_report(right == i, "%u of %u faults have the right address", right, i);
    unregister_kprobe(&p);
    vmap_free(page, PAGE_SIZE);
}

/* ---- fault handlers -------------------------------------------------------------------- */

static int ask(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED, int nr UNUSED)
{
    entered++;
    return 0;
}

static void ask_for(int (*fn)(const volatile char *at), unsigned off, unsigned expected,
                    const char *how)
{
    struct kprobe p = { .addr = (uintptr_t)fn + off, .fault_handler = ask };

    entered = 0;
    register_kprobe(&p);
    optimize_run();
    ktest_report(fn(nowhere) == -EFAULT && kprobe_hits(&p) == 1 && entered == expected,
                 "%s, by a %s: the handler is asked %lu times", how,
                 p.flags & KPROBE_FLAG_OPTIMIZED ? "jump" : "trap", entered);
    unregister_kprobe(&p);
}

KTEST(fault, what_is_emulated_asks_no_fault_handler)
{
    for (int jumps = 0; jumps < 2; jumps++) {
        jumps_by(jumps ? OPTIMIZE_PUN : OPTIMIZE_OFF);
        ask_for(fixed_up_load, 2, 1, "a load");
        ask_for(fixed_up_jump, 0, 0, "an emulated jump");
        ask_for(fixed_up_call, 0, 0, "an emulated call");
    }
}
