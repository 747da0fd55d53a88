/* check.c - stage 2: may this address carry a probe? And if not, by which rule?
 *
 * The rules are a table, see rules.h. Everything that can be refused is refused here or in
 * prepare.c; from arming on nothing can fail.
 */
#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/core/recover.h"
#include "probes/core/rules.h"

/* What is known of the address so far: a rule may rely on those in front of it. */
struct check {
    struct ruling ruling;
    struct plat_symbol function; /* behind NO_FUNCTION */
    uintptr_t starts;            /* behind UNDECODABLE: where the instruction begins */
    struct insn insn;            /* behind NOT_BOUNDARY */
};

static struct check *check_of(struct ruling *r)
{
    return CONTAINER_OF(r, struct check, ruling);
}

/* ---- the place ---- */

static bool is_own_code(struct ruling *r)
{
    return plat_exec_contains(r->addr);
}

static bool is_no_text(struct ruling *r)
{
    return !plat_text_contains(r->addr, 1) || ext_text_leaves(r->addr);
}

static bool is_entry_code(struct ruling *r)
{
    return plat_is_entry(r->addr);
}

static bool is_blacklisted(struct ruling *r)
{
    r->why = blacklist_why(r->addr);
    return r->why;
}

static bool is_no_function(struct ruling *r)
{
    return plat_symbol_at(r->addr, &check_of(r)->function);
}

/* ---- the instruction ---- */

/* Between two boundaries is not this rule's business, but the next one's. */
static bool is_undecodable(struct ruling *r)
{
    struct check *c = check_of(r);
    struct probe_reject why = { 0 };

    c->starts = r->addr;
    if (!boundary_find(r->addr, &c->function, &c->insn, &why))
        return false;
    if (why.reason != PROBE_NOT_BOUNDARY)
        return rules_refuse_as(r, &why);
    c->starts = why.at;
    return false;
}

static bool is_no_boundary(struct ruling *r)
{
    r->at = check_of(r)->starts;
    return r->at != r->addr;
}

/* Is it an int3 of a debugger? When the debugger removes its int3, it would remove that of
 * the probe, too. An int3 of the program is part of the build, so with it the bytes of the
 * line are as they were built.
 */
static bool is_foreign_int3(struct ruling *r)
{
    uintptr_t line = align_down(r->addr, PLAT_LINE_LEN);
    uint8_t bytes[PLAT_LINE_LEN];

    return check_of(r)->insn.kind == INSN_INT3 &&
           !recover_bytes(bytes, line, sizeof(bytes)) && !plat_text_is_built(line, bytes);
}

/* Kinds that never carry a probe, and the rule that says so. */
static enum probe_reason kind_reason(const struct insn *insn)
{
    switch (insn->kind) {
    case INSN_INT3:
    case INSN_INT1:
    case INSN_INTN:
        return PROBE_TRAP_INSN;
    case INSN_CALL_FAR:
    case INSN_JMP_FAR:
    case INSN_RET_FAR:
    case INSN_IRET:
    case INSN_SYSCALL:
    case INSN_SYSENTER:
    case INSN_SYSRET:
    case INSN_SYSEXIT:
    case INSN_MODE:
        return PROBE_FAR_BRANCH;
    case INSN_MOV_SS:
        return PROBE_MASKS_TRAPS;
    case INSN_LOAD_SEG:
    case INSN_SWAPGS:
    case INSN_WRITE_BASE:
    case INSN_SHADOW_STACK:
        return PROBE_STATE_CHANGE;
    case INSN_MWAIT:
        return PROBE_HALTS;
    case INSN_XBEGIN:
    case INSN_XABORT:
    case INSN_XEND:
        return PROBE_TRANSACTION;
    case INSN_VMX:
    case INSN_SVM:
    case INSN_SGX:
        return PROBE_VIRTUALIZATION;
    default:
        return PROBE_OK;
    }
}

static bool is_kind(struct ruling *r)
{
    return kind_reason(&check_of(r)->insn) == r->reason;
}

static bool is_short_branch(struct ruling *r)
{
    const struct insn *insn = &check_of(r)->insn;

    return insn_is_near_branch(insn) && insn->opsize66;
}

/* STI may be followed by a jump back as well: what its shadow must cover instead is for
 * boost.c to see to.
 */
static bool can_run_as_copy(const struct insn *insn)
{
    return insn_can_boost(insn) || insn->kind == INSN_STI;
}

/* Whatever another rule refuses is not asked: it could not be moved either. */
static bool is_stuck(struct ruling *r)
{
    const struct insn *insn = &check_of(r)->insn;

    return kind_reason(insn) == PROBE_OK && !emulate_supports(insn) &&
           !can_run_as_copy(insn);
}

static bool waits(const struct insn *insn)
{
    return insn->kind == INSN_HLT || insn->kind == INSN_MWAIT;
}

static bool is_sti_before(struct check *c)
{
    uintptr_t behind = insn_next(&c->insn);
    struct insn next;

    if (c->insn.kind != INSN_STI || behind >= c->function.start + c->function.size)
        return false;
    if (boundary_find(behind, &c->function, &next, NULL))
        return false;
    c->ruling.at = behind;
    c->ruling.why = blacklist_why(behind); /* a copy of both would run it elsewhere */
    return waits(&next) || c->ruling.why;
}

static bool is_hlt_behind(struct check *c)
{
    struct insn before;

    if (!waits(&c->insn) || boundary_before(c->ruling.addr, &c->function, &before) ||
        before.kind != INSN_STI)
        return false;
    c->ruling.at = before.addr;
    return true;
}

/* The wake-up that `sti; hlt` waits for must not come between the two: neither may carry a
 * probe, since the trap of the second one would end the shadow of the first.
 */
static bool is_sti_hlt(struct ruling *r)
{
    return is_sti_before(check_of(r)) || is_hlt_behind(check_of(r));
}

/* ---- the rules ---- */

static const struct rule rules[] = {
    { PROBE_OWN_CODE, is_own_code, false },
    { PROBE_NOT_TEXT, is_no_text, true },
    { PROBE_ENTRY_CODE, is_entry_code, false },
    { PROBE_BLACKLISTED, is_blacklisted, false },
    { PROBE_NO_FUNCTION, is_no_function, true },
    { PROBE_UNDECODABLE, is_undecodable, true },
    { PROBE_NOT_BOUNDARY, is_no_boundary, true },
    { PROBE_FOREIGN_INT3, is_foreign_int3, false },
    { PROBE_TRAP_INSN, is_kind, false },
    { PROBE_FAR_BRANCH, is_kind, false },
    { PROBE_MASKS_TRAPS, is_kind, false },
    { PROBE_STATE_CHANGE, is_kind, false },
    { PROBE_HALTS, is_kind, false },
    { PROBE_TRANSACTION, is_kind, false },
    { PROBE_VIRTUALIZATION, is_kind, false },
    { PROBE_SHORT_OPERAND, is_short_branch, false },
    { PROBE_CANNOT_MOVE, is_stuck, false },
    { PROBE_STI_HLT, is_sti_hlt, false },
};

int kprobe_check(uintptr_t addr, struct insn *insn, struct probe_reject *why)
{
    struct check c = { .ruling.addr = addr };
    int err = rules_check(rules, ARRAY_LEN(rules), &c.ruling, why);

    if (!err)
        *insn = c.insn;
    return err;
}

void check_each_rule(uintptr_t addr, rule_told_t fn, void *arg)
{
    struct check c = { .ruling.addr = addr };

    rules_each(rules, ARRAY_LEN(rules), &c.ruling, fn, arg);
}
