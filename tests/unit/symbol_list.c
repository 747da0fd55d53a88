/* symbol_list.c - keeps the symbols in a list. Names are searched from its beginning, and
 * addresses by bisection, as the benchmark's planner asks for each byte.
 */
#include "tests/unit/symbol_list.h"

#include "kernel/base/err.h"
#include "probes/core/platform.h"

#include <stdlib.h>
#include <string.h>

static struct plat_symbol *symbols; /* by address */
static size_t symbol_count, symbol_room;
static size_t longest; /* bytes of the longest symbol */

/* first_above - return the index of the first symbol that starts above @addr. */
static size_t first_above(uintptr_t addr)
{
    size_t low = 0, high = symbol_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (symbols[middle].start <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void symbol_add(const char *name, uintptr_t start, size_t size)
{
    size_t i = first_above(start);

    if (symbol_count == symbol_room) {
        symbol_room = symbol_room ? 2 * symbol_room : 1024;
        symbols = realloc(symbols, symbol_room * sizeof(*symbols));
        if (!symbols)
            abort();
    }
    memmove(symbols + i + 1, symbols + i, (symbol_count++ - i) * sizeof(*symbols));
    symbols[i] = (struct plat_symbol){ start, size, name, NULL };
    if (size > longest)
        longest = size;
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
    for (size_t i = first_above(addr); i-- && addr - symbols[i].start < longest;) {
        if (addr - symbols[i].start >= symbols[i].size)
            continue;
        *out = symbols[i];
        return 0;
    }
    return -ENOENT;
}
