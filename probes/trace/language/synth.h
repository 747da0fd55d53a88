/* synth.h - makes the definition of a synthetic event from a line of synthetic_events.
 *
 *     NAME TYPE FIELD[; TYPE FIELD..]                            !NAME [..]
 *
 *     TYPE = u8..u64 | s8..s64 | int | unsigned int | long | unsigned long | pid_t | bool
 *          | char, if FIELD ends with [] or [N]: a text
 *
 * Actions of histograms let synthetic events happen: probes/trace/language/hist.h. Pure.
 */
#pragma once

#include "probes/trace/language/def.h"
#include "probes/trace/language/hist.h"

#define SYNTH_GROUP "synthetic"
#define SYNTH_LOG_NAME "synthetic_events"

#define SYNTH_ERRORS(X)                                                                  \
    X(NONE, "No error")                                                                  \
    X(BAD_NAME, "Illegal name")                                                          \
    X(INVALID_CMD, "Command must be of the form: <name> field[;field] ...")              \
    X(EVENT_EXISTS, "Event already exists")                                              \
    X(TOO_MANY_FIELDS, "Too many fields")                                                \
    X(INCOMPLETE_TYPE, "Incomplete type")                                                \
    X(INVALID_TYPE, "Invalid type")                                                      \
    X(INVALID_FIELD, "Invalid field")                                                    \
    X(INVALID_ARRAY_SPEC, "Invalid array specification")

#define SYNTH_ERROR_ID(name, text) SYNTH_##name##_ERROR,
enum synth_error_id { SYNTH_ERRORS(SYNTH_ERROR_ID) SYNTH_ERROR_COUNT };

struct synth_error {
    enum synth_error_id id; /* SYNTH_NONE_ERROR: the log gets no entry */
    unsigned column;
};

/* synth_error_text - return the text of an error. Context: any. */
const char *synth_error_text(enum synth_error_id id);

/* synth_parse - make a definition from a line without a '!'. The programs of its arguments
 * load the words of fetch_from.entry, one word for each field; that of a text is its address.
 * Return: 0, and @def is the caller's until def_free(); -EINVAL with @error; -ENOMEM.
 */
int synth_parse(const struct def_host *host, const char *line, struct def **def,
                struct synth_error *error);
/* synth_name - copy the name at the beginning of @line, behind a '!', to @buf of
 * DEF_NAME_MAX bytes. Return: 0; -EINVAL: it is no name.
 */
int synth_name(const char *line, char *buf);
/* synth_print - print the line that defines @def, without a newline.
 * Return: the length of the whole text, without its NUL.
 */
size_t synth_print(const struct def *def, char *buf, size_t size);
