/* trigger.c - parses and prints lines of the file `trigger`, and counts triggers down. */
#include "probes/trace/language/trigger.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "libc/include/extra.h"
#include "probes/trace/language/fetch_parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const names[TRIGGER_KINDS] = {
    [TRIGGER_ON] = "traceon",
    [TRIGGER_OFF] = "traceoff",
    [TRIGGER_SNAPSHOT] = "snapshot",
    [TRIGGER_STACK] = "stacktrace",
    [TRIGGER_ENABLE_EVENT] = "enable_event",
    [TRIGGER_DISABLE_EVENT] = "disable_event",
    [TRIGGER_ENABLE_HIST] = "enable_hist",
    [TRIGGER_DISABLE_HIST] = "disable_hist",
    [TRIGGER_SET_WATCH] = "set_wprobe",
    [TRIGGER_CLEAR_WATCH] = "clear_wprobe",
    [TRIGGER_HIST] = "hist",
};

static bool switches_an_event(enum trigger_kind kind)
{
    return kind >= TRIGGER_ENABLE_EVENT && kind <= TRIGGER_DISABLE_HIST;
}

static bool names_a_watch(enum trigger_kind kind)
{
    return kind == TRIGGER_SET_WATCH || kind == TRIGGER_CLEAR_WATCH;
}

/* cut - end the word at @p by a NUL. Return: the text behind it, with blanks skipped. */
static char *trigger_cut(char *p, const char *delims)
{
    p += strcspn(p, delims);
    if (!*p)
        return p;
    *p = '\0';
    return skip_blanks(p + 1);
}

/* trigger_parse_filter - read "if FILTER", or an empty text. */
static int trigger_parse_filter(struct trigger *trigger, char *text)
{
    /* A line that removes a trigger needs no filter, so the filter is not read. But if an
     * event has several histograms, the filter says which of them is removed.
     */
    if (!*text || (trigger->remove && trigger->kind != TRIGGER_HIST))
        return 0;
    if (strncmp(text, "if", 2) != 0 || !isspace((unsigned char)text[2]))
        return -EINVAL;
    text += 3;
    if (!*skip_blanks(text))
        return -EINVAL;
    trigger->filter = text;
    return 0;
}

/* parse_count - read a count. As on Linux, a ':' and the text behind it are ignored. */
static int parse_count(struct trigger *trigger, const char *text)
{
    uint64_t count;
    int err = fetch_number(text, strcspn(text, ":"), &count);

    /* As on Linux, a count above INT64_MAX is listed as a negative number, and UINT64_MAX
     * is TRIGGER_UNLIMITED.
     */
    if (!err)
        trigger->count = (int64_t)count;
    return err;
}

/* is_listed_count - tell whether @text is a count as the file lists it. */
static bool is_listed_count(const char *text)
{
    return !strncmp(text, "unlimited", 9) || !strncmp(text, "count=", 6);
}

static int parse_plain(struct trigger *trigger, char *rest)
{
    char *number = rest;
    int err;

    if (trigger->remove)
        return 0; /* the name is enough: the rest of the line is not read */
    if (!isdigit((unsigned char)*number))
        return trigger_parse_filter(trigger, rest);
    rest = trigger_cut(number, " \t");
    err = parse_count(trigger, number);
    return err ? err : trigger_parse_filter(trigger, rest);
}

static int trigger_parse_event(struct trigger *trigger, char *group)
{
    char *rest = trigger_cut(group, " \t"), *event, *number;
    int err;

    event = strchr(group, ':');
    if (!event)
        return -EINVAL;
    *event++ = '\0';
    number = strchr(event, ':');
    if (number)
        *number++ = '\0';
    if (!*group || !*event)
        return -EINVAL;
    trigger->group = group;
    trigger->event = event;
    err = number && !trigger->remove ? parse_count(trigger, number) : 0;
    return err ? err : trigger_parse_filter(trigger, rest);
}

/* trigger_parse_field - read FIELD[+N|-N]. */
static int trigger_parse_field(struct trigger *trigger, char *text)
{
    char *sign = strpbrk(text, "+-");
    int err = sign ? fetch_signed(sign, strlen(sign), &trigger->adjust) : 0;

    if (sign)
        *sign = '\0';
    trigger->field = text;
    return *text ? err : -EINVAL;
}

/* trigger_parse_watch - read WPROBE[:FIELD[+N|-N]][:COUNT]. A count begins with a digit
 * or is a listed count; a field is not.
 */
static int trigger_parse_watch(struct trigger *trigger, char *event)
{
    char *rest = trigger_cut(event, " \t"), *field = strchr(event, ':'), *number;
    int err = 0;

    if (field)
        *field++ = '\0';
    number = field && (isdigit((unsigned char)*field) || is_listed_count(field)) ? field
                                                                                 : NULL;
    if (number)
        field = NULL;
    else if (field && (number = strchr(field, ':')) != NULL)
        *number++ = '\0';
    if (!*event || (!field && trigger->kind == TRIGGER_SET_WATCH))
        return -EINVAL;
    trigger->event = event;
    if (field)
        err = trigger_parse_field(trigger, field);
    if (number && !strncmp(number, "count=", 6))
        number += 6;
    if (!err && number && !is_listed_count(number))
        err = parse_count(trigger, number);
    return err ? err : trigger_parse_filter(trigger, rest);
}

static bool trigger_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* find_if - find the word "if". Return: NULL: there is none. */
static char *find_if(char *text)
{
    char *at = text;

    while ((at = strstr(at, "if")) != NULL && !(at > text && trigger_is_blank(at[-1]) &&
                                                (!at[2] || trigger_is_blank(at[2]))))
        at++;
    return at;
}

/* parse_hist - read SPEC [if FILTER]. Blanks within SPEC belong to its words. */
static int parse_hist(struct trigger *trigger, char *spec)
{
    char *condition = find_if(spec), *end = condition ? condition : spec + strlen(spec);

    if (!*spec || !strncmp(spec, "if", 2))
        return -EINVAL;
    while (end > spec && trigger_is_blank(end[-1]))
        end--;
    *end = '\0';
    trigger->spec = spec;
    return condition ? trigger_parse_filter(trigger, condition) : 0;
}

static int parse(struct trigger *trigger, char *text)
{
    char *rest;

    text[cut_blanks(text, strlen(text))] = '\0';
    text = skip_blanks(text);
    trigger->remove = *text == '!';
    text += trigger->remove;
    rest = trigger_cut(text, ": \t");
    for (trigger->kind = 0; trigger->kind < TRIGGER_KINDS; trigger->kind++)
        if (!strcmp(names[trigger->kind], text))
            break;
    if (trigger->kind == TRIGGER_KINDS)
        return -EINVAL;
    if (trigger->kind == TRIGGER_HIST)
        return parse_hist(trigger, rest);
    if (switches_an_event(trigger->kind))
        return trigger_parse_event(trigger, rest);
    if (names_a_watch(trigger->kind))
        return trigger_parse_watch(trigger, rest);
    return parse_plain(trigger, rest);
}

COLD int trigger_parse(const struct def_host *host, const char *text,
                       struct trigger **out)
{
    size_t len = strlen(text);
    struct trigger *trigger = host->alloc(sizeof(*trigger) + len + 1);
    int err;

    *out = NULL;
    if (!trigger)
        return -ENOMEM;
    *trigger = (struct trigger){ .count = TRIGGER_UNLIMITED };
    memcpy(trigger + 1, text, len + 1);
    err = parse(trigger, (char *)(trigger + 1));
    if (err) {
        host->free(trigger);
        return err;
    }
    *out = trigger;
    return 0;
}

void trigger_free(const struct def_host *host, struct trigger *trigger)
{
    host->free(trigger);
}

COLD size_t trigger_print(const struct trigger *trigger, char *buf, size_t size)
{
    int64_t left = READ_ONCE(trigger->count);
    bool is_event = switches_an_event(trigger->kind);
    char count[32] = "unlimited", adjust[32] = "";

    if (left != TRIGGER_UNLIMITED)
        snprintf(count, sizeof(count), "count=%lld", (long long)left);
    if (trigger->field)
        snprintf(adjust, sizeof(adjust), "%+lld", (long long)trigger->adjust);
    return (size_t)snprintf(
        buf, size, "%s%s%s%s%s%s%s%s:%s%s%s", names[trigger->kind], is_event ? ":" : "",
        is_event ? trigger->group : "", trigger->event ? ":" : "",
        trigger->event ? trigger->event : "", trigger->field ? ":" : "",
        trigger->field ? trigger->field : "", adjust, count,
        trigger->filter ? " if " : "", trigger->filter ? trigger->filter : "");
}

/* excluding_kind - return the same kind for enable_event and disable_event, because an
 * event may have only one of them for the same target.
 */
static enum trigger_kind excluding_kind(const struct trigger *trigger)
{
    return trigger->kind == TRIGGER_DISABLE_EVENT ? TRIGGER_ENABLE_EVENT : trigger->kind;
}

bool trigger_is_same(const struct trigger *a, const struct trigger *b)
{
    if (switches_an_event(a->kind))
        return excluding_kind(a) == excluding_kind(b) && !strcmp(a->group, b->group) &&
               !strcmp(a->event, b->event);
    if (names_a_watch(a->kind))
        return a->kind == b->kind && !strcmp(a->event, b->event);
    if (a->kind <= TRIGGER_OFF)
        return b->kind <= TRIGGER_OFF;
    return a->kind == b->kind && a->kind != TRIGGER_HIST;
}

bool trigger_take(struct trigger *trigger)
{
    int64_t left = __atomic_load_n(&trigger->count, __ATOMIC_RELAXED);

    /* An exchange fails only if another hit has counted down. */
    while (left && left != TRIGGER_UNLIMITED)
        if (__atomic_compare_exchange_n(&trigger->count, &left,
                                        (int64_t)((uint64_t)left - 1), false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return left == TRIGGER_UNLIMITED;
}
