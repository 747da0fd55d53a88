/* fixture.c - runs fixtures, and counts the executed instructions by single steps. */
#include "tests/hosted/fixture.h"

#include "kernel/mm/extable.h"
#include "probes/core/platform.h"
#include "probes/insn/insn.h"
#include "tests/hosted/posix.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_LEN 4096
#define FIXTURES_MAX 128
#define HANDLERS_ROOM 65536

/* fixture_call.asm */
void fixture_call(void (*fn)(void), struct image *image);
void fixture_returned(void);

extern const char fixtures_text_start[], fixtures_text_end[];
extern uint64_t fixture_data[64];

static struct fixture fixtures[FIXTURES_MAX];
static size_t fixture_count;
static uint8_t original[FIXTURES_TEXT_MAX];

uintptr_t fixtures_start(void)
{
    return (uintptr_t)fixtures_text_start;
}

size_t fixtures_size(void)
{
    return (size_t)(fixtures_text_end - fixtures_text_start);
}

/* ---- the list of fixtures ---- */

static bool can_run(const char *name)
{
    if (!strcmp(name, "fx_avx"))
        return __builtin_cpu_supports("avx2");
    if (!strcmp(name, "fx_bmi"))
        return __builtin_cpu_supports("bmi2");
    return true;
}

static void find_all(void)
{
    struct plat_symbol sym;

    if (fixtures_size() > FIXTURES_TEXT_MAX)
        abort();
    memcpy(original, (const void *)fixtures_start(), fixtures_size());
    for (uintptr_t a = fixtures_start(); a < fixtures_start() + fixtures_size();) {
        if (plat_symbol_at(a, &sym)) {
            a++; /* padding */
            continue;
        }
        a = sym.start + sym.size;
        if (strncmp(sym.name, "fx_", 3) || !can_run(sym.name))
            continue;
        if (fixture_count == FIXTURES_MAX)
            abort();
        fixtures[fixture_count++] = (struct fixture){ sym.name, sym.start, sym.size };
    }
}

bool fixture_get(size_t i, struct fixture *out)
{
    if (!fixture_count)
        find_all();
    if (i >= fixture_count)
        return false;
    *out = fixtures[i];
    return true;
}

uint8_t fixture_original(uintptr_t addr)
{
    return original[addr - fixtures_start()];
}

static bool decode(uintptr_t addr, struct insn *insn)
{
    size_t off = addr - fixtures_start();

    return off < fixtures_size() &&
           !insn_decode(insn, original + off, fixtures_size() - off, addr);
}

size_t fixture_boundaries(uintptr_t *out)
{
    struct plat_symbol sym;
    struct insn insn;
    size_t n = 0;

    for (uintptr_t a = fixtures_start(); a < fixtures_start() + fixtures_size();) {
        if (plat_symbol_at(a, &sym)) {
            a++;
            continue;
        }
        for (; a < sym.start + sym.size; a += insn.len) {
            if (!decode(a, &insn))
                abort();
            out[n++] = a;
        }
    }
    return n;
}

/* ---- running one ---- */

static uint64_t splitmix(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* bench_init - map stack and memory. Below the stack there is room for handlers. The
 * memory ends at the end of a page, and the page behind it cannot be accessed.
 */
void bench_init(struct bench *b)
{
    size_t len = HANDLERS_ROOM + FIXTURE_STACK + PAGE_LEN;
    uint8_t *map =
        mmap(NULL, len + PAGE_LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED || mprotect(map, len, PROT_READ | PROT_WRITE))
        abort();
    b->stack = map + HANDLERS_ROOM;
    b->mem = map + len - FIXTURE_MEM;
}

static void fill(void *p, size_t len, uint64_t *state)
{
    uint64_t *words = p;

    for (size_t i = 0; i < len / 8; i++)
        words[i] = splitmix(state);
}

void bench_fill(struct bench *b, uint64_t seed)
{
    const unsigned long status =
        FLAGS_CF | FLAGS_PF | FLAGS_AF | FLAGS_ZF | FLAGS_SF | FLAGS_OF;

    fill(b->mem, FIXTURE_MEM, &seed);
    fill(b->image.regs, sizeof(b->image.regs), &seed);
    memset(b->stack, 0x5a, FIXTURE_STACK);
    b->image.regs[INSN_SP] = (uintptr_t)b->stack + FIXTURE_STACK;
    b->image.regs[INSN_DI] = (uintptr_t)b->mem;
    b->image.flags = (splitmix(&seed) & status) | FLAGS_FIXED | FLAGS_IF;
}

static uint64_t digest(uint64_t hash, const void *p, size_t len)
{
    const uint8_t *bytes = p;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* outcome_of - compute the digests after a run. The topmost words of the stack are left
 * out: they belong to fixture_call().
 */
static struct outcome outcome_of(const struct bench *b)
{
    uint64_t start = UINT64_C(0xcbf29ce484222325);

    return (struct outcome){
        .all = digest(digest(start, b->mem, FIXTURE_MEM), &b->image, sizeof(b->image)),
        .stack = digest(start, b->stack, FIXTURE_STACK - 64),
    };
}

struct outcome bench_run(struct bench *b, const struct fixture *f, uint64_t seed)
{
    bench_fill(b, seed);
    fixture_call((void (*)(void))f->start, &b->image);
    return outcome_of(b);
}

/* ---- counting by single steps ---- */

static struct {
    uint32_t *counts;
    uintptr_t before; /* the last instruction that was counted */
    uintptr_t lost;   /* the instruction whose trap was lost; 0: none */
} tracer;

static bool counts_for(uintptr_t ip)
{
    return ip - fixtures_start() < fixtures_size();
}

static void count(uintptr_t ip)
{
    tracer.counts[ip - fixtures_start()]++;
    tracer.before = ip;
}

/* is_iteration - is this the next iteration of the same repeated string instruction? The
 * CPU traps after each iteration.
 */
static bool is_iteration(uintptr_t ip, const struct insn *insn)
{
    return ip == tracer.before && insn->kind == INSN_STRING;
}

static bool is_cpuid(const struct insn *insn)
{
    return insn->map == 1 && insn->opcode == 0xa2;
}

/* count_fixup - after a fault the program goes on at the fix-up, and the first trap comes
 * behind the first instruction there. So count that instruction here.
 */
static void count_fixup(uintptr_t ip)
{
    uintptr_t fixup = tracer.before ? extable_find(tracer.before) : 0;
    struct insn insn;

    if (!fixup || !decode(fixup, &insn) || ip != fixup + insn.len)
        return;
    count(fixup);
}

/* count_lost - a hypervisor that executes cpuid for the program may lose the trap behind it:
 * then the next one comes behind the instruction that follows. So count that one here.
 */
static void count_lost(uintptr_t ip)
{
    uintptr_t behind;
    struct insn insn;

    if (!tracer.before || !decode(tracer.before, &insn) || !is_cpuid(&insn))
        return;
    behind = tracer.before + insn.len;
    if (!decode(behind, &insn) || ip != behind + insn.len)
        return;
    tracer.lost = tracer.before;
    count(behind);
}

bool fixture_trap_is_lost(uintptr_t addr)
{
    return addr == tracer.lost;
}

/* on_step - count the instruction at ip, which the CPU has not executed yet. */
static void on_step(struct pt_regs *regs)
{
    struct insn insn;

    if (regs->ip == (uintptr_t)fixture_returned) {
        regs->flags &= ~FLAGS_TF;
        return;
    }
    if (!counts_for(regs->ip) || !decode(regs->ip, &insn))
        return;
    if (is_iteration(regs->ip, &insn))
        return;
    count_fixup(regs->ip);
    count_lost(regs->ip);
    count(regs->ip);
    if (insn.kind == INSN_POPF)
        *(uint16_t *)regs->sp |= FLAGS_TF; /* otherwise popf would end the single steps */
}

struct outcome fixture_trace(struct bench *b, const struct fixture *f, uint64_t seed,
                             uint32_t *counts)
{
    tracer.counts = counts;
    tracer.before = 0;
    posix_debug_hook = on_step;
    bench_fill(b, seed);
    b->image.flags |= FLAGS_TF;
    fixture_call((void (*)(void))f->start, &b->image);
    posix_debug_hook = NULL;
    return outcome_of(b);
}
