/* rules.c - stage 2: checks the rules of any table. */
#include "probes/core/rules.h"

bool rules_refuse(struct ruling *r, enum probe_reason reason, uintptr_t at)
{
    r->reason = reason;
    r->at = at;
    return true;
}

bool rules_refuse_as(struct ruling *r, const struct probe_reject *why)
{
    r->why = why->why;
    return rules_refuse(r, why->reason, why->at);
}

/* refuse_broken - fill @why with the refusal that a broken rule has left in @r. */
static int refuse_broken(const struct ruling *r, struct probe_reject *why)
{
    int err = probe_refuse(why, r->reason, r->at);

    if (why && r->why)
        why->why = r->why;
    return err;
}

static bool is_broken(const struct rule *rule, struct ruling *r)
{
    r->reason = rule->reason;
    r->at = r->addr;
    r->why = NULL;
    return rule->is_broken(r);
}

int rules_check(const struct rule *rules, size_t count, struct ruling *r,
                struct probe_reject *why)
{
    for (size_t i = 0; i < count; i++)
        if (is_broken(&rules[i], r))
            return refuse_broken(r, why);
    return 0;
}

void rules_each(const struct rule *rules, size_t count, struct ruling *r, rule_told_t fn,
                void *arg)
{
    for (size_t i = 0; i < count; i++) {
        struct probe_reject why = { 0 };

        if (is_broken(&rules[i], r))
            refuse_broken(r, &why);
        fn(why.err ? why.reason : rules[i].reason, &why, arg);
        if (why.err && rules[i].needed)
            return;
    }
}
