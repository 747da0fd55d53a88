/* params.c - searches the table of parameters that the build has made; a module has brought
 * its own along.
 *
 *   params_table   one entry for each function, in order of addresses (low halves)
 *   params_total   how many entries
 *   params_lines   lines of words, each with a NUL: "void path:string file:x64"
 *
 * Owns nothing; the tables are in section .ksyms, which is never written.
 */
#include "kernel/debug/params.h"

#include "kernel/debug/ksyms.h"

#include <string.h>

struct params_entry {
    uint32_t addr;
    uint32_t line; /* offset in params_lines */
};

_Static_assert(sizeof(struct params_entry) == 8, "gen_params.py writes 8 bytes");

extern const struct params_entry params_table[];
extern const uint32_t params_total;
extern const char params_lines[];

static const char *line_of(uintptr_t addr)
{
    size_t low = 0, high = params_total;
    struct ksym sym;

    if (addr >> 32 != 0xffffffff)
        return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct params_entry *e = &params_table[middle];

        if (e->addr == (uint32_t)addr)
            return &params_lines[e->line];
        if (e->addr < (uint32_t)addr)
            low = middle + 1;
        else
            high = middle;
    }
    return ksyms_at(addr, &sym) || sym.offset ? NULL : sym.params;
}

bool params_get(uintptr_t addr, unsigned i, struct param *out)
{
    const char *word = line_of(addr), *colon;

    for (i++; word && i; i--) {
        word = strchr(word, ' ');
        if (word)
            word++;
    }
    colon = word ? strchr(word, ':') : NULL;
    if (!colon)
        return false;
    *out = (struct param){ word, (size_t)(colon - word), colon + 1,
                           strcspn(colon + 1, " ") };
    return true;
}

const char *params_return(uintptr_t addr, size_t *len)
{
    const char *line = line_of(addr);

    if (line)
        *len = strcspn(line, " ");
    return line;
}
