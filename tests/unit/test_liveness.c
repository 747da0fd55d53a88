/* test_liveness.c - which status flags are still read: by hand, and against the solution of
 * the equations for whole functions made at random.
 */
#include "probes/jump/liveness.h"

#include "probes/insn/effects.h"
#include "tests/unit/port_fake.h"

#include <stdio.h>
#include <string.h>

#define ALL INSN_FLAGS_STATUS

static uint32_t live_at(uintptr_t addr)
{
    struct insn insn;
    uint32_t live;

    CHECK_EQ(insn_decode(&insn, (const uint8_t *)addr, INSN_MAX_LEN, addr), 0);
    plat_lock(PLAT_PROBES);
    live = liveness_flags(&insn);
    plat_unlock(PLAT_PROBES);
    return live;
}

static uint32_t live_in(const char *hex, bool compiled)
{
    uintptr_t addr;
    uint32_t live;

    fake_start();
    addr = fake_function("fn", hex);
    if (compiled)
        fake_compiled(addr);
    live = live_at(addr);
    fake_end();
    return live;
}

static void what_is_written_first_is_dead(void)
{
    CHECK_EQ(live_in("48 01 c8 c3", false), 0);          /* add */
    CHECK_EQ(live_in("48 89 c8 48 39 c8 c3", false), 0); /* mov, cmp */
}

static void what_is_read_first_is_live(void)
{
    CHECK_EQ(live_in("48 11 c8 c3", false), FLAGS_CF);          /* adc */
    CHECK_EQ(live_in("0f 94 c0 48 39 c8 c3", false), FLAGS_ZF); /* sete, cmp */
    CHECK_EQ(live_in("9c c3", false), ALL);                     /* pushf */
}

static void what_is_half_written_is_half_live(void)
{
    /* inc leaves CF to the adc */
    CHECK_EQ(live_in("ff c0 11 c8 c3", false), FLAGS_CF);
    /* a shift by cl may be by 0 */
    CHECK_EQ(live_in("d3 e0 c3", false), ALL);
}

static void both_ways_of_a_branch_count(void)
{
    /* jc over an adc: CF by the branch; behind it add, or adc and add */
    CHECK_EQ(live_in("72 02 11 c8 01 c8 c3", false), FLAGS_CF);
    /* js, to a sete on one way only */
    CHECK_EQ(live_in("78 03 01 c8 c3 0f 94 c0 01 c8 c3", false), FLAGS_SF | FLAGS_ZF);
}

static void what_may_fault_leaves_all_to_its_fixup(void)
{
    uintptr_t addr;

    fake_start();
    addr = fake_function("fn", "48 89 c8 48 03 03 c3"); /* mov, add from memory */
    CHECK_EQ(live_at(addr), 0);
    fake_fixup(addr + 3);
    CHECK_EQ(live_at(addr), ALL);
    CHECK_EQ(live_at(addr + 3), ALL);
    fake_end();
}

static void a_loop_ends(void)
{
    CHECK_EQ(live_in("48 89 c8 eb fb", false), 0);
    CHECK_EQ(live_in("48 89 c8 70 fb 48 01 c8 c3", false), FLAGS_OF);
}

static void only_compilers_keep_to_the_convention(void)
{
    CHECK_EQ(live_in("c3", true), 0);
    CHECK_EQ(live_in("c3", false), ALL);
    CHECK_EQ(live_in("e8 00 00 00 00 c3", true), 0);
    CHECK_EQ(live_in("e8 00 00 00 00 c3", false), ALL);
    CHECK_EQ(live_in("ff d0 c3", true), 0);
}

static void a_jump_out_is_a_call_only_to_an_entry(void)
{
    uintptr_t other, fn;
    char hex[32];

    fake_start();
    other = fake_function("other", "90 c3");
    fn = (fake_bytes_at("90") + 16) & ~(uintptr_t)15;
    fake_compiled(other);
    fake_compiled(fn);
    snprintf(hex, sizeof(hex), "eb %02x", (unsigned)(other - fn - 2) & 0xff);
    CHECK_EQ(fake_function("fn", hex), fn);
    CHECK_EQ(live_at(fn), 0);
    fn += 16;
    fake_compiled(fn);
    snprintf(hex, sizeof(hex), "eb %02x", (unsigned)(other + 1 - fn - 2) & 0xff);
    CHECK_EQ(fake_function("fn2", hex), fn);
    CHECK_EQ(live_at(fn), ALL);
    fake_end();
}

static void what_cannot_be_told_is_live(void)
{
    char hex[3 * 100 + 8] = "";

    CHECK_EQ(live_in("ff e0", true), ALL);    /* jmp *rax */
    CHECK_EQ(live_in("48 89 c8", true), ALL); /* the end of the function */
    CHECK_EQ(live_in("0f 0b", true), ALL);    /* ud2 */
    for (int i = 0; i < 99; i++)
        strcat(hex, "90 ");
    strcat(hex, "c3");
    CHECK_EQ(live_in(hex, true), ALL); /* too far */
}

/* ---- at random ---- */

static const char *const pool[] = {
    "48 01 c8",       /* add */
    "48 11 c8",       /* adc */
    "48 39 c8",       /* cmp */
    "48 89 c8",       /* mov */
    "48 8d 04 08",    /* lea */
    "ff c0",          /* inc */
    "0f 94 c0",       /* sete */
    "0f 4c c1",       /* cmovl */
    "d3 e0",          /* shl cl */
    "c1 e0 03",       /* shl 3 */
    "d1 d0",          /* rcl */
    "f5",             /* cmc */
    "f8",             /* clc */
    "9e",             /* sahf */
    "9f",             /* lahf */
    "f3 a6",          /* repe cmpsb */
    "0f a3 c8",       /* bt */
    "e8 00 00 00 00", /* call */
    "c3",             /* ret */
};

#define LEN_MAX 12

struct program {
    size_t len;
    struct insn insns[LEN_MAX];
    size_t targets[LEN_MAX]; /* index, of a branch */
    uint32_t live[LEN_MAX];
    bool compiled;
};

static bool is_branch(const struct insn *insn)
{
    return insn->kind == INSN_JCC || insn->kind == INSN_JMP_REL;
}

/* draw - the text of @p: a jump is short, to any of its instructions. */
static void draw(struct program *p, char *hex)
{
    const char *texts[LEN_MAX];
    unsigned opcodes[LEN_MAX];
    size_t at[LEN_MAX + 1] = { 0 };
    size_t used = 0;

    for (size_t i = 0; i < p->len; i++) {
        bool branch = unit_random() % 4 == 0;

        texts[i] = branch ? NULL : pool[unit_random() % (sizeof(pool) / sizeof(pool[0]))];
        opcodes[i] = unit_random() % 6 ? 0x70 + unit_random() % 16 : 0xeb;
        p->targets[i] = unit_random() % p->len;
        at[i + 1] = at[i] + (branch ? 2 : (strlen(texts[i]) + 1) / 3);
    }
    for (size_t i = 0; i < p->len; i++) {
        int64_t disp = (int64_t)at[p->targets[i]] - (int64_t)at[i] - 2;

        if (texts[i])
            used += (size_t)sprintf(hex + used, "%s ", texts[i]);
        else
            used += (size_t)sprintf(hex + used, "%02x %02x ", opcodes[i],
                                    (unsigned)disp & 0xff);
    }
}

static void decode_all(struct program *p, uintptr_t addr)
{
    for (size_t i = 0; i < p->len; i++) {
        CHECK_EQ(insn_decode(&p->insns[i], (const uint8_t *)addr, INSN_MAX_LEN, addr), 0);
        addr = insn_next(&p->insns[i]);
    }
}

static uint32_t live_behind(const struct program *p, size_t i)
{
    const struct insn *insn = &p->insns[i];
    uint32_t live = 0;

    if (is_branch(insn))
        live |= p->live[p->targets[i]];
    if (insn_falls_through(insn))
        live |= i + 1 < p->len ? p->live[i + 1] : ALL;
    return live;
}

static uint32_t live_before(const struct program *p, size_t i)
{
    const struct insn *insn = &p->insns[i];
    struct insn_effects e;

    if (insn->kind == INSN_RET || insn->kind == INSN_CALL_REL)
        return p->compiled ? 0 : ALL;
    insn_effects(insn, &e);
    return (e.flags_read & ALL) | (live_behind(p, i) & ~e.flags_killed);
}

static void solve(struct program *p)
{
    bool changed = true;

    memset(p->live, 0, sizeof(p->live));
    while (changed) {
        changed = false;
        for (size_t i = 0; i < p->len; i++) {
            uint32_t live = live_before(p, i);

            changed = changed || live != p->live[i];
            p->live[i] = live;
        }
    }
}

static void compare_one(unsigned *exact, unsigned *all)
{
    struct program p = { .len = 1 + unit_random() % LEN_MAX,
                         .compiled = unit_random() % 2 };
    char hex[LEN_MAX * 20] = "";
    uintptr_t addr;

    fake_start();
    draw(&p, hex);
    addr = fake_function("fn", hex);
    if (p.compiled)
        fake_compiled(addr);
    decode_all(&p, addr);
    solve(&p);
    for (size_t i = 0; i < p.len; i++) {
        uint32_t live = live_at(p.insns[i].addr);

        CHECK(!(p.live[i] & ~live)); /* never dead where it is live */
        *exact += live == p.live[i];
        ++*all;
    }
    fake_end();
}

static void it_is_never_wrong_and_nearly_always_exact(void)
{
    unsigned exact = 0, all = 0;

    for (int i = 0; i < 5000; i++)
        compare_one(&exact, &all);
    CHECK(exact > all / 100 * 99);
}

UNIT_TESTS(what_is_written_first_is_dead, what_is_read_first_is_live,
           what_is_half_written_is_half_live, both_ways_of_a_branch_count,
           what_may_fault_leaves_all_to_its_fixup, a_loop_ends,
           only_compilers_keep_to_the_convention, a_jump_out_is_a_call_only_to_an_entry,
           what_cannot_be_told_is_live, it_is_never_wrong_and_nearly_always_exact)
