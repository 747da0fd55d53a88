/* posix_trap.c - lets signals stand for traps, and resumes the image of a hit.
 *
 * Linux puts the signal frame on the trap stack, not on the program's stack. So the
 * engine can push a word for the program where the program itself would have pushed it. A
 * program with data in the red zone below its stack pointer would lose them by that, so
 * all code that carries probes is built with -mno-red-zone.
 */
#define _GNU_SOURCE
#include "tests/hosted/posix.h"
#include "tests/hosted/posix_parts.h"

#include "kernel/mm/extable.h"
#include "probes/program/program_code.h"

#include <asm/prctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define VECTOR_DB 1
#define VECTOR_BP 3
#define VECTOR_PF 14
#define DR6_BS (1ul << 14)

/* signal_return.asm */
void __restore_rt(void);
void trap_resume_hit(void);
/* trampoline.asm */
void return_resume_hit(void);
/* jump_leave.asm */
void jump_resume_hit(void);

void (*posix_debug_hook)(struct pt_regs *regs);
void (*posix_nmi_hook)(void);
_Atomic unsigned long posix_traps;
char hits_ended, text_written;

/* ---- images ---- */

/* EACH_REGISTER - each field of struct pt_regs, with its register in the signal frame. */
/* clang-format off */
#define EACH_REGISTER(X)                                                                 \
    X(r15, R15) X(r14, R14) X(r13, R13) X(r12, R12) X(bp, RBP) X(bx, RBX) X(r11, R11)    \
    X(r10, R10) X(r9, R9) X(r8, R8) X(ax, RAX) X(cx, RCX) X(dx, RDX) X(si, RSI)          \
    X(di, RDI) X(ip, RIP) X(flags, EFL) X(sp, RSP)
#define LOAD(field, name) regs->field = (unsigned long)from[REG_##name];
#define STORE(field, name) to[REG_##name] = (greg_t)regs->field;

NOKPROBE_INLINE void image_load(struct pt_regs *regs, const ucontext_t *context)
{
    const greg_t *from = context->uc_mcontext.gregs;

    EACH_REGISTER(LOAD)
    regs->cs = (uint16_t)from[REG_CSGSFS];
    regs->ss = (uint16_t)(from[REG_CSGSFS] >> 48);
    regs->cr2 = (unsigned long)from[REG_CR2];
    regs->vector = (uint32_t)from[REG_TRAPNO];
    regs->error_code = (uint32_t)from[REG_ERR];
}

NOKPROBE_INLINE void image_store(const struct pt_regs *regs, ucontext_t *context)
{
    greg_t *to = context->uc_mcontext.gregs;

    EACH_REGISTER(STORE)
}
/* clang-format on */

uintptr_t trap_ip(const void *context)
{
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

/* ---- signals ---- */

/* struct sigaction as the system call of Linux expects it. */
struct action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t blocked;
};

#define SA_RESTORER 0x04000000
#define SIGNAL_BIT(sig) (UINT64_C(1) << ((sig)-1))
/* The signals that an instruction can raise. They are never blocked: Linux would kill the
 * process.
 */
#define RAISED                                                                           \
    (SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) |                    \
     SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGABRT))

void signal_take(int sig, void (*handler)(int, siginfo_t *, void *), bool nmi)
{
    struct action action = {
        .handler = handler,
        .flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_RESTORER,
        .restorer = __restore_rt,
        .blocked = ~RAISED,
    };

    if (!nmi)
        action.blocked &= ~SIGNAL_BIT(SIGNAL_NMI);
    if (syscall(SYS_rt_sigaction, sig, &action, NULL, sizeof(action.blocked)))
        abort();
}

static _Noreturn void unhandled(const struct pt_regs *regs)
{
    static char line[160];
    int len = snprintf(line, sizeof(line),
                       "Bail out! vector %u at 0x%lx, address 0x%lx, sp 0x%lx\n",
                       regs->vector, regs->ip, regs->cr2, regs->sp);

    if (write(STDOUT_FILENO, line, (size_t)len) < 0)
        abort();
    abort();
}

/* ---- #BP and #DB ---- */

NOKPROBE_INLINE void program_debug(struct pt_regs *regs)
{
    if (!posix_debug_hook)
        unhandled(regs);
    posix_debug_hook(regs);
}

/* The data of a trap on the trap stack. The engine knows the address of the image. When a
 * handler is given up, the rest of the struct is found from there.
 */
struct trap_frame {
    struct pt_regs regs;
    ucontext_t *context; /* the signal frame; the image is copied back to it */
} ALIGNED(16);

NOKPROBE_INLINE void leave(struct trap_frame *frame)
{
    image_store(&frame->regs, frame->context);
    SANITIZER_RELEASE(&hits_ended);
}

/* on_trap - handle SIGTRAP. The vector in the signal frame tells #BP and #DB apart. The
 * si_code cannot: Linux derives it from DR6, and some virtual machines lose DR6 now and
 * then.
 */
static void on_trap(int sig UNUSED, siginfo_t *info UNUSED, void *context)
{
    struct trap_frame frame = { .context = context };
    struct pt_regs *regs = &frame.regs;

    posix_traps++;
    image_load(regs, context);
    if (regs->vector == VECTOR_DB) {
        regs->dr6 = DR6_BS;
        if (!kprobe_debug_handler(regs, plat_this_cpu()))
            program_debug(regs);
    } else if (!kprobe_int3_handler(regs, plat_this_cpu())) {
        unhandled(regs);
    }
    leave(&frame);
}
NOKPROBE(on_trap);

/* trap_resume - finish a hit when one of its handlers was given up. Called by
 * trap_resume_hit.
 * Return: the signal frame to return from.
 */
ucontext_t *trap_resume(struct trap_frame *frame);
ucontext_t *trap_resume(struct trap_frame *frame)
{
    kprobe_resume(&frame->regs, plat_this_cpu());
    leave(frame);
    return frame->context;
}
NOKPROBE(trap_resume);

/* jump_resume - as trap_resume(), for a hit by a jump. Called by jump_resume_hit.
 * Return: the address of the preemption count, which the caller decreases when it leaves
 *         the hit.
 */
int *jump_resume(struct pt_regs *regs);
int *jump_resume(struct pt_regs *regs)
{
    kprobe_resume(regs, plat_this_cpu());
    SANITIZER_RELEASE(&hits_ended);
    return &posix_self->cpu->preempt_count;
}
NOKPROBE(jump_resume);

/* jump_done - tell the thread sanitizer that a hit by a jump has ended. Called by
 * sanitized_calls.asm.
 */
void jump_done(void);
void jump_done(void)
{
    SANITIZER_RELEASE(&hits_ended);
}
NOKPROBE(jump_done);

/* plat_preempt_enable - nothing: jump_leave.asm does it later. An ip in that file counts
 * as inside.
 */
void plat_preempt_enable(void)
{
}
NOKPROBE(plat_preempt_enable);

/* plat_flags_as - only clear DF. Signals stand for interrupts, and a handler cannot
 * change which signals are blocked.
 */
void plat_flags_as(unsigned long flags UNUSED)
{
    __asm__ volatile("cld");
}
NOKPROBE(plat_flags_as);

void plat_raise_step(struct pt_regs *regs)
{
    regs->vector = VECTOR_DB;
    regs->dr6 = DR6_BS;
    program_debug(regs);
}

/* ---- faults ---- */

static void dispatch_fault(struct pt_regs *regs)
{
    if (!program_load_fails(regs) && !kprobe_fault_handler(regs) && !extable_fixup(regs))
        unhandled(regs);
}

static void on_fault(int sig UNUSED, siginfo_t *info UNUSED, void *context)
{
    struct trap_frame frame = { .context = context };

    image_load(&frame.regs, context);
    dispatch_fault(&frame.regs);
    leave(&frame);
}
NOKPROBE(on_fault);

void plat_raise_fault(struct pt_regs *regs, uintptr_t addr, bool by_stack UNUSED)
{
    regs->vector = VECTOR_PF;
    regs->error_code = 0;
    regs->cr2 = addr;
    dispatch_fault(regs);
}

void plat_raise_again(struct pt_regs *regs)
{
    dispatch_fault(regs);
}

/* forget_frames - the functions with frames between @from and @to never return. So clear
 * the marks that ASan has made for these frames.
 */
#ifdef POSIX_ASAN
void __asan_unpoison_memory_region(const volatile void *start, size_t len);

static void forget_frames(uintptr_t from, const struct pt_regs *to)
{
    __asan_unpoison_memory_region((void *)from, (uintptr_t)to - from);
}
#else
static void forget_frames(uintptr_t from UNUSED, const struct pt_regs *to UNUSED)
{
}
#endif

void plat_given_up(const struct kprobe *p UNUSED, uintptr_t sp UNUSED)
{
}

void plat_escape(struct pt_regs *fault, struct pt_regs *regs)
{
    const struct probe_cpu *cpu = plat_this_cpu();
    const struct hit_facts *is = &cpu->hits[cpu->depth - 1].is;
    void (*rest)(void) = trap_resume_hit;

    if (is->stage == HIT_RETURN && trap_is_of_return(regs))
        rest = return_resume_hit;
    else if (is->jumped)
        rest = jump_resume_hit;
    /* The handlers of a hit by a jump, and of a return, run on the program's stack. */
    forget_frames(rest == trap_resume_hit ? (uintptr_t)__builtin_frame_address(0)
                                          : fault->sp,
                  regs);
    fault->sp = (uintptr_t)regs;
    fault->ip = (uintptr_t)rest;
    fault->flags &= ~(FLAGS_DF | FLAGS_TF);
}

int plat_read(uint64_t *out, uintptr_t addr)
{
    return copy_nofault(out, (const void *)addr, sizeof(*out));
}
NOKPROBE(plat_read);

uintptr_t plat_seg_base(unsigned seg)
{
    unsigned long base = 0;

    syscall(SYS_arch_prctl, seg == INSN_SEG_FS ? ARCH_GET_FS : ARCH_GET_GS, &base);
    return base;
}
NOKPROBE(plat_seg_base);

/* ---- NMI ---- */

static void on_nmi(int sig UNUSED, siginfo_t *info UNUSED, void *context UNUSED)
{
    if (!posix_self || !posix_nmi_hook)
        return;
    posix_self->cpu->nmi_depth++;
    posix_nmi_hook();
    posix_self->cpu->nmi_depth--;
}

void trap_init(void)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE };

    signal_take(SIGTRAP, on_trap, false);
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        signal_take(faults[i], on_fault, false);
    signal_take(SIGNAL_NMI, on_nmi, true);
}
