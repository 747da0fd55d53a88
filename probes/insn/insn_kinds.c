/* insn_kinds.c - answer questions about a decoded instruction, and name its kind. Pure.
 */
#include "probes/insn/insn_kinds.h"

#include "probes/insn/insn.h"
#include "probes/insn/opcode_map.h"

#define TRAITS_ROW(name, traits) [INSN_##name] = traits,
#define KIND_NAME(name, traits) [INSN_##name] = #name,
#define CLASS_NAME(name) [INSN_CLASS_##name] = #name,

static const uint8_t traits_table[INSN_KIND_COUNT] = { INSN_KINDS(TRAITS_ROW) };
static const char *const kind_names[INSN_KIND_COUNT] = { INSN_KINDS(KIND_NAME) };
static const char *const class_names[INSN_CLASS_COUNT] = { INSN_CLASSES(CLASS_NAME) };

static bool has_trait(const struct insn *insn, unsigned trait)
{
    return traits_table[insn->kind] & trait;
}

bool insn_is_branch(const struct insn *insn)
{
    return has_trait(insn, INSN_GOES);
}

bool insn_is_call(const struct insn *insn)
{
    switch (insn->kind) {
    case INSN_CALL_REL:
    case INSN_CALL_REG:
    case INSN_CALL_MEM:
    case INSN_CALL_FAR:
        return true;
    default:
        return false;
    }
}

bool insn_has_target(const struct insn *insn)
{
    switch (insn->kind) {
    case INSN_CALL_REL:
    case INSN_JMP_REL:
    case INSN_JCC:
    case INSN_LOOP:
    case INSN_JRCXZ:
    case INSN_XBEGIN:
        return true;
    default:
        return false;
    }
}

bool insn_falls_through(const struct insn *insn)
{
    return !has_trait(insn, INSN_ENDS);
}

bool insn_is_near_branch(const struct insn *insn)
{
    switch (insn->kind) {
    case INSN_CALL_REL:
    case INSN_CALL_REG:
    case INSN_CALL_MEM:
    case INSN_JMP_REL:
    case INSN_JMP_REG:
    case INSN_JMP_MEM:
    case INSN_JCC:
    case INSN_LOOP:
    case INSN_JRCXZ:
    case INSN_RET:
        return true;
    default:
        return false;
    }
}

/* The engine does not ask which processor or emulator it runs on. */
bool insn_is_ambiguous(const struct insn *insn)
{
    return insn->rex_lost || (insn->opsize66 && insn_is_near_branch(insn));
}

bool insn_can_move(const struct insn *insn)
{
    return has_trait(insn, INSN_MOVES) && !insn_is_ambiguous(insn);
}

bool insn_can_boost(const struct insn *insn)
{
    return has_trait(insn, INSN_BOOSTS) && insn_can_move(insn);
}

bool insn_may_fault(const struct insn *insn)
{
    uint32_t use = opcode_op_facts(insn->op)->use;

    if (use & (U_STACK | U_MEM | U_ANY))
        return true;
    if (opcode_form_facts(insn->form)->imm == I_MOFFS)
        return true;
    return insn->has_mem && !(use & U_NOMEM);
}

const char *insn_kind_name(enum insn_kind kind)
{
    return (unsigned)kind < INSN_KIND_COUNT ? kind_names[kind] : "?";
}

const char *insn_class_name(enum insn_class class)
{
    return (unsigned)class < INSN_CLASS_COUNT ? class_names[class] : "?";
}
