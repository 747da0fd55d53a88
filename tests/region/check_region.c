/* check_region.c - plans a region at every instruction of a kernel, from its file, and
 * checks the plans.
 *
 *     check_region FILE
 *
 * The engine's own rules decide where one jump may displace several instructions. For
 * each region that they allow, this program checks two facts. It decodes all of the text
 * again: no instruction may branch or return into the jump. And the copies must mean the
 * same as the originals. The output is TAP, with the tables of docs/region.md as
 * comments.
 */
#include "probes/core/life.h"
#include "probes/insn/encode.h"
#include "probes/jump/platform_jump.h"
#include "probes/region/region.h"
#include "tests/region/port_elf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ARENA UINT64_C(0xffffffff7e000000)
#define LENGTHS 6 /* 1, 2, 3, 4, 5 and more; 0 is not used */

static uintptr_t text_start, text_end;
static uint8_t *entered; /* for each byte of text: does a branch or return lead to it? */

static struct {
    size_t asked, allowed;
    size_t by[LENGTHS][2];
    size_t refused[PROBE_REASON_COUNT];
    size_t entries, entries_allowed;
    size_t problems, most_copied;
    double seconds;
} tally;

static int tests, failures;

static void test_report(bool holds, const char *what)
{
    printf("%s %d - %s\n", holds ? "ok" : "not ok", ++tests, what);
    failures += !holds;
}

static void problem(const struct region *r, const char *what)
{
    if (tally.problems++ < 10)
        printf("# %#lx, %u instructions: %s\n", r->addr, r->count, what);
}

/* ---- the addresses that instructions lead to ---- */

static void enter(uintptr_t addr)
{
    if (addr >= text_start && addr < text_end)
        entered[addr - text_start] = 1;
}

static void note_branch(const struct insn *insn, void *arg UNUSED)
{
    if (insn_has_target(insn))
        enter(insn->target);
    if (insn_is_call(insn))
        enter(insn_next(insn));
}

static void note_function(const struct plat_symbol *function, void *arg)
{
    enter(function->start);
    boundary_for_each(function, note_branch, arg);
}

static void is_entered_check(const struct region *r)
{
    for (uintptr_t at = r->addr + 1; at < r->addr + REGION_JUMP_LEN; at++)
        if (at < text_end && entered[at - text_start])
            problem(r, "a branch leads there");
}

/* ---- checks of the copies ---- */

static bool means_the_same(const struct insn *a, const struct insn *b)
{
    if (a->kind != b->kind || a->rip_relative != b->rip_relative)
        return false;
    if (insn_has_target(a))
        return a->target == b->target && a->cond == b->cond;
    if (a->rip_relative)
        return a->mem == b->mem && a->opcode == b->opcode && a->reg == b->reg;
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static bool call_is_the_same(const struct insn *call, const struct insn *push,
                             const uint8_t *behind)
{
    struct insn jmp;

    return push->kind == INSN_PUSH_IMM && (uintptr_t)push->imm == insn_next(call) &&
           !insn_decode(&jmp, behind, INSN_JMP32_LEN, insn_next(push)) &&
           jmp.kind == INSN_JMP_REL && jmp.target == call->target;
}

static bool copy_is_the_same(const struct region *r, size_t i, const uint8_t *code,
                             uintptr_t to)
{
    size_t off = r->copies[i];
    struct insn was, is;

    if (insn_decode(&was, r->bytes + r->starts[i], INSN_MAX_LEN, r->addr + r->starts[i]))
        return false;
    if (i == 0 && r->copies[1] == 0)
        return r->count == 1 || !insn_can_move(&was);
    if (insn_decode(&is, code + off, REGION_COPY_MAX - off, to + off))
        return false;
    if (was.kind == INSN_CALL_REL)
        return call_is_the_same(&was, &is, code + off + is.len);
    if (was.kind == INSN_LOOP || was.kind == INSN_JRCXZ)
        return is.kind == was.kind; /* tests/unit/test_relocate.c checks the rest */
    return means_the_same(&was, &is);
}

static void copies_check(struct region *r)
{
    uint8_t code[REGION_COPY_MAX + INSN_MAX_LEN] = { 0 };
    uintptr_t to = ARENA + r->addr % 4096 * 64;
    struct probe_reject why;
    struct insn back;
    size_t len;

    if (region_copy(r, to, code, &len, &why)) {
        problem(r, why.why);
        return;
    }
    for (size_t i = 0; i < r->count; i++)
        if (!copy_is_the_same(r, i, code, to))
            problem(r, "a copy means something else");
    if (r->copies[r->count] < len &&
        (insn_decode(&back, code + r->copies[r->count], INSN_JMP32_LEN,
                     to + r->copies[r->count]) ||
         back.target != r->addr + r->len))
        problem(r, "the way back leads elsewhere");
    if (len > tally.most_copied)
        tally.most_copied = len;
}

/* ---- every instruction ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool plan(uintptr_t addr, struct region *r)
{
    struct probe_reject why = { 0 };
    double start = now();
    int err = region_plan(addr, r, &why);

    tally.seconds += now() - start;
    tally.refused[why.reason] += err != 0;
    return !err;
}

static void ask(const struct insn *insn, void *arg)
{
    const struct plat_symbol *function = arg;
    struct probe_reject why;
    struct insn checked;
    struct region r;
    bool allowed;

    if (kprobe_check(insn->addr, &checked, &why))
        return;
    allowed = plan(insn->addr, &r);
    tally.asked++;
    tally.allowed += allowed;
    tally.by[insn->len < LENGTHS ? insn->len : LENGTHS - 1][allowed]++;
    tally.entries += insn->addr == function->start;
    tally.entries_allowed += allowed && insn->addr == function->start;
    if (!allowed)
        return;
    is_entered_check(&r);
    copies_check(&r);
}

static void ask_function(const struct plat_symbol *function, void *arg UNUSED)
{
    struct plat_symbol copy = *function;

    boundary_for_each(&copy, ask, &copy);
}

/* ---- tables ---- */

static double percent(size_t part, size_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* opaque_print - print the number of targets and the size of opaque text, as the build
 * has found them.
 */
static void opaque_print(void)
{
    struct plat_targets t;
    size_t bytes = 0;

    plat_targets(0, &t);
    for (size_t i = 0; i < t.opaque_count; i++)
        bytes += t.opaque[i].end - t.opaque[i].start;
    printf("#   %zu addresses are led to; of %zu bytes of text %.2f %% are opaque\n",
           t.count, text_end - text_start, percent(bytes, text_end - text_start));
}

static void tally_print(void)
{
    static const char *const lengths[LENGTHS] = { "", "1", "2", "3", "4", ">=5" };

    printf("# regions: %zu of %zu instructions (%.2f %%), %zu of %zu entries (%.2f %%), "
           "%.2f us each\n",
           tally.allowed, tally.asked, percent(tally.allowed, tally.asked),
           tally.entries_allowed, tally.entries,
           percent(tally.entries_allowed, tally.entries),
           1e6 * tally.seconds / (double)tally.asked);
    for (unsigned len = 1; len < LENGTHS; len++)
        printf("#   %3s bytes  %6zu of %6zu (%.2f %%)\n", lengths[len], tally.by[len][1],
               tally.by[len][0] + tally.by[len][1],
               percent(tally.by[len][1], tally.by[len][0] + tally.by[len][1]));
    for (unsigned reason = 0; reason < PROBE_REASON_COUNT; reason++)
        if (tally.refused[reason])
            printf("#   %-16s %6zu (%.2f %%)  %s\n", probe_reason_name(reason),
                   tally.refused[reason], percent(tally.refused[reason], tally.asked),
                   probe_reason_text(reason));
    printf("#   the longest copies take %zu bytes of %d\n", tally.most_copied,
           REGION_COPY_MAX);
    opaque_print();
}

int main(int argc, char **argv)
{
    if (argc != 2 || !elf_load(argv[1])) {
        printf("Bail out! usage: check_region FILE\n");
        return 2;
    }
    elf_text(&text_start, &text_end);
    entered = calloc(text_end - text_start, 1);
    if (!entered || elf_take_marks())
        return 2;
    elf_functions(note_function, NULL);
    elf_functions(ask_function, NULL);
    tally_print();
    test_report(tally.problems == 0, "regions are what they say");
    test_report(percent(tally.allowed, tally.asked) > 85, "85 % have one");
    test_report(percent(tally.entries_allowed, tally.entries) > 95,
                "95 % of the entries have one");
    printf("1..%d\n", tests);
    return failures != 0;
}
