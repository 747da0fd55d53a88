/* watch.c - registers, switches, moves and unregisters watches.
 *
 * To register a watch, the engine takes a debug register, fills in the data that hits
 * read, and then lets all CPUs use the register. To unregister it, the engine goes in the
 * opposite order: it clears the register on all CPUs, waits for quiescence, so that no
 * hit uses the data any more, and then frees the data and gives the register back.
 */
#include "probes/watch/watch.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/watch/platform_watch.h"
#include "probes/watch/watch_parts.h"

#include <string.h>

struct watch_slot watch_slots[WATCH_SLOTS];

const char *watch_kind_name(enum watch_kind kind)
{
    static const char *const names[WATCH_KINDS] = { "w", "rw", "x" };

    return kind < WATCH_KINDS ? names[kind] : "?";
}

/* ---- reasons ---- */

static const struct {
    int err;
    const char *text;
} reasons[WATCH_REASONS] = {
    [WATCH_OK] = { 0, "it can be watched" },
    [WATCH_TWICE] = { -EEXIST, "this watch is registered already" },
    [WATCH_READ_ALONE] = { -EINVAL, "the processor has no watchpoint for reads alone: w, "
                                    "rw or x" },
    [WATCH_LENGTH] = { -EINVAL, "a debug register watches 1, 2, 4 or 8 bytes" },
    [WATCH_EXECUTE_LEN] = { -EINVAL, "an instruction is watched by its first byte: the "
                                     "length must be 1" },
    [WATCH_UNALIGNED] = { -EINVAL,
                          "a debug register ignores the low bits of its address: "
                          "the address must be a multiple of the length" },
    [WATCH_NOT_KERNEL] = { -EINVAL, "no address of the kernel" },
    [WATCH_OWN] = { -EPERM, "each hit uses these bytes itself, so it would be hit again "
                            "without end" },
    [WATCH_NO_CODE] = { -EILSEQ, "no instruction begins there" },
    [WATCH_BLACKLISTED] = { -EPERM, "this code is the way into a hit, or out of it" },
    [WATCH_ALL_TAKEN] = { -EBUSY, "the processor has four debug registers, and all are "
                                  "taken" },
    [WATCH_NO_MEMORY] = { -ENOMEM, "no memory" },
    [WATCH_IN_HIT] = { -EDEADLK,
                       "called from a handler, or where it would have to wait" },
};

const char *watch_reason_text(enum watch_reason reason)
{
    return reason < WATCH_REASONS ? reasons[reason].text : "?";
}

int watch_reason_errno(enum watch_reason reason)
{
    return reason < WATCH_REASONS ? reasons[reason].err : -EINVAL;
}

/* is_slot - is it watch_slots? A hit reads watch_slots before it sets watch_busy. */
static bool is_slot(uintptr_t addr, size_t len)
{
    return addr < (uintptr_t)(watch_slots + WATCH_SLOTS) &&
           (uintptr_t)watch_slots < addr + len;
}

/* Code that runs before a hit is entered cannot be watched: each hit would execute this
 * code, and trap again.
 */
enum watch_reason watch_check_own(uintptr_t addr, size_t len, enum watch_kind kind)
{
    if (plat_watch_is_own(addr, len) || is_slot(addr, len))
        return WATCH_OWN;
    if (kind == WATCH_EXECUTE && (plat_is_entry(addr) || blacklist_why(addr)))
        return WATCH_BLACKLISTED;
    return WATCH_OK;
}

static enum watch_reason watch_check_bytes(uintptr_t addr, size_t len,
                                           enum watch_kind kind)
{
    if (!is_aligned(addr, len))
        return WATCH_UNALIGNED;
    if (!plat_watch_is_kernel(addr))
        return WATCH_NOT_KERNEL;
    return watch_check_own(addr, len, kind);
}

static enum watch_reason check_instruction(uintptr_t addr)
{
    struct plat_symbol function;
    struct probe_reject why;
    struct insn insn;

    if (!plat_text_contains(addr, 1) || plat_symbol_at(addr, &function))
        return WATCH_NO_CODE;
    return boundary_find(addr, &function, &insn, &why) ? WATCH_NO_CODE : WATCH_OK;
}

static bool is_length(size_t len)
{
    return len == 1 || len == 2 || len == 4 || len == 8;
}

/* is_there - is @w registered? Its memory may be garbage. Locks: PLAT_PROBES held. */
static bool is_there(const struct watch *w)
{
    for (unsigned i = 0; i < WATCH_SLOTS; i++)
        if (watch_slots[i].watch == w)
            return true;
    return false;
}

/* Locks: PLAT_PROBES held. */
static enum watch_reason watch_check_all(const struct watch *w)
{
    enum watch_reason why;

    if (is_there(w))
        return WATCH_TWICE;
    if (w->kind >= WATCH_KINDS)
        return WATCH_READ_ALONE;
    if (!is_length(w->len))
        return WATCH_LENGTH;
    if (w->kind == WATCH_EXECUTE && w->len != 1)
        return WATCH_EXECUTE_LEN;
    if (!w->addr)
        return w->kind == WATCH_EXECUTE ? WATCH_NO_CODE : WATCH_OK;
    why = watch_check_bytes(w->addr, w->len, w->kind);
    return why || w->kind != WATCH_EXECUTE ? why : check_instruction(w->addr);
}

enum watch_reason watch_check(const struct watch *w)
{
    enum watch_reason why;

    plat_lock(PLAT_PROBES);
    why = watch_check_all(w);
    plat_unlock(PLAT_PROBES);
    return why;
}

const char *watch_owner(unsigned i)
{
    return i < WATCH_SLOTS ? plat_watch_owner(i) : NULL;
}

/* ---- counts: each CPU has its own ---- */

static NOINLINE uint64_t sum_of(unsigned reg, bool missed)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < plat_cpu_count(); i++) {
        const struct probe_cpu *cpu = plat_probe_cpu(i);
        const uint64_t *counts = missed ? cpu->watch_missed : cpu->watch_hits;

        sum += READ_ONCE(counts[reg]);
    }
    return sum;
}

uint64_t watch_hits(const struct watch *w)
{
    return w->hits + (w->is_registered ? sum_of((unsigned)w->reg, false) : 0);
}

uint64_t watch_misses(const struct watch *w)
{
    return w->nmissed + (w->is_registered ? sum_of((unsigned)w->reg, true) : 0);
}

/* take_counts - add the counts of the CPUs for the register to those of @w, or subtract
 * them (@sign -1). The register watches nothing at that time, so no CPU counts.
 */
static void take_counts(struct watch *w, int sign)
{
    unsigned reg = (unsigned)w->reg;

    w->hits += (uint64_t)sign * sum_of(reg, false);
    w->nmissed += (uint64_t)sign * sum_of(reg, true);
}

/* ---- register ---- */

static void call_handler(struct kprobe *p, struct pt_regs *regs,
                         unsigned long flags UNUSED)
{
    struct watch *w = CONTAINER_OF(p, struct watch, kp);

    if (w->handler)
        w->handler(w, regs);
}

/* slot_fill - fill in what hits read. @site: zeroed; in the same memory, behind the
 * struct, other rooms may have data of their own
 */
static void slot_fill(struct watch *w, struct site *site)
{
    struct watch_slot *slot = &watch_slots[w->reg];

    w->kp = (struct kprobe){
        .addr = w->addr,
        .post_handler = call_handler,
        .flags = w->flags & KPROBE_FLAG_DISABLED,
        .site = site,
    };
    site->addr = w->addr;
    site->probes = &w->kp;
    slot->executes = w->kind == WATCH_EXECUTE;
    slot->site = site;
    WRITE_ONCE(slot->watch, w);
}

static bool watch_is_off(const struct watch *w)
{
    return READ_ONCE(w->kp.flags) & KPROBE_FLAG_DISABLED;
}

static void put_to_use(const struct watch *w)
{
    bool on = !watch_is_off(w);

    plat_watch_set((unsigned)w->reg, on ? w->addr : 0, w->kind, w->len);
    if (w->kind == WATCH_EXECUTE)
        plat_watch_execute(on ? w->addr : 0);
}

static void use_register(struct watch *w, int reg, struct site *site)
{
    w->reg = reg;
    w->hits = w->nmissed = 0;
    take_counts(w, -1);
    slot_fill(w, site);
    w->is_registered = true;
    put_to_use(w);
}

static enum watch_reason take_register(struct watch *w)
{
    enum watch_reason why = watch_check_all(w);
    struct site *site;
    int reg;

    if (why)
        return why;
    reg = plat_watch_take(w->name);
    if (reg < 0)
        return WATCH_ALL_TAKEN;
    site = plat_alloc(ext_site_size());
    if (!site) {
        plat_watch_give((unsigned)reg);
        return WATCH_NO_MEMORY;
    }
    use_register(w, reg, site);
    return WATCH_OK;
}

int register_watch_why(struct watch *w, enum watch_reason *why)
{
    enum watch_reason reason = WATCH_IN_HIT;

    if (!register_check_caller("register_watch", NULL)) {
        plat_lock(PLAT_PROBES);
        reason = take_register(w);
        plat_unlock(PLAT_PROBES);
    }
    if (why)
        *why = reason;
    return watch_reason_errno(reason);
}

static void give_register(struct watch *w)
{
    plat_watch_set((unsigned)w->reg, 0, w->kind, w->len);
    plat_quiesce();
    if (w->kind == WATCH_EXECUTE)
        plat_watch_execute(0);
    take_counts(w, 1);
    w->is_registered = false;
    plat_free(watch_slots[w->reg].site);
    WRITE_ONCE(watch_slots[w->reg].watch, NULL);
    plat_watch_give((unsigned)w->reg);
}

static bool watch_is_of(const struct watch *w, uintptr_t memory, size_t len)
{
    return (uintptr_t)w - memory < len ||
           (w->handler && (uintptr_t)w->handler - memory < len);
}

unsigned watch_leaves(uintptr_t memory, size_t len)
{
    unsigned count = 0;

    plat_lock(PLAT_PROBES);
    for (unsigned i = 0; i < WATCH_SLOTS; i++) {
        struct watch *w = watch_slots[i].watch;

        if (w && watch_is_of(w, memory, len)) {
            give_register(w);
            count++;
        }
    }
    plat_unlock(PLAT_PROBES);
    return count;
}

int unregister_watch(struct watch *w)
{
    int err = register_check_caller(__func__, NULL);

    if (err)
        return err;
    return watch_leaves((uintptr_t)w, 1) ? 0 : -EINVAL;
}

/* ---- switch, move ---- */

int watch_switch(struct watch *w, bool on)
{
    int err = register_check_caller(on ? "enable_watch" : "disable_watch", NULL);

    if (err)
        return err;
    plat_lock(PLAT_PROBES);
    err = is_there(w) ? 0 : -EINVAL;
    if (!err) {
        if (on)
            __atomic_and_fetch(&w->kp.flags,
                               ~(KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED),
                               __ATOMIC_RELEASE);
        else
            __atomic_or_fetch(&w->kp.flags, KPROBE_FLAG_DISABLED, __ATOMIC_RELEASE);
        put_to_use(w);
    }
    plat_unlock(PLAT_PROBES);
    return err;
}

int watch_move(struct watch *w, uintptr_t addr)
{
    if (w->kind == WATCH_EXECUTE || (addr && watch_check_bytes(addr, w->len, w->kind)))
        return -EINVAL;
    WRITE_ONCE(w->addr, addr);
    WRITE_ONCE(watch_slots[w->reg].site->addr, addr);
    if (!watch_is_off(w))
        plat_watch_move((unsigned)w->reg, addr);
    return 0;
}

uintptr_t watch_addr(const struct watch *w)
{
    return w->is_registered ? plat_watch_addr((unsigned)w->reg) : 0;
}
