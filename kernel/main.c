/* main.c - starts the parts of the kernel, one after the other. This is the composition
 * root: the only file that knows every part of the kernel. It fills the sockets of the
 * parts (docs/architecture.md).
 */
#include "boot/multiboot2.h"
#include "drivers/acpi_madt.h"
#include "drivers/debugcon.h"
#include "drivers/fw_cfg.h"
#include "drivers/pic.h"
#include "drivers/pit.h"
#include "drivers/power.h"
#include "drivers/qemu_exit.h"
#include "drivers/serial.h"
#include "drivers/vga_text.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/console/shell.h"
#include "kernel/cpu/debug_reg.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/ioapic.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/log.h"
#include "kernel/debug/panic.h"
#include "kernel/fs/proc.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/paging.h"
#include "kernel/module/init_text.h"
#include "kernel/module/module.h"
#include "kernel/runner.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "kernel/time/sample.h"
#include "probes/gdb/gdb_stub.h"
#include "probes/marker/marker.h"
#include "probes/port/port.h"
#include "probes/trace/files/files.h"

#include <stdlib.h>
#include <string.h>

extern char boot_stack[], boot_stack_top[];
extern void (*const init_array_start[])(void), (*const init_array_end[])(void);

static struct boot_info boot INIT_DATA;
static struct madt_info madt INIT_DATA;
static char option_list[BOOT_CMDLINE_MAX] INIT_DATA; /* any list fits */
static struct serial com1, com3;
static bool have_com1, have_com3;

/* ---- sinks ---- */

static void console_text(const char *text, size_t len)
{
    debugcon_write(text, len);
    vga_text_write(text, len);
}

static void log_sink(const char *line, size_t len)
{
    if (have_com1)
        serial_log(&com1, line, len);
    else
        console_text(line, len);
}

static void panic_sink(const char *text, size_t len)
{
    if (have_com1)
        serial_write_panic(&com1, text, len);
    debugcon_write(text, len);
    vga_text_write_panic(text, len);
}

/* The host takes the last characters before QEMU ends. */
static void flush_output(void)
{
    if (have_com1)
        serial_flush(&com1);
}

static void panic_exit(void)
{
    flush_output();
    qemu_exit(QEMU_EXIT_PANIC);
}

static void flush_local(void *range)
{
    const uintptr_t *r = range;

    paging_flush_local(r[0], r[1]);
}

static void flush_everywhere(uintptr_t start, size_t pages)
{
    uintptr_t range[2] = { start, pages };

    smp_call_all(flush_local, range);
}

/* ---- stages ---- */

static INIT const void *early_phys(uint64_t phys, size_t len)
{
    if (len > 4 * GiB || phys > 4 * GiB - len)
        return NULL;
    return (const void *)(DIRECT_MAP_BASE + phys);
}

static INIT void read_boot_info(uint32_t magic, uint64_t info_phys)
{
    const void *info = (const void *)(DIRECT_MAP_BASE + info_phys);
    char more[1024];
    int err;

    if (magic == MULTIBOOT2_LOADER_MAGIC)
        err = boot_info_from_multiboot2(&boot, info, 4 * GiB - info_phys);
    else
        err = boot_info_from_pvh(&boot, info, early_phys);
    if (err)
        panic("cannot read what the boot loader left: %s", err_text(err));
    if (fw_cfg_read_file("opt/sonde/append", more, sizeof(more)) > 0)
        boot_info_append(&boot, more);
}

/* The consoles come first, so that a panic in read_boot_info() is seen. */
static INIT void start_output(uint32_t magic, uint64_t info_phys)
{
    have_com1 = !serial_init(&com1, "COM1", SERIAL_COM1, SERIAL_IRQ_COM13);
    have_com3 = !serial_init(&com3, "COM3", SERIAL_COM3, SERIAL_IRQ_COM13);
    com1.mirror = console_text;
    read_boot_info(magic, info_phys);
    log_set_sink(log_sink,
                 boot_option(boot.cmdline, "quiet", NULL, 0) ? LOG_WARN : LOG_INFO);
}

static INIT void start_memory(void)
{
    frame_init(&boot);
    features_init_cpu();
    memory_types_init_cpu();
    extable_init();
    paging_init(&boot);
    percpu_init_boot_area();
    vga_text_init();
}

static INIT unsigned option_hz(void)
{
    char text[24], *end;
    unsigned long hz;

    if (!boot_option(boot.cmdline, "hz", text, sizeof(text)))
        return THREAD_HZ_DEFAULT;
    hz = strtoul(text, &end, 10);
    if (!*end && end != text && hz >= THREAD_HZ_MIN && hz <= THREAD_HZ_MAX)
        return (unsigned)hz;
    log_warn("hz=%s: %u to %u", text, THREAD_HZ_MIN, THREAD_HZ_MAX);
    return !*end && hz > THREAD_HZ_MAX ? THREAD_HZ_MAX : THREAD_HZ_DEFAULT;
}

/* tell_unknown - name the boot arguments that mean nothing. The tests have more of them. */
static INIT void tell_unknown(void)
{
    static const char *const known[] = { "hz",      "kprobes-jump", "gdbwait", "console",
                                         "modules", "panic",        "probes",  "quiet",
                                         "tests",   "text-poke" };
    const char *at = boot.cmdline;
    char key[32];
    size_t i;

    if (boot_option(boot.cmdline, "tests", NULL, 0))
        return;
    while ((at = boot_option_next(at, key, sizeof(key)))) {
        for (i = 0; i < ARRAY_LEN(known) && strcmp(key, known[i]) != 0; i++)
            ;
        if (i == ARRAY_LEN(known))
            log_warn("boot argument %s: there is none of this name", key);
    }
}

static INIT void start_time(void)
{
    clock_init(pit_wait_us);
    if (acpi_madt_parse(&boot, &madt))
        log_warn("no ACPI MADT: one CPU, no device interrupts");
    pic_mask_all();
    lapic_init(&madt);
    ioapic_init(&madt);
    sample_init(pit_tick);
    power_init(&boot);
}

static void poll_lines(void)
{
    serial_poll_all();
    gdb_poll();
}

static INIT void start_threads(void)
{
    thread_init(boot_stack_top, (size_t)(boot_stack_top - boot_stack));
    sched_start(option_hz());
    sched_tick_hook = poll_lines;
    sti();
    smp_init();
    debug_regs_init();
    paging_shootdown = flush_everywhere;
    panic_stop_fn = smp_stop_others;
    smp_start(&madt);
}

static void boot_must(int err, const char *what)
{
    if (err)
        panic("%s: %s", what, err_text(err));
}

static void machine_off(bool failed)
{
    gdb_exit(failed);
    flush_output();
    if (failed)
        qemu_exit(QEMU_EXIT_COMMAND_FAILED);
    power_off();
}

/* What kernel_run() needs after the memory of boot was freed. */
static struct {
    char *words;    /* boot arguments */
    unsigned flags; /* of the console */
    const char *script;
    bool has_tests;
} kept = { .script = "" };

static INIT const char *keep_words(void)
{
    size_t size = strlen(boot.cmdline) + 1;

    kept.words = kmalloc(size);
    if (!kept.words)
        panic("no memory for boot arguments");
    memcpy(kept.words, boot.cmdline, size);
    return kept.words;
}

static INIT void start_services(void)
{
    char jump[16], poke[16], at_panic[16];

    boot_must(vfs_init(), "files");
    boot_must(proc_init(keep_words()), "/proc");
    shell_init();
    shell_set_power(machine_off, power_reset);
    boot_must(module_init(), "modules");
    boot_must(probes_init(), "probes");
    if (boot_option(boot.cmdline, "text-poke", poke, sizeof(poke)) &&
        port_choose_text_engine(poke))
        log_warn("text-poke=%s: docs/text-poke.md has the names of the engines", poke);
    if (boot_option(boot.cmdline, "probes", option_list, sizeof(option_list)))
        probes_add_listed(option_list);
    marker_init();
    boot_must(marker_add_command(), "markers");
    boot_must(trace_init(), "tracing");
    if (boot_option(boot.cmdline, "kprobes-jump", jump, sizeof(jump)) &&
        port_choose_jump(jump))
        log_warn("kprobes-jump=%s: pun, region or off", jump);
    if (boot_option(boot.cmdline, "panic", at_panic, sizeof(at_panic))) {
        if (!strcmp(at_panic, "unprobe"))
            port_unprobe_at_panic();
        else
            log_warn("panic=%s: unprobe", at_panic);
    }
    tell_unknown();
    gdb_init();
    if (boot_option(boot.cmdline, "gdbwait", NULL, 0))
        gdb_wait();
    if (have_com1)
        serial_start(&com1, percpu_of(0)->apic_id);
    if (have_com3)
        serial_start(&com3, percpu_of(0)->apic_id);
}

#define FW_CFG_MODULES "opt/sonde/module/"

static INIT void add_fw_cfg_module(const char *name, size_t len, unsigned number)
{
    void *data = kmalloc(len);

    if (!data) {
        log_warn("%s%s: no memory for %zu bytes", FW_CFG_MODULES, name, len);
        return;
    }
    fw_cfg_read_bytes(number, data, len);
    module_add_boot_file(name, data, len);
}

static INIT void add_loaded_module(const struct boot_module *module)
{
    if (module->start == module->end)
        log_warn("boot: the module %s is empty", module->name);
    else
        module_add_boot_file(module->name, phys_to_virt(module->start),
                             module->end - module->start);
}

/* start_modules - add the module files that came with the kernel, and load the modules
 * that the boot arguments list.
 */
static INIT void start_modules(void)
{
    for (unsigned i = 0; i < boot.module_count; i++)
        add_loaded_module(&boot.modules[i]);
    if (boot.modules_left_out)
        log_warn("boot: %u modules are left out; there is room for %u",
                 boot.modules_left_out, BOOT_MODULES_MAX);
    fw_cfg_for_each(FW_CFG_MODULES, add_fw_cfg_module);
    if (boot_option(boot.cmdline, "modules", option_list, sizeof(option_list)))
        module_load_listed(option_list);
}

/* Calls the constructors of objects that EXTRA_OBJS has linked in; see docs/api.md. */
static INIT void run_constructors(void)
{
    for (void (*const *init)(void) = init_array_start; init < init_array_end; init++)
        (*init)();
}

/* ---- after the stages: a runner or shells ---- */

static runner_fn runner;

void runner_set(runner_fn fn)
{
    runner = fn;
}

static void runner_print(const char *text, size_t len)
{
    serial_write(&com1, text, len);
}

static _Noreturn void run_tests(void)
{
    bool failed = !runner(kept.words, runner_print);

    serial_flush(&com1);
    gdb_exit(failed);
    qemu_exit(failed ? QEMU_EXIT_TESTS_FAILED : QEMU_EXIT_OK);
    power_off();
}

static INIT unsigned console_flags(void)
{
    unsigned flags = SHELL_HUMAN | SHELL_MACHINE;
    char kind[16];

    if (!boot_option(boot.cmdline, "console", kind, sizeof(kind)))
        return flags;
    if (!strcmp(kind, "plain"))
        return flags | SHELL_PLAIN;
    if (strcmp(kind, "terminal") != 0)
        log_warn("console=%s: terminal or plain", kind);
    return flags;
}

#define FW_CFG_SCRIPT "opt/sonde/script"

static INIT void take_script(const char *name, size_t len, unsigned number)
{
    char *text = *name ? NULL : kzalloc(len + 1);

    if (!text)
        return;
    fw_cfg_read_bytes(number, text, len);
    kept.script = text;
}

/* keep_wishes - keep what kernel_run() is to do. The script is text that counts as typed
 * on the console. A recording gets its commands so: it is repeated to the last
 * instruction, and may have no other input.
 */
static INIT void keep_wishes(void)
{
    fw_cfg_for_each(FW_CFG_SCRIPT, take_script);
    kept.flags = console_flags();
    kept.has_tests = boot_option(boot.cmdline, "tests", NULL, 0);
    if (kept.has_tests && !runner)
        log_warn("tests=: there are no tests in this image");
}

static void start_shells(void)
{
    if (have_com1)
        boot_must(shell_start(&com1.console, kept.flags, kept.script), "console");
    if (have_com3)
        boot_must(shell_start(&com3.console, SHELL_MACHINE, ""), "machine interface");
    if (!have_com1 && !have_com3)
        panic("no serial port for the console");
}

/* kmain - start all parts of the kernel. Called by boot/start.asm, in long mode and in
 * the higher half, with interrupts off and the early page tables.
 */
void kmain(uint32_t magic, uint64_t info_phys);
INIT void kmain(uint32_t magic, uint64_t info_phys)
{
    trap_init();
    percpu_init_boot();
    panic_sink_fn = panic_sink;
    panic_exit_fn = panic_exit;
    start_output(magic, info_phys);
    start_memory();
    start_time();
    start_threads();
    start_services();
    run_constructors();
    start_modules();
    keep_wishes();
    log_info("%s, %u CPU%s, booted by %s in %llu ms", linux_proc_banner, cpu_count(),
             cpu_count() == 1 ? "" : "s", boot.loader,
             (unsigned long long)(clock_ns() / 1000000));
}

/* kernel_run - free the code of boot, then call the runner or start the shells.
 * boot/start.asm jumps here after kmain() has returned, since the code of kmain() is
 * freed, too.
 */
_Noreturn void kernel_run(void);
void kernel_run(void)
{
    init_text_free();
    if (kept.has_tests && runner)
        run_tests();
    start_shells();
    do_exit(0);
}
