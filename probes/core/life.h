/* life.h - the stages of a probe, private to the engine, in the order they happen.
 *
 * probes/README.md has the same order as a table. The engine keeps all that it knows of
 * one probed address in a struct site. All kprobes at that address share it.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/base/nokprobe.h"
#include "probes/core/extend.h"
#include "probes/core/kprobe.h"
#include "probes/core/platform.h"
#include "probes/core/state.h"
#include "probes/insn/insn.h"

#include <stdatomic.h>

/* How the displaced instruction is run after the pre-handlers. */
enum site_way {
    WAY_BOOST,   /* a copy in a slot, with a jump back behind it */
    WAY_STEP,    /* a copy with a trap behind it, for post-handlers */
    WAY_EMULATE, /* its effect on the register image, by the engine */
    WAY_JUMP,    /* in a detour; counted as a way, but site->way is never this */
    WAYS,
};

/* What emulate.c must know of an instruction; filled at registration. */
struct emulation {
    uint8_t kind;     /* enum insn_kind */
    uint8_t detail;   /* JCC: condition; LOOP: variant; *_REG: register number */
    uint8_t opsize;   /* bytes pushed and popped: 2 or 8 */
    uint8_t addrsize; /* LOOP, JRCXZ: width of the counter; *_MEM: of the address */
    uint8_t base, index, scale, seg;
    int32_t disp;      /* relative branches: of the target; *_MEM: of the operand */
    uint16_t pop;      /* RET: bytes dropped besides the return address */
    bool rip_relative; /* *_MEM: the operand is */
};

/* How STI and the instruction behind it are run together. It lies in memory directly in
 * front of the site of the STI. At most one of @slot and @site is set.
 */
struct sti_pair {
    uint8_t *slot;     /* copies of both instructions, then the jump back; or NULL */
    struct site *site; /* a site by which the second instruction is emulated; or NULL */
    size_t len;        /* of both instructions in the program, in bytes */
};

/* What a breakpoint needs. Another room may keep more data behind it: ext_site_size().
 *
 * Locks:  I immutable once published   P PLAT_PROBES   p PLAT_PROBES to write; hits read
 * without locks. Memory that hits can find no more is freed after plat_quiesce().
 */
struct site {
    uintptr_t addr;        /* [I] */
    struct kprobe *probes; /* [p] the probes registered here, in order of registration */
    union {
        struct emulation emul;   /* [I] where way is WAY_EMULATE */
        struct {                 /* with every other way; see site_boost_slot() */
            uint8_t *boost_slot; /* [I] copy and jump back */
            uint8_t *step_slot;  /* [p] copy and int3, for post-handlers; or NULL */
        };
    };
    uint8_t bytes[INSN_MAX_LEN]; /* [I] the original instruction; behind it, padding that
                                  * its jump covers */
    uint8_t len;                 /* [I] of the original instruction, in bytes */
    uint8_t class;               /* [I] enum insn_class */
    bool repeats : 1;            /* [I] has a rep prefix: one step is one iteration */
    bool is_sti : 1;             /* [I] STI: the CPU takes no interrupt behind it yet */
    bool never_by_tf : 1;        /* [I] a step by TF would undo its effect */
    bool in_engine : 1;          /* [I] the probed address is in the engine's code */
    uint8_t way;                 /* [p] enum site_way */
    bool has_post;               /* [p] a probe here has a post-handler */
    bool asks_resume;            /* [p] ext_resume() knows where the program goes on */
    uint8_t state;               /* [P] enum site_state */
    bool queued;                 /* [P] in the site_list that is being filled */
};

/* site_is_armed - is its text changed? Locks: PLAT_PROBES held. */
static inline bool site_is_armed(const struct site *site)
{
    return site->state == SITE_ARMED || site->state == SITE_OPTIMIZED;
}

/* site_is_call - is the instruction a direct call? To make it a jump to a detour, the
 * engine changes only its displacement.
 */
NOKPROBE_INLINE bool site_is_call(const struct site *site)
{
    return site->way == WAY_EMULATE && site->emul.kind == INSN_CALL_REL;
}

/* site_boost_slot, site_step_slot - NULL if @site has no such slot, or is emulated.
 * Context: any.
 */
NOKPROBE_INLINE uint8_t *site_boost_slot(const struct site *site)
{
    return site->way == WAY_EMULATE ? NULL : site->boost_slot;
}

NOKPROBE_INLINE uint8_t *site_step_slot(const struct site *site)
{
    return site->way == WAY_EMULATE ? NULL : site->step_slot;
}

/* site_pair - the pair in front of @site, which must have is_sti. Context: any. */
NOKPROBE_INLINE struct sti_pair *site_pair(const struct site *site)
{
    return (struct sti_pair *)(uintptr_t)site - 1;
}

/* site_target - the address that the relative branch at @site leads to. The way of @site
 * must be WAY_EMULATE. Context: any.
 */
NOKPROBE_INLINE uintptr_t site_target(const struct site *site)
{
    return site->addr + site->len + (uintptr_t)(intptr_t)site->emul.disp;
}

enum hit_stage {
    HIT_PRE,    /* before the instruction */
    HIT_POST,   /* it has been run */
    HIT_FAULT,  /* its copy has faulted, and the probes' fault handlers are called */
    HIT_RETURN, /* the function that begins at the site returns */
};

struct hit_facts {
    uint8_t stage;  /* enum hit_stage */
    bool faulting;  /* a handler has faulted, and its fault handler is being called */
    bool owes_step; /* the program has TF set, and its instruction was emulated */
    bool jumped;    /* the CPU came by a jump: interrupts are as the program has them */
    bool light;     /* a light handler runs: it has a struct plat_light, and no image */
} ALIGNED(8);       /* one word: one store writes all of them */

/* One hit whose handlers are running. */
struct probe_hit {
    struct site *site; /* NULL: see hit_site() */
    struct pt_regs *regs;
    struct kprobe *running; /* the probe whose handler runs; NULL: no handler runs now */
    uintptr_t jprobe_sp;    /* of a jprobe's handler: see plat_jprobe_call() */
    struct hit_facts is;
    struct plat_depths found; /* the depths before the hit; hit_leave() restores them */
};

/* hit_site - the site of @hit. A detour with code of its own stores only the running
 * probe, not the site; the site is then found through the probe.
 * Return: NULL: the hit is not filled in yet, or is about to be left.
 */
NOKPROBE_INLINE struct site *hit_site(const struct probe_hit *hit)
{
    const struct kprobe *running = READ_ONCE(hit->running);
    struct site *site = READ_ONCE(hit->site);

    return site || !running ? site : running->site;
}

/* hit_by_jump - the CPU has come to @hit by a jump or by a return, not by a trap. The
 * code that called the engine has already switched preemption off, and will switch it on
 * again itself.
 */
NOKPROBE_INLINE void hit_by_jump(struct probe_hit *hit)
{
    hit->is.jumped = true;
    hit->found.preempt--;
}

#define PROBE_CACHE_LEN 64
#define WATCH_SLOTS 4 /* debug registers: probes/watch */

/* The data of one CPU about its hits. Only that CPU writes it; other CPUs read the
 * counters. hits[] is a stack: a hit in an interrupt, an NMI or a handler is put on top,
 * and is taken away before the interrupted code goes on.
 */
struct probe_cpu {
    unsigned depth; /* entries of hits[] in use; while it is not 0 preemption is off */
    const struct plat_light *light; /* see light_frame() */
    struct plat_cpu plat;
    struct probe_hit hits[PROBE_NEST_MAX];
    struct {
        uintptr_t addr;
        struct site *site;
    } cache[PROBE_CACHE_LEN]; /* NMIs do not use it: they could see half of an update */
    uint64_t cache_misses;
    uint64_t ran[WAYS];           /* hits, by the way their instruction was run */
    uint64_t missed[MISS_CAUSES]; /* hits without handlers, by cause */
    uint64_t untrapped;           /* of missed and redirected: hits that came by a jump */
    uint64_t steps;               /* second traps, behind a copy */
    uint64_t redirected;          /* hits whose handler has set ip itself */
    uint64_t retries;             /* traps of an int3 that was already taken out again */
    uint64_t handler_faults;
    uint64_t watch_hits[WATCH_SLOTS];   /* by debug register */
    uint64_t watch_missed[WATCH_SLOTS]; /* no handler was called */
    bool watch_busy;                    /* the CPU is between a #DB and its handlers */
    struct {
        uintptr_t addr; /* of the probe */
        uintptr_t ip;   /* of the handler's instruction */
        unsigned vector;
    } given_up; /* the last handler that was given up because it had faulted */
};

static inline bool probe_in_nmi(const struct probe_cpu *cpu)
{
    return READ_ONCE(plat_depths(cpu)->nmi) != 0;
}

/* probe_count - add one to a counter of the executing CPU. It is one instruction, so an
 * NMI cannot come between the load and the store, and no count is lost.
 */
NOKPROBE_INLINE void probe_count(uint64_t *counter)
{
    __asm__ volatile("incq %0" : "+m"(*counter));
}

/* light_frame - the struct plat_light of the light handler that a detour has called on
 * this CPU. That handler occupies the first entry of hits[], but nothing is written into
 * the entry: cpu->light alone says that the handler runs. A detour calls no light handler
 * in an interrupt or an NMI.
 * Return: NULL: no light handler runs.
 */
NOKPROBE_INLINE const struct plat_light *light_frame(const struct probe_cpu *cpu)
{
    return READ_ONCE(cpu->light);
}

/* ---- 1 register.c, enable.c, site_list.c ---- */

/* Sites that are armed, disarmed or freed together. A site is in the list once, even if
 * it is added once for each of its probes. Between site_list_add() and site_list_close()
 * no other list may be filled.
 */
struct site_list {
    struct site **sites;
    size_t count;
    struct site *one; /* room for a single site: such a list allocates no memory */
};

/* site_list_make - an empty list with room for @max.  Return: 0; -ENOMEM. */
int site_list_make(struct site_list *list, size_t max, struct probe_reject *why);
void site_list_add(struct site_list *list, struct site *site);
void site_list_close(struct site_list *list);
/* site_list_sort - by address, ascending. */
void site_list_sort(struct site_list *list);
void site_list_free(struct site_list *list);
/* site_to_front - move the sites that are armed (@armed), or those that are not
 * (!@armed), in front of the others. Return: how many sites were moved to the front.
 */
size_t site_to_front(struct site **sites, size_t count, bool armed);

/* register_some - register_kprobes_some() for a caller that brings the memory: @list has
 * room for @count sites.
 * register_take_out - unregister_kprobes() for a caller that brings the memory: @room has
 * room for 2 * @count sites. The probes keep their kind, so they can be registered again.
 * Locks: PLAT_PROBES held.  Return: as the function that it stands for.
 */
size_t register_some(struct kprobe **ps, size_t count, struct site_list *list,
                     register_refused_t refused, void *arg);
int register_take_out(struct kprobe **ps, size_t count, struct site **room);
/* register_resolve - the address that @p means. Return: 0; a reason's errno. */
int register_resolve(const struct kprobe *p, uintptr_t *addr, struct probe_reject *why);
/* register_check_all - are all of @ps registered?
 * @engine: receives the armed sites in the engine's own code that have no other probe
 *          than one of @ps. When many probes are taken out or disabled, the caller
 *          disarms these sites first. Otherwise the engine would hit its own probes in
 *          all its later work. This function itself still hits them, so it is short.
 * Locks:   PLAT_PROBES held.  Return: 0; -EINVAL.
 */
int register_check_all(struct kprobe **ps, size_t count, struct site_list *engine);
/* register_check_caller - may probes be changed from here? Return: 0; -EDEADLK. */
int register_check_caller(struct probe_reject *why);

/* enable_wants_arming - should @site be armed, and is it not? Locks: PLAT_PROBES held. */
bool enable_wants_arming(const struct site *site);

/* ---- 2 check.c, blacklist.c, boundary.c ---- */

/* kprobe_check - may the instruction at @addr carry a probe?
 * @insn: receives the instruction, decoded from its original bytes
 * Context: thread.  Locks: PLAT_PROBES held.  Return: 0, or the errno of the reason.
 */
int kprobe_check(uintptr_t addr, struct insn *insn, struct probe_reject *why);

/* check_each_rule - check the same rules, and do not stop at the first broken one. The
 * check ends early only at a broken rule that the later rules depend on, for example when
 * the instruction cannot be decoded.
 * @fn: called for each rule, in order; @why->err is 0 when the rule is kept
 * Context: thread.  Locks: PLAT_PROBES held.
 */
void check_each_rule(uintptr_t addr, rule_told_t fn, void *arg);

/* blacklist_why - why @addr, in code that can never carry a probe, is there. Context: any.
 * Return: a sentence; NULL: @addr is not in such code.
 */
const char *blacklist_why(uintptr_t addr);
/* blacklist_next - the range that contains @addr, or else the next range behind it.
 * Context: any.  Return: 0; -ENOENT there is none.
 */
int blacklist_next(uintptr_t addr, struct nokprobe_range *out);
/* blacklist_add - add the functions and ranges that code has marked. A range overlaps no
 * other range and no marked function; an empty range is ignored. The sentences are never
 * freed.
 * blacklist_remove - remove each range of the list that begins in [@start, @end). Without
 * memory they stay in the list, and apply to any code that is loaded there later.
 * Context: thread; blacklist_add() also boot, for the marks of the image.
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM.
 */
int blacklist_add(const struct nokprobe_marks *more);
void blacklist_remove(uintptr_t start, uintptr_t end);

/* boundary_find - decode @function, which contains @addr, from its start up to @addr.
 * Context: thread.  Locks: PLAT_PROBES held.
 * Return: 0 and @insn; a reason's errno when no instruction begins at @addr.
 */
int boundary_find(uintptr_t addr, const struct plat_symbol *function, struct insn *insn,
                  struct probe_reject *why);
/* boundary_before - the same for the instruction that ends at @addr, where another one
 * begins. Return: as boundary_find(); -ENOENT if @addr is the start of @function.
 */
int boundary_before(uintptr_t addr, const struct plat_symbol *function,
                    struct insn *insn);
/* boundary_for_each - call @fn for each instruction of @function, decoded from its
 * original bytes, until its end, or until the first bytes that cannot be decoded.
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM; -EFAULT; -EILSEQ bytes were not decoded.
 */
int boundary_for_each(const struct plat_symbol *function,
                      void (*fn)(const struct insn *insn, void *arg), void *arg);
/* boundary_forget - drop what boundary_find() remembers, because text has changed, or to
 * free memory: it keeps some 80 bytes for each function that it was called for.
 * Locks: PLAT_PROBES held.
 */
void boundary_forget(void);

/* ---- 3 prepare.c, boost.c, step.c, emulate.c ---- */

/* kprobe_prepare - stage 3 for a new address: make the site and its slot, and choose the
 * way in which its instruction is run.
 * Locks: PLAT_PROBES held.  Return: the site; NULL, with @why filled.
 */
struct site *kprobe_prepare(const struct insn *insn, struct probe_reject *why);
/* kprobe_unprepare - free @site; no thread may be inside its slots. */
void kprobe_unprepare(struct site *site);
/* prepare_step - make the step slot of @site, unless it exists or is never needed. The
 * caller does so before it publishes a probe with a post-handler.
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM, -ERANGE, and the site is unchanged.
 */
int prepare_step(struct site *site, struct probe_reject *why);
/* prepare_way - choose the way again after probes came or went. Locks: PLAT_PROBES held. */
void prepare_way(struct site *site);

bool emulate_supports(const struct insn *insn);
void emulate_prepare(struct emulation *e, const struct insn *insn);

/* ---- 4 aggr.c ---- */

/* aggr_add, aggr_remove - add @p to the probes of @site, where hits find it; remove it.
 * aggr_find - is @p registered at @site?   aggr_enabled - is any probe of @site enabled?
 * aggr_wants_post - does any probe of @site have a post-handler?
 * aggr_mirror - show in the flags of all probes of @site whether the site is a jump now
 * Locks: PLAT_PROBES held.
 */
void aggr_add(struct site *site, struct kprobe *p);
void aggr_remove(struct site *site, struct kprobe *p);
void aggr_mirror(const struct site *site);
bool aggr_find(const struct site *site, const struct kprobe *p);
bool aggr_enabled(const struct site *site);
bool aggr_wants_post(const struct site *site);

/* ---- 5 and 13 arm.c ---- */

/* kprobe_arm, kprobe_disarm - put the int3 of @count sites in, take it out, with one
 * round of synchronisation. On return every CPU executes the new text.
 * Context: thread.  Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void kprobe_arm(struct site **sites, size_t count);
void kprobe_disarm(struct site **sites, size_t count);
/* kprobe_guard - as kprobe_arm(), but the sites stay breakpoints: no jump is made of them
 * as long as they are armed. No jump may read their bytes. Locks: as kprobe_arm().
 */
void kprobe_guard(struct site **sites, size_t count);

/* ---- 6 hit.c, account.c ---- */

/* kprobe_int3_handler - #BP. @cpu: of the executing CPU; NULL while it is not ready for
 * probes. Context: trap, interrupts off. Return: false for an int3 that is not the
 * engine's.
 */
bool kprobe_int3_handler(struct pt_regs *regs, struct probe_cpu *cpu);
/* hit_enter - make a new entry in hits[], if the handlers of @site may run now. If they
 * may not and @stage is HIT_PRE, count the miss.
 * Return: the entry; NULL: the handlers must not run.
 * hit_untrapped - do for @site what its int3 would have done: the CPU came in another
 * way. Interrupts off.
 * hit_leave - give up @hit, which must be the latest entry. @jumped: the value of
 * @hit->is.jumped
 */
struct probe_hit *hit_enter(struct probe_cpu *cpu, struct site *site,
                            struct pt_regs *regs, enum hit_stage stage);
void hit_untrapped(struct probe_cpu *cpu, struct site *site, struct pt_regs *regs);
NOKPROBE_INLINE void hit_leave(struct probe_cpu *cpu, struct probe_hit *hit, bool jumped)
{
    /* What handlers have done to the count ends with them. */
    WRITE_ONCE(plat_depths(cpu)->preempt, hit->found.preempt + jumped);
    WRITE_ONCE(hit->site, NULL);
    barrier();
    cpu->depth--;
}
/* kprobe_resume - a handler was given up because it had faulted: go on with its hit, as
 * if the handler had returned. @regs: the image of the hit. Context: trap.
 */
void kprobe_resume(struct pt_regs *regs, struct probe_cpu *cpu);

/* account_miss - count one hit of @site without handlers. @cpu: NULL if there is none. */
void account_miss(struct probe_cpu *cpu, struct site *site, enum probe_miss cause);

/* ---- 8 step.c, boost.c, emulate.c: continue with the instruction ---- */

/* boost_sti - change @regs so that the STI of @site is executed next, if possible
 * together with the instruction behind it.
 * boost_sti_again - a step over the STI has ended, and the CPU would now take interrupts
 * in front of the instruction behind it. Take back the effect of the STI, and let both be
 * executed together.
 */
void boost_sti(const struct site *site, struct pt_regs *regs);
void boost_sti_again(const struct site *site, struct pt_regs *regs);

/* site_go_on - call this when @regs is final and the program is about to go on with it.
 * If regs->ip lies under the jump of a region, it is changed to the copy in the region's
 * cell.
 * Context: any.
 */
NOKPROBE_INLINE void site_go_on(const struct site *site, struct pt_regs *regs)
{
    if (unlikely(READ_ONCE(site->asks_resume)))
        ext_resume(site, regs);
}

NOKPROBE_INLINE void boost_run(struct site *site, struct pt_regs *regs)
{
    regs->ip = (uintptr_t)site->boost_slot;
    site_go_on(site, regs);
    if (unlikely(site->is_sti))
        boost_sti(site, regs);
}

/* emulate_run - apply the instruction of @site to @regs. Return: false when the
 * instruction has faulted; emulate_run() has then handled the fault.
 */
bool emulate_run(struct site *site, struct pt_regs *regs);

/* step_site - the site whose step slot has the int3 at address @int3 behind its copy, or
 * NULL.
 * Context: trap.
 */
struct site *step_site(uintptr_t int3);
/* step_in_copy - a program has set TF to step itself, and its last step has ended inside
 * the engine's copy of the instruction of @site. The program must not see the copy: let
 * the trap look as if the program had stepped the original instruction.
 * @copy:     address of the copy's first byte; regs->ip is there or behind it
 * @iterates: when regs->ip is @copy, a repeated instruction (rep movs) may have ended an
 *            iteration. False: the program has only just arrived at the copy.
 * Context: trap.
 * Return:  true: the trap is dealt with. False: the program gets the trap as its own
 *          step.
 */
bool step_in_copy(struct site *site, uintptr_t copy, bool iterates, struct pt_regs *regs,
                  struct probe_cpu *cpu);
/* kprobe_debug_handler - #DB. Context: trap.  Return: false when it is not the engine's. */
bool kprobe_debug_handler(struct pt_regs *regs, struct probe_cpu *cpu);

enum step_engine { STEP_INT3, STEP_TF };
/* step_set_engine - choose the trap that ends a step from now on. In an NMI, and in code
 * that has TF set, int3 always ends it. Context: thread.
 */
void step_set_engine(enum step_engine to);
enum step_engine step_get_engine(void);

/* ---- copy.c: from an address in a cell to the address in the program ---- */

/* copy_start - the address where the copy begins in @cell; 0 if the cell is not of @site.
 * copy_original - the address in the program that @ip, an address in a cell, stands for.
 * If @ip is not in a cell, @ip itself.
 * Context: any.
 */
uintptr_t copy_start(const struct site *site, uintptr_t cell);
uintptr_t copy_original(uintptr_t ip);

/* ---- 9 fault.c ---- */

/* kprobe_fault_handler - called for every fault. If the CPU is in a slot, the fault is
 * reported at the original address. A fault in a handler ends the handler and trips its
 * probe.
 * Context: trap.  Return: true when the CPU can go on as @regs says.
 */
bool kprobe_fault_handler(struct pt_regs *regs);
/* fault_in_handler - the probe whose handler this CPU runs now, so that a fault would be
 * a fault of that handler; NULL: none.
 * Context: any, preemption off.
 */
const struct kprobe *fault_in_handler(const struct probe_cpu *cpu);
/* fault_resume - call the fault handlers, beginning with that of @p, then leave @hit. */
void fault_resume(struct probe_cpu *cpu, struct probe_hit *hit, struct kprobe *p);

/* ---- 14 reclaim.c ---- */

/* kprobe_reclaim - free @count disarmed sites, when no thread can be inside any more.
 * Context: thread.  Locks: PLAT_PROBES held; waits for quiescence.
 */
void kprobe_reclaim(struct site **sites, size_t count);
/* reclaim_unreached - the same for sites that were never armed: no thread can be inside. */
void reclaim_unreached(struct site **sites, size_t count);
/* reclaim_rest - if no site is left, free the memory that all sites shared. */
void reclaim_rest(void);
