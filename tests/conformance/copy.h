/* copy.h - is the copy that the engine has made of an instruction the same instruction? */
#pragma once

#include "probes/core/life.h"

/* copy_is_same - compare what lies in the cells of @site, or what a copy elsewhere would be
 * where the engine needs none, with @insn.
 * Return: true, also where no copy can be made.
 */
bool copy_is_same(const struct site *site, const struct insn *insn);
