/* def_mark.h - makes the definition of an event that is a marker of the kernel. The
 * marker's format gives the fields of the event.
 *
 *     "path %s flags 0x%x result %d"      path (string), flags (x32), result (s32)
 *
 * The name of a field is the word in front of its conversion. The name is argN if there
 * is no such word, or if the word is no good name, or if another field has that name.
 * Pure.
 */
#pragma once

#include "probes/trace/language/def.h"

#define DEF_MARK_GROUP "markers"
#define DEF_MARK_ARGS_MAX 8

/* def_of_mark - make the definition of a marker. The programs of its arguments load the
 * words of fetch_from.entry, one word for each field.
 * @format: not kept after the call
 * Return:  0, and @def is the caller's until def_free(); -EINVAL @format has a conversion
 *          that no marker has, or too many conversions, or @name is too long; -ENOMEM.
 */
int def_of_mark(const struct def_host *host, const char *name, const char *format,
                struct def **def);
