/* port_text.c - the part of platform.h about text: writes text while CPUs execute it.
 *
 * The int3-first protocol in probes/core/text_poke.c decides in which order the bytes
 * change. It calls plat_text_write() and then plat_sync_cores() for each of its steps. A
 * processor and an emulator both need that protocol (docs/text-poke.md). This file makes
 * one of its steps work. For that an emulator needs more than a processor: QEMU does not
 * execute the code itself, but translations of it. When text is written, QEMU first drops
 * the translations of these bytes, and then stores the new bytes. A CPU that translates
 * the code between the two, or has begun before, makes a translation of the old bytes,
 * and this translation stays in use. Then the CPU would never see the new breakpoint, or
 * would run into a removed one again and again. So text is written like this:
 *
 *   1. plat_text_write() writes the bytes.
 *   2. plat_sync_cores() interrupts every CPU, which executes a serialising instruction.
 *      Then it writes the same bytes once more. A translation that was under way is
 *      finished when its CPU is interrupted, so the second write drops this translation.
 *      Later translations are made from the new bytes.
 *   3. The same call of plat_sync_cores() interrupts every CPU once more. After that no
 *      CPU executes a translation that was dropped.
 *
 * A processor needs step 1 and the first interrupt of step 2. The second write and the
 * second interrupt do no harm there.
 *
 * From step 1 until plat_sync_cores() is done, each NMI begins with a serialising
 * instruction. An NMI handler may execute the text that is being changed, on a CPU that
 * has not serialised for a long time, or on the CPU that writes. The instruction makes
 * the CPU forget bytes that it fetched before. The protocol is safe without it, too
 * (docs/model.md).
 *
 * The memory of copies is not text: it is written only once, because no CPU executes a
 * copy while it is written. But CPUs may be executing the memory that plat_text_store()
 * writes, so this memory is written a second time as well.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/fetch.h"
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
#include "probes/text/platform_text.h"

#include <string.h>

#define RANGES_MAX 1024
#define POKE_MAX 4096

/* Locks: PLAT_TEXT. */
static struct {
    struct {
        uintptr_t start, end;
    } ranges[RANGES_MAX]; /* text that was written, but not a second time yet */
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

/* sync_core - serialise, and count it: the engine checks that every CPU has done so. */
static void sync_core(void *unused)
{
    uint32_t out[4];

    (void)unused;
    cpuid(0, 0, out);
    this_cpu()->sync_count++;
    this_cpu()->sync_cycles = rdtsc();
}
NOKPROBE(sync_core);

/* A halted CPU executes nothing, and makes no translation. When it wakes, it serialises
 * first. So it need not be interrupted, and counts as synchronised.
 */
static void sync_halted(unsigned cpu, void *unused)
{
    (void)unused;
    __atomic_add_fetch(&percpu_of(cpu)->spared_count, 1, __ATOMIC_RELAXED);
    WRITE_ONCE(percpu_of(cpu)->sync_cycles, 0);
}

/* While the machine is stopped, no CPU takes interrupts, but the stopped CPUs wait for
 * calls of stop_machine_call_all().
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

/* note_range - remember a range that plat_text_write() is about to write, so that
 * plat_sync_cores() writes it once more (step 2 above). If the list is full, the ranges in
 * it are written once more now, and the list begins anew.
 */
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

/* The machine is held: all other CPUs wait in code that does not change, and serialise
 * before they go on. So there is nothing to wait for.
 */
static void sync_held(void)
{
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        sync_halted(cpu, NULL);
    written.count = 0;
    trap_serialise_nmis(false);
}

void plat_sync_cores(void)
{
    if (cpu_context() == CTX_HELD) {
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

/* One CPU fetches the text before its own store, or after it. */
bool plat_fetches_words(void)
{
    return cpu_count() == 1 || cpu_fetches_words();
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
