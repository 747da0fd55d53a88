/* symbol_list.h - the symbols of a test's platform: plat_symbol_find() and plat_symbol_at()
 * search a list.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* symbol_add - @name is a function at [@start, @start + @size). Borrows @name.
 * symbols_sort - put what was added so far into the order of addresses: of two symbols that
 * cover an address, plat_symbol_at() finds the one that comes first in the list.
 * symbols_clear - forget all symbols.
 * Context: thread, while no other thread looks for a symbol.
 */
void symbol_add(const char *name, uintptr_t start, size_t size);
void symbols_sort(void);
void symbols_clear(void);
