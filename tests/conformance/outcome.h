/* outcome.h - are two outcomes the same, and if not, in what? */
#pragma once

#include "tests/conformance/fixture.h"

/* outcome_same - is @is as @should_be, but for the general registers in the set @ignored?
 * outcome_same_regs - is the register image that a handler saw as @should_be? Their ip is
 * not looked at.
 *
 * Return: true; false, and outcome_difference() tells the first difference.
 */
bool outcome_same(const struct outcome *should_be, const struct outcome *is,
                  unsigned ignored);
bool outcome_same_regs(const struct image *should_be, const struct pt_regs *regs,
                       unsigned ignored, const char *who);
const char *outcome_difference(void);
