/* parts.h - what the two halves of the explorer share: search.c, which chooses schedules, and
 * seen.c, which sees accesses.
 */
#pragma once

#include "tests/explore/explore.h"

#include <ucontext.h>

#define ARENA_LEN (4u << 20)
#define STACK_LEN (256u << 10)
#define SPIN_READS 16

/* Eight bytes of memory that an actor has used. */
struct granule {
    uintptr_t addr;
    uint8_t readers, writers; /* bits of actors, in this pass */
    bool is_shared;           /* a point of choice, for all of this pass */
};

struct fiber {
    ucontext_t context;
    uint8_t *stack;
    bool is_started, is_done;
    uint64_t history;            /* hash of all that it has read, and where */
    bool (*holds)(const void *); /* it waits for that; NULL: it does not wait */
    const void *arg;
    struct spin_read { /* what it has read since its last pause */
        uintptr_t addr;
        uint64_t value;
    } reads[SPIN_READS];
    struct spin_read writes[SPIN_READS]; /* what stood where it has written since then */
    unsigned read_count, write_count;
    uint64_t turn; /* hash of the turn of a loop that ended with that pause */
};

/* All state of the explorer lies outside of the program's data, which is put back before
 * each schedule.
 */
extern struct explorer {
    /* the schedule that runs */
    bool is_together;  /* the accesses of the actor are parts of one step */
    bool is_running;   /* actors run: their accesses count */
    struct fiber *now; /* the actor that runs */
    uint64_t step;     /* opportunities to choose, up to now */
    uint8_t *arena_top;
    size_t blocks;
    bool irqs_off[EXPLORE_ACTORS]; /* by CPU */
    struct fiber fibers[EXPLORE_ACTORS];
    unsigned count;

    /* memory; seen.c */
    uint8_t *arena;
    uint8_t *freed; /* one for each granule of the arena */
    struct granule *granules;
    size_t granule_count;
    uintptr_t *shared; /* addresses of those that are shared */
    size_t shared_count;
} * x;

/* seen.c */
#define SEEN_READ 1u
#define SEEN_WRITE 2u
uint64_t seen_mix(uint64_t hash, uint64_t word);
uint64_t seen_memory(void); /* a hash of all shared memory */
bool seen_is_shared(uintptr_t addr);
bool seen_shared_grew(void); /* end of a pass: more is shared than was known */
void seen_start(void);       /* of the program */
bool seen_has_changed(const struct spin_read *read);

/* search.c */
/* search_access - an actor is about to use @addr, in code at @pc. */
void search_access(bool is_shared, uintptr_t addr, unsigned kind, const void *pc);
