/* port_text.c - platform.h's part about text: how it is changed under CPUs that execute it.
 *
 * What an emulator adds. QEMU executes translations of the code. A write drops those of the
 * bytes in question, and then stores. A CPU that translates between the two, or began
 * before, makes a new translation of the old bytes, and it stays: the CPU would go on
 * without the breakpoint, or run into one that is gone, for ever. So text is written
 *
 *   1. as asked for                                        plat_text_write
 *   2. and once more, the same bytes, when every CPU has   plat_sync_cores
 *      been interrupted: whatever translation had been under way is finished by then, and
 *      is dropped now; those to come see the new bytes
 *   3. every CPU is interrupted again: none is still inside of one that was dropped
 *
 * From a write to the synchronisation behind it NMIs begin with a serialising instruction:
 * they come to CPUs that execute nothing else of the text, and to the one that writes.
 *
 * A processor made of silicon needs 1 only, and does not notice the rest. Copies in slots
 * need 1 only: no CPU executes there while they are written, but for plat_text_store().
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/heap.h"
#include "kernel/module/init_text.h"
#include "kernel/module/module.h"
#include "kernel/sync/stop_machine.h"
#include "kernel/time/clock.h"
#include "probes/core/life.h"
#include "probes/jump/platform_jump.h"
#include "probes/port/port.h"
#include "probes/port/port_held.h"

#include <string.h>

#define RANGES_MAX 1024
#define POKE_MAX 4096

/* Locks: PLAT_TEXT. */
static struct {
    struct {
        uintptr_t start, end;
    } ranges[RANGES_MAX]; /* written, and not yet a second time */
    size_t count;
} written;

int plat_text_read(void *dst, uintptr_t addr, size_t len)
{
    return copy_nofault(dst, (const void *)addr, len);
}
NOKPROBE(plat_text_read);

static bool is_image_text(uintptr_t addr, size_t len)
{
    return addr >= (uintptr_t)_text && addr + len <= kernel_text_end() &&
           addr + len >= addr;
}

bool plat_text_contains(uintptr_t addr, size_t len)
{
    return is_image_text(addr, len) || module_text_contains(addr, len);
}

/* ---- 2 and 3 ---- */

static void write_again(uintptr_t addr, uintptr_t end)
{
    static uint8_t bytes[POKE_MAX];

    while (addr < end) {
        size_t len = end - addr < POKE_MAX ? end - addr : POKE_MAX;

        memcpy(bytes, (const void *)addr, len);
        text_poke_alias_write((void *)addr, bytes, len);
        addr += len;
    }
}

/* The count proves, phase by phase, that every CPU has been there. */
static void sync_core(void *unused)
{
    uint32_t out[4];

    (void)unused;
    cpuid(0, 0, out);
    this_cpu()->sync_count++;
    this_cpu()->sync_cycles = rdtsc();
}
NOKPROBE(sync_core);

/* A halted CPU executes nothing, and has no translation under way. When it wakes it
 * serialises before anything else, which counts as done.
 */
static void sync_halted(unsigned cpu, void *unused)
{
    (void)unused;
    __atomic_add_fetch(&percpu_of(cpu)->spared_count, 1, __ATOMIC_RELAXED);
    WRITE_ONCE(percpu_of(cpu)->sync_cycles, 0);
}

/* With the machine stopped no CPU takes interrupts, but the stopped CPUs wait for calls of
 * stop_machine_call_all().
 */
static void sync_all(void)
{
    if (stop_machine_running())
        stop_machine_call_all(sync_core, NULL);
    else
        smp_call_awake(sync_core, sync_halted, NULL);
}

static void write_all_again(void)
{
    if (!written.count)
        return;
    for (size_t i = 0; i < written.count; i++)
        write_again(written.ranges[i].start, written.ranges[i].end);
    written.count = 0;
    sync_all();
}

/* ---- 1 ---- */

/* note_range - without room, all that are there have their turn first. */
static void note_range(uintptr_t addr, uintptr_t end)
{
    if (cpu_count() == 1)
        return;
    if (written.count == RANGES_MAX) {
        sync_all();
        write_all_again();
    }
    written.ranges[written.count].start = addr;
    written.ranges[written.count++].end = end;
}

int plat_text_write(uintptr_t addr, const void *bytes, size_t len)
{
    bool is_text = plat_text_contains(addr, len);
    int err;

    ASSERT(plat_lock_held(PLAT_TEXT));
    if (is_text)
        trap_serialise_nmis(true);
    err = text_poke_alias_write((void *)addr, bytes, len);
    if (!err && is_text)
        note_range(addr, addr + len);
    return err;
}

int plat_text_store(uintptr_t addr, const void *bytes, size_t len)
{
    int err = plat_text_write(addr, bytes, len);

    if (!err)
        note_range(addr, addr + len);
    return err;
}

/* All other CPUs stand in code that does not change, and serialise before they go on. */
static void sync_held(void)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        sync_halted(cpu, NULL);
    written.count = 0;
    trap_serialise_nmis(false);
}

void plat_sync_cores(void)
{
    if (port_is_held()) {
        sync_held();
        return;
    }
    sync_all();
    if (!plat_lock_held(PLAT_TEXT))
        return;
    write_all_again();
    trap_serialise_nmis(false);
}

uint64_t plat_sync_count(unsigned cpu)
{
    struct percpu *area = percpu_of(cpu);

    return READ_ONCE(area->sync_count) + READ_ONCE(area->spared_count);
}

uint64_t plat_sync_ns(unsigned cpu)
{
    uint64_t cycles = READ_ONCE(percpu_of(cpu)->sync_cycles);

    return cycles ? clock_ns_at(cycles) : 0;
}

/* ---- with the machine stopped ---- */

_Static_assert(MAX_CPUS <= PLAT_CPUS_MAX, "the engine has room for all CPUs");

void plat_stop_machine(void (*fn)(void *arg), void *arg)
{
    stop_machine(fn, arg);
}

uintptr_t plat_stopped_ip(unsigned cpu)
{
    const struct pt_regs *regs = stop_machine_regs(cpu);

    return regs ? regs->ip : 0;
}

/* ---- as it was built ---- */

static uint32_t *line_hashes; /* of all text; immutable */

static size_t line_number(uintptr_t line)
{
    return (line - (uintptr_t)_text) / PLAT_LINE_LEN;
}

static uint32_t line_hash(const uint8_t *bytes)
{
    uint64_t hash = PLAT_LINE_LEN, word;

    for (size_t i = 0; i < PLAT_LINE_LEN; i += sizeof(word)) {
        memcpy(&word, bytes + i, sizeof(word));
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (uint32_t)hash;
}

INIT int port_text_init(void)
{
    uintptr_t end = kernel_text_end();

    line_hashes = kzalloc(line_number(end) * sizeof(line_hashes[0]));
    if (!line_hashes)
        return -ENOMEM;
    for (uintptr_t line = (uintptr_t)_text; line < end; line += PLAT_LINE_LEN)
        line_hashes[line_number(line)] = line_hash((const uint8_t *)line);
    return 0;
}

bool plat_text_is_built(uintptr_t line, const uint8_t *bytes)
{
    return !is_image_text(line, PLAT_LINE_LEN) ||
           line_hashes[line_number(line)] == line_hash(bytes);
}
