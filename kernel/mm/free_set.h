/* free_set.h - keeps track of which of many numbered things are free: frames, or pages of
 * an area. Pure.
 *
 * Level 0 is a bitmap, in which a set bit means free. The levels above are summaries: bit
 * i of a level says that word i of the level below is not zero. The top level is a single
 * word. To find the lowest free thing of 16 million, at most seven words are read. No
 * locking of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FREE_SET_LEVELS 5 /* 64^5: a thousand million things */
#define FREE_SET_NONE SIZE_MAX

struct free_set {
    size_t count; /* things 0..count-1 */
    size_t free;  /* how many of them are free */
    unsigned levels;
    uint64_t *level[FREE_SET_LEVELS]; /* [0] is the bitmap */
};

/* free_set_storage - bytes that a set of @count things needs. @count: 1..64^5 */
size_t free_set_storage(size_t count);

/* free_set_init - make a set in which nothing is free.
 * @storage: free_set_storage(@count) bytes, 8-byte aligned; in use as long as the set is
 */
void free_set_init(struct free_set *s, size_t count, void *storage);

/* free_set_add, free_set_remove - make the things @first..@first+@count-1 free, or not
 * free. Things that are so already do not change. The range must lie within the set.
 */
void free_set_add(struct free_set *s, size_t first, size_t count);
void free_set_remove(struct free_set *s, size_t first, size_t count);

/* free_set_has_any - is any of the @count things from @first on free? */
bool free_set_has_any(const struct free_set *s, size_t first, size_t count);

/* free_set_find - find the lowest free thing from @from on; FREE_SET_NONE if none is. */
size_t free_set_find(const struct free_set *s, size_t from);

/* free_set_find_run - find the lowest run of @count free things from @from on.
 * @align: a power of two; the number of the first thing is a multiple of it
 * Return: the number of the first thing; FREE_SET_NONE: there is no such run.
 */
size_t free_set_find_run(const struct free_set *s, size_t from, size_t count,
                         size_t align);
