/* def.h - parses a line of kprobe_events into a definition, and prints a definition.
 *
 *     p[:[GROUP/]EVENT] PLACE [ARG...]           r[MAXACTIVE][:[GROUP/]EVENT] PLACE [ARG...]
 *     w[:[GROUP/][EVENT]] [w|rw]@BYTES[:LENGTH] [ARG...]
 *     -:[GROUP/][EVENT] [PLACE [ARG...]]         # comment
 *
 *     PLACE = [MODULE:]SYMBOL[+OFFSET][%return] | ADDRESS
 *     BYTES = [MODULE:]SYMBOL[+OFFSET|-OFFSET] | ADDRESS | -1        LENGTH = 1 | 2 | 4 | 8
 *     ARG   = [NAME=]EXPRESSION[:TYPE]           probes/trace/language/fetch.h
 *
 * Pure: this code asks the kernel only through the functions of struct def_host. All of
 * it runs in thread context.
 */
#pragma once

#include "probes/trace/language/error.h"
#include "probes/trace/language/fetch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEF_LINE_MAX 4096      /* bytes of a line, its newline and a NUL included */
#define DEF_NAME_MAX 64        /* bytes of a group's or event's name, NUL included */
#define DEF_MAXACTIVE_MAX 4096 /* instances */
#define DEF_ARGS_SIZE_MAX 3072 /* bytes of a record's arguments, strings not counted */
#define DEF_GROUP "kprobes"    /* the group of a line that names no group */
#define DEF_WATCH_GROUP "wprobes"

/* The functions that a definition asks about the kernel, and its limits. */
struct def_host {
    /* symbol - count the symbols of text and of data that have this name.
     * @module: the module to search, @module_len bytes; NULL: the kernel
     * @name:   @len bytes
     * @addr:   set to the address of the first symbol; unchanged if there is none
     * Return:  0..; -ENOENT there is no such module now
     */
    int (*symbol)(const char *module, size_t module_len, const char *name, size_t len,
                  uintptr_t *addr);
    /* is_entry - tell whether @addr is the first instruction of a function. */
    bool (*is_entry)(uintptr_t addr);
    /* param - find the name of parameter @i, from 0, of the function at @addr. May be
     * NULL: then no names are known.
     * Return: the length of the name; 0: there is no such parameter.
     */
    size_t (*param)(uintptr_t addr, unsigned i, const char **name);
    /* param_is_text - tell whether the parameter points to characters. May be NULL if
     * @param is NULL.
     */
    bool (*param_is_text)(uintptr_t addr, unsigned i);
    /* function - find the function around @addr, as [@start, @end). Return: false: there
     * is none. May be NULL.
     */
    bool (*function)(uintptr_t addr, uintptr_t *start, uintptr_t *end);
    unsigned (*cpus)(void);      /* the number of CPUs; NULL: 64 */
    void *(*alloc)(size_t size); /* returns NULL without memory */
    void (*free)(void *mem);
    unsigned stack_words; /* the greatest N of $stackN; 0: 2048, as on Linux */
    bool entry_args; /* return probes may have $argN, and name it after the parameter */
};

/* One probe of an event. It is a single piece of memory, immutable except maxactive. */
struct def {
    bool is_return;
    bool is_synth;      /* a synthetic event: language/synth.h */
    bool is_watch;      /* its hits are accesses to watched bytes */
    bool of_writes;     /* is_watch: of writes only */
    uint8_t watch_len;  /* is_watch: 1, 2, 4 or 8 bytes */
    bool at_entry;      /* the probe is at the entry of a function: $argN is allowed */
    unsigned maxactive; /* the number to list; 0: not given. The caller may change it. */
    const char *group, *event;
    const char *symbol; /* SYMBOL or MODULE:SYMBOL; NULL: the line has an address */
    uintptr_t addr;     /* of the probe; 0: the module is not loaded, or a watch has no
                         * address yet, which a trigger will set */
    unsigned offset;    /* bytes from the symbol; is_watch: to be read as an int */
    unsigned arg_count;
    struct fetch_arg *args;
    unsigned args_size; /* bytes of the fixed part of a record's arguments */
    bool has_strings;
    uintptr_t within; /* of $depth(): only returns in its calls are hits; 0: all are */
    unsigned entry_count; /* of entry[]: the words that a return probe saves */
    uint16_t entry[FETCH_ENTRY_MAX];
};

/* def_parse - make a definition from a line that begins with p, r or w.
 * @line: without its newline and without a comment
 * @def:  set to the definition, the caller's until def_free(); NULL for an empty line
 *
 * It neither registers the definition nor compares it with others, as def_append() does.
 *
 * Return: 0; a negative errno, with @error filled. -ENOMEM.
 */
int def_parse(const struct def_host *host, const char *line, struct def **def,
              struct trace_error *error);
void def_free(const struct def_host *host, struct def *def);

/* def_print - print the line that defines @def, as kprobe_events lists it, without a
 * newline.
 * Return: the length of the whole text, without its NUL.
 */
size_t def_print(const struct def *def, char *buf, size_t size);

/* def_append - tell whether @def can be a probe of the same event as @other.
 * @line:  the line of @def, for the caret
 * Return: 0; with @error filled: -EEXIST @def is of another kind, has other arguments,
 *         or is the same; -EBUSY both are watches.
 */
int def_append(const struct def *def, const struct def *other, const char *line,
               struct trace_error *error);

/* def_refused - fill in @error for a definition that could not be registered.
 * @line: the line of the definition
 * @err:  the engine's answer, negative
 */
void def_refused(const char *line, int err, struct trace_error *error);

/* A line that deletes definitions. */
struct def_delete {
    char line[DEF_LINE_MAX];
    const char *group; /* NULL: any group */
    const char *event; /* "": all events of the group */
    const char *place; /* NULL: any place; else only probes at this place are deleted */
    const char *args;  /* the words behind the place, joined by single blanks; "": any */
};

/* def_is_delete - tell whether @line is a line for def_delete_parse(). */
static inline bool def_is_delete(const char *line)
{
    return *line == '-';
}
/* def_delete_parse - fill in @delete from @line. Return: 0; -EINVAL. */
int def_delete_parse(const char *line, struct def_delete *delete);
/* def_delete_matches - tell whether @delete asks to delete @def. */
bool def_delete_matches(const struct def_delete *delete, const struct def *def);

/* def_next_line - cut the next line off a text that was written to the file.
 * @text, @len: the rest of that text; moved behind the line
 * @line:       DEF_LINE_MAX bytes, or one more than @len: gets the line, without its
 *              newline and without a comment
 *
 * Return: true; false: at the end, with @err 0; or the line is too long or has a NUL in
 *         it, with @err -EINVAL.
 */
bool def_next_line(const char **text, size_t *len, char *line, int *err);

/* def_join - join the words of @line by single blanks, for the log of errors.
 * Return: the length of the whole text, without its NUL.
 */
size_t def_join(const char *line, char *buf, size_t size);
