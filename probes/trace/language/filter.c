/* filter.c - evaluates filters. Runs in every hit of an event that has a filter. */
#include "probes/trace/language/filter_parts.h"

#include "kernel/base/compiler.h"
#include "libc/include/extra.h"

#include <string.h>

/* equals, fits - compare a text with an operand or a pattern. The text ends at its NUL,
 * or after @size bytes.
 */
static bool equals(const char *text, size_t size, const char *operand)
{
    size_t len = strnlen(text, size);

    return strlen(operand) == len && !memcmp(text, operand, len);
}

static bool filter_fits(const char *text, size_t size, const char *pattern)
{
    char copy[FILTER_STRING_MAX];

    if (memchr(text, '\0', size))
        return glob_match(pattern, text);
    if (size >= sizeof(copy))
        size = sizeof(copy) - 1;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return glob_match(pattern, copy);
}

static bool compare_string(const struct filter_step *step, const void *record, size_t len,
                           const char *comm)
{
    size_t size;
    const char *text = filter_field_string(&step->field, record, len, comm, &size);

    if (step->field.kind == FILTER_COMM)
        size++; /* the NUL of the thread's name: filter_fits() then needs no copy */
    if (step->op == FILTER_GLOB)
        return filter_fits(text, size, step->pattern);
    return equals(text, size, step->pattern);
}

/* compare_sized - compare two numbers that have the size and the sign of the field. */
static bool compare_sized(const struct filter_step *step, uint64_t a)
{
    uint64_t b = step->value;
    bool less = step->field.is_signed ? (int64_t)a < (int64_t)b : a < b;
    bool equal = a == b;

    switch (step->op) {
    case FILTER_EQ:
    case FILTER_NE:
        return equal;
    case FILTER_LT:
        return less;
    case FILTER_LE:
        return less || equal;
    case FILTER_GT:
        return !less && !equal;
    case FILTER_GE:
        return !less;
    default:
        return (a & b) != 0;
    }
}

static bool compare_number(const struct filter_step *step, uint64_t a)
{
    if (step->op == FILTER_WITHIN)
        return a >= step->value && a < step->end;
    if (step->op == FILTER_CPUS)
        return a < 64 && step->value >> a & 1;
    return compare_sized(step, a);
}

static bool filter_holds(const struct filter_step *step, const void *record, size_t len,
                         unsigned cpu, const char *comm)
{
    bool answer;

    if (step->field.kind == FILTER_NUMBER || step->field.kind == FILTER_CPU)
        answer = compare_number(step, filter_field_number(&step->field, record, cpu));
    else
        answer = compare_string(step, record, len, comm);
    return answer != step->negate;
}

bool filter_match(const struct filter *filter, const void *record, size_t len,
                  unsigned cpu, const char *comm)
{
    unsigned at = 0;

    /* The loop ends, because a step leads only to later steps. */
    while (at < filter->count)
        at = filter->step[at]
                 .next[filter_holds(&filter->step[at], record, len, cpu, comm)];
    return at == FILTER_YES;
}
