/* targets.h - find targets: addresses at which CPUs enter code in another way than from
 * the instruction in front of it. These ways are branches, jump tables, calls, fix-ups,
 * pointers, and ways that are not known. An address at which a debug register stops CPUs is
 * a target, too, since CPUs must come to it.
 *
 * The targets of the image are in a table that the build makes; see gen_targets.py. The
 * writers of code at run time add the targets of that code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* targets_known - is there a table of targets for the text that @addr is in?
 * Context: any.
 */
bool targets_known(uintptr_t addr);

/* targets_find - find the first address in [@start, @end) at which CPUs may enter code.
 * targets_inside - is there such an address?
 * Locks:   PLAT_PROBES held. The lists of targets_add() are read, too.
 * Return:  targets_find: the address; 0: there is none. Without a table: @start.
 * Cost:    two binary searches, and for each 16 bytes one list of added targets.
 */
uintptr_t targets_find(uintptr_t start, uintptr_t end);
static inline bool targets_inside(uintptr_t start, uintptr_t end)
{
    return targets_find(start, end);
}

/* targets_opaque - does @addr lie in code of which the build does not know the targets,
 * so that anything may jump there? Without a table: true. Context: any.
 */
bool targets_opaque(uintptr_t addr);

/* targets_add - add the target @to, because code that is about to be written at @from
 * leads there. Before that code can run, the caller also gives up each region around @to.
 * The same pair may be added several times.
 * targets_remove - remove such a pair once, because that code is gone. Targets of the
 * build's table always stay: the table does not say how many branches lead to a target.
 * Locks: PLAT_PROBES held.
 * Return: targets_add: 0; -ENOMEM. targets_remove: false: no such pair was added.
 */
int targets_add(uintptr_t from, uintptr_t to);
bool targets_remove(uintptr_t from, uintptr_t to);
