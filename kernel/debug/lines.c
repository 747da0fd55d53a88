/* lines.c - searches the table of lines that the build has made.
 *
 *   lines_files    one entry for each file, by its path
 *   lines_total    how many entries
 *   lines_names    paths, each with a NUL
 *   lines_places   the places of each file, in order of lines, then of addresses
 *
 * A place is two numbers: its line minus the line of the place before it, and its address
 * (low half) minus the address of the place before it. Before the first place are line 0
 * and the address FIRST. A number is stored in bytes with seven bits each, the lowest
 * bits first; the highest bit of a byte is set if another byte follows. If the lowest bit
 * of the second number is set, the number is negative, and its other bits are inverted.
 *
 * Owns nothing; the tables are in section .ksyms, which is never written.
 */
#include "kernel/debug/lines.h"

#include "kernel/base/err.h"

#include <stdbool.h>
#include <string.h>

#define FIRST 0x80000000u

struct lines_entry {
    uint32_t name;   /* offset in lines_names */
    uint32_t places; /* offset in lines_places */
    uint32_t count;
};

_Static_assert(sizeof(struct lines_entry) == 12, "gen_lines.py writes 12 bytes");

extern const struct lines_entry lines_files[];
extern const uint32_t lines_total;
extern const char lines_names[];
extern const uint8_t lines_places[];

const char *lines_path(int file)
{
    return &lines_names[lines_files[file].name];
}

static bool path_ends(const char *path, const char *name, size_t len)
{
    size_t whole = strlen(path);

    return whole >= len && !memcmp(path + whole - len, name, len) &&
           (whole == len || path[whole - len - 1] == '/');
}

int lines_file(const char *name, size_t len, size_t *iter)
{
    while (len && *iter < lines_total) {
        int file = (int)(*iter)++;

        if (path_ends(lines_path(file), name, len))
            return file;
    }
    return -ENOENT;
}

/* The position of a search in the places of a file. */
struct place_scan {
    const uint8_t *at;
    uint32_t left; /* places behind this one */
    unsigned line;
    uint32_t addr;
};

static uint32_t unpack(const uint8_t **at)
{
    uint32_t number = 0;
    unsigned shift = 0;
    uint8_t piece;

    do {
        piece = *(*at)++;
        number |= (uint32_t)(piece & 0x7f) << shift;
        shift += 7;
    } while (piece & 0x80);
    return number;
}

static struct place_scan scan_begin(int file)
{
    const struct lines_entry *e = &lines_files[file];

    return (struct place_scan){ &lines_places[e->places], e->count, 0, FIRST };
}

static bool step_to_next(struct place_scan *s)
{
    uint32_t number;

    if (!s->left)
        return false;
    s->left--;
    s->line += unpack(&s->at);
    number = unpack(&s->at);
    s->addr += number & 1 ? ~(number >> 1) : number >> 1;
    return true;
}

int lines_get(int file, unsigned line, size_t i, uintptr_t *addr)
{
    struct place_scan s = scan_begin(file);

    while (step_to_next(&s) && s.line <= line)
        if (s.line == line && !i--) {
            *addr = 0xffffffff00000000 | s.addr;
            return 0;
        }
    return -ENOENT;
}

unsigned lines_next(int file, unsigned line)
{
    struct place_scan s = scan_begin(file);

    while (step_to_next(&s))
        if (s.line > line)
            return s.line;
    return 0;
}
