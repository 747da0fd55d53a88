/* inlines.h - where functions were inlined: what the symbol table cannot tell.
 *
 * The table is part of the image and never changes; see kernel/debug/gen_inlines.py.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* inlines_count - at how many places is the function @name part of another one? 0: none, or
 * the image was built without debug data. Context: any.
 */
size_t inlines_count(const char *name);

/* inlines_get - the first address of place @i, 0..inlines_count()-1, in order of address. A
 * place may have further pieces.
 * Context: any.  Return: 0 when there is none.
 */
uintptr_t inlines_get(const char *name, size_t i);
