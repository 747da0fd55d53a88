/* rules.h - finds the rule of a table that a request breaks. Pure.
 *
 * check.c has the rules for probes, region.c for regions, xmc_rules.c for exchanges. The
 * rules of a table are checked in its order, so a rule may rely on facts that the rules
 * in front of it have found.
 */
#pragma once

#include "probes/core/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The request, and the refusal if a rule is broken. Each room embeds it in a struct of
 * its own, beside the facts that the rules of the room find.
 */
struct ruling {
    uintptr_t addr; /* what the request is about */
    /* The refusal: the reason of the broken rule, and @addr, unless the rule changes
     * them.
     */
    enum probe_reason reason;
    uintptr_t at;
    const char *why; /* instead of the reason's sentence; or NULL */
};

struct rule {
    enum probe_reason reason;
    bool (*is_broken)(struct ruling *r);
    bool needed; /* if this rule is broken, the rules behind it make no sense */
};

/* rules_refuse - note @reason and @at in @r. A rule calls this if it is broken for
 * another reason, or at another address, than @r has.
 * Return: true, which the rule returns as its own result: it is broken.
 */
bool rules_refuse(struct ruling *r, enum probe_reason reason, uintptr_t at);
/* rules_refuse_as - note the refusal @why of another function in @r. Return: true,
 * likewise.
 */
bool rules_refuse_as(struct ruling *r, const struct probe_reject *why);

/* rules_check - check @rules in order, up to the first that is broken.
 * Return: 0; the errno of the refusal, with @why filled.
 */
int rules_check(const struct rule *rules, size_t count, struct ruling *r,
                struct probe_reject *why);

/* rules_each - check all @rules. The check ends early only at a broken rule that is
 * `needed`.
 * @fn: called for each rule, in order; @why->err is 0 when the rule is kept
 */
void rules_each(const struct rule *rules, size_t count, struct ruling *r, rule_told_t fn,
                void *arg);
