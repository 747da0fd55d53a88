/* compare.c - asks about one instruction all that Zydis can answer, too, and counts the
 * answers.
 */
#include "tests/insn/compare.h"

#include "kernel/base/err.h"
#include "probes/insn/insn.h"
#include "tests/insn/compare_parts.h"
#include "tests/insn/explain.h"

#include <Zydis/Zydis.h>
#include <string.h>

#define EXAMPLES 8

struct example {
    uint8_t bytes[INSN_MAX_LEN];
    size_t len;
};

struct tally {
    const char *text;
    unsigned long asked, wrong;
    struct example examples[EXAMPLES];
};

#define FACT_ROW(name, text) [FACT_##name] = { text, 0, 0, { { { 0 }, 0 } } },
static struct tally tallies[FACT_COUNT] = { FACTS(FACT_ROW) };
static ZydisDecoder decoder;

void compare_init(void)
{
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

void fact_count(enum fact fact, bool holds, const uint8_t *bytes, size_t len)
{
    struct tally *t = &tallies[fact];
    struct example *e = &t->examples[t->wrong % EXAMPLES];

    t->asked++;
    if (holds)
        return;
    t->wrong++;
    e->len = len < INSN_MAX_LEN ? len : INSN_MAX_LEN;
    memcpy(e->bytes, bytes, e->len);
}

static void tally_report(const struct tally *t, int number)
{
    printf("%s %d - %s (%lu of %lu)\n", t->wrong ? "not ok" : "ok", number, t->text,
           t->asked - t->wrong, t->asked);
    for (size_t i = 0; i < EXAMPLES && i < t->wrong; i++) {
        printf("# for example");
        for (size_t k = 0; k < t->examples[i].len; k++)
            printf(" %02x", t->examples[i].bytes[k]);
        printf("\n");
    }
}

int compare_report(int first)
{
    int wrong = 0;

    for (int i = 0; i < FACT_COUNT; i++) {
        tally_report(&tallies[i], first + i);
        wrong += tallies[i].wrong != 0;
    }
    explain_report();
    return wrong;
}

/* no_base_repair - correct a mistake of Zydis 4.0. If a SIB byte says "no base", and
 * there are REX.B and a 67 prefix, Zydis shows r13d and no displacement. objdump and the
 * manual do not.
 */
static void no_base_repair(struct theirs *t)
{
    const struct ZydisDecodedInstructionRaw_ *raw = &t->insn.raw;

    if (!(t->insn.attributes & ZYDIS_ATTRIB_HAS_SIB))
        return;
    if (raw->modrm.mod != 0 || raw->sib.base != 5)
        return;
    for (unsigned i = 0; i < t->insn.operand_count; i++) {
        ZydisDecodedOperand *o = &t->operands[i];

        if (o->encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM)
            continue;
        o->mem.base = ZYDIS_REGISTER_NONE;
        o->mem.disp.has_displacement = true;
        o->mem.disp.value = raw->disp.value;
    }
}

static bool zydis_decode(struct theirs *t, const uint8_t *bytes, size_t avail)
{
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder, bytes, avail, &t->insn, t->operands)))
        return false;
    no_base_repair(t);
    return true;
}

static void compare_shorter(const struct insn *ours, const uint8_t *bytes)
{
    struct insn part;

    for (size_t len = 0; len < ours->len; len++)
        ask(FACT_SHORT, ours, insn_decode(&part, bytes, len, ours->addr) == -EFAULT);
    ask(FACT_SHORT, ours,
        insn_decode(&part, bytes, ours->len, ours->addr) == 0 && part.len == ours->len &&
            part.kind == ours->kind);
}

static void compare_facts(const struct insn *ours, const struct theirs *t, uint64_t seed)
{
    ask(FACT_KIND, ours, ours->kind == zydis_kind(t));
    compare_operands(ours, t, seed);
    compare_mnemonic(ours, t);
    compare_effects(ours, t);
}

size_t compare_window(const uint8_t *bytes, size_t avail, uintptr_t addr, uint64_t seed)
{
    struct insn ours;
    struct theirs t;
    bool decoded = insn_decode(&ours, bytes, avail, addr) == 0;
    bool known = zydis_decode(&t, bytes, avail);

    if (known && !decoded)
        fact_count(FACT_ACCEPT, explain_refused(&t.insn), bytes, avail);
    if (!decoded)
        return 0;
    compare_shorter(&ours, bytes);
    compare_moved(&ours, seed);
    if (!known) {
        ask(FACT_REFUSE, &ours, explain_accepted(&decoder, &ours));
        return 0;
    }
    fact_count(FACT_LENGTH, ours.len == t.insn.length, bytes, avail);
    if (ours.len != t.insn.length)
        return 0;
    compare_facts(&ours, &t, seed);
    return ours.len;
}

void compare_objdump(const uint8_t *bytes, size_t len, uintptr_t addr, const char *text)
{
    struct insn ours;
    bool agrees = insn_decode(&ours, bytes, len, addr) == 0 && ours.len == len;

    fact_count(FACT_OBJDUMP, agrees || explain_objdump(&decoder, bytes, len, text), bytes,
               len);
    if (agrees)
        compare_window(bytes, len, addr, addr * 0x9e3779b97f4a7c15u);
}
