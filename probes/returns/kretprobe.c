/* kretprobe.c - stage 10: the engine follows a call of a probed function to its return.
 *
 * The kprobe at the function's entry has the pre-handler kretprobe_entry(). It saves the
 * return address in the shadow of the stack, and writes the address of kretprobe_trampoline
 * in its place. So every `ret` of the function leads to the trampoline. The trampoline
 * takes no trap. It builds an image. In the simple case it does the work of
 * kretprobe_return() itself; otherwise it calls kretprobe_return(). An entry of the shadow
 * is found by its slot, the word of the stack that held the return address.
 *
 * kretprobe_entry() looks at the slot of a new call. "The trampoline" means any return
 * point, too; see return_point.c.
 *
 *   1. The slot does not hold the trampoline: a call instruction has written a new return
 *      address. Entries of this slot are stale: they belong to calls that were given up
 *      without a return. Entries of deeper slots are stale, too, because the new call would
 *      not be here if those calls were still running. All these entries are dropped.
 *   2. The slot holds the trampoline: a probed function that was called here has not
 *      returned, but has jumped to this function (a tail call), which will return in its
 *      place. The entries of one slot are a group; its latest entry is the innermost
 *      function. If the group has an entry of the same probe already, functions jump to
 *      each other in a circle, and the group could grow without limit. Then no entry is
 *      made; the call is counted as coalesced.
 *
 * kretprobe_entry() runs in a hit. kretprobe_return() enters a hit for each handler that it
 * calls. All its other code is re-entry core: if a return probe were on a function that it
 * calls, that function's return would lead here again, before this code could know that it
 * is already running.
 */
#include "probes/returns/kretprobe.h"
#include "probes/core/aggr.h"
#include "probes/core/extend.h"
#include "probes/returns/holder.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/return_point.h"
#include "probes/returns/shadow.h"

static struct kretprobe *of_kprobe(const struct kprobe *p)
{
    return CONTAINER_OF(p, struct kretprobe, kp);
}

char kprobe_kind(const struct kprobe *p)
{
    return "krj"[p->kind];
}

const char *kretprobe_miss_name(enum kretprobe_miss cause)
{
    static const char *const names[KRETPROBE_MISS_CAUSES] = {
        [KRETPROBE_MISS_STACK] = "stack",
        [KRETPROBE_MISS_FULL] = "full",
        [KRETPROBE_MISS_FAR] = "far",
        [KRETPROBE_MISS_DATA] = "data",
        [KRETPROBE_MISS_MAXACTIVE] = "maxactive",
        [KRETPROBE_MISS_RETURN] = "return",
    };

    return cause < KRETPROBE_MISS_CAUSES ? names[cause] : "?";
}

NOKPROBE_INLINE void count_miss(struct kretprobe *rp, enum kretprobe_miss cause)
{
    __atomic_add_fetch(&rp->missed[cause], 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&rp->nmissed, 1, __ATOMIC_RELAXED);
}

NOKPROBE_INLINE struct shadow *shadow_of(const struct probe_cpu *cpu)
{
    return likely(!probe_in_nmi(cpu)) ? *cpu->plat.shadow : cpu->plat.nmi_shadow;
}

/* ---- at the entry ---- */

/* group_has - check whether the latest group belongs to the slot at @below, and has an
 * entry of @h already.
 */
static bool group_has(const struct shadow *s, uint32_t below,
                      const struct kretprobe_holder *h)
{
    for (const struct shadow_entry *e = s->last; e->below == below; e--)
        if (e->holder == h)
            return true;
    return false;
}

/* extras_claim - claim what a new instance needs beside its shadow entry: room for its
 * data, and a place under the limit of instances.
 * Return: KRETPROBE_MISS_CAUSES: done; else the cause why there can be no instance.
 */
static enum kretprobe_miss extras_claim(struct shadow *s, struct kretprobe_holder *h)
{
    bool has_room = !h->data_len || (s->data && h->data_len <= s->len - s->data_used);

    if (!has_room)
        return KRETPROBE_MISS_DATA;
    if (h->limit && __atomic_add_fetch(&h->active, 1, __ATOMIC_RELAXED) > h->limit) {
        __atomic_sub_fetch(&h->active, 1, __ATOMIC_RELAXED);
        return KRETPROBE_MISS_MAXACTIVE;
    }
    WRITE_ONCE(s->data_used, s->data_used + h->data_len);
    return KRETPROBE_MISS_CAUSES;
}

/* instance_data - return the data of the latest entry, which has the holder @h. */
NOKPROBE_INLINE struct kretprobe_instance *instance_data(struct shadow *s,
                                                         const struct kretprobe_holder *h)
{
    return (struct kretprobe_instance *)(s->data + s->data_used - h->data_len);
}

/* push_entry - make the shadow entry of a call.
 * Return: KRETPROBE_MISS_CAUSES: done; else the cause why there is no entry.
 */
NOKPROBE_INLINE enum kretprobe_miss push_entry(struct shadow *s, uint32_t below,
                                               uintptr_t ret, struct kretprobe_holder *h)
{
    intptr_t far = (intptr_t)(ret - (uintptr_t)kretprobe_trampoline);
    enum kretprobe_miss cause;
    struct shadow_entry *e;

    if (unlikely(far != (int32_t)far))
        return KRETPROBE_MISS_FAR;
    e = shadow_claim(s);
    if (unlikely(!e))
        return KRETPROBE_MISS_FULL;
    cause = unlikely(READ_ONCE(h->extras)) ? extras_claim(s, h) : KRETPROBE_MISS_CAUSES;
    if (unlikely(cause != KRETPROBE_MISS_CAUSES)) {
        shadow_unclaim(s);
        return cause;
    }
    e->ret = (int32_t)far;
    __atomic_store_n(&e->holder, h, __ATOMIC_RELAXED); /* see holder.c */
    __atomic_store_n(&e->below, below, __ATOMIC_RELEASE);
    return KRETPROBE_MISS_CAUSES;
}

/* wanted - call the entry_handler. Return: true: the handler must run at the return. */
static bool wanted(struct kretprobe *rp, struct shadow *s, uintptr_t ret,
                   struct pt_regs *regs)
{
    struct kretprobe_instance none, *ri = &none;

    if (rp->holder->data_len)
        ri = instance_data(s, rp->holder);
    ri->rp = rp;
    ri->ret_addr = ret;
    return rp->entry_handler(ri, regs) == 0;
}

/* real_return - find the real return address of a call that has @ret in its slot, @below
 * bytes below the top of the stack. Also drop the stale entries, so that an entry for the
 * call can be made.
 * Return: the address; 0: no entry must be made; the reason has been counted.
 */
static uintptr_t real_return(struct kretprobe *rp, struct shadow *s, uint32_t below,
                             uintptr_t ret)
{
    if (!return_point_is(ret)) {
        shadow_unwind(s, below - 1); /* case 1 at the top of the file */
        return ret;
    }
    shadow_unwind(s, below);
    if (group_has(s, below, rp->holder)) {
        __atomic_add_fetch(&rp->coalesced, 1, __ATOMIC_RELAXED);
        return 0;
    }
    if (s->last->below == below)
        return shadow_ret(s->last);
    count_miss(rp, KRETPROBE_MISS_STACK);
    return 0;
}

/* follow_call - let the call with the return address at @slot return to the trampoline.
 */
NOKPROBE_INLINE void follow_call(struct kretprobe *rp, struct shadow *s, uintptr_t *slot,
                                 struct pt_regs *regs)
{
    uint32_t below = (uint32_t)(s->top - (uintptr_t)slot);
    uintptr_t ret = *slot;
    enum kretprobe_miss cause;

    if (unlikely(s->last->below >= below || return_point_is(ret)))
        ret = real_return(rp, s, below, ret);
    if (unlikely(!ret))
        return;
    cause = push_entry(s, below, ret, rp->holder);
    if (unlikely(cause != KRETPROBE_MISS_CAUSES))
        count_miss(rp, cause);
    else if (!rp->entry_handler || wanted(rp, s, ret, regs))
        WRITE_ONCE(*slot, (uintptr_t)kretprobe_trampoline);
    else
        shadow_pop(s);
}

HOT int kretprobe_entry(struct kprobe *p, struct pt_regs *regs)
{
    struct kretprobe *rp = of_kprobe(p);
    struct shadow *s = shadow_of(plat_this_cpu());

    if (likely(s && shadow_covers(s, regs->sp)))
        follow_call(rp, s, (uintptr_t *)regs->sp, regs);
    else
        count_miss(rp, KRETPROBE_MISS_STACK);
    return 0;
}

struct kretprobe_holder *kretprobe_without_image(const struct site *site)
{
    const struct kprobe *p = site->probes;
    struct kretprobe_holder *h;

    if (!p || p->next || p->post_handler || p->flags & ~KPROBE_FLAGS_IDLE ||
        p->kind != KPROBE_KIND_RETURN)
        return NULL;
    h = of_kprobe(p)->holder;
    h->counter = p->counter;
    return h->extras || of_kprobe(p)->entry_handler ? NULL : h;
}

void kretprobe_armed(const struct site *site, bool armed)
{
    for (const struct kprobe *p = site->probes; p; p = p->next)
        if (p->kind == KPROBE_KIND_RETURN)
            WRITE_ONCE(of_kprobe(p)->holder->unarmed, !armed);
}

/* ---- at the return ---- */

enum { BY_JUMP = 1, BY_STEP = 2 };

/* run_handler - call the handler for the latest instance, in @hit. */
NOKPROBE_INLINE void run_handler(struct probe_hit *hit, struct kretprobe *rp,
                                 struct shadow *s, struct pt_regs *regs)
{
    struct kretprobe_instance none, *ri = &none;

    if (s->last->holder->data_len)
        ri = instance_data(s, s->last->holder);
    ri->rp = rp;
    ri->ret_addr = shadow_ret(s->last);
    hit->running = &rp->kp;
    if (READ_ONCE(rp->kp.flags) & KPROBE_FLAG_IRQS_OFF) {
        unsigned long irqs = plat_irq_save();

        rp->handler(ri, regs);
        plat_irq_restore(irqs);
    } else {
        rp->handler(ri, regs);
    }
    if (hit->is.jumped)
        plat_flags_as(regs->flags);
    else
        plat_flags_of_trap();
    hit->running = NULL;
}

NOKPROBE_INLINE void note_step(struct probe_hit *hit, unsigned how)
{
    hit->is.owes_step = true;
    if (how & BY_JUMP)
        hit_by_jump(hit);
}

/* instance_return - the latest instance returns: call its handler, if it may run.
 * @how: BY_JUMP: the function has returned to the trampoline. BY_STEP: the engine handles a
 *       step of the program. Both: that step ends in a hit by a jump.
 */
static void instance_return(struct probe_cpu *cpu, struct shadow *s, struct pt_regs *regs,
                            unsigned how)
{
    const struct kretprobe_holder *h = s->last->holder;
    struct kretprobe *rp = READ_ONCE(h->rp);
    struct probe_hit *hit = NULL;

    if (!rp || !rp->handler)
        return;
    if (!aggr_is_off(&rp->kp) && !READ_ONCE(h->unarmed))
        hit = hit_enter(cpu, rp->kp.site, regs, HIT_RETURN);
    if (!hit) {
        count_miss(rp, KRETPROBE_MISS_RETURN);
        return;
    }
    if (likely(how == BY_JUMP))
        hit_by_jump(hit);
    else
        note_step(hit, how);
    run_handler(hit, rp, s, regs);
    hit_leave(cpu, hit, hit->is.jumped);
}
NOKPROBE(instance_return);

/* group_return - all instances of one group return, the innermost first. An instance keeps
 * its shadow entry and its data until its handler has ended. If the handler has given up
 * calls of its own without their return (a longjmp), their entries are dropped.
 */
NOKPROBE_INLINE void group_return(struct probe_cpu *cpu, struct shadow *s, uint32_t below,
                                  struct pt_regs *regs, unsigned how)
{
    while (s->last->below == below) {
        instance_return(cpu, s, regs, how);
        if (unlikely(s->last->below > below))
            shadow_unwind(s, below);
        shadow_pop(s);
    }
}

/* resync - the latest entry is not of the slot at @below: drop the later entries, which
 * belong to calls that were given up without a return.
 */
NOKPROBE_INLINE void resync(struct shadow *s, uint32_t below)
{
    shadow_unwind(s, below);
    if (s->last->below != below)
        plat_bug("a function returned on another stack than it was called on",
                 s->top - below);
}

NOKPROBE_INLINE void returned(struct pt_regs *regs, struct probe_cpu *cpu, unsigned how)
{
    struct shadow *s = shadow_of(cpu);
    uint32_t below = (uint32_t)(s->top - regs->sp + sizeof(uintptr_t));

    if (unlikely(s->last->below != below))
        resync(s, below);
    regs->ip = shadow_ret(s->last);
    group_return(cpu, s, below, regs, how);
}

void kretprobe_return(struct pt_regs *regs, struct probe_cpu *cpu)
{
    returned(regs, cpu, BY_JUMP);
}
NOKPROBE(kretprobe_return);

void kretprobe_return_stepped(struct pt_regs *regs, struct probe_cpu *cpu, bool jumped)
{
    returned(regs, cpu, jumped ? BY_JUMP | BY_STEP : BY_STEP);
}
NOKPROBE(kretprobe_return_stepped);

/* kretprobe_given_up() has dropped the entries of the calls that the handler had made. So
 * the latest entry is that of the instance for which the handler ran. `below` is taken
 * from that entry and not computed from regs->sp, because the handler may have changed
 * regs->sp.
 */
void ext_return_resume(struct pt_regs *regs, struct probe_cpu *cpu, bool jumped)
{
    struct shadow *s = shadow_of(cpu);
    uint32_t below = s->last->below;
    bool steps = cpu->hits[cpu->depth - 1].is.owes_step;

    hit_leave(cpu, &cpu->hits[cpu->depth - 1], jumped);
    shadow_pop(s);
    group_return(cpu, s, below, regs, (jumped ? BY_JUMP : 0) | (steps ? BY_STEP : 0));
}
NOKPROBE(ext_return_resume);

/* ---- handlers that do not return ---- */

void kretprobe_unwind(const struct probe_cpu *cpu, uintptr_t sp)
{
    struct shadow *s = shadow_of(cpu);

    if (s && s->last->below > (uint32_t)(s->top - sp) && shadow_covers(s, sp))
        shadow_unwind(s, (uint32_t)(s->top - sp));
}

/* While an entry_handler runs, its call has a shadow entry, but the return address of the
 * call is not exchanged yet. If the handler is given up, the address will never be
 * exchanged, so the entry must be dropped. But the latest entry may also belong to an
 * outer call of the same function. The slot tells the two apart: the slot of the outer
 * call holds the trampoline or a return point.
 */
void kretprobe_given_up(const struct probe_cpu *cpu, const struct probe_hit *hit,
                        uintptr_t sp)
{
    const struct kprobe *p = hit->running;
    struct shadow *s = shadow_of(cpu);
    uint64_t ret;

    kretprobe_unwind(cpu, sp);
    if (!s || hit->is.stage != HIT_PRE || p->kind != KPROBE_KIND_RETURN)
        return;
    if (shadow_is_empty(s) || READ_ONCE(s->last->holder) != of_kprobe(p)->holder)
        return;
    if (!plat_read(&ret, s->top - s->last->below) && !return_point_is(ret))
        shadow_drop(s);
}

/* ---- for code that looks at stacks ---- */

/* Several probes of one function have entries next to each other, for the same call. An
 * entry that is claimed but not filled has an old holder, which may be freed.
 */
int kretprobe_depth(uintptr_t addr)
{
    const struct shadow *s = shadow_of(plat_this_cpu());
    uintptr_t last = 0;
    uint32_t last_below = 0;
    int depth = -1;

    for (const struct shadow_entry *e = s->entries + 1; e <= s->last; e++) {
        uint32_t below = READ_ONCE(e->below);
        const struct kretprobe *rp = below ? READ_ONCE(e->holder->rp) : NULL;

        if (!rp || (below == last_below && rp->kp.addr == last))
            continue;
        last = rp->kp.addr;
        last_below = below;
        if (depth >= 0 || last == addr)
            depth++;
    }
    return depth;
}

uintptr_t kretprobe_find_ret(const uintptr_t *slot)
{
    const struct shadow *s = plat_shadow_of((uintptr_t)slot);
    uintptr_t ret;

    return s && shadow_find(s, (uintptr_t)slot, &ret) ? ret : 0;
}
