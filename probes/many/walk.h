/* walk.h - visits the functions of kernel text, and their instructions, each of them
 * once.
 *
 * A function that has several names counts once. A label inside a function does not
 * count.
 */
#pragma once

#include "probes/core/platform.h"
#include "probes/insn/insn.h"

#include <stdbool.h>
#include <stddef.h>

/* walk_functions - call @fn for each function, in order of address.
 * @pattern: one of its names must match it, see glob_match(); "MODULE:PATTERN" takes
 *           functions of this module only; NULL takes all
 * @fn:      returns false to end the walk
 *
 * Context: thread.  Return: for how many functions @fn was called.
 */
size_t walk_functions(const char *pattern,
                      bool (*fn)(const struct plat_symbol *function, void *arg),
                      void *arg);

/* walk_file - call @fn for each function that the source file @file defines, in order of
 * lines: see kernel/debug/lines.h. @fn and the context are those of walk_functions().
 */
void walk_file(int file, bool (*fn)(const struct plat_symbol *function, void *arg),
               void *arg);

/* walk_boundaries - call @fn for each instruction of @function, decoded from its original
 * bytes. In a walk over functions no instruction is visited twice, even if one function
 * lies inside another.
 * @done: instructions below this address were visited by an earlier call; on return it is
 *        the end of the last one. The walk over functions sets it to 0 first.
 *
 * Locks:  takes PLAT_PROBES. It is held while @fn is called.
 * Return: 0; -ENOMEM; -EFAULT; -EILSEQ it could not be decoded to its end.
 */
int walk_boundaries(const struct plat_symbol *function, uintptr_t *done,
                    void (*fn)(const struct insn *insn, void *arg), void *arg);
