/* test_register.c - tests that register and unregister a probe: its address, the steps,
 * and refusals.
 */
#include "kernel/base/err.h"
#include "probes/core/registry.h"
#include "probes/returns/returns.h"
#include "tests/unit/guard.h"
#include "tests/unit/probes.h"

/* ---- in and out ---- */

UNIT_TEST(armed_means_int3_in_the_text)
{
    struct kprobe p = { .pre_handler = no_pre };

    p.addr = fake_function("fn", "55 48 89 e5 c3");
    CHECK_EQ(add(&p), 0);
    CHECK_BYTES((const uint8_t *)p.addr, "cc 48 89 e5 c3");
    CHECK_EQ(p.site->state, SITE_ARMED);
    CHECK(registry_find(p.addr) == p.site);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_BYTES((const uint8_t *)p.addr, "55 48 89 e5 c3");
    CHECK(p.site == NULL);
    CHECK(registry_find(p.addr) == NULL);
}

UNIT_TEST(by_symbol_and_offset)
{
    struct kprobe p = { .symbol_name = "fn", .offset = 1 };
    uintptr_t fn = fake_function("fn", "55 48 89 e5 c3");

    CHECK_EQ(add(&p), 0);
    CHECK_EQ(p.addr, fn + 1);
    CHECK_EQ(byte_at(fn + 1), 0xcc);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

UNIT_TEST(by_address_and_offset)
{
    uintptr_t fn = fake_function("fn", "55 48 89 e5 c3");
    struct kprobe p = { .addr = fn, .offset = 4 };

    CHECK_EQ(add(&p), 0);
    CHECK_EQ(p.addr, fn + 4);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

/* ---- the order of the steps ---- */

UNIT_TEST(the_cell_is_written_and_known_before_anyone_can_be_sent_there)
{
    struct kprobe p = { .addr = fake_function("fn", "55 c3"), .pre_handler = no_pre };

    fake_log_start(p.addr);
    CHECK_EQ(add(&p), 0);
    CHECK_STR(fake_log(), "header cell found sync int3 sync");
    CHECK_EQ(unregister_kprobe(&p), 0);
}

/* ---- refusals ---- */

UNIT_TEST(neither_or_both_places_are_refused)
{
    struct kprobe neither = { .pre_handler = no_pre };
    struct kprobe both = { .symbol_name = "fn", .addr = 1 };

    fake_function("fn", "c3");
    CHECK_REFUSED(&neither, MALFORMED);
    CHECK_REFUSED(&both, MALFORMED);
}

#define NOPS 2000

static const char *nops(void)
{
    static char hex[3 * NOPS + 1];

    for (int i = 0; i < NOPS; i++)
        memcpy(hex + 3 * i, "90 ", 4);
    return hex;
}

/* Address plus offset is 0. In the registry, the address 0 marks the place of a removed
 * site.
 */
UNIT_TEST(an_offset_that_wraps_is_no_place)
{
    struct kprobe stays = { .symbol_name = "fn" };

    fake_function("fn", "90 c3");
    fake_function("nops", nops());
    CHECK_EQ(add(&stays), 0);
    for (unsigned i = 0; i < NOPS; i++) {
        struct kprobe digs = { .symbol_name = "nops", .offset = i };
        struct kprobe p = { .addr = UINTPTR_MAX - 3, .offset = 4 };

        CHECK_EQ(add(&digs), 0);
        CHECK_EQ(unregister_kprobe(&digs), 0);
        CHECK_REFUSED(&p, NOT_TEXT);
    }
    CHECK_EQ(unregister_kprobe(&stays), 0);
}

UNIT_TEST(flags_of_the_engine_are_refused)
{
    static const uint32_t flags[] = { KPROBE_FLAG_GONE, KPROBE_FLAG_OPTIMIZED,
                                      KPROBE_FLAG_TRIPPED, 1u << 31 };

    for (size_t i = 0; i < 4; i++) {
        struct kprobe p = { .flags = flags[i] };

        fake_start();
        p.addr = fake_function("fn", "c3");
        CHECK_REFUSED(&p, BAD_FLAGS);
        fake_end();
    }
}

static void no_light(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
}

UNIT_TEST(one_of_two_kinds_of_handlers)
{
    struct kprobe p = { .pre_handler = no_pre, .light_handler = no_light };

    p.addr = fake_function("fn", "c3");
    CHECK_REFUSED(&p, TWO_HANDLERS);
}

UNIT_TEST(names_are_looked_up)
{
    struct kprobe unknown = { .symbol_name = "nowhere" };
    struct kprobe twice = { .symbol_name = "twice" };
    struct kprobe past = { .symbol_name = "fn", .offset = 2 };

    fake_function("twice", "c3");
    fake_function("twice", "c3");
    fake_function("fn", "90 c3");
    CHECK_REFUSED(&unknown, NO_SYMBOL);
    CHECK_REFUSED(&twice, NOT_UNIQUE);
    CHECK_REFUSED(&past, PAST_END);
    CHECK_EQ(why.err, -ENOENT);
}

static void not_called(void)
{
}

/* Hits may change the probe meanwhile: a refusal must not write even what it has read. */
UNIT_TEST(a_registered_probe_is_refused_and_not_written_to)
{
    uint8_t *map = guard_map();
    struct kprobe *p = (struct kprobe *)map;
    struct kretprobe *rp = (struct kretprobe *)(map + 1024);
    struct jprobe *jp = (struct jprobe *)(map + 2048);

    *p = (struct kprobe){ .addr = fake_function("fn", "55 c3") };
    *rp = (struct kretprobe){ .kp.addr = p->addr };
    *jp = (struct jprobe){ .kp.addr = p->addr, .entry = not_called };
    CHECK(!add(p) && !add(&rp->kp) && !add(&jp->kp));
    mprotect(map, GUARD_PAGE, PROT_READ);
    CHECK_EQ(add(p), -EEXIST);
    CHECK_EQ(why.reason, PROBE_REGISTERED);
    CHECK_EQ(register_kretprobe_why(rp, &why), -EEXIST);
    CHECK_EQ(why.reason, PROBE_REGISTERED);
    CHECK_EQ(register_jprobe_why(jp, &why), -EEXIST);
    CHECK_EQ(why.reason, PROBE_REGISTERED);
    mprotect(map, GUARD_PAGE, PROT_READ | PROT_WRITE);
    CHECK(!unregister_kprobe(p) && !unregister_kprobe(&rp->kp));
    CHECK_EQ(unregister_kprobe(&jp->kp), 0);
}

UNIT_TEST(what_is_not_registered_cannot_be_taken_out)
{
    struct kprobe p = { .addr = fake_function("fn", "55 c3"), .pre_handler = no_pre };
    struct kprobe garbage;

    CHECK_EQ(unregister_kprobe(&p), -EINVAL);
    CHECK_EQ(add(&p), 0);
    memset(&garbage, 0x5a, sizeof(garbage));
    CHECK_EQ(unregister_kprobe(&garbage), -EINVAL);
    garbage = p; /* a copy of a registered probe is not registered */
    CHECK_EQ(unregister_kprobe(&garbage), -EINVAL);
    CHECK_EQ(disable_kprobe(&garbage), -EINVAL);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_EQ(unregister_kprobe(&p), -EINVAL);
}

UNIT_TEST(not_from_an_interrupt_and_not_from_an_nmi)
{
    struct kprobe p = { .pre_handler = no_pre };
    struct kprobe in = { .pre_handler = no_pre };

    p.addr = in.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&in), 0);
    fake.context = PLAT_IRQ;
    CHECK_EQ(add(&p), -EDEADLK);
    CHECK_EQ(why.reason, PROBE_BAD_CONTEXT);
    CHECK_EQ(unregister_kprobe(&in), -EDEADLK);
    CHECK_EQ(disable_kprobe(&in), -EDEADLK);
    fake.context = PLAT_THREAD;
    FAKE_DEPTHS.nmi = 1;
    CHECK_EQ(add(&p), -EDEADLK);
    FAKE_DEPTHS.nmi = 0;
    CHECK_EQ(unregister_kprobe(&in), 0);
}

UNIT_TESTS_BETWEEN(fake_start, fake_end)
