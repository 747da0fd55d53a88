/* text.c - a program whose text the engine changes, and the platform below the engine. */
#include "tests/explore/text.h"

#include "kernel/cpu/percpu.h"
#include "tests/unit/port_fake.h"
#include "tests/unit/symbol_list.h"

#define PUSH 0x55
#define INT3 0xcc
#define LEN 16
#define FUNCTIONS 2

/* The first bytes of a function. `old` is what a CPU may still fetch. */
static struct code {
    uintptr_t addr;
    uint8_t now[LEN];
    uint8_t old[MACHINE_CPUS][LEN];
} codes[FUNCTIONS];
static unsigned code_count;

static struct code *code_of(uintptr_t addr)
{
    for (unsigned i = 0; i < code_count; i++)
        if (addr - codes[i].addr < LEN)
            return &codes[i];
    return NULL;
}

/* ---- start ---- */

/* The list of symbols gets its room here: else it would get new room in each schedule, which
 * the search would see as new memory.
 */
void text_once(void)
{
    fake_start();
    symbol_add("none", 0, 0);
    symbols_clear();
}

void text_start(void)
{
    fake.cpus = MACHINE_CPUS;
    fake.stack_base = 0;
    for (unsigned i = 0; i < code_count; i++)
        for (unsigned k = 0; k < LEN; k++)
            fake_text_poke(codes[i].addr + k, codes[i].now[k]);
}

uintptr_t text_function(const char *name, const char *hex)
{
    struct code *c = &codes[code_count++];

    c->addr = fake_function(name, hex);
    memcpy(c->now, (const void *)c->addr, LEN);
    for (unsigned i = 0; i < MACHINE_CPUS; i++)
        memcpy(c->old[i], c->now, LEN);
    return c->addr;
}

/* ---- what the processor does ---- */

static void serialise(unsigned cpu)
{
    for (unsigned i = 0; i < code_count; i++)
        memcpy(codes[i].old[cpu], codes[i].now, LEN);
}

void text_fetch(uintptr_t fn, uint8_t *bytes, size_t len)
{
    const struct code *c = code_of(fn);
    uint8_t now[LEN], old[LEN];

    explore_together(true);
    memcpy(now, c->now, LEN);
    memcpy(old, c->old[explore_cpu()], LEN);
    explore_together(false);
    for (size_t i = 0; i < len; i++)
        bytes[i] = now[i] == old[i] || explore_choose(2) ? now[i] : old[i];
}

uintptr_t text_trap(uintptr_t fn)
{
    struct pt_regs regs = { .ip = fn + 1, .flags = FLAGS_FIXED | FLAGS_IF };
    bool taken;

    regs.sp = (uintptr_t)(fake_stack() - 64 * explore_cpu());
    machine_irqs(false);
    machine_enter();
    serialise(explore_cpu());
    taken = kprobe_int3_handler(&regs, plat_this_cpu());
    explore_check(taken, "an int3 has an owner");
    machine_irqs(true);
    explore_check(regs.ip == fn || plat_exec_contains(regs.ip), "the copy is there");
    return regs.ip;
}

void text_leave(void)
{
    machine_leave();
}

/* run_copy - execute the copy of the push, and the jump behind it. */
static void run_copy(uintptr_t at, uintptr_t fn)
{
    const uint8_t *bytes = (const uint8_t *)at;
    int32_t distance;

    explore_point();
    explore_check(bytes[0] == PUSH && bytes[1] == 0xe9, "it has the instruction");
    memcpy(&distance, bytes + 2, sizeof(distance));
    explore_check(at + 6 + (uintptr_t)(intptr_t)distance == fn + 1, "and goes back");
}

/* An interrupt comes in front of an instruction or behind it, and then the CPU fetches anew.
 * So none comes between the fetch of an int3 and its trap.
 */
void text_run(uintptr_t fn)
{
    uintptr_t ip = fn;
    uint8_t byte;

    do {
        machine_irqs(false);
        text_fetch(fn, &byte, 1);
        explore_check(byte == PUSH || byte == INT3, "the fetch gives an instruction");
        if (byte == PUSH)
            break;
        ip = text_trap(fn);
        if (ip != fn)
            run_copy(ip, fn);
        text_leave();
    } while (ip == fn);
    machine_irqs(true);
}

/* ---- the platform: these take the place of those of port_fake ---- */

int __real_plat_text_write(uintptr_t addr, const void *bytes, size_t len);
int __wrap_plat_text_write(uintptr_t addr, const void *bytes, size_t len);
int __wrap_plat_text_write(uintptr_t addr, const void *bytes, size_t len)
{
    struct code *c = code_of(addr);

    explore_together(true);
    if (c)
        memcpy(c->now + (addr - c->addr), bytes, len);
    explore_together(false);
    return __real_plat_text_write(addr, bytes, len);
}

int __real_plat_text_read(void *dst, uintptr_t addr, size_t len);
int __wrap_plat_text_read(void *dst, uintptr_t addr, size_t len);
int __wrap_plat_text_read(void *dst, uintptr_t addr, size_t len)
{
    const struct code *c = code_of(addr);

    if (c) {
        explore_together(true);
        (void)*(const volatile uint8_t *)c->now;
        explore_together(false);
    }
    return __real_plat_text_read(dst, addr, len);
}

void __wrap_plat_sync_cores(void);
void __wrap_plat_sync_cores(void)
{
    fake.syncs++;
    for (unsigned i = 0; i < MACHINE_CPUS; i++) {
        explore_together(true);
        while (i != explore_cpu() && !machine_takes_irqs(&machine[i])) {
            explore_together(false);
            explore_wait(machine_takes_irqs, &machine[i]);
            explore_together(true);
        }
        serialise(i); /* at the interrupt: nothing that was fetched before is left */
        explore_together(false);
    }
}

void quiesce(void);
void __wrap_plat_quiesce(void);
void __wrap_plat_quiesce(void)
{
    quiesce();
}

struct probe_cpu *__wrap_plat_this_cpu(void);
struct probe_cpu *__wrap_plat_this_cpu(void)
{
    return plat_probe_cpu(explore_cpu());
}

/* ---- of tests/unit/unit.h ---- */

void unit_check(bool holds, const char *file UNUSED, int line UNUSED, const char *what)
{
    explore_check(holds, what);
}

void unit_note(const char *fmt UNUSED, ...)
{
}
