/* shell_history.c - owns copies of the lines typed before. Runs in the shell's thread. */
#include "kernel/console/shell_history.h"

#include "kernel/mm/heap.h"

#include <string.h>

static char *history_copy(const char *s)
{
    size_t size = strlen(s) + 1;
    char *copy = kmalloc(size);

    if (copy)
        memcpy(copy, s, size);
    return copy;
}

void history_leave(struct history *h)
{
    kfree(h->draft);
    h->draft = NULL;
    h->at = h->count;
}

static void drop_oldest(struct history *h)
{
    kfree(h->lines[0]);
    h->count--;
    memmove(&h->lines[0], &h->lines[1], h->count * sizeof(h->lines[0]));
}

static int is_worth_keeping(const struct history *h, const char *line)
{
    if (!*line || strlen(line) > HISTORY_LINE_MAX)
        return 0;
    return h->count == 0 || strcmp(h->lines[h->count - 1], line) != 0;
}

void history_add(struct history *h, const char *line)
{
    char *copy = NULL;

    if (is_worth_keeping(h, line))
        copy = history_copy(line);
    if (copy && h->count == HISTORY_MAX)
        drop_oldest(h);
    if (copy)
        h->lines[h->count++] = copy;
    history_leave(h);
}

const char *history_older(struct history *h, const char *current)
{
    if (h->at == 0)
        return NULL;
    if (h->at == h->count) {
        kfree(h->draft);
        h->draft = history_copy(current);
        if (!h->draft)
            return NULL;
    }
    return h->lines[--h->at];
}

const char *history_newer(struct history *h)
{
    if (h->at == h->count)
        return NULL;
    h->at++;
    return h->at == h->count ? h->draft : h->lines[h->at];
}

void history_free(struct history *h)
{
    while (h->count > 0)
        drop_oldest(h);
    history_leave(h);
}
