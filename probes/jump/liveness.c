/* liveness.c - looks ahead from an instruction, along all ways the program may take, until
 * every status flag has been read or written on each of them.
 *
 * Compiled code never reads flags that were set before a call or a return: the calling
 * convention has no use for them. Code in assembly language may. A jump to the entry of
 * another compiled function is a call, too; one to anywhere else, as to the cold part that
 * was split off, takes flags along.
 */
#include "probes/jump/liveness.h"

#include "probes/core/recover.h"
#include "probes/insn/effects.h"
#include "probes/jump/platform_jump.h"

#define LOOKED_AT_MAX 48 /* instructions; behind them all is live */
#define WAYS_MAX 8       /* branches whose other way is still to be looked at */

struct way {
    uintptr_t addr;
    uint32_t open; /* flags that no instruction has read or written yet */
};

struct look {
    uintptr_t start, end; /* of the function */
    bool is_compiled;
    uint32_t live;
    unsigned looked_at;
    size_t count;
    struct way ways[WAYS_MAX];
    size_t seen_count;
    struct way seen[LOOKED_AT_MAX];
};

static void stop_looking(struct look *l, uint32_t open)
{
    l->live |= open;
}

static bool is_inside(const struct look *l, uintptr_t addr)
{
    return addr >= l->start && addr < l->end;
}

/* way_add - the program may go on at @addr. */
static void way_add(struct look *l, uintptr_t addr, uint32_t open)
{
    if (!is_inside(l, addr) && l->is_compiled && plat_is_compiled(addr))
        return;
    if (!is_inside(l, addr) || l->count == WAYS_MAX)
        stop_looking(l, open);
    else
        l->ways[l->count++] = (struct way){ addr, open };
}

static bool was_seen(struct look *l, uintptr_t addr, uint32_t open)
{
    for (size_t i = 0; i < l->seen_count; i++)
        if (l->seen[i].addr == addr && !(open & ~l->seen[i].open))
            return true;
    l->seen[l->seen_count++] = (struct way){ addr, open };
    return false;
}

static int decode_at(const struct look *l, uintptr_t addr, struct insn *insn)
{
    uint8_t bytes[INSN_MAX_LEN];
    size_t left = l->end - addr;
    int err;

    if (left > sizeof(bytes))
        left = sizeof(bytes);
    err = recover_bytes(bytes, addr, left);
    return err ? err : insn_decode(insn, bytes, left, addr);
}

/* leads_away - a call or a return: to code that a compiler's function leaves no flags to. */
static bool leads_away(const struct insn *insn)
{
    return insn->kind == INSN_RET || insn->kind == INSN_CALL_REL ||
           insn->kind == INSN_CALL_REG || insn->kind == INSN_CALL_MEM;
}

static bool has_known_target(const struct insn *insn)
{
    return insn->kind == INSN_JMP_REL || insn->kind == INSN_JCC ||
           insn->kind == INSN_LOOP || insn->kind == INSN_JRCXZ;
}

/* look_at - one instruction. Return: the flags that are open behind it, where the program
 * goes on right behind it; else none.
 */
static uint32_t look_at(struct look *l, const struct insn *insn, uint32_t open)
{
    struct insn_effects effects;

    if (l->is_compiled && leads_away(insn))
        return 0;
    if (plat_has_fixup(insn->addr))
        stop_looking(l,
                     open); /* if it faults, the program goes on there with all of them */
    insn_effects(insn, &effects);
    l->live |= effects.flags_read & open;
    open &= ~(effects.flags_read | effects.flags_killed);
    if (has_known_target(insn))
        way_add(l, insn->target, open);
    else if (insn_is_branch(insn))
        stop_looking(l, open);
    return insn_falls_through(insn) ? open : 0;
}

static void way_follow(struct look *l, uintptr_t addr, uint32_t open)
{
    struct insn insn;

    while (open & ~l->live) {
        if (addr >= l->end || l->looked_at == LOOKED_AT_MAX ||
            decode_at(l, addr, &insn)) {
            stop_looking(l, open);
            return;
        }
        if (was_seen(l, addr, open))
            return;
        l->looked_at++;
        open = look_at(l, &insn, open);
        addr = insn_next(&insn);
    }
}

uint32_t liveness_flags(const struct insn *insn)
{
    struct plat_symbol function;
    struct look l = { 0 };

    if (plat_symbol_at(insn->addr, &function))
        return INSN_FLAGS_STATUS;
    l.start = function.start;
    l.end = function.start + function.size;
    l.is_compiled = plat_is_compiled(l.start);
    way_add(&l, insn->addr, INSN_FLAGS_STATUS);
    while (l.count) {
        struct way way = l.ways[--l.count];

        way_follow(&l, way.addr, way.open);
    }
    return l.live;
}
