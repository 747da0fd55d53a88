/* outcome.h - compares two outcomes, and tells their first difference. */
#pragma once

#include "tests/conformance/fixture.h"

/* outcome_same - is @is the same as @should_be?
 * outcome_same_regs - is the image @regs, which a handler has seen, the same as
 * @should_be? Its ip is not compared. The last argument, as "the pre-handler's ", comes
 * in front of what outcome_difference() returns.
 * @ignored: bit n: general register n is not compared
 *
 * Return: true; false, and outcome_difference() returns the first difference.
 */
bool outcome_same(const struct outcome *should_be, const struct outcome *is,
                  unsigned ignored);
bool outcome_same_regs(const struct image *should_be, const struct pt_regs *regs,
                       unsigned ignored, const char *who);
const char *outcome_difference(void);
