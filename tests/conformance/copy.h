/* copy.h - checks that the engine's copy of an instruction is the same instruction. */
#pragma once

#include "probes/core/life.h"

/* copy_is_same - compare @insn with its copies in the cells of @site. If the engine
 * emulates the instruction and so needs no copy, make a copy for another address, and
 * compare that.
 * Return: true: the copies are the same, or no copy can be made.
 */
bool copy_is_same(const struct site *site, const struct insn *insn);
