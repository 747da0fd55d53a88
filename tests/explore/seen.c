/* seen.c - sees each access of the tested code to memory. The compiler calls these functions
 * before an access, or in place of an atomic one (-fsanitize=thread); the linker brings calls
 * of memcpy() and its kind here.
 */
#define _GNU_SOURCE
#include "kernel/base/compiler.h"
#include "tests/explore/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GRANULES (1u << 18) /* places of the hash table */

/* Below 2 GiB, the same in each run, and above the heap: Linux begins this at random, in the
 * first GiB behind the program.
 */
static const uintptr_t arena_base = 0x70000000;

static uint32_t *table; /* by the hash of an address: number of its granule, plus 1 */

uint64_t seen_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ hash >> 32) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 29;
}

static struct granule *granule_of(uintptr_t addr)
{
    size_t i = seen_mix(1, addr) % GRANULES;

    for (; table[i]; i = (i + 1) % GRANULES)
        if (x->granules[table[i] - 1].addr == addr)
            return &x->granules[table[i] - 1];
    if (x->granule_count == GRANULES / 2)
        abort();
    table[i] = (uint32_t)++x->granule_count;
    x->granules[table[i] - 1] = (struct granule){ .addr = addr };
    return &x->granules[table[i] - 1];
}

static uint64_t value_at(uintptr_t addr)
{
    return *(const volatile uint64_t *)addr;
}

uint64_t seen_memory(void)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < x->shared_count; i++)
        hash += seen_mix(x->shared[i] * 31, value_at(x->shared[i]));
    return hash;
}

static bool is_used_by_several(const struct granule *g)
{
    unsigned all = g->readers | g->writers;

    return g->writers && all & (all - 1);
}

bool seen_shared_grew(void)
{
    bool grew = false;

    for (size_t i = 0; i < x->granule_count; i++) {
        struct granule *g = &x->granules[i];

        if (g->is_shared || !is_used_by_several(g))
            continue;
        grew = g->is_shared = true;
        x->shared[x->shared_count++] = g->addr;
    }
    return grew;
}

bool seen_is_shared(uintptr_t addr)
{
    return granule_of(addr)->is_shared;
}

bool seen_has_changed(const struct spin_read *read)
{
    return value_at(read->addr) != read->value;
}

/* ---- accesses ---- */

/* note_write - keep what stands at @addr before this turn of a loop writes there. */
static void note_write(struct fiber *f, uintptr_t addr)
{
    for (unsigned i = 0; i < f->write_count && i < SPIN_READS; i++)
        if (f->writes[i].addr == addr)
            return;
    if (f->write_count < SPIN_READS)
        f->writes[f->write_count] = (struct spin_read){ addr, value_at(addr) };
    f->write_count++;
}

static void granule_access(uintptr_t addr, unsigned kind, const void *pc)
{
    struct granule *g = granule_of(addr);
    struct fiber *self;
    unsigned bit;

    search_access(g->is_shared, addr, kind, pc);
    if (addr - arena_base < ARENA_LEN && x->freed[(addr - arena_base) / 8])
        explore_fail("memory is used that was freed");
    self = x->now;
    bit = 1u << (self - x->fibers);
    self->history = seen_mix(self->history, (uintptr_t)pc);
    if (kind & SEEN_WRITE) {
        g->writers |= (uint8_t)bit;
        note_write(self, addr);
    }
    if (!(kind & SEEN_READ))
        return;
    g->readers |= (uint8_t)bit;
    self->history = seen_mix(self->history, value_at(addr));
    self->reads[self->read_count++ % SPIN_READS] =
        (struct spin_read){ addr, value_at(addr) };
}

static void access(const volatile void *at, size_t len, unsigned kind, const void *pc)
{
    uintptr_t addr = (uintptr_t)at & ~7ul;

    if (!x || !x->is_running)
        return;
    for (; addr < (uintptr_t)at + len; addr += 8)
        granule_access(addr, kind, pc);
}

#define PC __builtin_return_address(0)

#define SIZED(bytes)                                                                     \
    void __tsan_read##bytes(void *p);                                                    \
    void __tsan_read##bytes(void *p)                                                     \
    {                                                                                    \
        access(p, bytes, SEEN_READ, PC);                                                 \
    }                                                                                    \
    void __tsan_write##bytes(void *p);                                                   \
    void __tsan_write##bytes(void *p)                                                    \
    {                                                                                    \
        access(p, bytes, SEEN_WRITE, PC);                                                \
    }                                                                                    \
    void __tsan_volatile_read##bytes(void *p);                                           \
    void __tsan_volatile_read##bytes(void *p)                                            \
    {                                                                                    \
        access(p, bytes, SEEN_READ, PC);                                                 \
    }                                                                                    \
    void __tsan_volatile_write##bytes(void *p);                                          \
    void __tsan_volatile_write##bytes(void *p)                                           \
    {                                                                                    \
        access(p, bytes, SEEN_WRITE, PC);                                                \
    }                                                                                    \
    void __tsan_unaligned_read##bytes(void *p);                                          \
    void __tsan_unaligned_read##bytes(void *p)                                           \
    {                                                                                    \
        access(p, bytes, SEEN_READ, PC);                                                 \
    }                                                                                    \
    void __tsan_unaligned_write##bytes(void *p);                                         \
    void __tsan_unaligned_write##bytes(void *p)                                          \
    {                                                                                    \
        access(p, bytes, SEEN_WRITE, PC);                                                \
    }

SIZED(1)
SIZED(2)
SIZED(4)
SIZED(8)
SIZED(16)

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_read_range(void *p, size_t len);
void __tsan_read_range(void *p, size_t len)
{
    access(p, len, SEEN_READ, PC);
}

void __tsan_write_range(void *p, size_t len);
void __tsan_write_range(void *p, size_t len)
{
    access(p, len, SEEN_WRITE, PC);
}

#define SWAP(name, bits, operation)                                                      \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *p,              \
                                                uint##bits##_t v, int order);            \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *p,              \
                                                uint##bits##_t v, int order)             \
    {                                                                                    \
        (void)order;                                                                     \
        access(p, bits / 8, SEEN_READ | SEEN_WRITE, PC);                                 \
        return operation(p, v, __ATOMIC_SEQ_CST);                                        \
    }

#define ATOMIC(bits)                                                                     \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *p,          \
                                              int order);                                \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *p,          \
                                              int order)                                 \
    {                                                                                    \
        (void)order;                                                                     \
        access(p, bits / 8, SEEN_READ, PC);                                              \
        return *p;                                                                       \
    }                                                                                    \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *p, uint##bits##_t v,       \
                                     int order);                                         \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *p, uint##bits##_t v,       \
                                     int order)                                          \
    {                                                                                    \
        (void)order;                                                                     \
        access(p, bits / 8, SEEN_WRITE, PC);                                             \
        *p = v;                                                                          \
    }                                                                                    \
    int __tsan_atomic##bits##_compare_exchange_strong(                                   \
        volatile uint##bits##_t *p, uint##bits##_t *old, uint##bits##_t v, int yes,      \
        int no);                                                                         \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile uint##bits##_t *p,        \
                                                      uint##bits##_t *old,               \
                                                      uint##bits##_t v, int yes, int no) \
    {                                                                                    \
        uint##bits##_t seen;                                                             \
        bool same;                                                                       \
                                                                                         \
        (void)yes;                                                                       \
        (void)no;                                                                        \
        access(p, bits / 8, SEEN_READ | SEEN_WRITE, PC);                                 \
        seen = *p;                                                                       \
        same = seen == *old;                                                             \
        if (same)                                                                        \
            *p = v;                                                                      \
        *old = seen;                                                                     \
        return same;                                                                     \
    }                                                                                    \
    SWAP(exchange, bits, __atomic_exchange_n)                                            \
    SWAP(fetch_add, bits, __atomic_fetch_add)                                            \
    SWAP(fetch_sub, bits, __atomic_fetch_sub)                                            \
    SWAP(fetch_or, bits, __atomic_fetch_or)                                              \
    SWAP(fetch_and, bits, __atomic_fetch_and)                                            \
    SWAP(fetch_xor, bits, __atomic_fetch_xor)

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order UNUSED)
{
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order UNUSED)
{
}

/* ---- blocks of memory: eight bytes at a time, as others may come between ---- */

void *__wrap_memcpy(void *to, const void *from, size_t len);
void *__wrap_memset(void *to, int byte, size_t len);
void *__real_memcpy(void *to, const void *from, size_t len);
void *__real_memset(void *to, int byte, size_t len);

static size_t piece(const void *at, size_t left)
{
    size_t whole = 8 - (uintptr_t)at % 8;

    return left < whole ? left : whole;
}

void *__wrap_memcpy(void *to, const void *from, size_t len)
{
    if (!x || !x->is_running)
        return __real_memcpy(to, from, len);
    for (size_t i = 0, n; i < len; i += n) {
        n = piece((uint8_t *)to + i, len - i);
        access((const uint8_t *)from + i, n, SEEN_READ, PC);
        access((uint8_t *)to + i, n, SEEN_WRITE, PC);
        __real_memcpy((uint8_t *)to + i, (const uint8_t *)from + i, n);
    }
    return to;
}

void *__wrap_memset(void *to, int byte, size_t len)
{
    if (!x || !x->is_running)
        return __real_memset(to, byte, len);
    for (size_t i = 0, n; i < len; i += n) {
        n = piece((uint8_t *)to + i, len - i);
        access((uint8_t *)to + i, n, SEEN_WRITE, PC);
        __real_memset((uint8_t *)to + i, byte, n);
    }
    return to;
}

/* ---- memory of scenarios ---- */

void seen_start(void)
{
    x->arena = mmap((void *)arena_base, ARENA_LEN, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (x->arena != (void *)arena_base) {
        printf("Bail out! the memory at %#lx is taken\n", arena_base);
        exit(1);
    }
    x->arena_top = x->arena;
    x->freed = calloc(ARENA_LEN / 8, 1);
    x->granules = calloc(GRANULES / 2, sizeof(*x->granules));
    x->shared = calloc(GRANULES / 2, sizeof(*x->shared));
    table = calloc(GRANULES, sizeof(*table));
    if (!x->freed || !x->granules || !x->shared || !table)
        abort();
}

/* The word before a block has its length. */
void *explore_alloc(size_t len)
{
    uint8_t *block = x->arena_top + 64;

    block += -(uintptr_t)block % (len >= 4096 ? 4096 : 64);
    if (block + len > x->arena + ARENA_LEN)
        abort();
    ((uint64_t *)block)[-1] = len;
    x->arena_top = block + len;
    x->blocks++;
    return block;
}

void explore_free(void *p)
{
    size_t first = (size_t)((uint8_t *)p - x->arena) / 8;

    if (!p)
        return;
    if (x->freed[first])
        explore_fail("memory is freed twice");
    explore_point();
    for (size_t i = 0; i < (((uint64_t *)p)[-1] + 7) / 8; i++) {
        x->freed[first + i] = 1;
        if (x->is_running) /* a read may come before or after: as if it was written */
            granule_of((uintptr_t)p + 8 * i)->writers |=
                (uint8_t)(1u << (x->now - x->fibers));
    }
    x->blocks--;
}

/* For scenarios that are linked with --wrap. */
void *__wrap_plat_alloc(size_t len);
void *__wrap_plat_alloc(size_t len)
{
    return explore_alloc(len);
}

void __wrap_plat_free(void *p);
void __wrap_plat_free(void *p)
{
    explore_free(p);
}

size_t explore_blocks(void)
{
    return x->blocks;
}

/* explore_asm - inline assembly comes next (code.h). */
void explore_asm(void);
void explore_asm(void)
{
    explore_point();
}
