/* test_aggr.c - tests of several probes at one address: the order of their handlers, and
 * probes that are removed during a hit.
 */
#include "probes/core/aggr.h"
#include "tests/unit/port_fake.h"

static char order[64]; /* the probes whose handlers ran, by letter */
static struct site site;
static struct kprobe a, b, c;
static struct kprobe *stopper, *remover, *victim;

static char letter_of(const struct kprobe *p)
{
    return p == &a ? 'a' : p == &b ? 'b' : 'c';
}

static void append(char ch)
{
    size_t len = strlen(order);

    order[len] = ch;
    order[len + 1] = '\0';
}

static int pre(struct kprobe *p, struct pt_regs *regs UNUSED)
{
    append(letter_of(p));
    if (p == remover)
        aggr_remove(&site, victim);
    return p == stopper;
}

static void post(struct kprobe *p, struct pt_regs *regs UNUSED, unsigned long flags)
{
    CHECK_EQ(flags, 0);
    append((char)(letter_of(p) - 'a' + 'A'));
    if (p == remover)
        aggr_remove(&site, victim);
}

static void start(void)
{
    fake_start();
    memset(&site, 0, sizeof(site));
    memset(order, 0, sizeof(order));
    a = b = c = (struct kprobe){ .pre_handler = pre, .post_handler = post };
    stopper = remover = victim = NULL;
    aggr_add(&site, &a);
    aggr_add(&site, &b);
    aggr_add(&site, &c);
}

static bool run_pre(void)
{
    struct pt_regs regs = fake_regs();
    struct probe_hit hit = { .site = &site, .regs = &regs };
    bool stopped = false;

    for (struct kprobe *p = aggr_first(&site); p && !stopped; p = aggr_next(p))
        stopped = aggr_run_pre(p, &hit, &regs, false);
    CHECK(hit.running == NULL);
    return stopped;
}

static void run_post(void)
{
    struct pt_regs regs = fake_regs();
    struct probe_hit hit = { .site = &site, .regs = &regs };

    for (struct kprobe *p = aggr_first(&site); p; p = aggr_next(p))
        aggr_run_post(p, &hit, &regs, false);
    CHECK(hit.running == NULL);
}

UNIT_TEST(handlers_run_in_order_of_registration)
{
    CHECK(!run_pre());
    run_post();
    CHECK_STR(order, "abcABC");
    CHECK_EQ(a.hits, 1);
    CHECK_EQ(c.hits, 1);
}

UNIT_TEST(a_hit_that_stands_on_a_removed_probe_finds_the_way_on)
{
    remover = victim = &b;
    run_pre();
    CHECK_STR(order, "abc");
    run_pre();
    CHECK_STR(order, "abcac");
}

UNIT_TEST(the_probe_behind_may_vanish_under_a_hit)
{
    remover = &a;
    victim = &b;
    run_pre();
    CHECK_STR(order, "ac");
    CHECK_EQ(b.hits, 0);
}

UNIT_TEST(what_the_site_needs_is_the_sum_of_its_probes)
{
    CHECK(aggr_enabled(&site));
    CHECK(aggr_wants_post(&site));
    a.flags = b.flags = c.flags = KPROBE_FLAG_DISABLED;
    a.post_handler = b.post_handler = NULL;
    CHECK(!aggr_enabled(&site));
    CHECK(aggr_wants_post(&site));
    c.post_handler = NULL;
    CHECK(!aggr_wants_post(&site));
    c.flags = 0;
    CHECK(aggr_enabled(&site));
}

UNIT_TEST(an_empty_site_has_no_probe)
{
    aggr_remove(&site, &a);
    aggr_remove(&site, &b);
    aggr_remove(&site, &c);
    CHECK(!aggr_enabled(&site) && !aggr_wants_post(&site) && !aggr_find(&site, &a));
    CHECK(!run_pre());
    CHECK_STR(order, "");
}

UNIT_TESTS_BETWEEN(start, fake_end)
