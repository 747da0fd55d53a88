/* test_poke.c - tests that change instructions of several bytes while threads run them.
 * With LONG=1 they also prove that wrong protocols are noticed. That is a matter of
 * chance, and takes long.
 */
#include "probes/core/text_poke.h"
#include "probes/text/text_engine.h"
#include "tests/hosted/poke.h"
#include "tests/hosted/posix.h"
#include "tests/unit/unit.h"

#define LINE 64
#define CODE_LEN 5

static void note(const char *what, size_t off, const struct poke_result *r)
{
    unit_note("%s at offset %zu: %lu changes, %lu runs, %lu torn", what, off, r->pokes,
              r->runs, r->torn);
}

UNIT_TEST(with_all_threads_parked_nothing_is_torn)
{
    posix_init();
    for (size_t off = LINE - CODE_LEN; off <= LINE; off++) {
        struct poke_result r = poke_stress(poke_parked, off, 1000);

        note("parked", off, &r);
        CHECK_EQ(r.torn, 0);
        CHECK_EQ(r.pokes, 1000);
        CHECK(r.runs > r.pokes); /* the threads ran between the changes */
    }
}

/* nothing_is_torn_by - change an instruction at each place around the end of a cache line
 * and page: in front of the end, across it, and behind it.
 */
static void nothing_is_torn_by(const struct text_engine *engine, unsigned long changes)
{
    text_engine_set(engine);
    for (size_t off = LINE - CODE_LEN; off <= LINE; off++) {
        struct poke_result r = poke_stress(poke_engine, off, changes);

        note(engine->name, off, &r);
        CHECK_EQ(r.torn, 0);
        CHECK_EQ(r.pokes, changes);
    }
    text_engine_set(text_engines[0]);
}

UNIT_TEST(nothing_is_torn_by_any_engine)
{
    posix_init();
    nothing_is_torn_by(text_engines[0], posix_rounds(500, 8000));
    for (size_t i = 1; i < text_engine_count; i++)
        nothing_is_torn_by(text_engines[i], posix_rounds(20, 500));
}

/* torn_somewhere - does @protocol let a thread execute a mixture? There are at most
 * @tries runs, with instructions that lie across the end of a cache line in all ways.
 */
static bool torn_somewhere(poke_protocol protocol, const char *name, unsigned tries)
{
    for (unsigned i = 0; i < tries; i++) {
        size_t off = LINE - CODE_LEN + 1 + i % (CODE_LEN - 1);
        struct poke_result r = poke_stress(protocol, off, 2000000);

        note(name, off, &r);
        if (r.torn)
            return true;
    }
    return false;
}

/* may_take_long - the proof needs fast code, and sanitizers make code slow. It needs much
 * time, so it is done for one compiler only.
 */
static bool may_take_long(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
    bool is_quick = false;
#else
    bool is_quick = true;
#endif

    if (!getenv("LONG") || !is_quick)
        unit_skip("only with LONG=1, by gcc, and without sanitizers");
    return getenv("LONG") && is_quick;
}

UNIT_TEST(byte_by_byte_across_a_line_it_is_torn)
{
    posix_init();
    if (may_take_long())
        CHECK(torn_somewhere(poke_bytewise, "bytewise", 100));
}

UNIT_TEST(int3_first_without_waiting_it_is_torn)
{
    posix_init();
    if (may_take_long())
        CHECK(torn_somewhere(poke_unsynced, "unsynced", 300));
}

UNIT_TESTS()
