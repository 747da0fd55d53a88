/* test_rules.c - tests of tables of rules: the first broken rule is found, or each rule
 * is reported.
 */
#include "probes/core/rules.h"

#include "kernel/base/bits.h"
#include "tests/unit/unit.h"

#define ADDR 0x1000

/* The facts that the rules below check. */
struct request {
    struct ruling ruling;
    bool is_entry, is_busy, is_gone;
    unsigned asked; /* rules that were checked */
};

static struct request *request_of(struct ruling *r)
{
    struct request *request = CONTAINER_OF(r, struct request, ruling);

    request->asked++;
    return request;
}

static bool is_entry(struct ruling *r)
{
    return request_of(r)->is_entry;
}

static bool is_busy(struct ruling *r)
{
    return request_of(r)->is_busy && rules_refuse(r, PROBE_NO_MEMORY, ADDR + 8);
}

static bool is_gone(struct ruling *r)
{
    return request_of(r)->is_gone;
}

static const struct rule rules[] = {
    { PROBE_ENTRY_CODE, is_entry, false },
    { PROBE_NOT_TEXT, is_busy, true },
    { PROBE_GONE, is_gone, false },
};

static int check(struct request *request, struct probe_reject *why)
{
    request->ruling.addr = ADDR;
    return rules_check(rules, ARRAY_LEN(rules), &request->ruling, why);
}

UNIT_TEST(all_kept_is_no_refusal)
{
    struct request request = { 0 };
    struct probe_reject why = { 0 };

    CHECK_EQ(check(&request, &why), 0);
    CHECK_EQ(why.err, 0);
    CHECK_EQ(request.asked, 3);
}

UNIT_TEST(a_rule_may_say_otherwise)
{
    struct request request = { .is_busy = true };
    struct probe_reject why;

    CHECK_EQ(check(&request, &why), -ENOMEM);
    CHECK_EQ(why.reason, PROBE_NO_MEMORY);
    CHECK_EQ(why.at, ADDR + 8);
}

UNIT_TEST(what_one_rule_says_is_not_the_next_ones)
{
    struct request request = { .is_gone = true };
    struct probe_reject why;

    request.ruling.reason = PROBE_NO_MEMORY;
    request.ruling.at = ADDR + 8;
    CHECK_EQ(check(&request, &why), -EINVAL);
    CHECK_EQ(why.reason, PROBE_GONE);
    CHECK_EQ(why.at, ADDR);
}

static struct probe_reject told[ARRAY_LEN(rules)];
static size_t told_count;

static void note(enum probe_reason rule, const struct probe_reject *why, void *arg)
{
    CHECK_EQ(rule, why->err ? why->reason : rules[told_count].reason);
    CHECK(arg == told);
    told[told_count++] = *why;
}

static void each(struct request *request)
{
    request->ruling.addr = ADDR;
    told_count = 0;
    rules_each(rules, ARRAY_LEN(rules), &request->ruling, note, told);
}

UNIT_TEST(each_is_told_of)
{
    struct request request = { .is_entry = true, .is_gone = true };

    each(&request);
    CHECK_EQ(told_count, 3);
    CHECK_EQ(told[0].reason, PROBE_ENTRY_CODE);
    CHECK_EQ(told[1].err, 0);
    CHECK_EQ(told[2].reason, PROBE_GONE);
    CHECK_EQ(told[2].at, ADDR);
}

UNIT_TEST(behind_a_broken_one_that_is_needed_none_is_asked)
{
    struct request request = { .is_busy = true, .is_gone = true };

    each(&request);
    CHECK_EQ(told_count, 2);
    CHECK_EQ(told[1].reason, PROBE_NO_MEMORY);
    CHECK_EQ(told[1].at, ADDR + 8);
    CHECK_EQ(request.asked, 2);
}

UNIT_TESTS()
