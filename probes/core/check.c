/* check.c - stage 2: decides whether an address may carry a probe, and if not, which rule
 * forbids it.
 *
 * The rules are a table, see rules.h. All refusals come before arming: most of them here,
 * a few in register.c and prepare.c. Arming and all later stages cannot fail.
 */
#include "kernel/base/bits.h"
#include "probes/core/life.h"
#include "probes/core/recover.h"
#include "probes/core/rules.h"

/* What the rules have found out about the address. A rule fills in a field, and the rules
 * behind it in the table use the field.
 */
struct check {
    struct ruling ruling;
    struct plat_symbol function; /* by NO_FUNCTION */
    uintptr_t starts;            /* by UNDECODABLE: where the instruction begins */
    struct insn insn;            /* by UNDECODABLE; valid behind NOT_BOUNDARY */
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

/* An address inside of an instruction does not break this rule; it breaks the next one.
 */
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

/* is_foreign_int3 - is the instruction an int3 of a debugger? The debugger would remove
 * the int3 of the probe together with its own. An int3 of the program itself is part of
 * the build: then the bytes of this line of text are as they were built.
 */
static bool is_foreign_int3(struct ruling *r)
{
    uintptr_t line = align_down(r->addr, PLAT_LINE_LEN);
    uint8_t bytes[PLAT_LINE_LEN];

    return check_of(r)->insn.kind == INSN_INT3 &&
           !recover_bytes(bytes, line, sizeof(bytes)) && !plat_text_is_built(line, bytes);
}

/* kind_reason - find the rule that forbids every instruction of this kind. Return:
 * PROBE_OK: there is none.
 */
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

static bool is_ambiguous(struct ruling *r)
{
    return insn_is_ambiguous(&check_of(r)->insn);
}

/* can_run_as_copy - can a copy with a jump back behind it run in place of @insn? STI
 * needs more care, because the CPU takes no interrupt right behind it: see boost.c.
 */
static bool can_run_as_copy(const struct insn *insn)
{
    return insn_can_boost(insn) || insn->kind == INSN_STI;
}

/* An instruction that a rule about its kind refuses breaks that rule only, although most
 * such instructions could not be moved either.
 */
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
    c->ruling.why = blacklist_why(behind); /* it may not be copied together with STI */
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

/* `sti; hlt` waits for an interrupt, which must not come between the two instructions. So
 * neither of them may carry a probe: a trap in front of the second one would let the CPU
 * take interrupts there.
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
    { PROBE_SHORT_OPERAND, is_ambiguous, false },
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
