/* gen_targets.c - build tool: finds where the code of one section is entered.
 * gen_targets.py writes the input and reads the output.
 *
 *     gen_targets FILE ADDR <facts
 *
 * FILE is the content of the section, ADDR the address at which it will run. All numbers
 * are hexadecimal. Each line of the input is one of these, see find_targets.h:
 *
 *     span START END IS_COMPILED IS_DATA NAME
 *     code PLACE TO, data PLACE TO, difference PLACE TO
 *
 * Each line of the output is "target ADDR" or "opaque START END", sorted by address.
 */
#include "probes/region/find_targets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_CODE, IN_DATA, DIFFERENCES, KINDS };

struct input {
    struct target_span *spans;
    struct target_pointer *pointers[KINDS];
    size_t span_count, counts[KINDS];
};

static void *room(void *old, size_t count, size_t size)
{
    void *p = realloc(old, (count + 1) * size);

    if (!p) {
        fputs("gen_targets: no memory\n", stderr);
        exit(1);
    }
    return p;
}

static bool is_power_of_2(size_t count)
{
    return !(count & (count - 1));
}

/* read_span - read a line "span ...". There is room for twice as many, as
 * targets_search() needs.
 */
static bool read_span(struct input *in, const char *line)
{
    unsigned compiled, data;
    struct target_span span = { 0 };
    char name[1024];

    if (sscanf(line, "span %" SCNxPTR " %" SCNxPTR " %x %x %1023s", &span.start,
               &span.end, &compiled, &data, name) != 5)
        return false;
    span.is_compiled = compiled;
    span.is_data = data;
    span.family = target_family(name);
    if (is_power_of_2(in->span_count))
        in->spans = room(in->spans, 4 * in->span_count + 4, sizeof(span));
    in->spans[in->span_count++] = span;
    return true;
}

static bool read_pointer(struct input *in, const char *line)
{
    static const char *const kinds[KINDS] = { "code", "data", "difference" };
    struct target_pointer p;
    char kind[16];

    if (sscanf(line, "%15s %" SCNxPTR " %" SCNxPTR, kind, &p.place, &p.to) != 3)
        return false;
    for (int i = 0; i < KINDS; i++) {
        if (strcmp(kind, kinds[i]) != 0)
            continue;
        if (is_power_of_2(in->counts[i]))
            in->pointers[i] = room(in->pointers[i], 2 * in->counts[i] + 1, sizeof(p));
        in->pointers[i][in->counts[i]++] = p;
        return true;
    }
    return false;
}

static void read_input(struct input *in)
{
    char line[2048];

    in->spans = room(NULL, 1, sizeof(*in->spans));
    while (fgets(line, sizeof(line), stdin))
        if (!read_span(in, line) && !read_pointer(in, line)) {
            fprintf(stderr, "gen_targets: %s", line);
            exit(1);
        }
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    long len = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
    uint8_t *bytes;

    *size = len > 0 ? (size_t)len : 0;
    bytes = room(NULL, *size, 1);
    if (len < 0 || fseek(file, 0, SEEK_SET) || fread(bytes, 1, *size, file) != *size) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return bytes;
}

static void print_result(const struct target_search *s)
{
    size_t start = 0;

    for (size_t i = 0; i < s->size; i++) {
        bool is_opaque = s->marks[i] & TARGET_OPAQUE;

        if (s->marks[i] & TARGET_HERE)
            printf("target %" PRIxPTR "\n", s->addr + i);
        if (is_opaque && (!i || !(s->marks[i - 1] & TARGET_OPAQUE)))
            start = i;
        if (is_opaque && (i + 1 == s->size || !(s->marks[i + 1] & TARGET_OPAQUE)))
            printf("opaque %" PRIxPTR " %" PRIxPTR "\n", s->addr + start,
                   s->addr + i + 1);
    }
}

int main(int argc, char **argv)
{
    struct target_search s = { 0 };
    struct input in = { 0 };

    if (argc != 3) {
        fputs("usage: gen_targets FILE ADDR <facts\n", stderr);
        return 1;
    }
    s.bytes = read_file(argv[1], &s.size);
    s.addr = strtoul(argv[2], NULL, 16);
    read_input(&in);
    s.spans = in.spans;
    s.span_count = in.span_count;
    s.in_code = in.pointers[IN_CODE];
    s.in_code_count = in.counts[IN_CODE];
    s.in_data = in.pointers[IN_DATA];
    s.in_data_count = in.counts[IN_DATA];
    s.differences = in.pointers[DIFFERENCES];
    s.difference_count = in.counts[DIFFERENCES];
    s.marks = calloc(s.size + 1, 1);
    s.pending = room(NULL, s.size, sizeof(*s.pending));
    if (!s.marks)
        return 1;
    targets_search(&s);
    print_result(&s);
    return 0;
}
