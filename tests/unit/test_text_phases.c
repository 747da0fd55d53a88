/* test_text_phases.c - tests of the record of phases: which bytes each phase of a change
 * has stored, and when each CPU was synchronised.
 */
#include "probes/text/text_phases.h"

#include "probes/core/text_poke.h"
#include "probes/text/text_history.h"
#include "tests/unit/port_fake.h"

static uintptr_t at;
static struct text_change change;
static struct text_phase phase;
static size_t off;

static void begin(void)
{
    fake_start();
    fake.cpus = 4;
    fake.ns = 1000;
    at = fake_bytes_at("48 c7 c0 01 90 90 90 90");
}

static void end(void)
{
    static const uint8_t original[] = { 0x48, 0xc7, 0xc0, 0x01 };

    for (size_t i = 0; i < sizeof(original); i++)
        fake_text_poke(at + i, original[i]);
    fake_end();
}

static void poke(struct text_poke *pokes, size_t count)
{
    plat_lock(PLAT_TEXT);
    text_poke_batch(pokes, count);
    text_history_find(at, at + 1, &change, 1);
    plat_unlock(PLAT_TEXT);
}

static bool get(uint64_t number)
{
    bool known;

    plat_lock(PLAT_TEXT);
    known = text_phases_get(number, &phase);
    plat_unlock(PLAT_TEXT);
    return known;
}

static size_t stored(unsigned n)
{
    CHECK(get(change.first_phase + n));
    return text_change_in(&change, phase.step, phase.level, &off);
}

UNIT_TEST(three_phases_and_all_answers)
{
    struct text_poke p = { .addr = at, .len = 4, .bytes = { 0xe9, 0xcc, 2, 3 } };

    fake.halted_cpu = 2;
    poke(&p, 1);
    CHECK_EQ(change.phases, 3);
    CHECK_BYTES(change.old, "48 c7 c0 01");
    CHECK(stored(0) == 1 && off == 0 && phase.step == TEXT_POKE_GUARD);
    CHECK(stored(1) == 3 && off == 1 && phase.step == TEXT_POKE_TAIL);
    CHECK(stored(2) == 1 && off == 0 && phase.step == TEXT_POKE_FIRST);
    CHECK(phase.first == at && phase.count == 1 && phase.ns == 1000);
    CHECK_EQ(phase.cpus, 4);
    CHECK_EQ(phase.answered[0], 0);
    CHECK_EQ(phase.answered[1], 1);
    CHECK_EQ(phase.answered[2], TEXT_PHASE_HALTED);
    CHECK_EQ(phase.answered[3], 3);
}

static void come_late(const struct text_phase *p)
{
    if (!p->cpus)
        fake.ns += UINT64_C(1) << 40;
}

UNIT_TEST(a_late_answer_is_an_answer)
{
    struct text_poke p = { .addr = at, .len = 1, .bytes = { 0xcc } };

    fake_watch_phases(come_late);
    poke(&p, 1);
    fake_watch_phases(NULL);
    CHECK(get(change.first_phase));
    CHECK_EQ(phase.answered[0], TEXT_PHASE_HALTED - 1);
}

UNIT_TEST(an_armed_site_has_its_guard)
{
    struct text_poke p = { .addr = at, .len = 4, .bytes = { 0xe9, 1, 2, 3 } };

    fake_text_poke(at, 0xcc);
    poke(&p, 1);
    CHECK_EQ(change.phases, 2);
    CHECK(stored(0) == 3 && phase.step == TEXT_POKE_TAIL);
    CHECK(stored(1) == 1 && phase.step == TEXT_POKE_FIRST);
}

UNIT_TEST(a_phase_may_be_anothers)
{
    struct text_poke p[] = { { .len = 1, .bytes = { 0xcc } },
                             { .len = 3, .bytes = { 0xe9, 1, 2 } } };

    p[0].addr = at;
    p[1].addr = at + 1;
    poke(p, 2);
    CHECK_EQ(change.phases, 3);
    CHECK(stored(0) == 0 && phase.step == TEXT_POKE_GUARD);
    CHECK(stored(1) == 0 && phase.step == TEXT_POKE_TAIL);
    CHECK(stored(2) == 1 && phase.step == TEXT_POKE_FIRST && phase.count == 2);
}

UNIT_TEST(one_byte_has_no_guard)
{
    struct text_poke p = { .addr = at, .len = 1 };

    poke(&p, 1);
    CHECK_EQ(change.phases, 1);
    CHECK(stored(0) == 1 && off == 0 && phase.step == TEXT_POKE_FIRST);
}

UNIT_TEST(the_oldest_are_forgotten)
{
    struct text_poke p = { .addr = at, .len = 1, .bytes = { 0xcc } };
    uint64_t before = text_phases_count();

    for (unsigned i = 0; i <= TEXT_PHASES_LEN; i++) {
        p.bytes[0] = i % 2 ? 0x48 : 0xcc;
        poke(&p, 1);
    }
    CHECK_EQ(text_phases_count() - before, TEXT_PHASES_LEN + 1);
    CHECK(!get(before));
    CHECK(get(before + 1));
    CHECK(!get(text_phases_count()));
}

UNIT_TESTS_BETWEEN(begin, end)
