/* check.c - stage 2: may this address carry a probe? And if not, by which rule?
 *
 * Everything that can be refused is refused here or in prepare.c; from arming on nothing
 * can fail.
 */
#include "kernel/base/err.h"
#include "probes/life.h"
#include "probes/text/insn_slot.h"

/* Kinds that never carry a probe, and the rule that says so. */
static enum probe_reason kind_reason(const struct insn *insn)
{
    switch (insn->kind) {
    case INSN_INT3:
    case INSN_INT1:
    case INSN_INTN:
    case INSN_UD:
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
    case INSN_WRITE_MSR:
    case INSN_MOV_TO_CR:
    case INSN_MOV_TO_DR:
    case INSN_LGDT:
    case INSN_LIDT:
    case INSN_LLDT:
    case INSN_LTR:
    case INSN_SHADOW_STACK:
        return PROBE_STATE_CHANGE;
    case INSN_HLT:
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

/* STI may be followed by a jump back as well: what its shadow must cover instead is for
 * boost.c to see to.
 */
static bool can_run_as_copy(const struct insn *insn)
{
    return insn_can_boost(insn) || insn->kind == INSN_STI;
}

int check_insn(const struct insn *insn, struct probe_reject *why)
{
    enum probe_reason reason = kind_reason(insn);

    if (reason != PROBE_OK)
        return probe_refuse(why, reason, insn->addr);
    if (insn_is_near_branch(insn) && insn->opsize66)
        return probe_refuse(why, PROBE_SHORT_OPERAND, insn->addr);
    if (!emulate_supports(insn) && !can_run_as_copy(insn))
        return probe_refuse(why, PROBE_CANNOT_MOVE, insn->addr);
    return 0;
}

/* The wake-up that `sti; hlt` waits for must not come between the two. */
static int check_sti(const struct insn *insn, const struct plat_symbol *function,
                     struct probe_reject *why)
{
    struct insn next;

    if (insn->kind != INSN_STI || insn_next(insn) >= function->start + function->size)
        return 0;
    if (boundary_find(insn_next(insn), function, &next, NULL) || next.kind != INSN_HLT)
        return 0;
    return probe_refuse(why, PROBE_STI_HLT, next.addr);
}

static int check_place(uintptr_t addr, struct probe_reject *why)
{
    if (plat_exec_contains(addr))
        return probe_refuse(why, PROBE_OWN_CODE, addr);
    if (!plat_text_contains(addr, 1))
        return probe_refuse(why, PROBE_NOT_TEXT, addr);
    if (plat_is_entry(addr))
        return probe_refuse(why, PROBE_ENTRY_CODE, addr);
    if (blacklist_contains(addr))
        return probe_refuse(why, PROBE_BLACKLISTED, addr);
    return 0;
}

int kprobe_check(uintptr_t addr, struct insn *insn, struct probe_reject *why)
{
    struct plat_symbol function;
    int err = check_place(addr, why);

    if (err)
        return err;
    if (plat_symbol_at(addr, &function))
        return probe_refuse(why, PROBE_NO_FUNCTION, addr);
    err = boundary_find(addr, &function, insn, why);
    if (err)
        return err;
    err = check_insn(insn, why);
    if (err)
        return err;
    return check_sti(insn, &function, why);
}
