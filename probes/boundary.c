/* boundary.c - stage 2: where instructions begin. Only decoding from the start of the
 * function can tell.
 *
 * The last function's boundaries are remembered as a bitmap, since probes come in runs
 * over one function; the bytes behind them are read anew each time.
 */
#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "probes/life.h"
#include "probes/recover.h"

/* Locks: all PLAT_PROBES. */
static struct {
    uintptr_t start;
    size_t size;
    uintptr_t stopped_at; /* decoding ended here; start + size when all is well */
    uint64_t *starts;     /* bit i: an instruction begins at start + i */
} cache;

void boundary_forget(void)
{
    plat_free(cache.starts);
    cache.starts = NULL;
    cache.start = 0;
    cache.size = 0;
}

static void map_boundaries(const uint8_t *bytes, size_t size)
{
    struct insn insn;
    size_t off = 0;

    while (off < size) {
        if (insn_decode(&insn, bytes + off, size - off, cache.start + off))
            break;
        cache.starts[off / 64] |= BIT(off % 64);
        off += insn.len;
    }
    cache.stopped_at = cache.start + off;
}

static int load(const struct plat_symbol *function, struct probe_reject *why)
{
    uint8_t *bytes;

    if (cache.starts && cache.start == function->start && cache.size == function->size)
        return 0;
    boundary_forget();
    bytes = plat_alloc(function->size);
    cache.starts = plat_alloc((function->size / 64 + 1) * sizeof(uint64_t));
    if (!bytes || !cache.starts) {
        plat_free(bytes);
        return probe_refuse(why, PROBE_NO_MEMORY, function->start);
    }
    if (recover_bytes(bytes, function->start, function->size)) {
        plat_free(bytes);
        boundary_forget();
        return probe_refuse(why, PROBE_NOT_TEXT, function->start);
    }
    cache.start = function->start;
    cache.size = function->size;
    map_boundaries(bytes, function->size);
    plat_free(bytes);
    return 0;
}

static uintptr_t start_of(uintptr_t addr)
{
    size_t off = addr - cache.start;

    while (off && !(cache.starts[off / 64] & BIT(off % 64)))
        off--;
    return cache.start + off;
}

int boundary_find(uintptr_t addr, const struct plat_symbol *function, struct insn *insn,
                  struct probe_reject *why)
{
    uint8_t bytes[INSN_MAX_LEN];
    size_t left = function->start + function->size - addr;
    int err = load(function, why);

    if (err)
        return err;
    if (addr >= cache.stopped_at && cache.stopped_at < cache.start + cache.size)
        return probe_refuse(why, PROBE_UNDECODABLE, cache.stopped_at);
    if (start_of(addr) != addr)
        return probe_refuse(why, PROBE_NOT_BOUNDARY, start_of(addr));
    if (left > sizeof(bytes))
        left = sizeof(bytes);
    if (recover_bytes(bytes, addr, left) || insn_decode(insn, bytes, left, addr))
        return probe_refuse(why, PROBE_UNDECODABLE, addr);
    return 0;
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
        err =
            insn_decode(&insn, bytes + off, function->size - off, function->start + off);
        if (!err)
            fn(&insn, arg);
    }
    plat_free(bytes);
    return err;
}
