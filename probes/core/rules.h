/* rules.h - tables of rules: which of them does a request break? Pure.
 *
 * check.c has the rules for probes, region.c for regions, xmc.c for exchanges. A table is
 * looked at in its order, so a rule may rely on what those in front of it have found out.
 */
#pragma once

#include "probes/core/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The question that the rules answer, and their refusal if one is broken. Each room has it in
 * a struct of its own, beside the facts that its rules have found.
 */
struct ruling {
    uintptr_t addr; /* what the request is about */
    /* The broken rule's reason, and @addr, unless the rule says otherwise. */
    enum probe_reason reason;
    uintptr_t at;
    const char *why; /* in place of the reason's sentence; or NULL */
};

struct rule {
    enum probe_reason reason;
    bool (*is_broken)(struct ruling *r);
    bool needed; /* the rules behind it make no sense where it is broken */
};

/* rules_refuse - for a rule that is broken for another reason, or at another address,
 * than struct ruling has: note @reason and @at there.
 * Return: true, which the rule returns as its own result: it is broken.
 */
bool rules_refuse(struct ruling *r, enum probe_reason reason, uintptr_t at);
/* rules_refuse_as - as other rules have: @why is what they said. Return: true, likewise. */
bool rules_refuse_as(struct ruling *r, const struct probe_reject *why);

/* rules_check - look at @rules up to the first that is broken.
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
