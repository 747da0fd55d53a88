/* life.h - the stages of a probe, private to the engine, in the order they happen.
 *
 * probes/README.md has the same order as a table. What is known of one probed address is
 * its struct site: one for all kprobes there.
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
    WAY_JUMP, /* in a detour; counted as a way, but never the site's: see enum detour_kind */
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

/* STI and its successor, where both can happen as one; in memory, in front of the site. */
struct sti_pair {
    uint8_t *slot;     /* copies of both, then the jump back; or NULL, and */
    struct site *site; /* what emulates the successor; or NULL */
    size_t len;        /* of both, in the program */
};

/* What a breakpoint needs. A room beyond the seam may have more behind it: ext_site_size().
 *
 * Locks:  I immutable once published   P PLAT_PROBES   p PLAT_PROBES to write, and read
 * without locks by hits; what is taken out of reach is freed after plat_quiesce().
 */
struct site {
    uintptr_t addr;        /* [I] */
    struct kprobe *probes; /* [p] those registered here, in order of registration */
    union {
        struct emulation emul;   /* [I] where way is WAY_EMULATE */
        struct {                 /* elsewhere; see site_boost_slot() */
            uint8_t *boost_slot; /* [I] copy and jump back */
            uint8_t *step_slot;  /* [p] copy and int3, for post-handlers; or NULL */
        };
    };
    uint8_t bytes[INSN_MAX_LEN]; /* [I] the original instruction; behind it, padding that
                                  * its jump covers */
    uint8_t len;                 /* [I] of it, bytes */
    uint8_t class;               /* [I] enum insn_class */
    bool repeats : 1;            /* [I] with rep: steps once per iteration */
    bool is_sti : 1;             /* [I] its shadow covers the instruction behind it */
    bool never_by_tf : 1;        /* [I] a single step would undo what it does */
    bool in_engine : 1;          /* [I] the engine's own code */
    uint8_t way;                 /* [p] enum site_way */
    bool has_post;               /* [p] a probe here has a post-handler */
    bool asks_resume;            /* [p] ext_resume() knows where the program goes on */
    uint8_t state;               /* [P] enum site_state */
    bool queued;                 /* [P] in the list that is being made */
};

/* site_is_armed - is its text changed? Locks: PLAT_PROBES held. */
static inline bool site_is_armed(const struct site *site)
{
    return site->state == SITE_ARMED || site->state == SITE_OPTIMIZED;
}

/* site_is_call - is it a direct call, of which a jump need change the displacement only? */
NOKPROBE_INLINE bool site_is_call(const struct site *site)
{
    return site->way == WAY_EMULATE && site->emul.kind == INSN_CALL_REL;
}

/* site_boost_slot, site_step_slot - NULL where it has none, and where it is emulated.
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

/* site_pair - of a site that is_sti. Context: any. */
NOKPROBE_INLINE struct sti_pair *site_pair(const struct site *site)
{
    return (struct sti_pair *)(uintptr_t)site - 1;
}

/* site_target - where the relative branch there leads; way is WAY_EMULATE. Context: any. */
NOKPROBE_INLINE uintptr_t site_target(const struct site *site)
{
    return site->addr + site->len + (uintptr_t)(intptr_t)site->emul.disp;
}

enum hit_stage {
    HIT_PRE,    /* before the instruction */
    HIT_POST,   /* it has been run */
    HIT_FAULT,  /* its copy has faulted, and the probes' fault handlers are asked */
    HIT_RETURN, /* the function that begins there returns */
};

struct hit_facts {
    uint8_t stage;  /* enum hit_stage */
    bool faulting;  /* the handler has faulted, and its fault handler is being asked */
    bool owes_step; /* the program has TF set, and its instruction was emulated */
    bool jumped;    /* here by a jump: interrupts as the program has them */
    bool light;     /* by a struct plat_light, without an image */
} ALIGNED(8);       /* one word, to be made in one go */

/* One hit whose handlers are running. */
struct probe_hit {
    struct site *site; /* NULL: see hit_site() */
    struct pt_regs *regs;
    struct kprobe *running; /* whose handler, NULL between two and without a site */
    uintptr_t jprobe_sp;    /* when that is a jprobe's: see plat_jprobe_call() */
    struct hit_facts is;
    struct plat_depths found; /* before it; restored when it is left */
};

/* hit_site - NULL: claimed and not yet filled, or about to be left. Code of a site's own
 * tells only what is running, since that is all there is.
 */
NOKPROBE_INLINE struct site *hit_site(const struct probe_hit *hit)
{
    const struct kprobe *running = READ_ONCE(hit->running);
    struct site *site = READ_ONCE(hit->site);

    return site || !running ? site : running->site;
}

/* hit_by_jump - @hit has come by a jump, or a return: the code that has called the engine has
 * switched preemption off before, and switches it on again itself.
 */
NOKPROBE_INLINE void hit_by_jump(struct probe_hit *hit)
{
    hit->is.jumped = true;
    hit->found.preempt--;
}

#define PROBE_CACHE_LEN 64
#define WATCH_SLOTS 4 /* debug registers: probes/watch */

/* What each CPU has for its hits. Only that CPU writes it; others read the counters.
 * hits[] is a stack: a hit in an interrupt, an NMI or a handler comes on top and is gone
 * before what it interrupted goes on.
 */
struct probe_cpu {
    unsigned depth; /* of hits[]; while it is not 0 preemption is off */
    const struct plat_light
        *light; /* of the light handler that runs by a jump, or NULL */
    struct plat_cpu plat;
    struct probe_hit hits[PROBE_NEST_MAX];
    struct {
        uintptr_t addr;
        struct site *site;
    } cache[PROBE_CACHE_LEN]; /* not used by NMIs: they could see half of an update */
    uint64_t cache_misses;
    uint64_t ran[WAYS];           /* hits by how the instruction was run */
    uint64_t missed[MISS_CAUSES]; /* hits without handlers */
    uint64_t untrapped;           /* missed and redirected ones that came by a jump */
    uint64_t steps;               /* second traps, behind a copy */
    uint64_t redirected;          /* hits whose handler has set ip itself */
    uint64_t retries;             /* int3 gone when it was looked for */
    uint64_t handler_faults;
    uint64_t watch_hits[WATCH_SLOTS];   /* by debug register */
    uint64_t watch_missed[WATCH_SLOTS]; /* no handler was called */
    bool watch_busy;                    /* on the way between a #DB and its handlers */
    struct {
        uintptr_t addr; /* of the probe */
        uintptr_t ip;   /* of the handler's instruction */
        unsigned vector;
    } given_up; /* the last handler that was, because it had faulted */
};

static inline bool probe_in_nmi(const struct probe_cpu *cpu)
{
    return READ_ONCE(plat_depths(cpu)->nmi) != 0;
}

/* probe_count - add one to a counter of the executing CPU, with one instruction, so that an
 * NMI between load and store loses nothing.
 */
NOKPROBE_INLINE void probe_count(uint64_t *counter)
{
    __asm__ volatile("incq %0" : "+m"(*counter));
}

/* A light handler that a jump has called has the first entry of hits[], and writes nothing
 * there: it is known by where its struct plat_light is. None runs in an interrupt or an NMI.
 *
 * light_frame - NULL: none runs.
 */
NOKPROBE_INLINE const struct plat_light *light_frame(const struct probe_cpu *cpu)
{
    return READ_ONCE(cpu->light);
}

/* ---- 1 register.c, enable.c, site_list.c ---- */

/* Sites that are armed, disarmed or freed together: each once, though it is met once for
 * each of its probes. Between site_list_add() and site_list_close() there is no other list.
 */
struct site_list {
    struct site **sites;
    size_t count;
    struct site *one; /* room that needs no memory */
};

/* site_list_make - an empty list with room for @max.  Return: 0; -ENOMEM. */
int site_list_make(struct site_list *list, size_t max, struct probe_reject *why);
void site_list_add(struct site_list *list, struct site *site);
void site_list_close(struct site_list *list);
/* site_list_sort - by address, ascending. */
void site_list_sort(struct site_list *list);
void site_list_free(struct site_list *list);
/* site_to_front - put the sites that are armed, or are not, in front of the others.
 * Return: how many they are.
 */
size_t site_to_front(struct site **sites, size_t count, bool armed);

/* register_find - the site of @p, NULL when @p is not registered. @p may be garbage, as long
 * as it can be read: what it points to is touched only if it turns out to be ours.
 * Locks: PLAT_PROBES held.
 */
struct site *register_find(const struct kprobe *p);
/* register_some - register_kprobes_some() for a caller that brings the memory: @list has
 * room for @count sites.
 * register_take_out - the same for unregister_kprobes(); @room: for 2 * @count sites. What
 * kind the probes are stays, so they can be registered again.
 * Locks: PLAT_PROBES held.  Return: as those.
 */
size_t register_some(struct kprobe **ps, size_t count, struct site_list *list,
                     register_refused_t refused, void *arg);
int register_take_out(struct kprobe **ps, size_t count, struct site **room);
/* register_resolve - the address that @p means. Return: 0; a reason's errno. */
int register_resolve(const struct kprobe *p, uintptr_t *addr, struct probe_reject *why);
/* register_check_all - are all of @ps registered?
 * @engine: gets the armed sites in the engine's own code that only they use. Where many are
 *          taken out or disabled, these have to be disarmed first, else all that follows
 *          traps its way through them. This is still trapped, so it is one short pass.
 * Locks:   PLAT_PROBES held.  Return: 0; -EINVAL.
 */
int register_check_all(struct kprobe **ps, size_t count, struct site_list *engine);
/* register_check_caller - may probes be changed from here? Return: 0; -EDEADLK. */
int register_check_caller(struct probe_reject *why);

/* enable_wants_arming - is @site not armed though it should be? Locks: PLAT_PROBES held. */
bool enable_wants_arming(const struct site *site);

/* ---- 2 check.c, blacklist.c, boundary.c ---- */

/* kprobe_check - may the instruction at @addr carry a probe?
 * @insn: receives it, decoded from its original bytes
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
 * Return: a sentence; NULL: it is not.
 */
const char *blacklist_why(uintptr_t addr);
/* blacklist_next - the range that contains @addr, or else the next one behind it.
 * Context: any.  Return: 0; -ENOENT there is none.
 */
int blacklist_next(uintptr_t addr, struct nokprobe_range *out);
/* blacklist_add - what code says of itself. A range overlaps no other one and no marked
 * function; an empty one is none. The sentences stay for ever.
 * blacklist_remove - all that begins in [@start, @end). Without memory it stays: then what
 * comes to these addresses later has it, too.
 * Context: thread; blacklist_add() also boot, for the marks of the image.
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM.
 */
int blacklist_add(const struct nokprobe_marks *more);
void blacklist_remove(uintptr_t start, uintptr_t end);

/* boundary_find - decode the function around @addr up to it.
 * Context: thread.  Locks: PLAT_PROBES held.
 * Return: 0 and @insn; a reason's errno when no instruction begins at @addr.
 */
int boundary_find(uintptr_t addr, const struct plat_symbol *function, struct insn *insn,
                  struct probe_reject *why);
/* boundary_before - the same for the instruction that ends at the boundary @addr. Return: as
 * above; -ENOENT where @function begins with @addr.
 */
int boundary_before(uintptr_t addr, const struct plat_symbol *function,
                    struct insn *insn);
/* boundary_for_each - call @fn for each instruction of @function, decoded from its original
 * bytes, until the end or what does not decode.
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM; -EFAULT; -EILSEQ it ended early.
 */
int boundary_for_each(const struct plat_symbol *function,
                      void (*fn)(const struct insn *insn, void *arg), void *arg);
/* boundary_forget - text has changed, or memory is wanted back: some 80 bytes for each
 * function that was asked about.
 * Locks: PLAT_PROBES held.
 */
void boundary_forget(void);

/* ---- 3 prepare.c, boost.c, step.c, emulate.c ---- */

/* kprobe_prepare - stage 3 for a new address: the site, its slot and its way to run.
 * Locks: PLAT_PROBES held.  Return: NULL with @why filled.
 */
struct site *kprobe_prepare(const struct insn *insn, struct probe_reject *why);
/* kprobe_unprepare - free it; no thread may be inside. */
void kprobe_unprepare(struct site *site);
/* prepare_step - make the copy for steps, unless it is there or never needed; before a
 * probe with a post-handler is published.
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM, -ERANGE, and the site is as before.
 */
int prepare_step(struct site *site, struct probe_reject *why);
/* prepare_way - choose the way again after probes came or went. Locks: PLAT_PROBES held. */
void prepare_way(struct site *site);

bool emulate_supports(const struct insn *insn);
void emulate_prepare(struct emulation *e, const struct insn *insn);

/* ---- 4 aggr.c ---- */

/* aggr_add, aggr_remove - publish @p at @site, take it away again.
 * aggr_find - is @p registered at @site?   aggr_enabled - is one of them enabled?
 * aggr_mirror - show in the flags of all probes of @site whether it is a jump
 * Locks: PLAT_PROBES held.
 */
void aggr_add(struct site *site, struct kprobe *p);
void aggr_remove(struct site *site, struct kprobe *p);
void aggr_mirror(const struct site *site);
bool aggr_find(const struct site *site, const struct kprobe *p);
bool aggr_enabled(const struct site *site);
bool aggr_wants_post(const struct site *site);

/* ---- 5 and 13 arm.c ---- */

/* kprobe_arm, kprobe_disarm - put the int3 of @count sites in, take it out, with one round
 * of synchronisation. On return every CPU executes the new text.
 * Context: thread.  Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void kprobe_arm(struct site **sites, size_t count);
void kprobe_disarm(struct site **sites, size_t count);
/* kprobe_guard - the same for sites of which no jump is made, now and as long as they are
 * armed, and whose bytes no jump reads. Locks: as above.
 */
void kprobe_guard(struct site **sites, size_t count);

/* ---- 6 hit.c, account.c ---- */

/* kprobe_int3_handler - #BP. @cpu: of the executing CPU; NULL while it is not ready for
 * probes. Context: trap, interrupts off. Return: false for an int3 that is not the
 * engine's.
 */
bool kprobe_int3_handler(struct pt_regs *regs, struct probe_cpu *cpu);
/* hit_enter - become an active hit of @site, if it may; else the miss is counted, when
 * @stage is the first.
 * hit_untrapped - a hit of @site that no int3 has brought; interrupts off.
 * hit_leave - be a hit no longer; @hit is the latest. @jumped: as is.jumped
 * Return: NULL when the handlers must be left out.
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
/* kprobe_resume - go on with the hit of @regs behind the handler that faulted.
 * Context: trap.
 */
void kprobe_resume(struct pt_regs *regs, struct probe_cpu *cpu);

/* account_miss - count one hit of @site without handlers. @cpu: NULL if there is none. */
void account_miss(struct probe_cpu *cpu, struct site *site, enum probe_miss cause);

/* ---- 8 step.c, boost.c, emulate.c: continue with the instruction ---- */

/* boost_sti - let STI happen, together with its successor where that is possible.
 * boost_sti_again - STI has been stepped, and the program is to go on behind it.
 */
void boost_sti(const struct site *site, struct pt_regs *regs);
void boost_sti_again(const struct site *site, struct pt_regs *regs);

/* site_go_on - the program is about to go on as @regs says: not under a jump.
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

/* emulate_run - Return: false when the instruction has faulted instead; the fault has been
 * dealt with.
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
/* step_set_engine - which trap ends a step from now on. NMI and code that has TF set are
 * always stepped by int3. Context: thread.
 */
void step_set_engine(enum step_engine to);
enum step_engine step_get_engine(void);

/* ---- copy.c: which ip of the program an ip in a cell stands for ---- */

/* copy_start - where the copy begins in @cell; 0: it is none of @site's own.
 * copy_original - where in the program a CPU at @ip is; @ip itself outside of cells.
 * Context: any.
 */
uintptr_t copy_start(const struct site *site, uintptr_t cell);
uintptr_t copy_original(uintptr_t ip);

/* ---- 9 fault.c ---- */

/* kprobe_fault_handler - any fault. One inside a slot is moved to the original address;
 * one inside a handler ends the handler and trips its probe.
 * Context: trap.  Return: true when the image can be resumed.
 */
bool kprobe_fault_handler(struct pt_regs *regs);
/* fault_in_handler - would a fault now be one of a handler? Its probe, or NULL.
 * Context: any, preemption off.
 */
const struct kprobe *fault_in_handler(const struct probe_cpu *cpu);
/* fault_resume - ask the fault handlers from @p on, and leave. */
void fault_resume(struct probe_cpu *cpu, struct probe_hit *hit, struct kprobe *p);

/* ---- 14 reclaim.c ---- */

/* kprobe_reclaim - free @count disarmed sites, when no thread can be inside any more.
 * Context: thread.  Locks: PLAT_PROBES held; waits for quiescence.
 */
void kprobe_reclaim(struct site **sites, size_t count);
/* reclaim_unreached - the same for sites that were never armed: no thread can be inside. */
void reclaim_unreached(struct site **sites, size_t count);
/* reclaim_rest - when no site is left: what all of them shared. */
void reclaim_rest(void);
