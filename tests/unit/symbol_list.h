/* symbol_list.h - the symbols of a test's platform, for plat_symbol_find() and
 * plat_symbol_at().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* symbol_add - add a function @name at [@start, @start + @size). Borrows @name.
 * If several symbols cover an address, plat_symbol_at() finds the last one to start.
 * symbols_clear - forget all symbols.
 * Context: thread, while no other thread looks for a symbol.
 */
void symbol_add(const char *name, uintptr_t start, size_t size);
void symbols_clear(void);
