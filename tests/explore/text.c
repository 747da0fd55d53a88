/* text.c - a program whose text the engine changes, and the platform below the engine. */
#include "tests/explore/text.h"

#include "kernel/cpu/percpu.h"
#include "probes/core/life.h"
#include "tests/unit/port_fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void text_once(void)
{
    fake_start();
}

void text_start(void)
{
    fake.cpus = MACHINE_CPUS;
    fake.stack_base = 0;
}

uintptr_t text_function(const char *name)
{
    struct code *c = &codes[code_count++];

    c->addr = fake_function(name, "55 48 89 e5 5d c3");
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

/* fetch - return the byte at the start of @c, as it is, or as it was. */
static uint8_t fetch(const struct code *c)
{
    uint8_t now, old;

    explore_together(true);
    now = c->now[0];
    old = c->old[explore_cpu()][0];
    explore_together(false);
    return now == old || explore_choose(2) ? now : old;
}

/* run_cell - execute the copy of the push, and the jump behind it. */
static void run_cell(uintptr_t at, uintptr_t fn)
{
    const uint8_t *bytes = (const uint8_t *)at;
    int32_t distance;

    explore_check(plat_exec_contains(at), "the cell is there");
    explore_point();
    explore_check(bytes[0] == PUSH && bytes[1] == 0xe9, "it has the instruction");
    memcpy(&distance, bytes + 2, sizeof(distance));
    explore_check(at + 6 + (uintptr_t)(intptr_t)distance == fn + 1, "and goes back");
}

/* trap - take the trap of an int3. Return: whether the CPU shall execute @fn once more. */
static bool trap(uintptr_t fn)
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
    if (regs.ip != fn)
        run_cell(regs.ip, fn);
    machine_leave();
    return regs.ip == fn;
}

void text_run(uintptr_t fn)
{
    uint8_t byte;

    do {
        byte = fetch(code_of(fn));
        explore_check(byte == PUSH || byte == INT3, "the fetch gives an instruction");
    } while (byte == INT3 && trap(fn));
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

static bool takes_interrupts(const void *arg)
{
    return !((const struct machine_cpu *)arg)->irqs_off;
}

void __wrap_plat_sync_cores(void);
void __wrap_plat_sync_cores(void)
{
    fake.syncs++;
    for (unsigned i = 0; i < MACHINE_CPUS; i++) {
        if (i != explore_cpu())
            explore_wait(takes_interrupts, &machine[i]);
        explore_together(true);
        serialise(i);
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

unsigned long __wrap_plat_irq_save(void);
unsigned long __wrap_plat_irq_save(void)
{
    bool on = !machine_self()->irqs_off;

    if (on)
        machine_irqs(false);
    return on;
}

void __wrap_plat_irq_restore(unsigned long on);
void __wrap_plat_irq_restore(unsigned long on)
{
    if (on)
        machine_irqs(true);
}

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

/* ---- of tests/unit/unit.h ---- */

void unit_check(bool holds, const char *file, int line, const char *what)
{
    (void)file;
    (void)line;
    explore_check(holds, what);
}

void unit_note(const char *fmt, ...)
{
    (void)fmt;
}
