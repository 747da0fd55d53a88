/* gdb_break.c - owns the debugger's breakpoints and watchpoints: packets Z and z.
 *
 * At each stop gdb removes all its breakpoints, and it sets them again before it lets the
 * kernel run. So `z0` only notes that the breakpoint is not wanted: its probe stays, and
 * a hit does nothing. The next `Z0` finds that probe: it is armed, and mostly a jump
 * already.
 *
 * A new breakpoint is armed while all CPUs stand (probes/port/port_held.h), as an int3;
 * the optimizer makes it a jump when the kernel runs. If the engine is in the middle of a
 * change of text, or refuses the place, the breakpoint gets a debug register, if one is
 * free. No CPU executes the middle of an instruction, or bytes that are no instruction. A
 * breakpoint there is refused, since it would never stop a CPU. An address on a stack is
 * an exception: see may_be_executed(). `Z1` takes any address.
 *
 * How a CPU stops at a probed instruction, and goes on:
 *
 *   1. The trap, or the detour, builds the image of the program, and calls break_hit().
 *   2. If the breakpoint is wanted and its conditions hold, the ip of the image becomes
 *      the probed address, as gdb expects it, and the CPU stands in the handler.
 *   3. When gdb changes registers, it changes the image.
 *   4. gdb lets the CPU go. If ip is still the probed address, the handler returns 0.
 *      Then the engine runs the other handlers of the site, and executes the instruction
 *      out of line. If gdb has changed ip, the handler returns 1, and the program goes on
 *      at the new ip.
 *   5. For a step TF is set in the image. The engine raises the trap after the
 *      instruction, at the next instruction of the program, in whichever way the
 *      instruction was executed.
 *
 * A hit of a debug register comes from debug_regs_tell(). While it is handled, the CPU may
 * be stopped by another one, and the debugger may use the register for something else. So
 * the hit counts as long as debug_reg_is_hit() says so, and its breakpoint is then the one
 * that has the register.
 *
 * So a step never puts the instruction back into the text, no CPU can miss the breakpoint
 * meanwhile, and hits of other probes at that address are counted once.
 */
#include "probes/gdb/gdb_break.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/cpu/debug_reg.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/memmap.h"
#include "kernel/thread/thread.h"
#include "probes/core/life.h"
#include "probes/core/platform.h"
#include "probes/gdb/gdb_code.h"
#include "probes/gdb/gdb_collect.h"
#include "probes/gdb/gdb_memory.h"
#include "probes/gdb/gdb_step.h"
#include "probes/gdb/gdb_stop.h"
#include "probes/port/port_held.h"
#include "probes/watch/platform_watch.h"
#include "probes/watch/watch.h"

#include <string.h>

#define BREAKS_MAX 64
#define GRACE_NS UINT64_C(200000000) /* of the clock, which does not count stops */

enum break_kind { KIND_PROBE, KIND_EXECUTE, KIND_WRITE, KIND_READ, KIND_ACCESS };

extern const char gdb_text_start[], gdb_text_end[]; /* linker.ld */

/* Locks:  s written while serving, read by hits   w written by the stub's thread as well
 */
static struct gdb_break {
    enum { FREE, THERE, LEAVING } state; /* [s, w] atomic */
    bool wanted;                         /* [s] */
    enum break_kind kind;
    uintptr_t addr;
    size_t len;
    int reg;               /* its debug register; -1: it is a probe */
    struct gdb_code *code; /* [s] NULL: none */
    struct kprobe kp;
} breaks[BREAKS_MAX];

static bool is_settled; /* the debugger has let all CPUs run */

static const char own_code[] = "the stub itself runs this code";
static const char being_changed[] =
    "the text is being changed: let the kernel run for a moment";
static const char switched_off[] =
    "kprobes are switched off: write 1 to /sys/kernel/debug/kprobes/enabled";

/* ---- a hit ---- */

static bool break_is_wanted(void *arg)
{
    const struct gdb_break *b = arg;

    return READ_ONCE(b->wanted);
}

/* is_of_the_stub - is this a hit in code that runs for the stub? That is: a collection
 * for a tracepoint, an NMI on top of a collection, or the NMI by which the stub stops
 * this CPU. If that NMI could hit, each stop would cause hits on the other CPUs. These
 * would stop the kernel again as soon as the debugger lets it go, and it would never get
 * any further.
 */
static bool is_of_the_stub(void)
{
    return gdb_collect_is_busy() || (cpu_context() == CTX_NMI && gdb_is_stopping());
}

/* break_ask - shall this hit stop the kernel? Return: 1: yes; 0: no; less than 0: a condition
 * could not be computed.
 */
static int break_ask(const struct gdb_break *b, const struct pt_regs *regs)
{
    if (!READ_ONCE(b->wanted) || is_of_the_stub())
        return 0;
    return gdb_code_ask(READ_ONCE(b->code), b->addr, regs);
}

static NOINLINE int stop_at_probe(struct gdb_break *b, struct pt_regs *regs)
{
    unsigned long ip = regs->ip, flags;
    int answer;

    if (gdb_is_serving())
        return 0;
    answer = break_ask(b, regs);
    if (!answer)
        return 0;
    flags = irq_save();
    regs->ip = b->addr;
    gdb_stop(regs, answer < 0 ? GDB_WHY_ERROR : GDB_WHY_BREAK, break_is_wanted, b);
    irq_restore(flags);
    if (regs->ip != b->addr)
        return 1;
    regs->ip = ip;
    return 0;
}

/* break_hit - handle a hit of a breakpoint's probe. For most hits the condition is false:
 * they end after the first check and cost no more than that. Conditions have no side
 * effects, so break_ask() can compute a condition once more if it is not false.
 */
static int break_hit(struct kprobe *p, struct pt_regs *regs)
{
    struct gdb_break *b = CONTAINER_OF(p, struct gdb_break, kp);

    if (gdb_code_is_false(READ_ONCE(b->code), b->addr, regs))
        return 0;
    return stop_at_probe(b, regs);
}

static struct gdb_break *of_reg(unsigned reg)
{
    for (size_t i = 0; i < BREAKS_MAX; i++)
        if (breaks[i].state == THERE && breaks[i].reg == (int)reg)
            return &breaks[i];
    return NULL;
}

struct reg_hit {
    struct pt_regs *regs;
    unsigned reg;
};

static bool break_is_hit(void *arg)
{
    const struct reg_hit *h = arg;

    return debug_reg_is_hit(h->regs->dr6, h->reg) && of_reg(h->reg);
}

static bool stop_for(const struct gdb_break *b, struct reg_hit *h, enum gdb_why why)
{
    static const char *const names[] = {
        [KIND_WRITE] = "watch", [KIND_READ] = "rwatch", [KIND_ACCESS] = "awatch"
    };

    if (why == GDB_WHY_WATCH)
        return gdb_stop_at(h->regs, why, b->addr, names[b->kind], break_is_hit, h);
    return gdb_stop(h->regs, why, break_is_hit, h);
}

/* stop_at_register - stop before the instruction, or behind the access, if the conditions
 * of @b hold. Return: has the kernel been stopped?
 */
static bool stop_at_register(const struct gdb_break *b, struct reg_hit *h)
{
    static const enum gdb_why whys[] = {
        [KIND_PROBE] = GDB_WHY_BREAK,  [KIND_EXECUTE] = GDB_WHY_HARDWARE,
        [KIND_WRITE] = GDB_WHY_WATCH,  [KIND_READ] = GDB_WHY_WATCH,
        [KIND_ACCESS] = GDB_WHY_WATCH,
    };
    int answer = break_ask(b, h->regs);

    return answer && stop_for(b, h, answer < 0 ? GDB_WHY_ERROR : whys[b->kind]);
}

/* reg_hit - a step may end with the same trap. Its end is handled first, so that in the
 * stop the program has the flags that it would have without the step.
 */
static bool reg_hit(struct pt_regs *regs, unsigned reg)
{
    struct reg_hit h = { regs, reg };
    struct gdb_break *b = of_reg(reg);
    struct gdb_step *step = gdb_step_end(regs);
    bool is_one = b && break_is_hit(&h), stopped = is_one && stop_at_register(b, &h);

    gdb_step_go_on(step, regs, stopped);
    return is_one && break_is_hit(&h);
}

/* ---- what a packet says ---- */

/* break_find - the length of a breakpoint, which is not @len, says nothing. */
static struct gdb_break *break_find(enum break_kind kind, uintptr_t addr, size_t len)
{
    for (size_t i = 0; i < BREAKS_MAX; i++)
        if (breaks[i].state == THERE && breaks[i].kind == kind &&
            breaks[i].addr == addr && (kind <= KIND_EXECUTE || breaks[i].len == len))
            return &breaks[i];
    return NULL;
}

COLD static struct gdb_break *find_room(void)
{
    for (size_t i = 0; i < BREAKS_MAX; i++)
        if (breaks[i].state == FREE)
            return &breaks[i];
    return NULL;
}

static void set_code(struct gdb_break *b, struct gdb_code *code)
{
    if (gdb_code_equal(b->code, code)) {
        gdb_code_free(code);
        return;
    }
    gdb_code_retire(b->code);
    b->code = code;
}

/* ---- debug registers ---- */

static bool is_own(uintptr_t addr)
{
    return addr >= (uintptr_t)gdb_text_start && addr < (uintptr_t)gdb_text_end;
}

COLD static const char *break_check_bytes(uintptr_t addr, size_t len)
{
    if (len != 1 && len != 2 && len != 4 && len != 8)
        return "a debug register watches 1, 2, 4 or 8 bytes";
    if (addr % len)
        return "the address is not a multiple of the length";
    return NULL;
}

/* check_place - find out whether a register with this place is possible. Return: NULL; or
 * why not, in words.
 */
COLD static const char *check_place(const struct gdb_break *b)
{
    bool executes = b->kind <= KIND_EXECUTE;
    enum watch_reason reason =
        watch_check_own(b->addr, b->len, executes ? WATCH_EXECUTE : WATCH_ACCESS);

    if (executes && is_own(b->addr))
        return own_code;
    return reason ? watch_reason_text(reason) : break_check_bytes(b->addr, b->len);
}

/* give_up_jumps - let no jump and no copy stand in for the instruction at @addr. A breakpoint
 * that is set while a thread changes the text leaves all as it is.
 */
COLD static void give_up_jumps(uintptr_t addr)
{
    if (!port_can_arm())
        return;
    port_reserve(true);
    plat_watch_execute(addr);
    port_reserve(false);
}

COLD static const char *put_in_register(struct gdb_break *b)
{
    static const enum debug_reg_kind kinds[] = {
        [KIND_PROBE] = DEBUG_REG_EXECUTE, [KIND_EXECUTE] = DEBUG_REG_EXECUTE,
        [KIND_WRITE] = DEBUG_REG_WRITE,   [KIND_READ] = DEBUG_REG_ACCESS,
        [KIND_ACCESS] = DEBUG_REG_ACCESS,
    };
    const char *why = check_place(b);

    if (why)
        return why;
    b->reg = debug_reg_take("gdb", reg_hit);
    if (b->reg < 0)
        return "all four debug registers are taken";
    debug_reg_put((unsigned)b->reg, b->addr, kinds[b->kind], b->len);
    if (b->kind <= KIND_EXECUTE)
        give_up_jumps(b->addr);
    return NULL;
}

static void take_from_register(struct gdb_break *b)
{
    debug_reg_move((unsigned)b->reg, 0);
    debug_reg_give((unsigned)b->reg);
    b->reg = -1;
    gdb_memory_must_tell |= b->kind <= KIND_EXECUTE;
}

/* ---- probes ---- */

static void note_refusal(struct kprobe *p, const struct probe_reject *why, void *arg)
{
    (void)p;
    *(struct probe_reject *)arg = *why;
}

/* break_arm - register one probe. Return: false, and @why is filled. */
COLD static bool break_arm(struct kprobe *p, struct probe_reject *why)
{
    struct site_list list;
    size_t in;

    site_list_make(&list, 1, NULL);
    in = register_some(&p, 1, &list, 0, note_refusal, why);
    site_list_free(&list);
    return in == 1;
}

/* rule_of_place - check @addr only by the rule that needs no look at the text, since the
 * text is being changed.
 */
static enum probe_reason rule_of_place(uintptr_t addr)
{
    bool is_code = plat_text_contains(addr, 1) || plat_exec_contains(addr);

    return is_code ? PROBE_OK : PROBE_NOT_TEXT;
}

bool gdb_break_is_armed(const struct kprobe *kp)
{
    return kprobes_are_on() && !(kp->flags & (KPROBE_FLAG_GONE | KPROBE_FLAG_DISABLED));
}

/* arm_at - do what gdb_break_arm() does. @why: filled if the engine has a reason against
 * @addr
 */
COLD static const char *arm_at(struct kprobe *kp, uintptr_t addr,
                               struct probe_reject *why)
{
    bool armed;

    if (is_own(addr))
        return own_code;
    if (!port_can_arm() || !kprobes_are_on()) {
        why->reason = rule_of_place(addr);
        if (why->reason)
            return probe_reason_text(why->reason);
        return kprobes_are_on() ? being_changed : switched_off;
    }
    kp->addr = addr;
    port_reserve(true);
    armed = break_arm(kp, why);
    port_reserve(false);
    return armed ? NULL : why->why;
}

COLD const char *gdb_break_arm(struct kprobe *kp, uintptr_t addr)
{
    struct probe_reject why = { 0 };

    return arm_at(kp, addr, &why);
}

/* may_be_executed - can a CPU come to @addr, which the engine refuses by the rule
 * @reason? On a stack it can: when gdb calls a function, it lets the function return to
 * an address on the stack and sets a breakpoint there. A debug register then stops the
 * CPU before it fetches from that page, which would fault.
 */
COLD static bool may_be_executed(uintptr_t addr, enum probe_reason reason)
{
    if (reason == PROBE_NOT_TEXT)
        return addr >= STACK_AREA_BASE && addr < VMAP_AREA_BASE;
    return reason != PROBE_UNDECODABLE && reason != PROBE_NOT_BOUNDARY;
}

/* break_put - set the new breakpoint @b: as a probe, or, if that is impossible, in a debug
 * register.
 */
COLD static const char *break_put(struct gdb_break *b)
{
    struct probe_reject rule = { 0 };
    const char *why;

    b->reg = -1;
    if (b->kind != KIND_PROBE)
        return put_in_register(b);
    memset(&b->kp, 0, sizeof(b->kp));
    b->kp.pre_handler = break_hit;
    why = arm_at(&b->kp, b->addr, &rule);
    if (!why || !may_be_executed(b->addr, rule.reason))
        return why;
    b->len = 1;
    return put_in_register(b) ? why : NULL;
}

/* ---- Z, z ---- */

COLD static bool break_take_place(struct gdb_request *r, enum break_kind *kind,
                                  uint64_t *addr, uint64_t *len)
{
    static const enum break_kind kinds[] = { KIND_PROBE, KIND_EXECUTE, KIND_WRITE,
                                             KIND_READ, KIND_ACCESS };
    char digit = *r->at++;

    if (digit < '0' || digit > '4')
        return false;
    *kind = kinds[digit - '0'];
    return gdb_take_char(&r->at, ',') && gdb_take_number(&r->at, addr) &&
           gdb_take_char(&r->at, ',') && gdb_take_number(&r->at, len);
}

/* break_insert - set a breakpoint, or find it. A probe that is there but not armed,
 * because the module around it has gone, or because the user has switched probes off, is
 * of no use: it is left to break_take_out(), and the breakpoint is set anew.
 */
COLD static const char *break_insert(enum break_kind kind, uintptr_t addr, size_t len,
                                     struct gdb_code *code)
{
    struct gdb_break *b = break_find(kind, addr, len);
    const char *why;

    if (b && b->reg < 0 && !gdb_break_is_armed(&b->kp)) {
        b->wanted = false;
        b->addr = 0;
        b = NULL;
    }
    if (b) {
        b->wanted = true;
        set_code(b, code);
        return NULL;
    }
    b = find_room();
    if (!b)
        return "there are 64 breakpoints already";
    memset(b, 0, sizeof(*b));
    b->kind = kind;
    b->addr = addr;
    b->len = kind <= KIND_EXECUTE ? 1 : len;
    b->code = code;
    why = break_put(b);
    if (why) {
        gdb_code_free(code);
        return why;
    }
    b->wanted = true;
    b->state = THERE;
    return NULL;
}

COLD void gdb_break_insert(struct gdb_request *r)
{
    struct gdb_code *code = NULL;
    uint64_t addr, len;
    enum break_kind kind;
    const char *why;

    if (!break_take_place(r, &kind, &addr, &len)) {
        gdb_error(r, "Z0 to Z4 want an address and a length");
        return;
    }
    why = gdb_code_take(r, &code);
    gdb_done(r, why ? why : break_insert(kind, addr, len, code));
}

/* break_drop - note that @b is not wanted. Its debug register is given back at once, so that
 * another watchpoint may have it.
 */
static void break_drop(struct gdb_break *b)
{
    b->wanted = false;
    if (b->reg < 0)
        return;
    take_from_register(b);
    gdb_code_retire(b->code);
    b->state = FREE;
}

void gdb_break_remove(struct gdb_request *r)
{
    struct gdb_break *b;
    uint64_t addr, len;
    enum break_kind kind;

    if (!break_take_place(r, &kind, &addr, &len)) {
        gdb_error(r, "z0 to z4 want an address and a length");
        return;
    }
    b = break_find(kind, addr, len);
    if (b)
        break_drop(b);
    gdb_ok(r);
}

void gdb_break_remove_all(void)
{
    for (size_t i = 0; i < BREAKS_MAX; i++)
        if (breaks[i].state == THERE)
            break_drop(&breaks[i]);
}

/* ---- when the kernel runs ---- */

void gdb_break_settle(void)
{
    WRITE_ONCE(is_settled, true);
}

bool gdb_break_has_work(void)
{
    return READ_ONCE(is_settled);
}

/* break_take_out - take out the probe of @b, if it is not wanted. If the kernel stops in the
 * middle of this, the breakpoint is LEAVING: then `Z0` does not find it, and arms a new
 * one.
 */
COLD static void break_take_out(struct gdb_break *b)
{
    struct kprobe *p = &b->kp;
    unsigned long flags = irq_save();
    bool goes = b->state == THERE && b->reg < 0 && !b->wanted;

    if (goes)
        b->state = LEAVING;
    irq_restore(flags);
    if (!goes)
        return;
    unregister_kprobe(p);
    gdb_code_free(b->code);
    __atomic_store_n(&b->state, FREE, __ATOMIC_RELEASE);
}

/* A debugger that goes from breakpoint to breakpoint lets the kernel run for moments
 * only. In such moments no probe is taken out and no jump is made: this function sleeps
 * first. Otherwise the next stop would come in the middle of the change, and a new
 * breakpoint would have to wait for the end of the change.
 */
COLD void gdb_break_work(void)
{
    thread_sleep_ns(GRACE_NS);
    port_held_refill();
    if (!__atomic_exchange_n(&is_settled, false, __ATOMIC_ACQ_REL))
        return;
    for (size_t i = 0; i < BREAKS_MAX; i++)
        break_take_out(&breaks[i]);
    if (__atomic_exchange_n(&gdb_memory_must_tell, false, __ATOMIC_RELAXED)) {
        plat_lock(PLAT_PROBES);
        boundary_forget();
        plat_watch_execute(0);
        plat_unlock(PLAT_PROBES);
    }
    gdb_code_free_retired();
}
