/* walk.c - finds functions by the symbol table, and instructions by the decoder. */
#include "probes/many/walk.h"

#include "kernel/debug/ksyms.h"
#include "kernel/debug/lines.h"
#include "probes/core/life.h"

#include <string.h>

/* begins_function - does a function of kernel text begin at the address of @sym? */
static bool begins_function(const struct ksym *sym, struct plat_symbol *function)
{
    return plat_text_contains(sym->start, 1) && !plat_symbol_at(sym->start, function) &&
           function->start == sym->start;
}

/* is_wanted - does @sym match [MODULE:]PATTERN? */
static bool is_wanted(const struct ksym *sym, const char *pattern)
{
    const char *colon = strchr(pattern, ':');

    if (colon && !ksyms_is_of(sym, pattern, (size_t)(colon - pattern)))
        return false;
    return glob_match(colon ? colon + 1 : pattern, sym->name);
}

size_t walk_functions(const char *pattern,
                      bool (*fn)(const struct plat_symbol *function, void *arg),
                      void *arg)
{
    struct plat_symbol function;
    uintptr_t last = 0;
    struct ksym sym;
    size_t count = 0;

    for (size_t i = 0; ksyms_get(i, &sym); i++) {
        if (sym.start == last || !begins_function(&sym, &function))
            continue;
        if (pattern && !is_wanted(&sym, pattern))
            continue; /* another name of the function may match */
        last = sym.start;
        count++;
        if (!fn(&function, arg))
            break;
    }
    return count;
}

void walk_file(int file, bool (*fn)(const struct plat_symbol *function, void *arg),
               void *arg)
{
    struct plat_symbol function;
    unsigned line = 0;
    uintptr_t addr;

    while ((line = lines_next(file, line)) != 0)
        for (size_t i = 0; !lines_get(file, line, i, &addr); i++)
            if (!plat_symbol_at(addr, &function) && function.start == addr &&
                !fn(&function, arg))
                return;
}

struct boundaries {
    uintptr_t done;
    void (*fn)(const struct insn *insn, void *arg);
    void *arg;
};

static void pass_boundary(const struct insn *insn, void *arg)
{
    struct boundaries *b = arg;

    if (insn->addr < b->done)
        return;
    b->done = insn_next(insn);
    b->fn(insn, b->arg);
}

int walk_boundaries(const struct plat_symbol *function, uintptr_t *done,
                    void (*fn)(const struct insn *insn, void *arg), void *arg)
{
    struct boundaries b = { *done, fn, arg };
    int err;

    plat_lock(PLAT_PROBES);
    err = boundary_for_each(function, pass_boundary, &b);
    boundary_forget(); /* the memory for this function is not needed any more */
    plat_unlock(PLAT_PROBES);
    *done = b.done;
    return err;
}
