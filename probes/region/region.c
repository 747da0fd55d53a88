/* region.c - stage 11 by regions: check whether a jump may displace several instructions,
 * and tell the rule that forbids it.
 *
 * The rules are a table, see rules.h. Together they prove, for the bytes of the jump
 * behind its first byte:
 *
 *   - No branch leads there: none of the function, of its cold part or of other code, no
 *     jump table, and no fix-up. The build's table of targets contains all of these, and
 *     marks the code whose targets are not known
 *   - No call returns there: only the last instruction of a region may be a call
 *   - No CPU goes on there after a trap: no instruction there traps on purpose, or has a
 *     probe
 *
 * They also prove that each instruction has the same effect at another address. Behind
 * the end of a function, the jump may overwrite padding: the filler in the gap up to the
 * next symbol, if no target is there, and the function does not run into it.
 */
#include "probes/region/region.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/core/recover.h"
#include "probes/core/registry.h"
#include "probes/core/rules.h"
#include "probes/region/targets.h"

/* The facts that the rules have found out so far. A rule may use what the rules in front
 * of it in the table have found.
 */
struct survey {
    struct ruling ruling;
    struct region *region;
    struct plat_symbol function;         /* the rule NO_FUNCTION fills it in */
    struct insn insns[REGION_MAX_INSNS]; /* REGION_END fills in region->count of them */
};

static struct survey *survey_of(struct ruling *r)
{
    return CONTAINER_OF(r, struct survey, ruling);
}

static uintptr_t function_end(const struct survey *p)
{
    return p->function.start + p->function.size;
}

/* ---- the table of targets, the function ---- */

static bool has_no_targets(struct ruling *r)
{
    return !targets_known(r->addr);
}

static bool has_no_function(struct ruling *r)
{
    return plat_symbol_at(r->addr, &survey_of(r)->function);
}

/* ---- the instructions of the region ---- */

static void add_insn(struct survey *p, const struct insn *insn)
{
    struct region *r = p->region;

    r->starts[r->count] = r->len;
    for (size_t i = 0; i < insn->len; i++)
        r->bytes[r->len + i] = insn->bytes[i];
    p->insns[r->count++] = *insn;
    r->len = (uint8_t)(r->len + insn->len);
}

static bool is_filler(const struct insn *insn)
{
    return insn->kind == INSN_NOP || insn->kind == INSN_INT3;
}

bool region_is_padding(uintptr_t addr)
{
    uintptr_t at = addr;
    uint8_t bytes[INSN_MAX_LEN];
    struct plat_symbol function;
    struct insn insn;

    while (plat_symbol_at(at, &function))
        at--;
    if (at++ == addr || boundary_before(at, &function, &insn) ||
        insn_falls_through(&insn))
        return false;
    for (; at <= addr; at = insn_next(&insn))
        if (recover_bytes(bytes, at, sizeof(bytes)) ||
            insn_decode(&insn, bytes, sizeof(bytes), at) || !is_filler(&insn))
            return false;
    return plat_text_contains(addr, 1);
}

/* reaches_end - the function ends before the jump would. The rule is kept if padding for
 * the rest of the jump follows.
 */
static bool reaches_end(struct survey *p)
{
    struct region *r = p->region;

    for (; r->len < REGION_JUMP_LEN; r->len++, r->padding++) {
        uintptr_t at = r->addr + r->len;

        if (!region_is_padding(at) || recover_bytes(&r->bytes[r->len], at, 1))
            return rules_refuse(&p->ruling, p->ruling.reason, at);
    }
    return false;
}

/* ends_early - does the function end before the jump would? This also collects the
 * instructions of the region.
 */
static bool ends_early(struct ruling *r)
{
    struct survey *p = survey_of(r);
    struct probe_reject why;
    struct insn insn;

    while (p->region->len < REGION_JUMP_LEN) {
        uintptr_t at = r->addr + p->region->len;

        if (at >= function_end(p))
            return reaches_end(p);
        if (boundary_find(at, &p->function, &insn, &why))
            return rules_refuse_as(r, &why);
        add_insn(p, &insn);
    }
    return false;
}

/* ---- each instruction ---- */

/* displaces_protected - is there an instruction behind the first that could not carry a
 * probe? The first one is not checked here: it carries one, or was checked before.
 */
static bool displaces_protected(struct ruling *r)
{
    const struct survey *p = survey_of(r);
    struct probe_reject why;
    struct insn insn;

    for (size_t i = 1; i < p->region->count; i++)
        if (kprobe_check(p->insns[i].addr, &insn, &why))
            return rules_refuse_as(r, &why);
    return false;
}

static bool is_last(const struct survey *p, size_t i)
{
    return i == p->region->count - 1u;
}

/* must_stay - must instruction @i be executed at its own address? The engine can run the
 * first one in any of its ways. But an STI runs together with the instruction behind it,
 * so an STI is displaced only if it is the only instruction.
 */
static bool must_stay(const struct survey *p, size_t i)
{
    const struct insn *insn = &p->insns[i];

    if (insn->kind == INSN_STI)
        return p->region->count > 1;
    if (i == 0 || insn_can_boost(insn) || insn->kind == INSN_CALL_REL)
        return false;
    return !insn_is_branch(insn) || !insn_can_move(insn);
}

static bool displaces_stuck(struct ruling *r)
{
    const struct survey *p = survey_of(r);

    for (size_t i = 0; i < p->region->count; i++)
        if (must_stay(p, i))
            return rules_refuse(r, r->reason, p->insns[i].addr);
    return false;
}

static bool displaces_call(struct ruling *r)
{
    const struct survey *p = survey_of(r);

    for (size_t i = 0; i < p->region->count; i++)
        if (insn_is_call(&p->insns[i]) && !is_last(p, i))
            return rules_refuse(r, r->reason, p->insns[i].addr);
    return false;
}

/* ---- branches from elsewhere ---- */

static bool displaces_target(struct ruling *r)
{
    r->at = targets_find(r->addr + 1, r->addr + REGION_JUMP_LEN);
    return r->at && !targets_opaque(r->at);
}

static bool displaces_opaque(struct ruling *r)
{
    for (uintptr_t at = r->addr + 1; at < r->addr + REGION_JUMP_LEN; at++)
        if (targets_opaque(at))
            return rules_refuse(r, r->reason, at);
    return false;
}

static bool displaces_probed(struct ruling *r)
{
    for (uintptr_t at = r->addr + 1; at < r->addr + REGION_JUMP_LEN; at++)
        if (registry_find(at))
            return rules_refuse(r, r->reason, at);
    return false;
}

/* ---- other changes of the code ---- */

/* displaces_changed - does the text of the region differ from that of the build, apart
 * from the changes that probes have made? The table of targets describes the text of the
 * build.
 */
static bool displaces_changed(struct ruling *r)
{
    uintptr_t line = align_down(r->addr, PLAT_LINE_LEN);
    uint8_t bytes[PLAT_LINE_LEN];

    for (; line < r->addr + survey_of(r)->region->len; line += PLAT_LINE_LEN)
        if (recover_bytes(bytes, line, sizeof(bytes)) || !plat_text_is_built(line, bytes))
            return rules_refuse(r, r->reason, line);
    return false;
}

/* ---- the rules, the cheap ones first ---- */

static const struct rule rules[] = {
    { PROBE_NO_TARGETS, has_no_targets, true },
    { PROBE_NO_FUNCTION, has_no_function, true },
    { PROBE_REGION_END, ends_early, true },
    { PROBE_REGION_PROBED, displaces_probed, false },
    { PROBE_CANNOT_MOVE, displaces_protected, false },
    { PROBE_REGION_MOVE, displaces_stuck, false },
    { PROBE_REGION_CALL, displaces_call, false },
    { PROBE_REGION_TARGET, displaces_target, false },
    { PROBE_REGION_OPAQUE, displaces_opaque, false },
    { PROBE_REGION_CHANGED, displaces_changed, false },
};

static struct survey survey_start(uintptr_t addr, struct region *out)
{
    out->addr = addr;
    out->len = out->count = out->padding = 0;
    return (struct survey){ .ruling.addr = addr, .region = out };
}

int region_plan(uintptr_t addr, struct region *out, struct probe_reject *why)
{
    struct survey p = survey_start(addr, out);

    return rules_check(rules, ARRAY_LEN(rules), &p.ruling, why);
}

void region_each_rule(uintptr_t addr, struct region *out, rule_told_t fn, void *arg)
{
    struct survey p = survey_start(addr, out);

    rules_each(rules, ARRAY_LEN(rules), &p.ruling, fn, arg);
}
