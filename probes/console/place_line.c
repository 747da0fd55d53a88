/* place_line.c - finds the code of lines of source in the table of lines, and explains
 * lines that have no code, or code at several places.
 */
#include "probes/console/place_line.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/lines.h"
#include "kernel/module/module.h"
#include "probes/console/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_SHOWN 12
#define OFFER_MAX 128 /* bytes of FILE:LINE, NUL included; a longer name is not offered */

/* FILE:LINE[#N], divided into its parts. */
struct line_text {
    const char *file;
    size_t len;
    unsigned line;
    unsigned number; /* the N behind #, from 1; 0: there is none */
};

static bool ends_as_source(const char *file, size_t len)
{
    static const char *const ends[] = { ".c", ".h", ".asm", ".inc" };

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        size_t end = strlen(ends[i]);

        if (len > end && !memcmp(file + len - end, ends[i], end))
            return true;
    }
    return false;
}

static bool take_number(const char **text, unsigned *out)
{
    char *end;
    unsigned long number = strtoul(*text, &end, 10);

    if (end == *text || **text < '0' || **text > '9' || !number || number > 0xfffff)
        return false;
    *text = end;
    *out = (unsigned)number;
    return true;
}

static bool take_apart(const char *text, struct line_text *out)
{
    const char *p = strchr(text, ':');

    *out = (struct line_text){ .file = text };
    if (!p || !ends_as_source(text, (size_t)(p - text)))
        return false;
    out->len = (size_t)(p++ - text);
    if (!take_number(&p, &out->line))
        return false;
    if (*p == '#')
        return p++, take_number(&p, &out->number) && !*p;
    return !*p;
}

bool place_line_is(const char *text)
{
    struct line_text t;

    return take_apart(text, &t);
}

/* only_file - find the file that @t names. A whole path means this file only, even if
 * other paths end alike.
 * Return: the file's number; -ENOENT; -EADDRNOTAVAIL several files have this name.
 */
static int only_file(const struct line_text *t)
{
    size_t iter = 0;
    int file = lines_file(t->file, t->len, &iter), other = file;

    while (other >= 0 && strlen(lines_path(other)) != t->len)
        other = lines_file(t->file, t->len, &iter);
    if (other >= 0)
        return other;
    iter = 0;
    lines_file(t->file, t->len, &iter);
    return file >= 0 && lines_file(t->file, t->len, &iter) >= 0 ? -EADDRNOTAVAIL : file;
}

int place_line_get(const char *text, size_t i, uintptr_t *addr)
{
    struct line_text t;
    int file;

    if (!take_apart(text, &t))
        return -ENOENT;
    file = only_file(&t);
    if (file < 0)
        return file;
    if (t.number && i)
        return -ENOENT;
    return lines_get(file, t.line, t.number ? t.number - 1 : i, addr);
}

int place_line_find(const char *text, uintptr_t *addr)
{
    uintptr_t another;
    int err = place_line_get(text, 0, addr);

    if (err)
        return err;
    return place_line_get(text, 1, &another) ? 0 : -EADDRNOTAVAIL;
}

/* ---- complete ---- */

/* offer_lines - offer the lines of @file that have code, with the @len bytes of @name in
 * front of them.
 */
static void offer_lines(struct shell_completion *c, int file, const char *name,
                        size_t len)
{
    char text[OFFER_MAX];
    unsigned line = 0;

    while ((line = lines_next(file, line)) != 0) {
        snprintf(text, sizeof(text), "%.*s:%u", (int)len, name, line);
        shell_offer(c, text);
    }
}

/* offer_colon - offer the name of the file with a colon behind it. */
static void offer_colon(struct shell_completion *c, const char *name)
{
    char text[OFFER_MAX];

    snprintf(text, sizeof(text), "%s:", name);
    shell_offer(c, text);
}

void place_line_complete(struct shell_completion *c)
{
    struct line_text t = { .file = shell_word(c) };
    const char *colon = strchr(t.file, ':');
    int file;

    t.len = colon ? (size_t)(colon - t.file) : strlen(t.file);
    file = only_file(&t);
    if (file >= 0 && colon)
        offer_lines(c, file, t.file, t.len);
    else if (file >= 0)
        offer_colon(c, t.file);
}

/* ---- explain ---- */

static void list_files(struct shell *sh, const struct line_text *t)
{
    size_t iter = 0;
    int file;

    shell_error(sh, 0, "probe: several files are called %.*s:", (int)t->len, t->file);
    while ((file = lines_file(t->file, t->len, &iter)) >= 0)
        shell_error(sh, 0, "  %s", lines_path(file));
}

static void list_places(struct shell *sh, int file, const struct line_text *t)
{
    char at[PLACE_TEXT_MAX];
    uintptr_t addr;
    size_t count = 0;

    while (!lines_get(file, t->line, count, &addr))
        count++;
    shell_error(sh, 0, "probe: %.*s:%u is compiled to %zu places:", (int)t->len, t->file,
                t->line, count);
    for (size_t i = 0; i < count && i < PLACES_SHOWN; i++) {
        lines_get(file, t->line, i, &addr);
        shell_error(sh, 0, "  %.*s:%u#%zu is %s", (int)t->len, t->file, t->line, i + 1,
                    place_text(at, addr));
    }
    if (count > PLACES_SHOWN)
        shell_error(sh, 0, "  and %zu more", count - PLACES_SHOWN);
}

static void tell_no_code(struct shell *sh, int file, const struct line_text *t)
{
    unsigned next = lines_next(file, t->line);
    uintptr_t addr;

    if (!lines_get(file, t->line, 0, &addr))
        shell_error(sh, 0, "probe: %.*s:%u is compiled to fewer than %u places",
                    (int)t->len, t->file, t->line, t->number);
    else if (next)
        shell_error(sh, 0,
                    "probe: %.*s:%u has no code; the next line that has some is %u",
                    (int)t->len, t->file, t->line, next);
    else
        shell_error(sh, 0, "probe: %.*s:%u has no code, nor has a line behind it",
                    (int)t->len, t->file, t->line);
}

/* is_of_module - is there a loaded module with the name of the file? */
static bool is_of_module(const struct line_text *t)
{
    const char *file = t->file, *name, *slash;
    size_t len;

    while ((slash = memchr(file, '/', t->len - (size_t)(file - t->file))) != NULL)
        file = slash + 1;
    len = strcspn(file, ".");
    for (size_t i = 0; (name = module_name_get(i)) != NULL; i++)
        if (str_is(name, file, len))
            return true;
    return false;
}

int place_line_refused(struct shell *sh, const char *text)
{
    struct line_text t;
    uintptr_t addr;
    int err = place_line_find(text, &addr), file;

    if (!err || !take_apart(text, &t))
        return err;
    file = only_file(&t);
    if (file == -EADDRNOTAVAIL)
        list_files(sh, &t);
    else if (file < 0 && is_of_module(&t))
        shell_error(sh, 0, "probe: the lines of the module of %.*s are not known",
                    (int)t.len, t.file);
    else if (file < 0)
        shell_error(sh, 0, "probe: no file %.*s has code in the image", (int)t.len,
                    t.file);
    else if (err == -EADDRNOTAVAIL)
        list_places(sh, file, &t);
    else
        tell_no_code(sh, file, &t);
    return err;
}
