/* compare_mnemonic.c - compares the names of instructions with those of Zydis. Host
 * only.
 */
#include "probes/insn/mnemonic.h"
#include "tests/insn/compare_parts.h"

#include <stdlib.h>
#include <string.h>

/* Pairs of names for the same instruction: our name, which is that of binutils, and the
 * name of Zydis.
 */
static const char *const pairs[][2] = {
    { "ae", "nb" },           { "e", "z" },        { "ne", "nz" },
    { "a", "nbe" },           { "ge", "nl" },      { "g", "nle" },
    { "lret", "ret" },        { "lcall", "call" }, { "ljmp", "jmp" },
    { "wbnoinvd", "wbinvd" },
};

static const char *zydis_name_of(const char *ours)
{
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (strcmp(ours, pairs[i][0]) == 0)
            return pairs[i][1];
    return ours;
}

/* stem_len - return the length of the part of @name in front of a condition; 0: no
 * condition.
 */
static size_t stem_len(const char *name)
{
    static const char *const stems[] = { "j", "set", "cmov" };

    for (size_t i = 0; i < sizeof(stems) / sizeof(stems[0]); i++)
        if (strncmp(name, stems[i], strlen(stems[i])) == 0)
            return strlen(stems[i]);
    return 0;
}

static bool is_same_name(const char *ours, const char *theirs)
{
    size_t stem = stem_len(ours);

    if (strcmp(ours, theirs) == 0 || strcmp(zydis_name_of(ours), theirs) == 0)
        return true;
    return stem && strncmp(ours, theirs, stem) == 0 &&
           strcmp(zydis_name_of(ours + stem), theirs + stem) == 0;
}

/* without_prefixes - return @name without prefixes, because Zydis does not put prefixes
 * into the name.
 */
static const char *without_prefixes(const char *name)
{
    const char *blank = strrchr(name, ' ');

    return blank ? blank + 1 : name;
}

/* is_odd_pause - is @insn 90 with f3 and REX.B? Processors exchange r8 and rax, but Zydis
 * shows a pause.
 */
static bool is_odd_pause(const struct insn *insn)
{
    return insn->map == 0 && insn->opcode == 0x90 && insn->rep == INSN_PREFIX_F3 &&
           insn->rex & 1;
}

static bool may_have_no_name(const struct insn *insn)
{
    switch (insn->class) {
    case INSN_CLASS_SYSTEM:
    case INSN_CLASS_VIRT:
    case INSN_CLASS_X87:
    case INSN_CLASS_SSE:
    case INSN_CLASS_AVX:
    case INSN_CLASS_AVX512:
    case INSN_CLASS_XOP:
        return true;
    default:
        return false;
    }
}

void compare_mnemonic(const struct insn *ours, const struct theirs *t)
{
    const char *theirs = ZydisMnemonicGetString(t->insn.mnemonic);
    char buf[INSN_MNEMONIC_MAX];
    const char *name = insn_mnemonic(buf, ours);

    if (name)
        ask(FACT_MNEMONIC, ours,
            is_odd_pause(ours) || is_same_name(without_prefixes(name), theirs));
    else
        ask(FACT_NAMED, ours, may_have_no_name(ours));
}
