/* pass.c - the passes of pass.h: their handlers, and what each of them checks.
 *
 * In the first seven passes the handlers and programs change nothing, and the outcome must
 * be that without a probe. In the other passes the handlers change the program, and the
 * outcome must have exactly these changes.
 */
#include "tests/conformance/pass.h"

#include "kernel/base/compiler.h"
#include "probes/insn/operand.h"
#include "tests/conformance/outcome.h"
#include "tests/conformance/programs.h"

#include <string.h>

/* The setup of the present run, and what the handlers have seen. */
static const struct setup *current;
static struct {
    unsigned pre, light, post;
    uintptr_t light_ip;
    struct pt_regs pre_regs, post_regs;
} seen;

void pass_begin(const struct setup *setup)
{
    current = setup;
    memset(&seen, 0, sizeof(seen));
}

/* ---- handlers ---- */

static int see_before(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    seen.pre++;
    seen.pre_regs = *regs;
    return 0;
}

/* This handler also changes all registers that a C function may change. */
static void see_lightly(struct kprobe *p UNUSED, uintptr_t ip)
{
    seen.light++;
    seen.light_ip = ip;
    __asm__ volatile("movl $-1, %%eax; movl %%eax, %%ecx; movl %%eax, %%edx\n\t"
                     "movl %%eax, %%esi; movl %%eax, %%edi; movl %%eax, %%r8d\n\t"
                     "movl %%eax, %%r9d; movl %%eax, %%r10d; movl %%eax, %%r11d\n\t"
                     "addl %%eax, %%eax" ::
                         : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
                           "cc");
}

static void see_after(struct kprobe *p UNUSED, struct pt_regs *regs,
                      unsigned long flags UNUSED)
{
    seen.post++;
    seen.post_regs = *regs;
}

/* The program has begun with other registers; this handler gives it those of the setup.
 */
static int give_registers(struct kprobe *p, struct pt_regs *regs)
{
    const struct image *image = &current->image;

    see_before(p, regs);
    memcpy(&regs->r15, &image->r15, IMAGE_REGS * sizeof(image->r15));
    regs->flags = image->flags;
    regs->sp = image->sp;
    return 0;
}

_Static_assert(offsetof(struct pt_regs, di) == offsetof(struct image, di),
               "both begin with the general registers, in the same order");

static int skip(struct kprobe *p, struct pt_regs *regs)
{
    see_before(p, regs);
    regs->ip = (uintptr_t)exit_taken;
    return 1;
}

static void send_elsewhere(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
    see_after(p, regs, flags);
    regs->ip = (uintptr_t)exit_taken;
}

/* ---- expectations ---- */

static bool faulted(const struct attempt *a)
{
    return a->unprobed->fault.count && a->unprobed->fault.ip == a->insn->addr;
}

/* next_ip - return the address at which the program goes on after the instruction. */
static uintptr_t next_ip(const struct attempt *a)
{
    if (a->unprobed->exit == EXIT_FALL || a->fixture->more)
        return insn_next(a->insn);
    if (a->unprobed->exit == EXIT_FAULT)
        return a->unprobed->fault.ip; /* the instruction has branched there */
    return a->fixture->taken ? a->fixture->taken : (uintptr_t)exit_taken;
}

static const char *check_outcome(const struct attempt *a)
{
    if (!outcome_same(a->unprobed, a->probed, a->ignored))
        return outcome_difference();
    return seen.pre == 1 ? NULL : "the pre-handler did not run once";
}

static const char *check_pre(const struct attempt *a)
{
    if (seen.pre_regs.ip != a->insn->addr + 1)
        return "the pre-handler sees another ip";
    if (!outcome_same_regs(&a->setup->image, &seen.pre_regs, 0, "the pre-handler's "))
        return outcome_difference();
    return NULL;
}

static const char *check_post(const struct attempt *a)
{
    struct image after = a->unprobed->image;

    if (seen.post != !faulted(a))
        return "the post-handler ran too often, or not at all";
    if (!seen.post)
        return NULL;
    if (seen.post_regs.ip != next_ip(a))
        return "the post-handler sees another ip";
    if (a->fixture->more)
        return NULL; /* the handler saw the registers before the second instruction */
    if (a->setup->steps)
        after.flags |= FLAGS_TF; /* it is cleared only at the exit */
    if (!outcome_same_regs(&after, &seen.post_regs, a->ignored, "the post-handler's "))
        return outcome_difference();
    return NULL;
}

/* check_counted - check the outcome, and that the hit was counted. No handler is called.
 */
static const char *check_counted(const struct attempt *a)
{
    if (!outcome_same(a->unprobed, a->probed, a->ignored))
        return outcome_difference();
    return a->hits == 1 ? NULL : "it was not counted once";
}

static const char *check_seen_lightly(const struct attempt *a)
{
    if (seen.light_ip != a->insn->addr)
        return "the light handler is given another ip";
    return seen.light == 1 ? check_counted(a) : "the light handler did not run once";
}

static const char *check_program(const struct attempt *a)
{
    const char *what = check_counted(a);

    return what ? what : programs_check(a);
}

static const char *check_seen_before(const struct attempt *a)
{
    const char *what = check_outcome(a);

    return what ? what : check_pre(a);
}

static const char *check_seen_after(const struct attempt *a)
{
    const char *what = check_seen_before(a);

    return what ? what : check_post(a);
}

/* check_skipped - check that the outcome is that of no instruction at all. */
static const char *check_skipped(const struct attempt *a)
{
    static const struct fixture nothing = { "nothing", (uintptr_t)exit_taken, 0, 0 };
    struct outcome expected;

    fixture_run(&nothing, a->setup, &expected);
    if (!outcome_same(&expected, a->probed, 0))
        return outcome_difference();
    return seen.pre == 1 && !seen.post ? NULL : "the handlers did not run as they should";
}

/* check_sent_elsewhere - check that the instruction has had its effect, and that the
 * program has gone on where the post-handler has sent it.
 */
static const char *check_sent_elsewhere(const struct attempt *a)
{
    struct outcome expected = *a->unprobed;

    if (a->fixture->more)
        return NULL;
    if (!faulted(a)) {
        expected.exit = EXIT_TAKEN;
        memset(&expected.fault, 0, sizeof(expected.fault));
    }
    if (!outcome_same(&expected, a->probed, a->ignored))
        return outcome_difference();
    return check_post(a);
}

/* ---- the passes ---- */

const struct pass passes[] = {
    { .name = "no handler", .tier = TIER_BOOST, .check = check_counted },
    { .name = "light handler",
      .tier = TIER_BOOST,
      .light = see_lightly,
      .check = check_seen_lightly },
    { .name = "program",
      .tier = TIER_BOOST,
      .program = &program_of_words,
      .check = check_program },
    { .name = "program that calls",
      .tier = TIER_BOOST,
      .program = &program_of_calls,
      .check = check_program },
    { .name = "no post-handler",
      .tier = TIER_BOOST,
      .pre = see_before,
      .check = check_seen_before },
    { .name = "post-handler, int3",
      .tier = TIER_STEP_INT3,
      .pre = see_before,
      .post = see_after,
      .check = check_seen_after },
    { .name = "post-handler, TF",
      .engine = STEP_TF,
      .tier = TIER_STEP_TF,
      .pre = see_before,
      .post = see_after,
      .check = check_seen_after },
    { .name = "registers given by the pre-handler",
      .tier = TIERS,
      .pre = give_registers,
      .scrambled = true,
      .alone = true,
      .check = check_outcome },
    { .name = "registers given, and stepped",
      .tier = TIERS,
      .pre = give_registers,
      .post = see_after,
      .scrambled = true,
      .alone = true,
      .check = check_outcome },
    { .name = "skipped by the pre-handler",
      .tier = TIERS,
      .pre = skip,
      .post = see_after,
      .alone = true,
      .check = check_skipped },
    { .name = "sent elsewhere by the post-handler",
      .tier = TIERS,
      .pre = see_before,
      .post = send_elsewhere,
      .alone = true,
      .check = check_sent_elsewhere },
};

const size_t pass_count = ARRAY_LEN(passes);
