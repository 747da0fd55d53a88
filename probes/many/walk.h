/* walk.h - the functions of kernel text, and their instructions, each of them once.
 *
 * A function that has several names is one; a label inside a function is none.
 */
#pragma once

#include "probes/core/platform.h"
#include "probes/insn/insn.h"

#include <stdbool.h>
#include <stddef.h>

/* walk_functions - call @fn for each function, in order of address.
 * @pattern: one of its names must match it, see glob_match(); NULL takes all
 * @fn:      returns false to end the walk
 *
 * Context: thread.  Return: for how many it was called.
 */
size_t walk_functions(const char *pattern,
                      bool (*fn)(const struct plat_symbol *function, void *arg),
                      void *arg);

/* walk_boundaries - call @fn for each instruction of @function, decoded from its original
 * bytes, but not for those of a function inside it that starts below @*done, which is
 * moved behind the last one. For a walk over functions: 0 at first.
 *
 * Locks:  takes PLAT_PROBES and holds it while @fn is called.
 * Return: 0; -ENOMEM; -EFAULT; -EILSEQ it could not be decoded to its end.
 */
int walk_boundaries(const struct plat_symbol *function, uintptr_t *done,
                    void (*fn)(const struct insn *insn, void *arg), void *arg);
