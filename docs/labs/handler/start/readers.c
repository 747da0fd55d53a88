/* readers.c - the functions that you watch in lab 2: they read and write,
 * and have callers.
 *
 *     ./sonde module readers.c handler.c 'run readers' 'run handler'
 *
 * The grader runs this file with other seeds, on more CPUs, and with callers of its own.
 */
#include "readers.h"

#include "kernel/work/work.h"

#include <stdbool.h>

NOINLINE unsigned long read_bytes(struct source *s, uint8_t *to, unsigned long count)
{
    if (count > BYTES_MAX)
        count = BYTES_MAX;
    for (unsigned long i = 0; i < count; i++)
        to[i] = (uint8_t)work_hash(s->at++);
    return count;
}

NOINLINE unsigned long write_bytes(struct source *s, const uint8_t *from,
                                   unsigned long count)
{
    if (count > BYTES_MAX)
        count = BYTES_MAX;
    for (unsigned long i = 0; i < count; i++)
        s->sum = s->sum * 31 + from[i];
    return count;
}

static NOINLINE unsigned long parser(struct source *s, unsigned long count)
{
    uint8_t bytes[BYTES_MAX];

    return read_bytes(s, bytes, count) + bytes[0];
}

static NOINLINE unsigned long printer(struct source *s, unsigned long count)
{
    uint8_t bytes[BYTES_MAX] = { (uint8_t)count };

    return write_bytes(s, bytes, count) + bytes[0];
}

static NOINLINE unsigned long copier(struct source *s, unsigned long count)
{
    uint8_t bytes[BYTES_MAX];

    read_bytes(s, bytes, count);
    if (count > BYTES_MAX / 2)
        read_bytes(s, bytes, BYTES_MAX / 2);
    return write_bytes(s, bytes, count) + bytes[0];
}

static NOINLINE void one_call(struct source *s, uint64_t random)
{
    static unsigned long (*const callers[])(struct source *,
                                            unsigned long) = { parser, printer, copier };

    callers[random % ARRAY_LEN(callers)](s, (random >> 8) % BYTES_MAX + 1);
}

static int task(struct work_task *t)
{
    struct source s = { .at = t->seed };
    uint64_t random = t->seed;

    for (t->calls = 0; t->calls < 2000; t->calls++)
        one_call(&s, work_next(&random));
    t->result = s.sum;
    return 0;
}

/* `run readers SEED [spread]`: with `spread`, threads on all CPUs call the functions;
 * without it, one thread does.
 */
static int readers_run(struct work *w)
{
    struct source s = { .at = w->seed };

    if (w->argc > 1)
        return work_spread(w, task, NULL);
    for (unsigned i = 0; i < 300; i++)
        one_call(&s, work_random(w));
    work_mix(w, s.sum);
    return 0;
}
WORKLOAD(readers, readers_run, "calls what lab 2 watches");
