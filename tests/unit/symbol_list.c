/* symbol_list.c - keeps the symbols in a list, and searches it from its beginning. That
 * is slow, but tests search seldom.
 */
#include "tests/unit/symbol_list.h"

#include "kernel/base/err.h"
#include "probes/core/platform.h"

#include <stdlib.h>
#include <string.h>

static struct plat_symbol *symbols;
static size_t symbol_count, symbol_room;

void symbol_add(const char *name, uintptr_t start, size_t size)
{
    if (symbol_count == symbol_room) {
        symbol_room = symbol_room ? 2 * symbol_room : 1024;
        symbols = realloc(symbols, symbol_room * sizeof(*symbols));
        if (!symbols)
            abort();
    }
    symbols[symbol_count++] = (struct plat_symbol){ start, size, name, NULL };
}

static int by_address(const void *a, const void *b)
{
    const struct plat_symbol *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

void symbols_sort(void)
{
    qsort(symbols, symbol_count, sizeof(*symbols), by_address);
}

void symbols_clear(void)
{
    symbol_count = 0;
}

int plat_symbol_find(const char *name, struct plat_symbol *out)
{
    size_t found = 0;

    for (size_t i = 0; i < symbol_count; i++) {
        if (strcmp(symbols[i].name, name))
            continue;
        *out = symbols[i];
        found++;
    }
    return found == 1 ? 0 : found ? -EADDRNOTAVAIL : -ENOENT;
}

int plat_symbol_at(uintptr_t addr, struct plat_symbol *out)
{
    for (size_t i = 0; i < symbol_count; i++) {
        if (addr - symbols[i].start >= symbols[i].size)
            continue;
        *out = symbols[i];
        return 0;
    }
    return -ENOENT;
}
