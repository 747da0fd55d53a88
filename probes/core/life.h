/* life.h - declares the functions and data of the stages of a probe, in the order in
 * which the stages happen. Private to the engine.
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
    WAY_EMULATE, /* the engine applies its effect to the image */
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
    bool rip_relative; /* *_MEM: the operand is relative to rip */
};

/* How STI and the instruction behind it are run together. It lies in memory directly in
 * front of the site of the STI. At most one of @slot and @site is set.
 */
struct sti_pair {
    uint8_t *slot;     /* copies of both instructions, then the jump back; or NULL */
    struct site *site; /* a site by which the second instruction is emulated; or NULL */
    size_t len;        /* of both instructions in the program, in bytes */
};

/* What a breakpoint needs to know of its address. Another room may keep more data in the
 * memory behind a site: ext_site_size().
 *
 * Locks:  I immutable once published   P PLAT_PROBES   p PLAT_PROBES to write; hits read
 * without locks. So a site is freed only after plat_quiesce(): see reclaim.c.
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
    uint8_t bytes[INSN_MAX_LEN]; /* [I] the original instruction; behind it [P] padding
                                  * that its jump covers */
    uint8_t len;                 /* [I] of the original instruction, in bytes */
    uint8_t class;               /* [I] enum insn_class */
    bool repeats : 1;            /* [I] has a rep prefix: one step is one iteration */
    bool is_sti : 1;             /* [I] an STI: delays interrupts, see boost.c */
    bool never_by_tf : 1;        /* [I] a step by TF would undo its effect */
    bool in_engine : 1;          /* [I] the probed address is in the engine's code */
    uint8_t way;                 /* [p] enum site_way */
    bool has_post;               /* [p] a probe here has a post-handler */
    bool asks_resume;            /* [p] ext_resume() says where the program goes on */
    uint8_t state;               /* [P] enum site_state */
    bool queued;                 /* [P] in the site_list that is being filled */
    bool told_long;              /* a handler took long, and the log names it; only set */
};

/* site_is_armed - is an int3 or a jump in the text at @site?
 * site_is_bare - is neither of them there?
 * Locks: PLAT_PROBES held.
 */
static inline bool site_is_armed(const struct site *site)
{
    return site->state == SITE_ARMED || site->state == SITE_OPTIMIZED;
}

static inline bool site_is_bare(const struct site *site)
{
    return !site_is_armed(site);
}

/* site_is_call - is the instruction a direct call? To make it a jump to a detour, the
 * engine changes only its displacement.
 */
NOKPROBE_INLINE bool site_is_call(const struct site *site)
{
    return site->way == WAY_EMULATE && site->emul.kind == INSN_CALL_REL;
}

/* site_boost_slot, site_step_slot - return the slot of @site that ends with a jump back,
 * or with an int3. NULL: @site has no such slot, or is emulated. Context: any.
 */
NOKPROBE_INLINE uint8_t *site_boost_slot(const struct site *site)
{
    return site->way == WAY_EMULATE ? NULL : site->boost_slot;
}

NOKPROBE_INLINE uint8_t *site_step_slot(const struct site *site)
{
    return site->way == WAY_EMULATE ? NULL : site->step_slot;
}

/* site_pair - return the pair in front of @site, which must have is_sti. Context: any. */
NOKPROBE_INLINE struct sti_pair *site_pair(const struct site *site)
{
    return (struct sti_pair *)(uintptr_t)site - 1;
}

/* site_target - return the address that the relative branch at @site leads to. The way of
 * @site must be WAY_EMULATE. Context: any.
 */
NOKPROBE_INLINE uintptr_t site_target(const struct site *site)
{
    return site->addr + site->len + (uintptr_t)(intptr_t)site->emul.disp;
}

enum hit_stage {
    HIT_PRE,    /* before the instruction */
    HIT_POST,   /* the instruction has been run */
    HIT_FAULT,  /* its copy has faulted, and the probes' fault handlers are called */
    HIT_RETURN, /* the function that begins at the site returns */
};

struct hit_facts {
    uint8_t stage;  /* enum hit_stage */
    bool faulting;  /* a fault handler is being called */
    bool owes_step; /* TF was set: after a handler that is given up, a #DB is due */
    bool jumped;    /* see hit_by_jump(): interrupts are as the program has them */
    bool light;     /* a light handler runs: it has a struct plat_light, and no image */
} ALIGNED(8);       /* one word: one store writes all of them */

/* One hit that is active: its handlers run, or are about to run. */
struct probe_hit {
    struct site *site; /* NULL: see hit_site() */
    struct pt_regs *regs;
    struct kprobe *running; /* the probe of the handler that runs; NULL: none runs now */
    uintptr_t jprobe_sp;    /* of a jprobe's handler: see plat_jprobe_call() */
    struct hit_facts is;
    /* The depths before the hit. hit_leave() restores preempt. The other two tell whether
     * an interrupt or NMI has come on top of the hit: see fault.c.
     */
    struct plat_depths found;
};

/* hit_site - return the site of @hit. A specialized detour stores only the running probe,
 * not the site; then the site is found through the probe.
 * Return: NULL: the hit is not filled in yet, or is about to be left.
 */
NOKPROBE_INLINE struct site *hit_site(const struct probe_hit *hit)
{
    const struct kprobe *running = READ_ONCE(hit->running);
    struct site *site = READ_ONCE(hit->site);

    return site || !running ? site : running->site;
}

/* hit_by_jump - note that the CPU has come to @hit by a jump or by a return, not by a
 * trap. The code that has called the engine, a detour or the trampoline, had switched
 * preemption off before, and will switch it on itself. So the count that @hit has stored
 * is one higher than it was in the program; this function corrects it.
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
 * and is removed before the interrupted code goes on.
 */
struct probe_cpu {
    unsigned depth; /* entries of hits[] in use; if it is not 0, preemption is off */
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
    uint64_t untrapped;           /* of missed[] and redirected: hits by a jump */
    uint64_t steps;               /* second traps, behind a copy */
    uint64_t redirected;          /* hits in which a handler has set ip itself */
    uint64_t retries;             /* traps by an int3 that was removed in the meantime */
    uint64_t handler_faults;
    uint64_t watch_hits[WATCH_SLOTS];   /* by debug register */
    uint64_t watch_missed[WATCH_SLOTS]; /* hits for which no handler was called */
    bool watch_busy;                    /* the CPU is between a #DB and its handlers */
    struct {
        uintptr_t addr; /* of the probe */
        uintptr_t ip;   /* of the instruction that has faulted */
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

/* light_frame - return the struct plat_light of the light handler that a detour has
 * called on this CPU. That handler occupies the first entry of hits[], but nothing is
 * written into the entry: cpu->light alone says that the handler runs. A detour calls no
 * light handler in an interrupt or an NMI.
 * Return: NULL: no light handler runs.
 */
NOKPROBE_INLINE const struct plat_light *light_frame(const struct probe_cpu *cpu)
{
    return READ_ONCE(cpu->light);
}

/* ---- 1 register.c, enable.c, site_list.c ---- */

/* Sites that are armed, disarmed or freed together. A site is in the list once, even if
 * site_list_add() is called for each of its probes: site->queued says that the site is in
 * the list. So between site_list_add() and site_list_close() no other list may be filled.
 */
struct site_list {
    struct site **sites;
    size_t count;
    struct site *one; /* room for a single site: such a list allocates no memory */
};

/* site_list_make - make an empty list with room for @max sites.
 * Context: thread or held. So it is for all functions on lists.  Return: 0; -ENOMEM.
 */
int site_list_make(struct site_list *list, size_t max, struct probe_reject *why);
void site_list_add(struct site_list *list, struct site *site);
void site_list_close(struct site_list *list);
/* site_list_sort - sort by address, ascending. */
void site_list_sort(struct site_list *list);
void site_list_free(struct site_list *list);
/* site_to_front - move the sites for which @is_wanted returns true to the front of @sites.
 * Return: how many they are.
 */
size_t site_to_front(struct site **sites, size_t count,
                     bool (*is_wanted)(const struct site *site));

/* register_some - do the work of register_kprobes_some() with the caller's memory: @list
 * has room for @count sites. Context: thread or held. In `held`, a jump that reads bytes
 * of the new probes becomes a breakpoint.
 * @more: flags that the probes may have beside those that callers may give
 *
 * register_take_out - do the work of unregister_kprobes() with the caller's memory: @room
 * has room for 2 * @count sites. The probes keep their kind, so they can be registered
 * again. Context: thread.
 * Locks:   PLAT_PROBES held.  Return: as these functions.
 */
size_t register_some(struct kprobe **ps, size_t count, struct site_list *list,
                     uint32_t more, register_refused_t refused, void *arg);
int register_take_out(struct kprobe **ps, size_t count, struct site **room);
/* register_resolve - find the address that @p means. Return: 0; a reason's errno. */
int register_resolve(const struct kprobe *p, uintptr_t *addr, struct probe_reject *why);
/* register_check_all - are all of @ps registered?
 * @engine: receives the armed sites in the engine's own code that have no other probe
 *          than one of @ps. The caller disarms these sites first, or the engine would hit
 *          its own probes in all its later work.
 * Locks:   PLAT_PROBES held.  Return: 0; -EINVAL.
 */
int register_check_all(struct kprobe **ps, size_t count, struct site_list *engine);
/* register_check_caller - may the caller change probes where it runs?
 * @verb: the function that the caller has called, for the log
 * Context: any.  Return: 0; -EDEADLK.
 */
int register_check_caller(const char *verb, struct probe_reject *why);

/* enable_arm - arm those sites of @ps where a probe is enabled.
 * enable_settle - some probes of the sites of @ps have left or are disabled: disarm those
 * sites where none is enabled; the others do nothing for them any more.
 * @list: has room for @count sites   Locks: PLAT_PROBES held.
 */
void enable_arm(struct kprobe **ps, size_t count, struct site_list *list);
void enable_settle(struct kprobe **ps, size_t count, struct site_list *list);

/* ---- 2 check.c, blacklist.c, boundary.c ---- */

/* kprobe_check - may the instruction at @addr carry a probe?
 * @insn: receives the instruction, decoded from its original bytes
 * Context: thread or held.  Locks: PLAT_PROBES held.  Return: 0, or a reason's errno.
 */
int kprobe_check(uintptr_t addr, struct insn *insn, struct probe_reject *why);

/* check_each_rule - check the rules of kprobe_check(), and do not stop at the first
 * broken one. The check ends early only at a broken rule that the later rules depend on,
 * for example when the instruction cannot be decoded.
 * @fn: called for each rule, in order; @why->err is 0 when the rule is kept
 * Context: thread or held.  Locks: PLAT_PROBES held.
 */
void check_each_rule(uintptr_t addr, rule_told_t fn, void *arg);

/* blacklist_why - say why @addr can never carry a probe. Context: any.
 * Return: a sentence; NULL: @addr is not on the blacklist.
 */
const char *blacklist_why(uintptr_t addr);
/* blacklist_next - find the range that contains @addr, or else the next range behind it.
 * Context: any.  Return: 0; -ENOENT there is none.
 */
int blacklist_next(uintptr_t addr, struct nokprobe_range *out);
/* blacklist_add - add the functions and ranges that code has marked. If two of them overlap,
 * one lies in the other, and is ignored; so is an empty range. The sentences of the ranges
 * must never be freed.
 * blacklist_replace - the same, after each range of the list that has bytes in [@start, @end)
 * was removed. If there is no memory for a new list, nothing changes.
 * Context: thread or boot. In `boot` only blacklist_add(), without a lock.
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM.
 */
int blacklist_replace(uintptr_t start, uintptr_t end, const struct nokprobe_marks *more);
static inline int blacklist_add(const struct nokprobe_marks *more)
{
    return blacklist_replace(0, 0, more);
}

/* boundary_find - decode the instruction at @addr, if one begins there. To tell that,
 * @function, which contains @addr, is decoded from its start.
 * Context: thread or held.  Locks: PLAT_PROBES held.
 * Return: 0 and @insn; a reason's errno when no instruction begins at @addr.
 */
int boundary_find(uintptr_t addr, const struct plat_symbol *function, struct insn *insn,
                  struct probe_reject *why);
/* boundary_before - decode the instruction in front of @addr. @addr must be the start of
 * an instruction, too. Return: as boundary_find(); -ENOENT if @addr is the start of
 * @function.
 */
int boundary_before(uintptr_t addr, const struct plat_symbol *function,
                    struct insn *insn);
/* boundary_for_each - call @fn for each instruction of @function, decoded from its
 * original bytes, up to the end of the function or the first bytes that cannot be
 * decoded.
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM; -EFAULT; -EILSEQ bytes were not decoded.
 */
int boundary_for_each(const struct plat_symbol *function,
                      void (*fn)(const struct insn *insn, void *arg), void *arg);
/* boundary_forget - drop what boundary_find() remembers, because text has changed, or to
 * free memory: some 80 bytes are kept for each function that boundary_find() has decoded.
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
 * Locks:  PLAT_PROBES held.
 * Return: 0; -ENOMEM, -ERANGE, -EOPNOTSUPP, and the site is unchanged.
 */
int prepare_step(struct site *site, struct probe_reject *why);
/* prepare_way - choose again how the instruction of @site is run, after probes have come
 * or gone. Locks: PLAT_PROBES held.
 */
void prepare_way(struct site *site);

/* emulate_supports - can emulate_run() do what @insn does?
 * emulate_prepare - fill @e for such an instruction.
 */
bool emulate_supports(const struct insn *insn);
void emulate_prepare(struct emulation *e, const struct insn *insn);

/* ---- 4 aggr.c ---- */

/* aggr_add, aggr_remove - add @p to the probes of @site, where hits find it, or remove
 * it.
 * aggr_find - is @p registered at @site?   aggr_enabled - is any probe of @site enabled?
 * aggr_wants_post - does any probe of @site have a post-handler?
 * aggr_mirror - show in the flags of all probes of @site whether the site is a jump now.
 * Locks: PLAT_PROBES held.
 */
void aggr_add(struct site *site, struct kprobe *p);
void aggr_remove(struct site *site, struct kprobe *p);
void aggr_mirror(const struct site *site);
bool aggr_find(const struct site *site, const struct kprobe *p);
bool aggr_enabled(const struct site *site);
bool aggr_wants_post(const struct site *site);

/* ---- 5 and 13 arm.c ---- */

/* kprobe_arm - arm @count sites: put an int3 at each of them. Another room may put jumps
 * at them instead, at once or later: ext_arm().
 * kprobe_disarm - put the original bytes back.
 * The sites of a call share the synchronisations. On return every CPU executes the new
 * text. Context: thread or held.  Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void kprobe_arm(struct site **sites, size_t count);
void kprobe_disarm(struct site **sites, size_t count);
/* kprobe_guard - put an int3 at each of @count sites, and ask no other room. The sites
 * stay breakpoints as long as they are armed. The caller makes sure that no jump reads
 * their bytes. Locks: as kprobe_arm().
 */
void kprobe_guard(struct site **sites, size_t count);

/* ---- 6 hit.c, account.c ---- */

/* kprobe_int3_handler - handle #BP, the trap that an int3 raises.
 * @cpu: the data of the executing CPU; NULL while this CPU is not ready for probes
 * Context: trap, interrupts off.  Return: false: the int3 is not the engine's.
 */
bool kprobe_int3_handler(struct pt_regs *regs, struct probe_cpu *cpu);
/* hit_enter - begin a hit: make a new entry in hits[], if the handlers of @site may run
 * now. If they may not run, and @stage is HIT_PRE, count a miss.
 * @regs: the image of the hit
 * Context: any, preemption off.  Return: the entry; NULL: the handlers must not run.
 */
struct probe_hit *hit_enter(struct probe_cpu *cpu, struct site *site,
                            struct pt_regs *regs, enum hit_stage stage);
/* hit_untrapped - handle a hit of @site by a CPU that has not trapped on an int3 there.
 * For example, a program that steps itself has come by a jump to the start of the detour.
 * This function does what kprobe_int3_handler() does after such a trap: it sets regs->ip
 * to the probed address + 1, runs the handlers or counts a miss, and lets the instruction
 * happen.
 * @regs: the image of the program in front of the probed instruction; ip may have any
 *        value
 * Context: trap, interrupts off.
 */
void hit_untrapped(struct probe_cpu *cpu, struct site *site, struct pt_regs *regs);
/* hit_leave - end @hit, which must be the latest entry of hits[], and restore the
 * preemption count.
 * @jumped: true if hit_by_jump() was called for @hit. Then the count stays one higher
 *          than in the program, because the detour or the trampoline will switch
 *          preemption on. Context: any, preemption off.
 */
NOKPROBE_INLINE void hit_leave(struct probe_cpu *cpu, struct probe_hit *hit, bool jumped)
{
    /* Restore the count, because a handler may have changed it. */
    WRITE_ONCE(plat_depths(cpu)->preempt, hit->found.preempt + jumped);
    /* The entry is cleared before it is given up: hit_claim() relies on that. */
    WRITE_ONCE(hit->site, NULL);
    barrier();
    cpu->depth--;
}
/* kprobe_resume - go on with a hit after its handler has faulted and was given up, as if
 * the handler had returned. @regs: the image of the hit. Context: trap.
 */
void kprobe_resume(struct pt_regs *regs, struct probe_cpu *cpu);

/* account_miss - count a miss of @site. @cpu: NULL: the CPU is not ready for probes. */
void account_miss(struct probe_cpu *cpu, struct site *site, enum probe_miss cause);

/* ---- 8 step.c, boost.c, emulate.c: continue with the instruction ---- */

/* boost_sti - change @regs so that the STI of @site is executed next, if possible
 * together with the instruction behind it.
 * boost_sti_again - do the same after a step over the STI: the step has ended in front of
 * the instruction behind the STI, where the CPU must not take interrupts yet. So this
 * function clears IF, and lets both instructions be executed together.
 */
void boost_sti(const struct site *site, struct pt_regs *regs);
void boost_sti_again(const struct site *site, struct pt_regs *regs);

/* site_go_on - the last step of a hit, when @regs is final: if regs->ip lies under the
 * jump of the region of @site, change it to the address of the copy in the region's cell.
 * Context: any.
 */
NOKPROBE_INLINE void site_go_on(const struct site *site, struct pt_regs *regs)
{
    if (unlikely(READ_ONCE(site->asks_resume)))
        ext_resume(site, regs);
}

/* site_go_anywhere - the same for the jumps of all sites, if a handler or a debugger may have
 * set regs->ip.
 */
NOKPROBE_INLINE void site_go_anywhere(struct pt_regs *regs)
{
    if (unlikely(READ_ONCE(ext_regions)))
        ext_resume(NULL, regs);
}

/* site_step_anywhere - the same for a program that steps itself, and has just ended a step.
 * If jumps of regions are there, the program gets its #DB first, and only then goes on to
 * the copies of a region. Return: false: the #DB is still to be raised. Context: trap.
 */
NOKPROBE_INLINE bool site_step_anywhere(struct pt_regs *regs)
{
    if (likely(!READ_ONCE(ext_regions)))
        return false;
    plat_raise_step(regs);
    ext_resume(NULL, regs);
    return true;
}

/* boost_run - let the program go on in the copy that ends with a jump back. */
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

/* step_site - find the site of a step slot. @int3: the address of the int3 behind the
 * copy
 * Context: trap.  Return: NULL: @int3 is no such address.
 */
struct site *step_site(uintptr_t int3);
/* step_in_copy - a program has set TF to step itself, and its last step has ended inside
 * the engine's copy of the instruction of @site. The program must not see the copy: let
 * the trap look as if the program had stepped the original instruction.
 * @copy:     address of the copy's first byte; regs->ip is there or behind it
 * @iterates: when regs->ip is @copy, a repeated instruction (rep movs) may have ended an
 *            iteration. False: the program has only just arrived at the copy.
 * @jumped:   as in hit_leave()
 * Context: trap.
 * Return:  true: the trap is dealt with. False: the program gets the trap as its own
 *          step.
 */
bool step_in_copy(struct site *site, uintptr_t copy, bool iterates, struct pt_regs *regs,
                  struct probe_cpu *cpu, bool jumped);
/* kprobe_debug_handler - handle #DB. @cpu: as for kprobe_int3_handler(). Context: trap.
 * Return: false: the trap is not the engine's.
 */
bool kprobe_debug_handler(struct pt_regs *regs, struct probe_cpu *cpu);

enum step_engine { STEP_INT3, STEP_TF };
/* step_set_engine - choose the trap that ends a step from now on. In an NMI, and for
 * instructions that a step by TF would undo, it is always int3. A program that has TF set
 * gets no second trap of the engine: see step.c. Context: thread.
 */
extern enum step_engine step_engine;
static inline void step_set_engine(enum step_engine to)
{
    WRITE_ONCE(step_engine, to);
}
static inline enum step_engine step_get_engine(void)
{
    return step_engine;
}

/* ---- copy.c: from an address in a cell to the address in the program ---- */

/* copy_start - return the address at which the copy begins in @cell. 0: the cell is not
 * one of the core's cells of @site.
 * copy_original - return the address in the program that @ip stands for. If @ip is not in
 * a cell, that is @ip itself. Context: any.
 */
uintptr_t copy_start(const struct site *site, uintptr_t cell);
uintptr_t copy_original(uintptr_t ip);

/* ---- 9 fault.c ---- */

/* kprobe_fault_handler - look at a fault before the kernel does; called for every fault.
 * A fault in a slot becomes a fault at the original address. A fault in a handler ends
 * the handler and disables its probe (KPROBE_FLAG_TRIPPED).
 * Context: trap.  Return: true: the fault is dealt with, the CPU goes on as @regs says.
 */
bool kprobe_fault_handler(struct pt_regs *regs);
/* fault_in_handler - would a fault that this CPU raises now be a fault of a handler?
 * Context: any, preemption off.  Return: the probe of the handler; NULL: no.
 */
const struct kprobe *fault_in_handler(const struct probe_cpu *cpu);
/* fault_resume - call the fault handlers of @p and of the probes behind it in the list,
 * until one has dealt with the fault; leave @hit; if none has, raise the fault once more.
 * Context: trap.
 */
void fault_resume(struct probe_cpu *cpu, struct probe_hit *hit, struct kprobe *p);

/* ---- 14 reclaim.c ---- */

/* kprobe_reclaim - wait until no thread can be inside @count disarmed sites, then free
 * them. Context: thread.  Locks: PLAT_PROBES held; waits for quiescence.
 */
void kprobe_reclaim(struct site **sites, size_t count);
/* reclaim_unreached - free sites that were never armed: no thread can be inside. */
void reclaim_unreached(struct site **sites, size_t count);
/* reclaim_rest - if no site is left, free the memory that all sites shared. */
void reclaim_rest(void);
