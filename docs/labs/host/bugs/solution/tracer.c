/* tracer.c - makes probes from lines of text, and counts the hits of each probe. */
#include "tracer.h"

#include "world.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 3

struct trace_probe {
    struct probe probe; /* must be first: a handler gets a pointer to it */
    struct trace_probe *next;
    uint64_t hits;
    char place[TRACER_LINE_MAX + 1];
};

/* Each writer has its own. */
struct writer {
    size_t used;
    char line[TRACER_LINE_MAX + 1];
};

static struct trace_probe *probes; /* protected by the lock; in the order of the lines */

static void on_hit(struct probe *p)
{
    struct trace_probe *tp = (struct trace_probe *)p;

    __atomic_add_fetch(&tp->hits, 1, __ATOMIC_RELAXED);
}

/* Cut @line into words. Return the number of words, at most WORDS_MAX. */
static unsigned split(char *line, char **words)
{
    unsigned count = 0;
    char *rest = line;

    while (count < WORDS_MAX && (words[count] = strtok_r(rest, " \t", &rest)))
        count++;
    return count;
}

/* Return the address of a place like alpha, alpha+0x10 or 0x1000; 0: no such place. */
static uint64_t address_of(const char *place)
{
    char name[TRACER_LINE_MAX + 1];
    const char *plus = strchr(place, '+');
    uint64_t addr;
    char *end;

    if (*place >= '0' && *place <= '9') {
        addr = strtoull(place, &end, 0);
        return *end ? 0 : addr;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(plus ? plus - place : TRACER_LINE_MAX),
             place);
    addr = world_symbol(name);
    if (!addr || !plus)
        return addr;
    addr += strtoull(plus + 1, &end, 0);
    return *end || end == plus + 1 ? 0 : addr;
}

static void append(struct trace_probe *tp)
{
    struct trace_probe **link = &probes;

    while (*link)
        link = &(*link)->next;
    *link = tp;
}

static int add_probe(const char *kind, const char *place)
{
    struct trace_probe *tp = world_alloc(sizeof(*tp));

    tp->probe.addr = address_of(place);
    tp->probe.is_return = *kind == 'r';
    tp->probe.handler = on_hit;
    snprintf(tp->place, sizeof(tp->place), "%s", place);
    world_lock();
    if (!tp->probe.addr || !world_register(&tp->probe)) {
        world_unlock();
        world_free(tp);
        return -1;
    }
    append(tp);
    world_unlock();
    return 0;
}

static int do_line(char *line)
{
    char *words[WORDS_MAX];
    unsigned count;

    line[strcspn(line, "#")] = '\0';
    count = split(line, words);
    if (count == 0)
        return 0;
    if (count != 2 || (strcmp(words[0], "p") && strcmp(words[0], "r")))
        return -1;
    return add_probe(words[0], words[1]);
}

/* A hit that has begun uses its probe, so it is waited for before that is freed. */
static void clear_probes(void)
{
    world_lock();
    while (probes) {
        struct trace_probe *tp = probes;

        probes = tp->next;
        world_unregister(&tp->probe);
        world_wait();
        world_free(tp);
    }
    world_unlock();
}

struct writer *tracer_open(bool clear)
{
    if (clear)
        clear_probes();
    return world_alloc(sizeof(struct writer));
}

static int end_line(struct writer *w)
{
    w->line[w->used] = '\0';
    w->used = 0;
    return do_line(w->line);
}

long tracer_write(struct writer *w, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n') {
            if (end_line(w))
                return -1;
            continue;
        }
        if (w->used == TRACER_LINE_MAX) {
            w->used = 0;
            return -1;
        }
        w->line[w->used++] = text[i];
    }
    return (long)len;
}

int tracer_close(struct writer *w)
{
    int err = w->used ? end_line(w) : 0;

    world_free(w);
    return err;
}

size_t tracer_list(char *out, size_t size)
{
    size_t used = 0;

    if (size)
        *out = '\0';
    world_lock();
    for (struct trace_probe *tp = probes; tp; tp = tp->next)
        used += (size_t)snprintf(used < size ? out + used : NULL,
                                 used < size ? size - used : 0, "%c %s hits=%lu\n",
                                 tp->probe.is_return ? 'r' : 'p', tp->place, tp->hits);
    world_unlock();
    return used;
}
