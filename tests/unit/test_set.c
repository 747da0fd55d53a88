/* test_set.c - sets of probes: all or none. */
#include "probes/core/set.h"

#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "tests/unit/port_fake.h"

#define COUNT 40

static struct kprobe probes[COUNT];
static struct kprobe_set set;
static struct probe_reject why;
static uintptr_t text;

/* COUNT one-byte instructions; @bad of them is one that is refused. */
static void start(size_t bad)
{
    char hex[COUNT * 3 + 1];

    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < 3; j++)
            hex[i * 3 + j] = i == bad ? "cb "[j] : "90 "[j];
    hex[COUNT * 3] = '\0';
    fake_start();
    text = fake_function("fn", hex);
    kprobe_set_begin(&set);
    for (size_t i = 0; i < COUNT; i++) {
        probes[i] = (struct kprobe){ .addr = text + i };
        CHECK_EQ(kprobe_set_add(&set, &probes[i]), 0);
    }
    why = (struct probe_reject){ 0 };
}

static void all_are_armed_by_one_commit(void)
{
    unsigned syncs;

    start(COUNT);
    CHECK_EQ(registry_count(), 0);
    CHECK(fake_text_is_original());
    syncs = fake.syncs;
    CHECK_EQ(kprobe_set_commit(&set, &why), 0);
    CHECK_EQ(registry_count(), COUNT);
    CHECK(fake.syncs - syncs <= 3);
    for (size_t i = 0; i < COUNT; i++)
        CHECK_EQ(probes[i].site->state, SITE_ARMED);
    syncs = fake.quiesces;
    CHECK_EQ(kprobe_set_abort(&set), 0);
    CHECK_EQ(fake.quiesces - syncs, 1);
    CHECK(fake_text_is_original());
    fake_end();
}

static void one_refused_is_named_and_none_is_registered(void)
{
    start(17);
    CHECK_EQ(kprobe_set_commit(&set, &why), -EOPNOTSUPP);
    CHECK_EQ(why.reason, PROBE_FAR_BRANCH);
    CHECK_EQ(why.index, 17);
    CHECK_EQ(why.at, text + 17);
    CHECK_EQ(registry_count(), 0);
    CHECK(fake_text_is_original());
    probes[17].addr = text + 16;
    CHECK_EQ(kprobe_set_commit(&set, &why), 0);
    CHECK_EQ(kprobe_set_abort(&set), 0);
    fake_end();
}

static void the_element_without_an_address_is_named_too(void)
{
    start(COUNT);
    probes[23] = (struct kprobe){ .symbol_name = "nobody" };
    CHECK_EQ(kprobe_set_commit(&set, &why), -ENOENT);
    CHECK_EQ(why.index, 23);
    CHECK_EQ(kprobe_set_abort(&set), 0);
    fake_end();
}

static void a_probe_twice_in_a_set_is_refused(void)
{
    start(COUNT);
    CHECK_EQ(kprobe_set_add(&set, &probes[5]), 0);
    CHECK_EQ(kprobe_set_commit(&set, &why), -EEXIST);
    CHECK_EQ(why.index, COUNT);
    CHECK_EQ(registry_count(), 0);
    CHECK_EQ(kprobe_set_abort(&set), 0);
    fake_end();
}

static void what_is_committed_is_closed(void)
{
    struct kprobe late = { .addr = 0 };

    start(COUNT);
    late.addr = text;
    CHECK_EQ(kprobe_set_commit(&set, &why), 0);
    CHECK_EQ(kprobe_set_add(&set, &late), -EINVAL);
    CHECK_EQ(kprobe_set_commit(&set, &why), -EEXIST);
    CHECK_EQ(kprobe_set_abort(&set), 0);
    fake_end();
}

static void an_empty_set_is_no_error(void)
{
    fake_start();
    kprobe_set_begin(&set);
    CHECK_EQ(kprobe_set_commit(&set, &why), 0);
    CHECK_EQ(kprobe_set_abort(&set), 0);
    CHECK_EQ(kprobe_set_abort(&set), 0);
    fake_end();
}

static void memory_may_fail_anywhere(void)
{
    for (unsigned n = 1;; n++) {
        bool failed;
        int err;

        start(COUNT);
        fake_fail_at(n);
        err = kprobe_set_commit(&set, &why);
        failed = fake_failed();
        fake_fail_at(0);
        CHECK_EQ(err, failed ? -ENOMEM : 0);
        CHECK_EQ(registry_count(), failed ? 0 : COUNT);
        CHECK_EQ(kprobe_set_abort(&set), 0);
        CHECK(fake_text_is_original());
        fake_end();
        if (!failed)
            break;
    }
    start(COUNT);
    while (set.count < set.room)
        kprobe_set_add(&set, &probes[0]);
    fake_fail_at(1);
    CHECK_EQ(kprobe_set_add(&set, &probes[0]), -ENOMEM);
    CHECK_EQ(kprobe_set_abort(&set), 0);
    fake_end();
}

UNIT_TESTS(all_are_armed_by_one_commit, one_refused_is_named_and_none_is_registered,
           the_element_without_an_address_is_named_too, a_probe_twice_in_a_set_is_refused,
           what_is_committed_is_closed, an_empty_set_is_no_error,
           memory_may_fail_anywhere)
