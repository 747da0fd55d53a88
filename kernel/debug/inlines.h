/* inlines.h - finds the places where a function was inlined; no symbol tells them.
 *
 * The table is part of the image and never changes; see kernel/debug/gen_inlines.py.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* inlines_count - at how many places was the function @name inlined? 0: at no place, or
 * the image was built without debug data. Context: any.
 */
size_t inlines_count(const char *name);

/* inlines_get - get the first address of place @i, 0..inlines_count()-1, in order of
 * addresses. The code of a place may have further pieces.
 * Context: any.  Return: the address; 0: there is no such place.
 */
uintptr_t inlines_get(const char *name, size_t i);
