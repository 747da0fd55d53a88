/* targets.h - where code is entered other than from the instruction in front of it: by
 * branches, jump tables, calls, fix-ups, pointers, or in an unknown way.
 *
 * The targets of the image are in a table that the build makes; see gen_targets.py. Code
 * that is written at run time adds its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* targets_known - is there a table of the text that @addr is in? Context: any. */
bool targets_known(uintptr_t addr);

/* targets_find - the first address in [@start, @end) where code may be entered.
 * targets_inside - is there one?
 *
 * Context: any, for the table. Locks: PLAT_PROBES held, for what was added.
 * Return:  0 when there is none; without a table, @start.
 * Cost:    binary searches.
 */
uintptr_t targets_find(uintptr_t start, uintptr_t end);
bool targets_inside(uintptr_t start, uintptr_t end);

/* targets_opaque - may anything jump to @addr, for all the build knows? True also without a
 * table. Context: any.
 */
bool targets_opaque(uintptr_t addr);

/* targets_add - code at run time is about to have something at @from that leads to @to: told
 * before it is written, and after every region around @to was given up. As often as there is.
 * targets_remove - that has been taken out. A target of the build's table, which was never
 * added, stays: the table does not say how many lead to a place.
 *
 * Locks: PLAT_PROBES held.  Return: 0, -ENOMEM; was it there?
 */
int targets_add(uintptr_t from, uintptr_t to);
bool targets_remove(uintptr_t from, uintptr_t to);
