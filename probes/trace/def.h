/* def.h - a line of kprobe_events: a definition or an error out of it, and back to a line.
 *
 *     p[:[GROUP/]EVENT] PLACE [ARG...]           r[MAXACTIVE][:[GROUP/]EVENT] PLACE [ARG...]
 *     w[:[GROUP/][EVENT]] [w|rw]@BYTES[:LENGTH] [ARG...]
 *     -:[GROUP/][EVENT] [PLACE [ARG...]]         # comment
 *
 *     PLACE = [MODULE:]SYMBOL[+OFFSET][%return] | ADDRESS
 *     BYTES = [MODULE:]SYMBOL[+OFFSET|-OFFSET] | ADDRESS | -1        LENGTH = 1 | 2 | 4 | 8
 *     ARG   = [NAME=]EXPRESSION[:TYPE]           probes/trace/fetch.h
 *
 * Pure: what it asks of the kernel stands in struct def_host. Thread context, all of it.
 */
#pragma once

#include "probes/trace/error.h"
#include "probes/trace/fetch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEF_LINE_MAX 4096      /* bytes of a line, its newline and a NUL included */
#define DEF_NAME_MAX 64        /* bytes of a group's or event's name, NUL included */
#define DEF_MAXACTIVE_MAX 4096 /* instances */
#define DEF_ARGS_SIZE_MAX 3072 /* bytes of a record's arguments, strings not counted */
#define DEF_GROUP "kprobes"    /* where none is named */
#define DEF_WATCH_GROUP "wprobes"

/* What a definition asks of the kernel. */
struct def_host {
    /* symbol - how many symbols, of text and of data, are called so.
     * @module: whose; NULL: the kernel's
     * @name:   @len bytes
     * @addr:   the first one's address, untouched if there is none
     * Return:  0..; -ENOENT there is no such module now
     */
    int (*symbol)(const char *module, size_t module_len, const char *name, size_t len,
                  uintptr_t *addr);
    /* is_entry - is it the first instruction of a function? */
    bool (*is_entry)(uintptr_t addr);
    /* param - the name of parameter @i, from 0, of the function at @addr. The function
     * itself may be NULL: no names are known.
     * Return: its length; 0: there is none.
     */
    size_t (*param)(uintptr_t addr, unsigned i, const char **name);
    /* param_is_text - does it point to characters? May be NULL if @param is. */
    bool (*param_is_text)(uintptr_t addr, unsigned i);
    /* function - the one that @addr is in, as [@start, @end); false: none. May be NULL. */
    bool (*function)(uintptr_t addr, uintptr_t *start, uintptr_t *end);
    unsigned (*cpus)(void);      /* how many there are; NULL: 64 */
    void *(*alloc)(size_t size); /* NULL: no memory */
    void (*free)(void *mem);
    unsigned stack_words; /* the greatest N of $stackN; 0: 2048, as on Linux */
    bool entry_args; /* $argN can be had in a return probe, and gets its name there */
};

/* One probe of an event. All in one piece of memory, immutable but for what is marked. */
struct def {
    bool is_return;
    bool is_watch;      /* of some bytes, by an access */
    bool of_writes;     /* is_watch: only */
    uint8_t watch_len;  /* is_watch: 1, 2, 4 or 8 bytes */
    bool at_entry;      /* of a function: $argN can be had */
    unsigned maxactive; /* as it is listed; 0: not given. The caller may change it. */
    const char *group, *event;
    const char *symbol; /* with its module's name before a colon; NULL: an address */
    uintptr_t addr;     /* of the probe; 0: its module is not there yet, or it watches
                         * nothing: a trigger will say what */
    unsigned offset;    /* bytes from the symbol; is_watch: an int */
    unsigned arg_count;
    struct fetch_arg *args;
    unsigned args_size; /* bytes of the fixed part of a record's arguments */
    bool has_strings;
    unsigned entry_count; /* what a return probe saves at the entry */
    uint16_t entry[FETCH_ENTRY_MAX];
};

/* def_parse - make a definition of a line that begins with p, r or w.
 * @line: without its newline; comments are taken off
 * @def:  the result, the caller's until def_free(); NULL for a line with nothing on it
 *
 * Nothing is registered, and no other definition is looked at: def_append() does that.
 *
 * Return: 0; a negative errno, with @error filled. -ENOMEM.
 */
int def_parse(const struct def_host *host, const char *line, struct def **def,
              struct trace_error *error);
void def_free(const struct def_host *host, struct def *def);

/* def_print - the line that defines @def, as kprobe_events lists it, without a newline.
 * Return: the length of the whole text, without its NUL.
 */
size_t def_print(const struct def *def, char *buf, size_t size);

/* def_append - can @def be one more probe of the event of @old?
 * @others: all definitions of that event, @count of them
 * Return:  0; -EEXIST, with @error filled: of another kind, with other arguments, or there
 *          already.
 */
int def_append(const struct def *def, const struct def *const *others, size_t count,
               const char *line, struct trace_error *error);

/* def_refused - the error of a definition that could not be registered.
 * @line: its own
 * @err:  the engine's answer, negative
 */
void def_refused(const char *line, int err, struct trace_error *error);

/* A line that deletes. */
struct def_delete {
    char line[DEF_LINE_MAX];
    const char *group; /* NULL: any */
    const char *event; /* "": all of the group */
    const char *place; /* NULL: any; else the only probes that are meant */
    const char *args;  /* behind the place, joined by single blanks; "": any */
};

/* def_is_delete - is @line to be given to def_delete_parse()? */
bool def_is_delete(const char *line);
/* def_delete_parse - Return: 0; -EINVAL. */
int def_delete_parse(const char *line, struct def_delete *delete);
/* def_delete_matches - is @def one of those that are meant? */
bool def_delete_matches(const struct def_delete *delete, const struct def *def);

/* def_next_line - cut the next line off what was written to the file.
 * @text, @len: what was written; moved behind the line
 * @line:       DEF_LINE_MAX bytes, or one more than @len: the line, without newline and
 *              comment
 *
 * Return: true; false at the end, with @err 0, or -EINVAL for a line that is too long or has
 *         a NUL in it.
 */
bool def_next_line(const char **text, size_t *len, char *line, int *err);

/* def_join - the words of @line joined by single blanks, for the log of errors.
 * Return: the length of the whole text, without its NUL.
 */
size_t def_join(const char *line, char *buf, size_t size);
