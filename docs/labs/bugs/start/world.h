/* world.h - what the tracer of lab 10 stands on. Its tests make this world do what a kernel
 * does: rig.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe {
    uint64_t addr;
    bool is_return;
    void (*handler)(struct probe *p); /* at each hit, on any CPU, without any lock */
};

/* world_register - from now on each execution of the place is a hit. False: no probe may be
 * there.
 * world_unregister - no hit begins any more. Hits that have begun on other CPUs go on: their
 * handlers may still be called.
 * world_wait - returns when all hits that had begun before the call are over.
 */
bool world_register(struct probe *p);
void world_unregister(struct probe *p);
void world_wait(void);

/* world_lock, world_unlock - a mutex, for all that is no handler. */
void world_lock(void);
void world_unlock(void);

/* world_symbol - the address of a function; 0: there is none of that name. */
uint64_t world_symbol(const char *name);

/* world_alloc - @size bytes of zeros. world_free - give them back. */
void *world_alloc(size_t size);
void world_free(void *memory);
