/* boundary.c - stage 2: finds out where instructions begin. Only decoding a function from
 * its start can tell.
 *
 * The boundaries of each function that was decoded are remembered in a bitmap, since a
 * caller may register thousands of probes, in any order. The bytes of the instructions
 * are not remembered: they are read each time. All bitmaps are freed when the last probe
 * has gone, after a set was registered, and when there are MAPS_MAX of them.
 */
#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/core/recover.h"

#define BUCKETS 256
#define MAPS_MAX 8192 /* functions, some 80 bytes each */

struct map {
    struct map *next;
    uintptr_t start;
    size_t size;
    uintptr_t stopped_at; /* where decoding ended; start + size: all was decoded */
    uint64_t starts[];    /* bit i: an instruction begins at start + i */
};

/* Locks: all PLAT_PROBES. */
static struct map *buckets[BUCKETS];
static size_t map_count;

static struct map **map_bucket(uintptr_t start)
{
    return &buckets[(start ^ start >> 12) / 16 % BUCKETS];
}

void boundary_forget(void)
{
    for (size_t i = 0; map_count && i < BUCKETS; i++) {
        while (buckets[i]) {
            struct map *map = buckets[i];

            buckets[i] = map->next;
            plat_free(map);
            map_count--;
        }
    }
}

static const struct map *map_find(const struct plat_symbol *function)
{
    const struct map *map = *map_bucket(function->start);

    while (map && (map->start != function->start || map->size != function->size))
        map = map->next;
    return map;
}

static void map_mark(const struct insn *insn, void *arg)
{
    struct map *map = arg;
    size_t off = insn->addr - map->start;

    map->starts[off / 64] |= BIT(off % 64);
    map->stopped_at = insn_next(insn);
}

static void map_add(struct map *map)
{
    struct map **bucket = map_bucket(map->start);

    if (map_count == MAPS_MAX)
        boundary_forget();
    map->next = *bucket;
    *bucket = map;
    map_count++;
}

/* map_get - find the map of @function, or make it. */
static int map_get(const struct map **out, const struct plat_symbol *function,
                   struct probe_reject *why)
{
    size_t words = function->size / 64 + 1;
    struct map *map;
    int err;

    *out = map_find(function);
    if (*out)
        return 0;
    map = plat_alloc(sizeof(*map) + words * sizeof(map->starts[0]));
    if (!map)
        return probe_refuse(why, PROBE_NO_MEMORY, function->start);
    map->start = map->stopped_at = function->start;
    map->size = function->size;
    err = boundary_for_each(function, map_mark, map);
    if (err && err != -EILSEQ) {
        plat_free(map);
        return probe_refuse(why, err == -ENOMEM ? PROBE_NO_MEMORY : PROBE_NOT_TEXT,
                            function->start);
    }
    map_add(map);
    *out = map;
    return 0;
}

static uintptr_t insn_start(const struct map *map, uintptr_t addr)
{
    size_t off = addr - map->start;

    while (off && !(map->starts[off / 64] & BIT(off % 64)))
        off--;
    return map->start + off;
}

int boundary_find(uintptr_t addr, const struct plat_symbol *function, struct insn *insn,
                  struct probe_reject *why)
{
    uint8_t bytes[INSN_MAX_LEN];
    size_t rest = function->start + function->size - addr;
    size_t left = rest < sizeof(bytes) ? rest : sizeof(bytes);
    const struct map *map = NULL; /* not needed for the start of the function */
    int err = addr == function->start ? 0 : map_get(&map, function, why);

    if (err)
        return err;
    if (map && addr >= map->stopped_at && map->stopped_at < map->start + map->size)
        return probe_refuse(why, PROBE_UNDECODABLE, map->stopped_at);
    if (map && insn_start(map, addr) != addr)
        return probe_refuse(why, PROBE_NOT_BOUNDARY, insn_start(map, addr));
    if (recover_bytes(bytes, addr, left))
        return probe_refuse(why, PROBE_NOT_TEXT, addr);
    err = insn_decode(insn, bytes, left, addr);
    return err ? probe_refuse(why, PROBE_UNDECODABLE, addr) : 0;
}

int boundary_before(uintptr_t addr, const struct plat_symbol *function, struct insn *insn)
{
    const struct map *map;
    int err = addr == function->start ? -ENOENT : map_get(&map, function, NULL);

    return err ? err : boundary_find(insn_start(map, addr - 1), function, insn, NULL);
}

int boundary_for_each(const struct plat_symbol *function,
                      void (*fn)(const struct insn *insn, void *arg), void *arg)
{
    uint8_t *bytes = plat_alloc(function->size);
    struct insn insn;
    int err;

    if (!bytes)
        return -ENOMEM;
    err = recover_bytes(bytes, function->start, function->size);
    for (size_t off = 0; !err && off < function->size; off += insn.len) {
        if (insn_decode(&insn, bytes + off, function->size - off, function->start + off))
            err = -EILSEQ;
        else
            fn(&insn, arg);
    }
    plat_free(bytes);
    return err;
}
