/* filter.h - describes filters. A filter is a condition over the fields of a record, and
 * a record for which it does not hold is not kept. It is compiled once and evaluated at
 * each hit.
 *
 *     FILTER     = TERM { ("&&" | "||") TERM }             && binds closer
 *     TERM       = ["!"] ( "(" FILTER ")" | COMPARISON )
 *     COMPARISON = FIELD ("==" | "!=" | "<" | "<=" | ">" | ">=" | "&") NUMBER
 *                | FIELD ("==" | "!=" | "~") QUOTED        ~: a pattern with * ? [...]
 *                | FIELD ".function" ("==" | "!=") FUNCTION      is it an address within?
 *                | FIELD ("&" | "==" | "!=") "CPUS{" LIST "}"    is it one of these CPUs?
 *
 * FIELD is a field of the event, common_type, common_flags, common_preempt_count,
 * common_pid, CPU (also cpu, common_cpu), or COMM (also comm).
 */
#pragma once

#include "probes/trace/language/def.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILTER_TEXT_MAX 4096  /* bytes of a filter, NUL included */
#define FILTER_STRING_MAX 256 /* bytes of an operand, NUL included */

enum filter_kind {
    FILTER_NUMBER,   /* of 1, 2, 4 or 8 bytes */
    FILTER_CHARS,    /* a fixed number of characters */
    FILTER_STRING,   /* a word that says where in the record the string lies */
    FILTER_CPU,      /* not in the record: the CPU of the hit */
    FILTER_COMM,     /* not in the record: the thread's name */
    FILTER_TIME,     /* not in the record: the time of the hit; only histograms have it */
    FILTER_ONE,      /* 1: what a hit adds to a hitcount; only histograms have it */
    FILTER_VARIABLE, /* of a histogram; offset: its number among those that are read */
};

/* A field of an event's record. */
struct filter_field {
    const char *name;
    uint16_t offset, size; /* bytes from the start of the record */
    bool is_signed;
    enum filter_kind kind;
};

#define FILTER_ERRORS(X)                                                                 \
    X(NONE, "No error")                                                                  \
    X(INVALID_OP, "Invalid operator")                                                    \
    X(TOO_MANY_OPEN, "Too many '('")                                                     \
    X(TOO_MANY_CLOSE, "Too few '('")                                                     \
    X(MISSING_QUOTE, "Missing matching quote")                                           \
    X(OPERAND_TOO_LONG, "Operand too long")                                              \
    X(EXPECT_STRING, "Expecting string field")                                           \
    X(EXPECT_DIGIT, "Expecting numeric field")                                           \
    X(ILLEGAL_FIELD_OP, "Illegal operation for field type")                              \
    X(FIELD_NOT_FOUND, "Field not found")                                                \
    X(ILLEGAL_INTVAL, "Illegal integer value")                                           \
    X(BAD_SUBSYS_FILTER, "Couldn't find or set field in one of a subsystem's events")    \
    X(TOO_MANY_PREDS, "Too many terms in predicate expression")                          \
    X(INVALID_VALUE, "Invalid value (did you forget quotes)?")                           \
    X(ERRNO, "Error")                                                                    \
    X(NO_FILTER, "No filter found")                                                      \
    X(NO_FUNCTION, "Function not found")                                                 \
    X(MISSING_BRACE_OPEN, "Missing '{'")                                                 \
    X(MISSING_BRACE_CLOSE, "Missing '}'")                                                \
    X(INVALID_CPULIST, "Invalid cpulist")

#define FILTER_ERROR_ID(name, text) FILTER_##name##_ERROR,
enum filter_error_id { FILTER_ERRORS(FILTER_ERROR_ID) FILTER_ERROR_COUNT };

#define FILTER_LOG_NAME                                                                  \
    "event filter parse error" /* the subsystem in the log of errors */

struct filter_error {
    int err; /* negative errno, as Linux answers: also EPERM, ENOENT and ESRCH */
    enum filter_error_id id;
    unsigned column; /* of the caret in the log of errors */
};

/* filter_error_text - return the text of an error. Context: any. */
const char *filter_error_text(enum filter_error_id id);

/* A compiled filter: one piece of memory, immutable. */
struct filter;

/* filter_parse - compile @text for an event with these fields.
 * @host:   gives the memory, and finds the functions that the filter names
 * @fields: @count fields of the event
 * @out:    set to the filter, the caller's until filter_free()
 *
 * Context: thread.
 * Return:  0; a negative errno, with @error filled.
 */
int filter_parse(const struct def_host *host, const char *text,
                 const struct filter_field *fields, size_t count, struct filter **out,
                 struct filter_error *error);
void filter_free(const struct def_host *host, struct filter *filter);

/* filter_text - return the text of the filter, as the user wrote it. */
const char *filter_text(const struct filter *filter);

/* filter_block - print what the file `filter` shows after it has refused @text: the text,
 * a caret, and the reason.
 * Return: the length of the whole text, without its NUL.
 */
size_t filter_block(const char *text, const struct filter_error *error, char *buf,
                    size_t size);

/* filter_match - tell whether the record is to be kept.
 * @record: @len bytes
 * @comm:   the thread's name, with a NUL
 *
 * Context: any.  Locks: none.
 * Cost:    each comparison at most once.
 */
bool filter_match(const struct filter *filter, const void *record, size_t len,
                  unsigned cpu, const char *comm);

/* filter_fields - list the fields of the records of @def: the address fields in front of
 * the arguments, and one field for each argument.
 * @fields: room for FILTER_FIELDS_MAX
 * Return:  how many.
 */
#define FILTER_FIELDS_MAX (FETCH_ARGS_MAX + 2)
size_t filter_fields(const struct def *def, struct filter_field *fields);
/* filter_field_find - find a field by its name, among @fields and then among the fields
 * that all events have.
 * @name: @len bytes
 *
 * Return: the field; NULL: there is none.
 */
const struct filter_field *filter_field_find(const struct filter_field *fields,
                                             size_t count, const char *name, size_t len);
/* filter_field_number - return the value of a numeric field in a record, sign extended if
 * the field is signed. Context: any.
 */
uint64_t filter_field_number(const struct filter_field *field, const void *record,
                             unsigned cpu);
/* filter_field_string - return the text of a field in a record of @len bytes.
 * @size: set to the bytes of the text; the text ends there, or earlier at a NUL
 *
 * Context: any.
 */
const char *filter_field_string(const struct filter_field *field, const void *record,
                                size_t len, const char *comm, size_t *size);
