/* world.h - the functions that the tracer of lab 10 calls. They stand for a kernel. By
 * rig.h, the tests make things happen in this world that happen in a kernel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe {
    uint64_t addr;
    bool is_return;
    void (*handler)(struct probe *p); /* called at each hit, on any CPU, without a lock */
};

/* world_register - make each execution of the place a hit, from now on. The mutex must be
 * held. False: no probe may be there.
 * world_unregister - let no more hits begin. Hits that have begun on other CPUs go on:
 * their handlers may still be called.
 * world_wait - wait until all hits are over that had begun before this call. Meanwhile
 * others may begin.
 */
bool world_register(struct probe *p);
void world_unregister(struct probe *p);
void world_wait(void);

/* world_lock, world_unlock - take and leave a mutex. A handler must not call them. */
void world_lock(void);
void world_unlock(void);

/* world_symbol - return the address of a function; 0: no function has this name. */
uint64_t world_symbol(const char *name);

/* world_alloc - allocate @size bytes of zeros. world_free - free them. In a run, fewer than
 * 4,096 blocks can be allocated, whether or not they are freed.
 */
void *world_alloc(size_t size);
void world_free(void *memory);
