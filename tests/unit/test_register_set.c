/* test_register_set.c - tests of sets of probes: a set is registered and unregistered as
 * a whole, also without memory.
 */
#include "kernel/base/err.h"
#include "probes/core/registry.h"
#include "tests/unit/probes.h"

#include <string.h>

#define SET 6

static struct kprobe set[SET], *ptrs[SET];

/* set_make - make a set of six probes. Two of them share an address, two have
 * post-handlers.
 */
static void set_make(void)
{
    uintptr_t fn = fake_function("set", "55 48 89 e5 50 e8 00 00 00 00 90 58 5d c3");
    static const unsigned offsets[SET] = { 0, 1, 4, 4, 5, 10 };

    memset(set, 0, sizeof(set));
    for (int i = 0; i < SET; i++) {
        set[i].addr = fn + offsets[i];
        set[i].pre_handler = no_pre;
        ptrs[i] = &set[i];
    }
    set[3].post_handler = no_post;
    set[5].post_handler = no_post;
}

static bool set_is_out(void)
{
    for (int i = 0; i < SET; i++)
        if (set[i].site)
            return false;
    return registry_count() == 0 && fake_text_is_original();
}

/* ---- sets ---- */

UNIT_TEST(a_set_with_one_bad_element_leaves_nothing)
{
    for (int bad_one = 0; bad_one < SET; bad_one++) {
        fake_start();
        set_make();
        set[bad_one].offset = 1; /* inside an instruction, or behind the function */
        if (bad_one == 0)
            set[bad_one].offset = 2;
        if (bad_one == 2 || bad_one == 3 || bad_one == 5)
            set[bad_one].flags = KPROBE_FLAG_GONE;
        fake_log_start(0);
        CHECK(register_kprobes_why(ptrs, SET, &why) < 0);
        CHECK(strstr(fake_log(), "int3") == NULL);
        CHECK(set_is_out());
        set[bad_one].offset = set[bad_one].flags = 0;
        CHECK_EQ(register_kprobes(ptrs, SET), 0);
        CHECK_EQ(unregister_kprobes(ptrs, SET), 0);
        fake_end();
    }
}

UNIT_TEST(the_reason_need_not_be_heard)
{
    set_make();
    set[1].offset = 2;
    CHECK_EQ(register_kprobes(ptrs, SET), -EILSEQ);
    CHECK_EQ(register_kprobe(&set[1]), -EILSEQ);
    CHECK(set_is_out());
}

UNIT_TEST(the_same_probe_twice_in_a_set_is_refused)
{
    set_make();
    ptrs[4] = &set[1];
    CHECK_EQ(register_kprobes_why(ptrs, SET, &why), -EEXIST);
    CHECK_EQ(why.reason, PROBE_REGISTERED);
    CHECK_EQ(why.index, 4);
    CHECK(set_is_out());
    ptrs[4] = &set[4];
    CHECK_EQ(register_kprobes(ptrs, SET), 0);
    CHECK_EQ(register_kprobes_why(ptrs, SET, &why), -EEXIST);
    CHECK_EQ(why.index, 0);
    CHECK_EQ(unregister_kprobes(ptrs, SET), 0);
}

UNIT_TEST(a_refused_set_leaves_an_older_probe_as_it_was)
{
    struct kprobe old = { .pre_handler = no_pre };

    set_make();
    old.addr = set[2].addr;
    CHECK_EQ(add(&old), 0);
    set[4].flags = KPROBE_FLAG_GONE;
    CHECK(register_kprobes(ptrs, SET) < 0);
    CHECK(aggr_find(old.site, &old));
    CHECK(!aggr_find(old.site, &set[2]) && !aggr_find(old.site, &set[3]));
    CHECK_EQ(old.site->state, SITE_ARMED);
    CHECK_EQ(old.site->way, WAY_BOOST); /* though set[3] needed steps */
    CHECK_EQ(byte_at(old.addr), 0xcc);
    CHECK_EQ(unregister_kprobe(&old), 0);
}

static uintptr_t hit_at;
static unsigned hits_taken;

/* hit_from_cpu_1 - let CPU 1 hit the older probe, while CPU 0 registers the set. */
static void hit_from_cpu_1(void)
{
    struct pt_regs regs = fake_regs();

    fake.this_cpu = 1;
    CHECK(fake_int3(&regs, hit_at));
    fake.this_cpu = 0;
    hits_taken++;
}

UNIT_TEST(no_hit_sees_anything_of_a_refused_set)
{
    struct kprobe old = { .pre_handler = no_pre };

    fake.cpus = 2;
    set_make();
    hit_at = old.addr = set[2].addr;
    CHECK_EQ(add(&old), 0);
    set[5].flags = KPROBE_FLAG_GONE;
    hits_taken = 0;
    fake.on_alloc = hit_from_cpu_1;
    fake.quiesces = 0;
    CHECK(register_kprobes(ptrs, SET) < 0);
    fake.on_alloc = NULL;
    CHECK(hits_taken > 3);
    CHECK_EQ(old.hits, hits_taken);
    CHECK_EQ(set[2].hits + set[3].hits, 0);
    CHECK_EQ(fake.quiesces, 0); /* no hit uses the set, so nothing is waited for */
    CHECK_EQ(unregister_kprobe(&old), 0);
}

UNIT_TEST(a_set_with_a_stranger_is_not_taken_out)
{
    struct kprobe stranger = { .pre_handler = no_pre };

    set_make();
    CHECK_EQ(register_kprobes(ptrs, SET), 0);
    stranger.addr = set[1].addr;
    ptrs[1] = &stranger;
    CHECK_EQ(unregister_kprobes(ptrs, SET), -EINVAL);
    CHECK_EQ(registry_count(), 5);
    ptrs[1] = &set[1];
    CHECK_EQ(unregister_kprobes(ptrs, SET), 0);
}

UNIT_TEST(the_same_probe_twice_is_taken_out_once)
{
    struct kprobe p = { .pre_handler = no_pre }, *twice[] = { &p, &p };

    p.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&p), 0);
    CHECK_EQ(unregister_kprobes(twice, 2), 0);
    CHECK(p.site == NULL);
}

UNIT_TEST(an_empty_set_is_no_error)
{
    CHECK_EQ(register_kprobes(NULL, 0), 0);
    CHECK_EQ(unregister_kprobes(NULL, 0), 0);
}

static unsigned refusals;

static void refused(struct kprobe *p, const struct probe_reject *reject, void *arg)
{
    CHECK(arg == &refusals);
    CHECK(p == &set[1] || p == &set[4]);
    CHECK(reject->err < 0);
    refusals++;
}

UNIT_TEST(some_of_a_set_go_in_and_come_first)
{
    set_make();
    set[1].offset = 2;
    set[4].offset = 1;
    refusals = 0;
    CHECK_EQ(register_kprobes_some(ptrs, SET, refused, &refusals), 4);
    CHECK_EQ(refusals, 2);
    for (int i = 0; i < 4; i++)
        CHECK(ptrs[i]->site != NULL);
    CHECK_EQ(unregister_kprobes(ptrs, 4), 0);
    CHECK(set_is_out());
}

/* ---- memory runs out ---- */

UNIT_TEST(without_memory_anywhere_a_set_is_refused_whole)
{
    bool done = false;

    for (unsigned n = 1; !done; n++) {
        int err;

        fake_start();
        set_make();
        fake_fail_at(n);
        err = register_kprobes_why(ptrs, SET, &why);
        done = !fake_failed();
        CHECK_EQ(err, done ? 0 : -ENOMEM);
        if (done)
            CHECK_EQ(unregister_kprobes(ptrs, SET), 0);
        CHECK(set_is_out());
        fake_fail_at(0);
        CHECK_EQ(register_kprobes(ptrs, SET), 0);
        CHECK_EQ(unregister_kprobes(ptrs, SET), 0);
        fake_end();
    }
}

UNIT_TESTS_BETWEEN(fake_start, fake_end)
