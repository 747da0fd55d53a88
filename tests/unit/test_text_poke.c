/* test_text_poke.c - tests of text_poke_batch(): the order in which bytes are written,
 * and that a CPU never executes a mixture of old and new bytes.
 */
#include "kernel/base/bits.h"
#include "probes/core/text_poke.h"
#include "probes/text/text_engine.h"
#include "probes/text/text_phases.h"
#include "probes/text/text_whole.h"

#include "tests/unit/port_fake.h"

/* ---- the text after each step ---- */

#define SEEN_MAX 16
#define SEEN_LEN 24

static struct {
    uint8_t bytes[SEEN_LEN];
    enum text_poke_step step;
    unsigned level;
} seen[SEEN_MAX];
static size_t seen_count;
static uintptr_t looked_at;

static void look(const struct text_phase *p)
{
    if (!p->cpus || seen_count == SEEN_MAX)
        return;
    seen[seen_count].step = p->step;
    seen[seen_count].level = p->level;
    memcpy(seen[seen_count++].bytes, (const void *)looked_at, SEEN_LEN);
}

static void batch(struct text_poke *pokes, size_t count)
{
    plat_lock(PLAT_TEXT);
    text_poke_batch(pokes, count);
    plat_unlock(PLAT_TEXT);
}

/* watched - as batch(), and save the bytes at @at after each step in seen[]. */
static void watched(struct text_poke *pokes, size_t count, uintptr_t at)
{
    looked_at = at;
    seen_count = 0;
    fake.syncs = 0;
    fake_log_start(0);
    fake_watch_phases(look);
    batch(pokes, count);
    fake_watch_phases(NULL);
}

#define CHECK_SEEN(i, its_step, its_level, hex)                                          \
    do {                                                                                 \
        CHECK(seen_count > (i));                                                         \
        CHECK_EQ(seen[i].step, TEXT_POKE_##its_step);                                    \
        CHECK_EQ(seen[i].level, its_level);                                              \
        CHECK_BYTES(seen[i].bytes, hex);                                                 \
    } while (0)

/* ---- single cases ---- */

#define OLD "48 c7 c0 01 00 00 00 90 90 90 90 90 90 90 90 90 90 90 90 90 90 90 90 90"

static uintptr_t at; /* OLD lies there */

static void begin(void)
{
    fake_start();
    at = fake_bytes_at(OLD);
}

/* end - put the original bytes back, and end the test. */
static void end(void)
{
    fake_text_put(at, OLD);
    fake_end();
}

UNIT_TEST(int3_then_the_tail_then_the_first_byte)
{
    struct text_poke p = { .addr = at,
                           .len = 7,
                           .bytes = { 0xe9, 0x12, 0x34, 0x56, 0x78, 0x90, 0x90 } };

    watched(&p, 1, at);
    CHECK_EQ(seen_count, 3);
    CHECK_SEEN(0, GUARD, 0, "cc c7 c0 01 00 00 00 90");
    CHECK_SEEN(1, TAIL, 0, "cc 12 34 56 78 90 90 90");
    CHECK_SEEN(2, FIRST, 0, "e9 12 34 56 78 90 90 90");
    CHECK_EQ(fake.syncs, 3);
}

UNIT_TEST(what_is_there_already_is_not_written)
{
    struct text_poke p = { .addr = at, .len = 1, .bytes = { 0x48 } };

    watched(&p, 1, at);
    CHECK_STR(fake_log(), "");
    batch(NULL, 0);
    CHECK_EQ(fake.syncs, 0);
}

UNIT_TEST(one_store_makes_a_whole_change)
{
    struct text_poke p = { .addr = at, .len = 2, .bytes = { 0xeb, 0x05 } };

    looked_at = at;
    seen_count = 0;
    fake_watch_phases(look);
    plat_lock(PLAT_TEXT);
    text_poke_whole(&p);
    plat_unlock(PLAT_TEXT);
    fake_watch_phases(NULL);
    CHECK_EQ(seen_count, 1);
    CHECK_SEEN(0, WHOLE, 0, "eb 05 c0 01");
}

UNIT_TEST(a_jump_made_of_the_bytes_behind_it_becomes_visible_last)
{
    struct text_poke p[] = {
        { .addr = at, .len = 2, .new_span = 5, .bytes = { 0xe9, 0x01 } },
        { .addr = at + 2, .len = 2, .new_span = 6, .bytes = { 0x2e, 0xe9 } },
        { .addr = at + 4, .len = 5, .bytes = { 0xe9, 0x03, 0x03, 0x03, 0x03 } },
        { .addr = at + 9, .len = 3, .new_span = 5, .bytes = { 0xe9, 0x04, 0x04 } },
    };

    watched(p, 4, at);
    CHECK_EQ(seen_count, 5);
    CHECK_SEEN(0, GUARD, 0, "cc c7 cc 01 cc 00 00 90 90 cc 90 90");
    CHECK_SEEN(1, TAIL, 0, "cc 01 cc e9 cc 03 03 03 03 cc 04 04");
    CHECK_SEEN(2, FIRST, 0, "cc 01 cc e9 e9 03 03 03 03 e9 04 04");
    CHECK_SEEN(3, FIRST, 1, "cc 01 2e e9 e9 03 03 03 03 e9 04 04");
    CHECK_SEEN(4, FIRST, 2, "e9 01 2e e9 e9 03 03 03 03 e9 04 04");
}

UNIT_TEST(and_is_the_first_to_go)
{
    struct text_poke p[] = {
        { .addr = at, .len = 2, .old_span = 5, .bytes = { 0x50, 0x51 } },
        { .addr = at + 2, .len = 2, .old_span = 6, .bytes = { 0x52, 0x53 } },
        { .addr = at + 4, .len = 5, .bytes = { 0x54, 0x55, 0x56, 0x57, 0x58 } },
    };

    watched(p, 3, at);
    CHECK_EQ(seen_count, 5);
    CHECK_SEEN(0, GUARD, 0, "cc c7 c0 01 00 00 00 90 90 90");
    CHECK_SEEN(1, GUARD, 1, "cc c7 cc 01 00 00 00 90 90 90");
    CHECK_SEEN(2, GUARD, 2, "cc c7 cc 01 cc 00 00 90 90 90");
    CHECK_SEEN(3, TAIL, 0, "cc 51 cc 53 cc 55 56 57 58 90");
    CHECK_SEEN(4, FIRST, 0, "50 51 52 53 54 55 56 57 58 90");
}

UNIT_TEST(one_byte_is_guarded_where_what_it_means_changes_too)
{
    struct text_poke p[] = {
        { .addr = at, .len = 1, .old_span = 5, .bytes = { 0x50 } },
        { .addr = at + 1, .len = 1, .bytes = { 0x51 } },
    };

    watched(p, 2, at);
    CHECK_EQ(seen_count, 2);
    CHECK_SEEN(0, GUARD, 0, "cc c7 c0");
    CHECK_SEEN(1, FIRST, 0, "50 51 c0");
}

/* ---- what is a bug ---- */

static bool is_bug(struct text_poke *pokes, size_t count)
{
    bool bug;

    plat_lock(PLAT_TEXT);
    bug = FAKE_BUG(text_poke_batch(pokes, count));
    plat_unlock(PLAT_TEXT);
    return bug;
}

UNIT_TEST(breaking_the_rules_is_a_bug)
{
    struct text_poke order[] = { { .addr = at + 8, .len = 1 }, { .addr = at, .len = 1 } },
                     overlap[] = { { .addr = at, .len = 3 },
                                   { .addr = at + 2, .len = 1 } },
                     empty = { .addr = at }, large = { .addr = at, .len = 16 },
                     wide = { .addr = at, .len = 1, .new_span = 16 },
                     nowhere = { .addr = fake_text_end(), .len = 1 },
                     fine = { .addr = at, .len = 1, .bytes = { 0x48 } };

    CHECK(is_bug(order, 2));
    CHECK(is_bug(overlap, 2));
    CHECK(is_bug(&empty, 1));
    CHECK(is_bug(&large, 1));
    CHECK(is_bug(&wide, 1));
    fake_bad(fake_text_end(), 1);
    CHECK(is_bug(&nowhere, 1));
    CHECK(!is_bug(&fine, 1));
    CHECK(FAKE_BUG(text_poke_batch(&fine, 1)));
    CHECK(fake_text_is_original());
}

UNIT_TEST(a_cpu_that_is_not_synchronised_is_a_bug)
{
    struct text_poke p = { .addr = at, .len = 2, .bytes = { 0xeb, 0x00 } };

    fake.cpus = 4;
    fake.deaf = 3;
    CHECK(is_bug(&p, 1));
    CHECK_BYTES((const uint8_t *)at, "cc c7"); /* the bug is found after the guard */
    fake.deaf = 0;
    CHECK(!is_bug(&p, 1));
    CHECK_BYTES((const uint8_t *)at, "eb 00");
}

/* ---- many ---- */

#define MANY 60000

static char hex_of_nops[3 * 2 * MANY + 1];

static uintptr_t start_with_nops(size_t len)
{
    for (size_t i = 0; i < len; i++)
        memcpy(hex_of_nops + 3 * i, "90 ", 4);
    return fake_bytes_at(hex_of_nops);
}

static void end_with_nops(uintptr_t at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        fake_text_poke(at + i, 0x90);
}

static void independent_jumps_by(const struct text_engine *engine)
{
    uintptr_t at = start_with_nops(2 * MANY);
    size_t count = 2 * MANY / 7, good = 0;
    struct text_poke *p = calloc(count, sizeof(*p));

    for (size_t i = 0; i < count; i++)
        p[i] = (struct text_poke){ .addr = at + 7 * i,
                                   .len = 5,
                                   .bytes = { 0xe9, 1, 2, 3, (uint8_t)i } };
    text_engine_set(engine);
    fake.fetches_words = true;
    fake.syncs = 0;
    batch(p, count);
    CHECK_EQ(fake.syncs, bit_count(engine->steps));
    for (size_t i = 0; i < count; i++)
        good += !memcmp((const void *)p[i].addr, p[i].bytes, 5);
    CHECK_EQ(good, count);
    free(p);
    end_with_nops(at, 2 * MANY);
}

UNIT_TEST(independent_jumps_take_each_step_once)
{
    for (size_t i = 0; i < text_engine_count; i++)
        independent_jumps_by(text_engines[i]);
}

/* ---- random batches ---- */

/* A batch changes instructions of random lengths, which extend over each other at random.
 * At each synchronisation the test checks each instruction that a CPU could have executed
 * since the previous one.
 */
#define ROUNDS 1000
#define TEXT 160
#define LEN_MAX (TEXT + INSN_MAX_LEN)

static struct text_poke *all;
static size_t all_count;
static uint8_t before[LEN_MAX], oldest[LEN_MAX], newest[LEN_MAX];
static uintptr_t text_at;
static unsigned torn;

/* The writes since the last synchronisation, and which bytes each has changed. */
static struct {
    size_t first, end;
    bool is_word; /* one store, of a word that CPUs fetch in one piece */
} written[LEN_MAX];
static size_t written_count;
static uint8_t latest[LEN_MAX];

static void note_write(uintptr_t addr, size_t len)
{
    size_t first = addr - text_at, end = first + len;
    const uint8_t *now = (const uint8_t *)text_at;

    while (first < end && latest[first] == now[first])
        first++;
    while (first < end && latest[end - 1] == now[end - 1])
        end--;
    written[written_count].first = first;
    written[written_count].end = end;
    written[written_count++].is_word =
        fake.fetches_words && len <= 8 && !(len & (len - 1)) && !(addr % len);
    memcpy(latest, now, sizeof(latest));
}

static bool differs(const uint8_t *a, const uint8_t *b, size_t off, size_t len)
{
    return memcmp(a + off, b + off, len) != 0;
}

/* is_at_once - has no CPU seen a part of the bytes that differ in @len bytes at @off? It is
 * so if it is one byte; or if one store of a word has changed all of them.
 */
static bool is_at_once(const uint8_t *now, size_t off, size_t len)
{
    size_t first = off, end = off + len, writes = 0;
    bool is_word = true;

    while (before[first] == now[first])
        first++;
    while (before[end - 1] == now[end - 1])
        end--;
    for (size_t i = 0; i < written_count; i++) {
        if (written[i].end <= first || written[i].first >= end)
            continue;
        writes++;
        is_word &= written[i].is_word;
    }
    return first + 1 == end || (writes == 1 && is_word);
}

/* length_of - how long is the instruction of @p that @bytes has? 1: its int3; 0: it is
 * neither the old one nor the new one.
 */
static size_t length_of(const struct text_poke *p, const uint8_t *bytes)
{
    size_t off = p->addr - text_at;
    size_t old_len = p->old_span > p->len ? p->old_span : p->len;
    size_t new_len = p->new_span > p->len ? p->new_span : p->len;

    if (bytes[off] == 0xcc)
        return 1;
    if (!differs(bytes, oldest, off, old_len))
        return old_len;
    return differs(bytes, newest, off, new_len) ? 0 : new_len;
}

/* is_torn - could a CPU have executed a mixture at @p since the last synchronisation? */
static bool is_torn(const struct text_poke *p, const uint8_t *now)
{
    size_t off = p->addr - text_at;
    size_t was = length_of(p, before), is = length_of(p, now);

    if (!was || !is)
        return true;
    if (!differs(before, now, off + 1, was - 1) && !differs(before, now, off + 1, is - 1))
        return false;
    return !is_at_once(now, off, was > is ? was : is);
}

static void look_for_torn_ones(void)
{
    const uint8_t *now = (const uint8_t *)text_at;

    for (size_t i = 0; i < all_count; i++)
        torn += is_torn(&all[i], now);
    memcpy(before, now, sizeof(before));
    written_count = 0;
}

static uint8_t any_byte(uint8_t base)
{
    return (uint8_t)(base + unit_random() % 16);
}

static uint8_t any_span(uint8_t len)
{
    return (uint8_t)(unit_random() % 2 ? 0 : len + unit_random() % (16u - len));
}

/* any_batch - make a random batch. Old bytes are 1x and new bytes are 2x (hexadecimal),
 * so that old and new first bytes can be told apart.
 */
static size_t any_batch(struct text_poke *pokes)
{
    size_t count = 0;

    for (size_t off = 0; off < TEXT - INSN_MAX_LEN;) {
        struct text_poke *p = &pokes[count++];
        uint8_t len = (uint8_t)(1 + unit_random() % 6);

        *p = (struct text_poke){ .addr = text_at + off, .len = len };
        p->old_span = any_span(len);
        p->new_span = any_span(len);
        for (unsigned i = 0; i < len; i++)
            p->bytes[i] = any_byte(0x20);
        if (unit_random() % 8 == 0)
            p->bytes[0] = 0xcc;
        off += len + (unit_random() % 4 ? 0 : unit_random() % 8);
    }
    return count;
}

/* old_text - write random old bytes. In one of four places the first byte is an int3:
 * there the old instruction does not extend over other bytes. In one of four others one
 * byte or two will change.
 */
static void old_text(void)
{
    for (size_t off = 0; off < TEXT; off++)
        fake_text_poke(text_at + off, any_byte(0x10));
    for (size_t i = 0; i < all_count; i++) {
        struct text_poke *p = &all[i];
        size_t one = unit_random() % p->len, two = unit_random() % p->len;

        if (unit_random() % 4 == 0) {
            fake_text_poke(p->addr, 0xcc);
            p->old_span = 0;
        } else if (unit_random() % 4 == 0) {
            for (size_t at = 0; at < p->len; at++)
                if (at != one && at != two)
                    p->bytes[at] = ((const uint8_t *)p->addr)[at];
        }
    }
    memcpy(oldest, (const void *)text_at, sizeof(oldest));
    memcpy(before, oldest, sizeof(before));
    memcpy(latest, oldest, sizeof(latest));
    memcpy(newest, oldest, sizeof(newest));
    for (size_t i = 0; i < all_count; i++)
        memcpy(newest + (all[i].addr - text_at), all[i].bytes, all[i].len);
}

static unsigned any_round(void)
{
    static struct text_poke pokes[TEXT];

    all = pokes;
    all_count = any_batch(pokes);
    old_text();
    batch(pokes, all_count);
    return memcmp((const void *)text_at, newest, sizeof(newest)) != 0;
}

static void rounds_of(const struct text_engine *engine, bool fetches_words)
{
    unsigned wrong = 0, syncs = fake.syncs;

    text_engine_set(engine);
    fake.fetches_words = fetches_words;
    torn = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        fake_log_start(0);
        wrong += any_round();
    }
    CHECK_EQ(torn, 0);
    CHECK_EQ(wrong, 0);
    unit_note("%s, words %d: %u batches, %u synchronisations", engine->name,
              fetches_words, ROUNDS, fake.syncs - syncs);
    CHECK(fake.syncs - syncs >= ROUNDS);
}

UNIT_TEST(whatever_extends_over_whatever_is_never_torn)
{
    text_at = start_with_nops(LEN_MAX);
    fake.on_sync = look_for_torn_ones;
    fake.on_write = note_write;
    for (size_t i = 0; i < text_engine_count; i++) {
        rounds_of(text_engines[i], false);
        rounds_of(text_engines[i], true);
    }
    end_with_nops(text_at, LEN_MAX);
}

/* ---- the engine that stops the machine ---- */

/* Where a debugger has stopped all other CPUs, the machine is not stopped once more. */
UNIT_TEST(while_the_machine_is_held_it_is_not_stopped)
{
    struct text_poke p = { .addr = at, .len = 2, .bytes = { 0xeb, 0x00 } };

    text_engine_set(&text_engine_stop_machine);
    fake.context = PLAT_HELD;
    watched(&p, 1, at);
    CHECK_EQ(fake.stops, 0);
    CHECK_SEEN(2, FIRST, 0, "eb 00 c0");
    fake.context = PLAT_THREAD;
}

static unsigned stops_inside;

/* walk_out - let CPU 2 leave the bytes to be changed only after some stops. */
static void walk_out(void)
{
    if (fake.stops > stops_inside)
        fake.stopped_ip[2] += 2;
}

UNIT_TEST(it_waits_until_no_cpu_is_inside_any_more)
{
    struct text_poke p[] = { { .addr = at, .len = 1, .bytes = { 0x90 } },
                             { .addr = at + 3, .len = 4, .bytes = { 0xeb, 0, 1, 2 } } };

    text_engine_set(&text_engine_stop_machine);
    fake.cpus = 3;
    fake.stopped_ip[1] = at + 3; /* at the first byte, which is not inside */
    fake.stopped_ip[2] = at + 5;
    fake.on_stop = walk_out;
    stops_inside = 10;
    batch(p, 2);
    CHECK_EQ(fake.stops, 11);
    CHECK_EQ(fake.stopped_ip[2], at + 7);
    CHECK_BYTES((const uint8_t *)at, "90 c7 c0 eb 00 01 02 90");
}

UNIT_TEST(a_cpu_that_never_leaves_is_reported)
{
    struct text_poke p = { .addr = at, .len = 3, .bytes = { 0x90, 0x90, 0x90 } };

    text_engine_set(&text_engine_stop_machine);
    fake.cpus = 2;
    fake.stopped_ip[1] = at + 2;
    CHECK(is_bug(&p, 1));
    CHECK(fake.stops > 1000);
    CHECK(strstr(fake.logged, "text-poke: CPU 1 is at "));
    CHECK(fake_text_is_original());
}

UNIT_TESTS_BETWEEN(begin, end)
