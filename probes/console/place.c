/* place.c - reads and writes the names of instructions, and explains names that mislead.
 */
#include "probes/console/place.h"

#include "kernel/base/err.h"
#include "kernel/debug/inlines.h"
#include "kernel/debug/ksyms.h"
#include "probes/console/place_line.h"
#include "probes/core/life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- read ---- */

int place_parse(struct place *place, const char *text)
{
    const char *plus = strchr(text, '+');
    size_t len = plus ? (size_t)(plus - text) : strlen(text);
    uint64_t offset = 0;

    *place = (struct place){ 0 };
    if (place_line_is(text))
        return place_line_find(text, &place->addr);
    if (!shell_parse_address(text, &place->addr))
        return place->addr ? 0 : -EINVAL;
    if (strncmp(text, "0x", 2) == 0)
        return -EINVAL;
    if (plus && (parse_u64(plus + 1, 0, &offset) || offset > UINT32_MAX))
        return -EINVAL;
    if (len == 0 || len >= sizeof(place->symbol))
        return -EINVAL;
    memcpy(place->symbol, text, len);
    place->offset = (unsigned)offset;
    return 0;
}

void place_complete(struct shell_completion *c, int index)
{
    shell_complete_symbols(c, index);
    place_line_complete(c);
}

int place_no_place(struct shell *sh, const char *text)
{
    if (place_line_is(text))
        return place_line_refused(sh, text);
    shell_error(sh, 0, "probe: %s is no place: SYM, SYM+OFF, SYM#N, FILE:LINE or ADDRESS",
                text);
    return -EINVAL;
}

void place_fill(struct kprobe *p, const struct place *place)
{
    p->symbol_name = place->symbol[0] ? place->symbol : NULL;
    p->addr = place->addr;
    p->offset = place->offset;
}

int place_find(const struct place *place, uintptr_t *addr, struct probe_reject *why)
{
    struct kprobe p = { 0 };

    place_fill(&p, place);
    return register_resolve(&p, addr, why);
}

/* ---- write ---- */

const char *place_own_text(char *buf, const struct place *place)
{
    if (!place->symbol[0])
        return place_text(buf, place->addr);
    if (place->offset)
        snprintf(buf, PLACE_TEXT_MAX, "%s+0x%x", place->symbol, place->offset);
    else
        snprintf(buf, PLACE_TEXT_MAX, "%s", place->symbol);
    return buf;
}

/* ---- explain ---- */

#define INLINED_SHOWN 12

/* list_names - offer a name for each of the functions @name: that of its module, if no other
 * function has it, because the files of the tracer take it as well.
 */
static void list_names(struct shell *sh, const char *name)
{
    char own[PLACE_TEXT_MAX];
    struct ksym sym, found;
    size_t iter = 0;
    unsigned n = 0;

    while (ksyms_next(name, &iter, &sym)) {
        if (sym.type != 'T' && sym.type != 't')
            continue;
        n++;
        snprintf(own, sizeof(own), "%s:%s", sym.module ? sym.module : "", sym.name);
        if (!sym.module || ksyms_find(own, &found))
            snprintf(own, sizeof(own), "%s#%u", name, n);
        shell_error(sh, 0, "  %s is 0x%lx", own, sym.start);
    }
}

/* next_clone - find the next symbol that the compiler has made of the function @name: a
 * copy for special arguments, or a cold part.
 * @iter: 0 at the first call
 * Return: false: there is no further symbol.
 */
static bool next_clone(const char *name, size_t *iter, struct ksym *sym)
{
    const char *colon = strchr(name, ':');
    size_t module_len = colon ? (size_t)(colon - name) : 0;
    char base[PLACE_MAX];

    while (ksyms_get((*iter)++, sym)) {
        if (colon && !ksyms_is_of(sym, name, module_len))
            continue;
        if ((sym->type != 'T' && sym->type != 't') ||
            strcmp(sym->name, colon ? colon + 1 : name) == 0)
            continue;
        ksyms_base_name(sym->name, base, sizeof(base));
        if (strcmp(base, colon ? colon + 1 : name) == 0)
            return true;
    }
    return false;
}

static void list_clones(struct shell *sh, const char *name)
{
    struct ksym sym;
    size_t iter = 0;

    while (next_clone(name, &iter, &sym))
        shell_error(sh, 0, "  the compiler has made %s%s%s of it",
                    sym.module ? sym.module : "", sym.module ? ":" : "", sym.name);
}

size_t place_inlined(const struct place *place)
{
    return place->symbol[0] && !place->offset ? inlines_count(place->symbol) : 0;
}

void place_list_inlined(const struct place *place, size_t max,
                        void (*line)(void *arg, const char *text), void *arg)
{
    size_t count = place_inlined(place);
    char text[PLACE_TEXT_MAX];

    for (size_t i = 0; i < count && i < max; i++)
        line(arg, place_text(text, inlines_get(place->symbol, i)));
    if (count > max) {
        snprintf(text, sizeof(text), "and %zu more", count - max);
        line(arg, text);
    }
}

static void show_inlined_line(void *arg, const char *text)
{
    shell_error(arg, 0, "    %s", text);
}

static void list_inlined(struct shell *sh, const struct place *place)
{
    size_t count = inlines_count(place->symbol);

    if (!count)
        return;
    shell_error(sh, 0,
                "  it has no code of its own, but is inlined at %zu place%s:", count,
                count == 1 ? "" : "s");
    place_list_inlined(place, INLINED_SHOWN, show_inlined_line, sh);
}

/* detail - write further facts about the refusal, in parentheses, into @buf, which has
 * room for a suggestion.
 */
static void detail(char *buf, size_t size, const struct place *place,
                   const struct probe_reject *why)
{
    char at[PLACE_TEXT_MAX];
    struct plat_symbol sym;
    struct ksym clone;
    size_t iter = 0;

    buf[0] = '\0';
    if (why->reason == PROBE_NOT_BOUNDARY)
        snprintf(buf, size, " (instruction starts at %s)", place_text(at, why->at));
    else if (why->reason == PROBE_UNDECODABLE)
        snprintf(buf, size, " (decoding ends at %s)", place_text(at, why->at));
    else if (why->reason == PROBE_STI_HLT)
        snprintf(buf, size, " (the other is at %s)", place_text(at, why->at));
    else if (why->reason == PROBE_BLACKLISTED || why->reason == PROBE_ENTRY_CODE)
        snprintf(buf, size, " (`probe blacklist` lists it)");
    else if (why->reason == PROBE_PAST_END && !plat_symbol_find(place->symbol, &sym))
        snprintf(buf, size, " (%s is 0x%zx bytes long)", place->symbol, sym.size);
    else if (why->reason != PROBE_NO_SYMBOL || place_inlined(place) ||
             next_clone(place->symbol, &iter, &clone))
        return;
    else if (strchr(place->symbol, '#'))
        snprintf(buf, size, " (NAME#N is the Nth of that name)");
    else if (ksyms_find(place->symbol, &clone) != -ENOENT)
        snprintf(buf, size, " (it is data, for `probe watch`)");
    else
        shell_suggest(buf, place->symbol, shell_complete_symbols, 1);
}

int place_refused(struct shell *sh, const struct place *place,
                  const struct probe_reject *why)
{
    char text[PLACE_TEXT_MAX], more[PLACE_TEXT_MAX + 32];

    detail(more, sizeof(more), place, why);
    shell_error(sh, 0, "probe: cannot probe %s: %s%s", place_own_text(text, place),
                why->why, more);
    if (why->reason == PROBE_NOT_UNIQUE)
        list_names(sh, place->symbol);
    if (why->reason == PROBE_NO_SYMBOL) {
        list_clones(sh, place->symbol);
        list_inlined(sh, place);
    }
    return why->err;
}
