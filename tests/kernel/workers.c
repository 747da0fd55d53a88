/* workers.c - makes the threads of workers.h, and waits for their ends. */
#include "tests/kernel/workers.h"

#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"

#include <stdio.h>
#include <string.h>

static int work(void *arg)
{
    const struct workers *w = arg;
    char text[64];

    for (unsigned i = 0; i < w->rounds; i++) {
        void *p = kmalloc(100);

        snprintf(text, sizeof(text), "%u %s", i, "words");
        memset(p, 1, 100);
        kfree(p);
        thread_yield();
    }
    return 0;
}

void workers_start(struct workers *w, unsigned rounds)
{
    w->rounds = rounds;
    for (unsigned i = 0; i < WORKERS; i++)
        w->tids[i] =
            kernel_clone(&(struct clone_args){ .fn = work, .arg = w, .name = "work" });
}

void workers_end(struct workers *w)
{
    for (unsigned i = 0; i < WORKERS; i++)
        thread_join(w->tids[i], NULL);
}

void workers_run(unsigned rounds)
{
    struct workers w;

    workers_start(&w, rounds);
    workers_end(&w);
}
