/* proc_cpu.c - /proc/cpuinfo and /proc/interrupts. */
#include "kernel/fs/proc_cpu.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/time/clock.h"

#include <string.h>

/* The facts from CPUID. All CPUs of a machine are assumed to be alike. */
struct model {
    char vendor[13];
    char name[49];
    unsigned family, model, stepping;
};

/* Source: SDM vol. 2A, "CPUID-CPU Identification", leaves 0, 1 and 0x80000002 to 4. */
static void model_read(struct model *m)
{
    uint32_t id[4];

    memset(m, 0, sizeof(*m));
    cpuid(0, 0, id);
    memcpy(m->vendor, &id[1], 4);
    memcpy(m->vendor + 4, &id[3], 4);
    memcpy(m->vendor + 8, &id[2], 4);
    cpuid(1, 0, id);
    m->stepping = id[0] & 15;
    m->model = (id[0] >> 4) & 15;
    m->family = (id[0] >> 8) & 15;
    if (m->family == 6 || m->family == 15)
        m->model |= ((id[0] >> 16) & 15) << 4;
    if (m->family == 15)
        m->family += (id[0] >> 20) & 255;
    cpuid(0x80000000, 0, id);
    if (id[0] < 0x80000004)
        return;
    for (unsigned i = 0; i < 3; i++) {
        cpuid(0x80000002 + i, 0, id);
        memcpy(m->name + i * sizeof(id), id, sizeof(id));
    }
}

int proc_cpuinfo_show(struct seq *s, void *priv UNUSED)
{
    uint64_t khz = clock_cycles_per_ms();
    struct model m;

    model_read(&m);
    for (unsigned i = 0; i < cpu_count(); i++) {
        seq_printf(s, "processor  : %u\n", i);
        seq_printf(s, "vendor_id  : %s\n", m.vendor);
        seq_printf(s, "cpu family : %u\n", m.family);
        seq_printf(s, "model      : %u\n", m.model);
        seq_printf(s, "model name : %s\n", m.name + strspn(m.name, " "));
        seq_printf(s, "stepping   : %u\n", m.stepping);
        seq_printf(s, "tsc MHz    : %lu.%03lu\n", khz / 1000, khz % 1000);
        seq_printf(s, "apicid     : %u\n\n", percpu_of(i)->apic_id);
    }
    return 0;
}

static void print_vector(struct seq *s, unsigned vector)
{
    seq_printf(s, "%3x:", vector);
    for (unsigned i = 0; i < cpu_count(); i++)
        seq_printf(s, " %10lu", irq_count(i, vector));
    seq_printf(s, "  %s\n", irq_name(vector));
}

int proc_interrupts_show(struct seq *s, void *priv UNUSED)
{
    seq_puts(s, "    ");
    for (unsigned i = 0; i < cpu_count(); i++)
        seq_printf(s, "     CPU%-3u", i);
    seq_puts(s, "\n");
    for (unsigned vector = TRAP_COUNT; vector < 256; vector++) {
        if (irq_name(vector))
            print_vector(s, vector);
    }
    return 0;
}
