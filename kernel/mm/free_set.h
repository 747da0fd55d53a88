/* free_set.h - which of many numbered things are free: frames, pages of an area. Pure.
 *
 * A bitmap, bit set = free, with a summary above it: bit i of the next level says that
 * word i of this one is not zero; and so on up to a single word. The lowest free one of
 * 16 million is found in five steps. No locking of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FREE_SET_LEVELS 5 /* 64^5: a thousand million things */
#define FREE_SET_NONE SIZE_MAX

struct free_set {
    size_t count; /* things 0..count-1 */
    size_t free;  /* how many are */
    unsigned levels;
    uint64_t *level[FREE_SET_LEVELS]; /* [0] is the bitmap */
};

/* free_set_storage - bytes that a set of @count things needs. @count: 1..64^5 */
size_t free_set_storage(size_t count);

/* free_set_init - a set in which nothing is free.
 * @storage: free_set_storage(@count) bytes, 8-byte aligned; the set's as long as it lives
 */
void free_set_init(struct free_set *s, size_t count, void *storage);

/* free_set_add, free_set_remove - make @first..@first+@count-1 free, or not; those that
 * are so already stay so. The range lies within the set.
 */
void free_set_add(struct free_set *s, size_t first, size_t count);
void free_set_remove(struct free_set *s, size_t first, size_t count);

/* free_set_has - is @i free? @i: less than count */
bool free_set_has(const struct free_set *s, size_t i);

/* free_set_has_any - is one of @count things from @first on free? */
bool free_set_has_any(const struct free_set *s, size_t first, size_t count);

/* free_set_find - the lowest free one from @from on; FREE_SET_NONE without one. */
size_t free_set_find(const struct free_set *s, size_t from);

/* free_set_find_run - the lowest run of @count free ones from @from on.
 * @align: the first is a multiple of it; a power of two
 * Return: its first; FREE_SET_NONE without one.
 */
size_t free_set_find_run(const struct free_set *s, size_t from, size_t count,
                         size_t align);
