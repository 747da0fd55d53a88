/* shell_system.c - commands that show the system: threads, CPUs, memory, log, symbols;
 * and `run`, which runs workloads.
 */
#include "kernel/base/err.h"
#include "kernel/console/shell_state.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "kernel/work/work.h"

#include <stdlib.h>
#include <string.h>

#define ADDRESS_DIGITS 16                /* digits of an address as lists print it */
#define SLEEP_STEP_NS UINT64_C(20000000) /* `sleep` looks for Ctrl-C so often */

/* -- threads, CPUs, memory, log ------------------------------------------------------ */

static void print_thread(struct thread *t, void *arg)
{
    seq_printf(arg, "%5d %-16s %-8s %3u %016lx %10lu %9lu %9lu\n", t->tid, t->name,
               thread_state_name(READ_ONCE(t->state)), READ_ONCE(t->cpu), t->cpus,
               READ_ONCE(t->run_ns) / 1000, READ_ONCE(t->voluntary),
               READ_ONCE(t->involuntary));
}

static int ps_run(struct shell *sh, int argc UNUSED, char **argv UNUSED)
{
    shell_printf(sh, "%5s %-16s %-8s %3s %-16s %10s %9s %9s\n", "TID", "NAME", "STATE",
                 "CPU", "MAY RUN ON", "RUN us", "GAVE UP", "PREEMPTED");
    thread_for_each(print_thread, sh->out);
    return 0;
}

static uint64_t irq_total(unsigned cpu)
{
    uint64_t sum = 0;

    for (unsigned vector = TRAP_COUNT; vector < 256; vector++)
        sum += irq_count(cpu, vector);
    return sum;
}

static int cpus_run(struct shell *sh, int argc UNUSED, char **argv UNUSED)
{
    shell_printf(sh, "%3s %4s %-5s %10s %10s\n", "CPU", "APIC", "STATE", "TICKS",
                 "INTERRUPTS");
    for (unsigned i = 0; i < cpu_count(); i++) {
        const struct percpu *cpu = percpu_of(i);

        shell_printf(sh, "%3u %4u %-5s %10lu %10lu\n", i, cpu->apic_id,
                     READ_ONCE(cpu->idle) ? "idle" : "busy", irq_count(i, VECTOR_TIMER),
                     irq_total(i));
    }
    return 0;
}

static int mem_run(struct shell *sh, int argc UNUSED, char **argv UNUSED)
{
    struct frame_stats stats;

    frame_stats_get(&stats);
    shell_printf(sh, "frames %zu of %zu KiB free\n", stats.free * 4, stats.total * 4);
    shell_printf(sh, "heap   %zu bytes in %zu blocks\n", heap_in_use(),
                 heap_block_count());
    return 0;
}

static int dmesg_run(struct shell *sh, int argc UNUSED, char **argv UNUSED)
{
    char buf[LOG_LINE_MAX * 2];
    uint64_t pos = 0;
    size_t len;

    while ((len = log_read(&pos, buf, sizeof(buf))) > 0)
        seq_write(sh->out, buf, len);
    return 0;
}

/* -- symbols ------------------------------------------------------------------------- */

static void sym_print(struct shell *sh, const struct ksym *sym, uint64_t offset)
{
    shell_printf(sh, "0x%016lx %c %s+0x%lx/0x%zx%s%s%s\n", sym->start + offset, sym->type,
                 sym->name, offset, sym->size, sym->module ? " [" : "",
                 sym->module ? sym->module : "", sym->module ? "]" : "");
}

/* take_offset - cut "+0x12" off @word.  Return: 0; -EINVAL no number behind the '+'. */
static int take_offset(char *word, uint64_t *offset)
{
    char *plus = strrchr(word, '+');
    int err = plus ? parse_u64(plus + 1, 0, offset) : 0;

    if (!plus)
        *offset = 0;
    else if (!err)
        *plus = '\0';
    return err;
}

static int print_by_name(struct shell *sh, char *word)
{
    uint64_t offset;
    struct ksym sym;
    size_t iter = 0;
    int err = take_offset(word, &offset);

    if (err)
        return err;
    if (!ksyms_next(word, &iter, &sym))
        return -ENOENT;
    do {
        sym.offset = offset;
        if (offset > sym.size && ksyms_at(sym.start + offset, &sym))
            return -EFAULT;
        sym_print(sh, &sym, sym.offset);
    } while (ksyms_next(word, &iter, &sym));
    return 0;
}

static int print_by_address(struct shell *sh, uintptr_t addr)
{
    struct ksym sym;
    int err = ksyms_at(addr, &sym);

    if (!err)
        sym_print(sh, &sym, sym.offset);
    return err;
}

int shell_parse_address(const char *word, uintptr_t *addr)
{
    bool is_marked = strncmp(word, "0x", 2) == 0;
    struct ksym sym;
    size_t iter = 0;
    uint64_t value;

    if (parse_u64(word, 16, &value) || (!is_marked && strlen(word) != ADDRESS_DIGITS) ||
        ksyms_next(word, &iter, &sym))
        return -EINVAL;
    *addr = value;
    return 0;
}

static int sym_refused(struct shell *sh, const char *word, bool is_address)
{
    char suggestion[SHELL_SUGGESTION_MAX];

    if (is_address)
        return shell_refuse(sh, ENOENT, "sym: %s: no symbol contains this address", word);
    return shell_refuse(sh, ENOENT, "sym: %s: no symbol has this name%s", word,
                        shell_suggest(suggestion, word, shell_complete_symbols, 1));
}

static int sym_run(struct shell *sh, int argc, char **argv)
{
    uint64_t addr;
    int err;

    if (argc < 2)
        return shell_usage(sh, argc, argv);
    for (int i = 1; i < argc; i++) {
        bool is_number = argv[i][0] >= '0' && argv[i][0] <= '9';
        bool is_address = !shell_parse_address(argv[i], &addr) ||
                          (is_number && !parse_u64(argv[i], 16, &addr));

        if (is_address)
            err = print_by_address(sh, addr);
        else
            err = print_by_name(sh, argv[i]);
        if (err == -ENOENT)
            return sym_refused(sh, argv[i], is_address);
        if (err)
            return shell_error(sh, err, "sym: %s", argv[i]);
    }
    return 0;
}

/* -- workloads ----------------------------------------------------------------------- */

static void complete_run(struct shell_completion *c, int index)
{
    const struct workload *load;

    if (index != 1)
        return;
    shell_offer(c, "all");
    shell_offer(c, "list");
    for (unsigned i = 0; (load = workload_get(i)) != NULL; i++)
        shell_offer(c, load->name);
}

static bool is_workload(const char *name)
{
    const struct workload *load;

    for (unsigned i = 0; (load = workload_get(i)) != NULL; i++)
        if (strcmp(load->name, name) == 0)
            return true;
    return false;
}

static int run_run(struct shell *sh, int argc, char **argv)
{
    char suggestion[SHELL_SUGGESTION_MAX];
    const struct workload *load;
    uint64_t seed;
    int err;

    if (argc < 2)
        return shell_usage(sh, argc, argv);
    if (argc > 2 && parse_u64(argv[2], 0, &seed))
        return shell_refuse(sh, EINVAL, "run: %s is no seed, which is a number", argv[2]);
    if (strcmp(argv[1], "list") == 0) {
        for (unsigned i = 0; (load = workload_get(i)) != NULL; i++)
            shell_printf(sh, "%-10s %s\n", load->name, load->help);
        return 0;
    }
    err = workload_run(argv[1], argc - 2, argv + 2, sh->out, shell_stop, sh);
    if (err == -ENOENT && !is_workload(argv[1]))
        return shell_refuse(sh, ENOENT, "run: no workload is called %s%s", argv[1],
                            shell_suggest(suggestion, argv[1], complete_run, 1));
    return err ? shell_error(sh, err, "run: %s", argv[1]) : 0;
}

static int shell_sleep_run(struct shell *sh, int argc, char **argv)
{
    uint64_t seconds, end, now;

    if (argc != 2 || parse_u64(argv[1], 10, &seconds) || seconds > 1000000)
        return shell_usage(sh, argc, argv);
    end = clock_ns() + seconds * 1000000000;
    while ((now = clock_ns()) < end) {
        if (shell_interrupted(sh))
            return -EINTR;
        thread_sleep_ns(end - now < SLEEP_STEP_NS ? end - now : SLEEP_STEP_NS);
    }
    return 0;
}

const struct shell_command shell_system_commands[] = {
    { "ps", "", "list the threads", ps_run, NULL },
    { "cpus", "", "list the CPUs", cpus_run, NULL },
    { "mem", "", "show how much memory is free", mem_run, NULL },
    { "dmesg", "", "print the log", dmesg_run, NULL },
    { "sym", "NAME[+OFF]|ADDRESS...", "look up symbols by name or address (hex)", sym_run,
      shell_complete_symbols },
    { "run", "NAME|all|list [SEED [ARG...]]",
      "run a workload\n"
      "It prints a checksum that depends on SEED only, and how often it called the\n"
      "function it is about. `run list` names the workloads and tells what each does.",
      run_run, complete_run },
    { "sleep", "SECONDS", "wait", shell_sleep_run, NULL },
    {},
};
