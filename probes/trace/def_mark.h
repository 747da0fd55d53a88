/* def_mark.h - the definition of an event that is a marker of the kernel: its fields are what
 * the marker's format says.
 *
 *     "path %s flags 0x%x result %d"      path (string), flags (x32), result (s32)
 *
 * A field is called as the word in front of it; argN without such a word, or where the name
 * is taken. Pure.
 */
#pragma once

#include "probes/trace/def.h"

#define DEF_MARK_GROUP "markers"
#define DEF_MARK_ARGS_MAX 8

/* def_of_mark - its values are found as a return probe's: fetch_from.entry has one word each.
 * @format: borrowed
 * Return:  0, and @def is the caller's until def_free(); -EINVAL a conversion that no marker
 *          has, or too many; -ENOMEM.
 */
int def_of_mark(const struct def_host *host, const char *name, const char *format,
                struct def **def);
