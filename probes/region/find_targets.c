/* find_targets.c - find where CPUs may enter a text; the rules are in find_targets.h.
 *
 *   1. Decode each span from its start, and then the code that branches lead to. Mark what
 *      each instruction leads to, and the spans that jump indirectly.
 *   2. Mark the addresses that the linker has written.
 *   3. Look at each instruction and number again that takes an address in the text: the
 *      families of both are opaque if one of them jumps indirectly.
 */
#include "probes/region/find_targets.h"

#include "probes/insn/insn.h"

#include <stdlib.h>

#define FAMILY_BETWEEN 0 /* of the bytes between symbols: these are no family */

static bool contains(const struct target_search *s, uintptr_t addr)
{
    return addr - s->addr < s->size;
}

static void mark_target(struct target_search *s, uintptr_t addr)
{
    if (contains(s, addr))
        s->marks[addr - s->addr] |= TARGET_HERE;
}

static void mark_opaque(struct target_search *s, uintptr_t start, uintptr_t end)
{
    for (uintptr_t at = start; at < end; at++)
        if (contains(s, at))
            s->marks[at - s->addr] |= TARGET_OPAQUE;
}

uint32_t target_family(const char *name)
{
    uint32_t hash = 1;

    for (; *name && *name != '.'; name++)
        hash = hash * 31 + (uint8_t)*name;
    return hash;
}

/* ---- the spans ---- */

static int compare_spans(const void *a, const void *b)
{
    const struct target_span *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

static void add_between(struct target_search *s, uintptr_t start, uintptr_t end)
{
    s->spans[s->span_count++] =
        (struct target_span){ .start = start, .end = end, .family = FAMILY_BETWEEN };
}

/* sort_spans - sort by address, an outer one before those inside of it. */
static void sort_spans(struct target_search *s)
{
    uintptr_t reach = 0;

    qsort(s->spans, s->span_count, sizeof(*s->spans), compare_spans);
    for (size_t i = 0; i < s->span_count; i++) {
        if (s->spans[i].end > reach)
            reach = s->spans[i].end;
        s->spans[i].reach = reach;
    }
}

/* prepare_spans - sort the symbols, and add the bytes between them as spans. */
static void prepare_spans(struct target_search *s)
{
    size_t symbols = s->span_count;
    uintptr_t at = s->addr;

    sort_spans(s);
    for (size_t i = 0; i < symbols; i++) {
        mark_target(s, s->spans[i].start);
        if (s->spans[i].start > at)
            add_between(s, at, s->spans[i].start);
        if (s->spans[i].reach > at)
            at = s->spans[i].reach;
    }
    if (at < s->addr + s->size)
        add_between(s, at, s->addr + s->size);
    sort_spans(s);
}

/* span_around - the spans that contain @addr, one after the other, the innermost one first.
 * @last: the one found before; NULL: none yet. Return: NULL: no further one.
 */
static struct target_span *span_around(const struct target_search *s, uintptr_t addr,
                                       struct target_span *last)
{
    size_t low = 0, high = s->span_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (s->spans[middle].start <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    if (last)
        low = (size_t)(last - s->spans);
    while (low-- && s->spans[low].reach > addr)
        if (s->spans[low].end > addr)
            return &s->spans[low];
    return NULL;
}

#define for_each_around(span, s, addr)                                                   \
    for (struct target_span *span = NULL; (span = span_around(s, addr, span));)

/* ---- 1: decode ---- */

/* decode_off - decode the instruction at offset @off. One whose prefixes processors take
 * differently counts as no instruction, because its target is not known.
 */
static bool decode_off(const struct target_search *s, size_t off, size_t end,
                       struct insn *insn)
{
    return !insn_decode(insn, s->bytes + off, end - off, s->addr + off) &&
           !insn_is_ambiguous(insn);
}

/* way_of - how may @insn of the function @span go to a computed address? */
static enum target_way way_of(const struct insn *insn, const struct target_span *span)
{
    switch (insn->kind) {
    case INSN_JMP_REG:
    case INSN_JMP_MEM:
        return TARGET_BY_JUMP;
    case INSN_CALL_REG:
    case INSN_CALL_MEM:
    case INSN_RET:
        return span->is_compiled ? TARGET_BY_NONE : TARGET_BY_RET;
    default:
        return TARGET_BY_NONE;
    }
}

static void raise_way(uint8_t *way, enum target_way to)
{
    if (*way < to)
        *way = (uint8_t)to;
}

static void pend(struct target_search *s, uintptr_t addr)
{
    size_t off = addr - s->addr;

    if (s->marks[off] & TARGET_PENDING)
        return;
    s->marks[off] |= TARGET_PENDING;
    s->pending[s->pending_count++] = (uint32_t)off;
}

static void note_insn(struct target_search *s, const struct insn *insn)
{
    s->marks[insn->addr - s->addr] |= TARGET_DECODED;
    if (insn_has_target(insn) && contains(s, insn->target)) {
        mark_target(s, insn->target);
        pend(s, insn->target);
    }
    if (insn->rip_relative)
        mark_target(s, insn->mem);
    if (insn_is_branch(insn) && !insn_has_target(insn))
        for_each_around(span, s, insn->addr)
            raise_way(&span->way, way_of(insn, span));
}

/* decode_at_each_byte - the bytes at @stuck are no instruction, so decode at each byte
 * behind. Stop at @end, or where decoding was tried before.
 */
static void decode_at_each_byte(struct target_search *s, size_t stuck, size_t end)
{
    struct target_span *span = span_around(s, s->addr + stuck, NULL);
    struct insn insn;
    size_t off;

    for (off = stuck + 1; off < end && !(s->marks[off] & TARGET_TRIED); off++) {
        s->marks[off] |= TARGET_TRIED;
        if (decode_off(s, off, end, &insn))
            note_insn(s, &insn);
    }
    mark_opaque(s, s->addr + stuck, s->addr + off);
    if (span)
        span->is_opaque = true;
}

/* follow_code - decode one instruction after the other from @off on, until @end, or until one
 * that was decoded before.
 */
static void follow_code(struct target_search *s, size_t off, size_t end)
{
    struct insn insn;

    while (off < end && !(s->marks[off] & TARGET_TRIED)) {
        s->marks[off] |= TARGET_TRIED;
        if (!decode_off(s, off, end, &insn)) {
            decode_at_each_byte(s, off, end);
            return;
        }
        note_insn(s, &insn);
        off += insn.len;
    }
}

static void decode_all(struct target_search *s)
{
    for (size_t i = 0; i < s->span_count; i++) {
        struct target_span *span = &s->spans[i];

        if (span->is_data)
            span->is_opaque = true;
        else if (contains(s, span->start) && span->end - s->addr <= s->size)
            follow_code(s, span->start - s->addr, span->end - s->addr);
    }
    while (s->pending_count)
        follow_code(s, s->pending[--s->pending_count], s->size);
}

/* ---- 2: what the linker has written ---- */

static int compare_places(const void *a, const void *b)
{
    const struct target_pointer *x = a, *y = b;

    return x->place < y->place ? -1 : x->place > y->place;
}

/* mark_differences - for each difference, mark the range of addresses that it may stand
 * for. Code adds the difference to the address of its place, which gives @to, or to the
 * start of the table that contains the place, which gives a lower address. Places that are
 * at most 8 bytes apart count as one table.
 */
static void mark_differences(struct target_search *s)
{
    const struct target_pointer *d = s->differences;
    uintptr_t row = 0;

    qsort(s->differences, s->difference_count, sizeof(*s->differences), compare_places);
    for (size_t i = 0; i < s->difference_count; i++) {
        if (!i || d[i].place > d[i - 1].place + 8)
            row = d[i].place;
        mark_opaque(s, d[i].to - (d[i].place - row), d[i].to + 8);
    }
}

static void mark_pointers(struct target_search *s)
{
    for (size_t i = 0; i < s->in_code_count; i++)
        mark_target(s, s->in_code[i].to);
    for (size_t i = 0; i < s->in_data_count; i++)
        mark_target(s, s->in_data[i].to);
    mark_differences(s);
}

/* ---- 3: addresses that code takes ---- */

/* is_used_as_it_is - does compiled code at @at take the entry @to of another function? */
static bool is_used_as_it_is(const struct target_search *s, uintptr_t at, uintptr_t to)
{
    for_each_around(span, s, to)
        if (to != span->start || (at >= span->start && at < span->end))
            return false;
    for_each_around(span, s, at)
        if (span->is_compiled)
            return true;
    return false;
}

/* join_families - what is found of one span counts for all of its family. */
static void join_families(struct target_search *s)
{
    for (size_t i = 0; i < s->span_count; i++) {
        const struct target_span *one = &s->spans[i];

        for (size_t k = 0; (one->way || one->computes) && k < s->span_count; k++) {
            struct target_span *other = &s->spans[k];

            if (other != one &&
                (other->family != one->family || one->family == FAMILY_BETWEEN))
                continue;
            raise_way(&other->family_way, one->way);
            other->is_opaque |= one->computes;
        }
    }
}

static enum target_way family_way(const struct target_search *s, uintptr_t addr)
{
    uint8_t way = TARGET_BY_NONE;

    for_each_around(span, s, addr)
        raise_way(&way, span->family_way);
    return way;
}

/* take_address - code at @at takes the address @to. */
static void take_address(struct target_search *s, uintptr_t at, uintptr_t to)
{
    if (!contains(s, to) || is_used_as_it_is(s, at, to) ||
        (!family_way(s, at) && family_way(s, to) != TARGET_BY_JUMP))
        return;
    for_each_around(span, s, at)
        span->computes = true;
    for_each_around(span, s, to)
        span->computes = true;
}

static void take_addresses(struct target_search *s)
{
    struct insn insn;

    join_families(s);
    for (size_t i = 0; i < s->in_code_count; i++)
        take_address(s, s->in_code[i].place, s->in_code[i].to);
    for (size_t off = 0; off < s->size; off++) {
        if (!(s->marks[off] & TARGET_DECODED) || !decode_off(s, off, s->size, &insn))
            continue;
        if (insn.rip_relative)
            take_address(s, insn.addr, insn.mem);
        if (insn.kind == INSN_CALL_REL && insn.target == insn_next(&insn))
            take_address(s, insn.addr, insn.target);
    }
}

void targets_search(struct target_search *s)
{
    prepare_spans(s);
    decode_all(s);
    mark_pointers(s);
    take_addresses(s);
    join_families(s);
    for (size_t i = 0; i < s->span_count; i++)
        if (s->spans[i].is_opaque)
            mark_opaque(s, s->spans[i].start, s->spans[i].end);
}
