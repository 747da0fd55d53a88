/* grader.c - grades lab 10: has the functions of world.h, which the tracer calls,
 * and of rig.h, which the tests call. Each check states a fact. grader.py knows
 * which tracer runs.
 */
#define _GNU_SOURCE
#include "docs/labs/host/grader.h"

#include "rig.h"
#include "tracer.h"
#include "world.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define PROBES_MAX 4096 /* each lies in a block of its own */
#define HITS_MAX 4096
#define ZONE 16 /* bytes that are checked, in front of a block and behind it */
#define ZONE_BYTE 0xab
#define FREED_BYTE 0xdd
#define BLOCKS_MAX 4096
#define LOCK 0xf0

static struct probe *probes[PROBES_MAX];

/* The probes of hits that have begun and not ended. */
static struct probe *begun[HITS_MAX];
static unsigned begun_count;

static void (*other_writer)(void);
static bool is_locked;

static struct block {
    uint8_t *memory; /* ZONE, size bytes, ZONE */
    size_t size;
    bool is_freed;
} blocks[BLOCKS_MAX];
static unsigned block_count;

void check(bool holds, const char *what)
{
    lab_fact("%s %s", holds ? "ok" : "failed", what);
}

/* ---- memory ---- */

static struct block *block_of(const void *memory)
{
    for (unsigned i = 0; i < block_count; i++)
        if (blocks[i].memory + ZONE == (const uint8_t *)memory)
            return &blocks[i];
    return NULL;
}

static bool is_all(const uint8_t *bytes, size_t count, uint8_t byte)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != byte)
            return false;
    return true;
}

void *world_alloc(size_t size)
{
    struct block *b = &blocks[block_count++];

    if (block_count == BLOCKS_MAX) {
        check(false, "world_alloc() is called fewer than 4,096 times in a run");
        exit(0);
    }
    b->memory = malloc(size + 2 * ZONE);
    b->size = size;
    memset(b->memory, ZONE_BYTE, size + 2 * ZONE);
    memset(b->memory + ZONE, 0, size);
    return b->memory + ZONE;
}

/* The memory is not really freed, so that check_memory() sees a later write to it. */
void world_free(void *memory)
{
    struct block *b = block_of(memory);

    if (!b || b->is_freed) {
        check(false, "what is freed was allocated, and not freed before");
        return;
    }
    b->is_freed = true;
    memset(memory, FREED_BYTE, b->size);
}

unsigned rig_allocated(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < block_count; i++)
        count += !blocks[i].is_freed;
    return count;
}

static void check_memory(void)
{
    for (unsigned i = 0; i < block_count; i++) {
        const struct block *b = &blocks[i];

        if (!is_all(b->memory, ZONE, ZONE_BYTE) ||
            !is_all(b->memory + ZONE + b->size, ZONE, ZONE_BYTE))
            check(false, "no byte in front of memory or behind it is written");
        if (b->is_freed && !is_all(b->memory + ZONE, b->size, FREED_BYTE))
            check(false, "freed memory is not written");
    }
}

/* ---- probes ---- */

uint64_t world_symbol(const char *name)
{
    if (!strcmp(name, "alpha"))
        return 0x1000;
    return strcmp(name, "beta") ? 0 : 0xffffffff81002000;
}

bool world_register(struct probe *p)
{
    if (!is_locked)
        check(false, "the mutex is held when a probe is registered");
    if (p->addr < 0x1000 || p->addr == 0x1001)
        return false;
    for (unsigned i = 0; i < PROBES_MAX; i++)
        if (!probes[i]) {
            probes[i] = p;
            return true;
        }
    return false;
}

void world_unregister(struct probe *p)
{
    for (unsigned i = 0; i < PROBES_MAX; i++)
        if (probes[i] == p)
            probes[i] = NULL;
}

void rig_hit_begins(uint64_t addr)
{
    for (unsigned i = 0; i < PROBES_MAX; i++)
        if (probes[i] && probes[i]->addr == addr) {
            if (begun_count == HITS_MAX) {
                check(false, "fewer than 4,096 hits have begun and not ended");
                exit(0);
            }
            begun[begun_count++] = probes[i];
        }
}

/* If a probe has been freed, its handler is not called: the pointer to it is gone. */
void rig_hit_ends(void)
{
    unsigned count = begun_count;

    begun_count = 0;
    for (unsigned i = 0; i < count; i++) {
        bool is_freed = false;

        for (unsigned k = 0; k < block_count; k++)
            is_freed |= blocks[k].is_freed && (uint8_t *)begun[i] >= blocks[k].memory &&
                        (uint8_t *)begun[i] < blocks[k].memory + ZONE + blocks[k].size;
        if (is_freed)
            check(false, "a hit finds its probe");
        else
            begun[i]->handler(begun[i]);
    }
}

/* The CPUs whose hits are over execute the same places again. */
void world_wait(void)
{
    uint64_t addrs[HITS_MAX];
    unsigned count = begun_count;

    for (unsigned i = 0; i < count; i++)
        addrs[i] = begun[i]->addr;
    rig_hit_ends();
    for (unsigned i = 0; i < count; i++)
        if (!i || addrs[i] != addrs[i - 1])
            rig_hit_begins(addrs[i]);
}

/* A handler may run on many CPUs at once, so an instruction that adds to memory, or takes
 * part of an addition, needs a LOCK prefix: all memory of probes is looked at in each step.
 */
static struct {
    const uint8_t *rip;
    uint64_t sum;
    bool is_plain;
} step;

static uint64_t sum_of_blocks(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < block_count; i++)
        if (!blocks[i].is_freed)
            sum = lab_digest(sum, blocks[i].memory, blocks[i].size + 2 * ZONE);
    return sum;
}

static void on_step(int sig, siginfo_t *info, void *arg)
{
    uint64_t sum = sum_of_blocks();

    (void)sig;
    (void)info;
    if (step.rip && sum != step.sum && *step.rip != LOCK)
        step.is_plain = true;
    step.sum = sum;
    step.rip = (void *)((ucontext_t *)arg)->uc_mcontext.gregs[REG_RIP];
}

void rig_hit(uint64_t addr)
{
    for (unsigned i = 0; i < PROBES_MAX; i++)
        if (probes[i] && probes[i]->addr == addr)
            probes[i]->handler(probes[i]);
}

/* The tracer of the student's counts a hit, step by step. */
static void count(void)
{
    struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
    struct writer *w = tracer_open(true);

    tracer_write(w, "p alpha\n", 8);
    tracer_close(w);
    sigaction(SIGTRAP, &action, NULL);
    __asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" ::: "cc", "memory");
    rig_hit(0x1000);
    __asm__ volatile("pushfq; andl $~0x100, (%%rsp); popfq" ::: "cc", "memory");
    check(!step.is_plain, "hits on two CPUs at a time are both counted");
    tracer_close(tracer_open(true));
}

/* ---- the mutex ---- */

void rig_other_writer(void (*fn)(void))
{
    other_writer = fn;
}

void world_lock(void)
{
    void (*fn)(void) = other_writer;

    other_writer = NULL;
    if (fn)
        fn();
    if (is_locked)
        check(false, "the mutex is taken once");
    is_locked = true;
}

void world_unlock(void)
{
    if (!is_locked)
        check(false, "the mutex is left by its owner");
    is_locked = false;
}

static void run(void)
{
    run_tests();
    rig_hit_ends();
    check_memory();
    if (is_locked)
        check(false, "the mutex is left");
}

const struct lab_line lab_lines[] = {
    { "run", run },
    { "count", count },
    { 0 },
};
