/* port_fake.c - platform.h over arrays. */
#define _GNU_SOURCE /* memfd_create */
#include "tests/unit/port_fake.h"

#include "kernel/base/err.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "tests/unit/port_fake_parts.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT_LEN ((size_t)1 << 20)
#define EXEC_LEN ((size_t)16 << 20)
#define PAGE_LEN ((size_t)4096)
#define SYMBOLS_MAX 512
#define RANGES_MAX 16
#define STACK_WORDS 1024

struct range {
    uintptr_t start, end;
};

struct ranges {
    struct range at[RANGES_MAX];
    size_t count;
};

struct fake_machine fake;
jmp_buf fake_bug_exit;
bool fake_bug_expected;

/* One piece of memory, mapped twice: read-only where the engine knows it, writable where
 * only plat_text_write() does.
 */
static uint8_t *text, *exec, *writable;
static uint8_t original[TEXT_LEN];
static size_t text_used; /* never goes back: what is blacklisted stays so */
static bool exec_page_used[EXEC_LEN / PAGE_LEN];

static struct plat_symbol symbols[SYMBOLS_MAX];
static size_t symbol_count;
static struct ranges entries, engines, fixups, bad;
static uintptr_t nokprobe[RANGES_MAX];
static size_t nokprobe_count;
static struct nokprobe_range nokprobe_ranges[RANGES_MAX];
static size_t nokprobe_range_count;

static struct {
    struct plat_depths depths;
    struct probe_cpu cpu;
} ALIGNED(16) cpus[FAKE_CPUS];
static bool held[2];
static unsigned fail_in; /* allocations until one fails; 0: none will */
static bool has_failed;
static uint64_t stack[STACK_WORDS], nmi_stack[STACK_WORDS];

/* ---- breaches ---- */

void fake_breach(const char *fn, const char *what)
{
    unit_check(false, fn, 0, what);
}

static void check_may_sleep(const char *fn)
{
    if (fake.irqs_off || fake.is_stopped)
        fake_breach(fn, "called with interrupts off");
    if (fake.context != PLAT_THREAD || cpus[fake.this_cpu].cpu.depth)
        fake_breach(fn, "called outside thread context");
}

/* ---- the log ---- */

static char words[1 << 16];
static size_t words_len;
static uintptr_t watched;
static const struct site *watched_site;

static void word_add(const char *word)
{
    size_t left = sizeof(words) - words_len;

    if (strlen(word) + 2 <= left)
        words_len +=
            (size_t)sprintf(words + words_len, "%s%s", words_len ? " " : "", word);
}

static void watch(void)
{
    const struct site *site;

    if (!watched)
        return;
    site = registry_find(watched);
    if (!site == !watched_site)
        return;
    if (site)
        watched_site = site;
    word_add(site ? "found" : "lost");
    if (!site)
        watched = 0;
}

static void note(const char *word)
{
    watch();
    word_add(word);
}

void fake_log_start(uintptr_t watch_addr)
{
    words[0] = '\0';
    words_len = 0;
    watched = watch_addr;
    watched_site = registry_find(watch_addr);
}

const char *fake_log(void)
{
    watch();
    return words;
}

/* ---- ranges ---- */

static void range_add(struct ranges *r, uintptr_t start, uintptr_t end)
{
    if (r->count == RANGES_MAX)
        abort();
    r->at[r->count++] = (struct range){ start, end };
}

static bool range_overlaps(const struct ranges *r, uintptr_t start, uintptr_t end)
{
    for (size_t i = 0; i < r->count; i++)
        if (start < r->at[i].end && end > r->at[i].start)
            return true;
    return false;
}

void fake_entry(uintptr_t start, uintptr_t end)
{
    range_add(&entries, start, end);
}

void fake_engine(uintptr_t start, uintptr_t end)
{
    range_add(&engines, start, end);
}

void fake_fixup(uintptr_t addr)
{
    range_add(&fixups, addr, addr + 1);
}

void fake_bad(uintptr_t start, size_t len)
{
    range_add(&bad, start, start + len);
}

void fake_nokprobe(uintptr_t addr)
{
    if (nokprobe_count == RANGES_MAX)
        abort();
    nokprobe[nokprobe_count++] = addr;
}

void fake_nokprobe_range(uintptr_t start, uintptr_t end, const char *why)
{
    if (nokprobe_range_count == RANGES_MAX)
        abort();
    nokprobe_ranges[nokprobe_range_count++] = (struct nokprobe_range){ start, end, why };
}

/* ---- start and end ---- */

static void *map_or_die(void *at, int prot, int flags, int fd)
{
    void *p = mmap(at, TEXT_LEN + EXEC_LEN, prot, flags, fd, 0);

    if (p == MAP_FAILED)
        abort();
    return p;
}

/* In reach of the program. */
static void map_memory(void)
{
    uintptr_t near = (uintptr_t)fake_breach / PAGE_LEN * PAGE_LEN - (1ul << 30);
    int fd = memfd_create("text", 0);

    if (fd < 0 || ftruncate(fd, TEXT_LEN + EXEC_LEN))
        abort();
    text = map_or_die((void *)near, PROT_READ, MAP_SHARED, fd);
    writable = map_or_die(NULL, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    exec = text + TEXT_LEN;
    close(fd);
}

static uint8_t boot_memory[1 << 16]; /* what fake_boot() hands out */
static size_t boot_used;
static bool booting;

int fake_boot(int (*init)(void))
{
    int err;

    booting = true;
    err = init();
    booting = false;
    return err;
}

static struct shadow *const no_shadow;
static uint64_t counters[FAKE_CPUS][FAKE_COUNTERS];

static void areas_make(void)
{
    memset(cpus, 0, sizeof(cpus));
    for (size_t i = 0; i < FAKE_CPUS; i++)
        cpus[i].cpu.plat = (struct plat_cpu){
            .shadow = &no_shadow,
            .counters = counters[i],
            .stack_base = &fake.stack_base,
        };
}

void fake_start(void)
{
    if (!text) {
        map_memory();
        fake_boot(insn_slot_init);
    }
    areas_make();
    memset(&fake, 0, sizeof(fake));
    fake_rooms_start();
    fake.cpus = 1;
    fake.stack_left = 16384;
    symbol_count = 0;
    entries.count = engines.count = fixups.count = bad.count = 0;
    words[0] = '\0';
    words_len = 0;
    watched = 0;
    fake_fail_at(0);
    step_set_engine(STEP_INT3);
}

void fake_end(void)
{
    fake_fail_at(0);
    boundary_forget();
    fake_rooms_end();
    CHECK_EQ(registry_count(), 0);
    CHECK_EQ(fake.blocks, 0);
    CHECK_EQ(fake.exec_bytes, 0);
    CHECK_EQ(fake.pad_pages, 0);
    CHECK_EQ(fake.pad_frames, 0);
    CHECK_EQ(fake.irqs_off, 0);
    CHECK_EQ(cpus[fake.this_cpu].cpu.depth, 0);
    CHECK(!held[PLAT_PROBES] && !held[PLAT_TEXT]);
    CHECK(fake_text_is_original());
}

/* ---- text ---- */

static size_t parse_hex(uint8_t *out, const char *hex)
{
    size_t n = 0;

    while (*hex) {
        char *end;

        out[n] = (uint8_t)strtoul(hex, &end, 16);
        if (end == hex)
            break;
        n++;
        hex = end;
    }
    return n;
}

static uintptr_t place(const char *hex, size_t *len)
{
    size_t at = (text_used + 15) / 16 * 16;

    *len = parse_hex(original + at, hex);
    memcpy(writable + at, original + at, *len);
    text_used = at + *len;
    if (text_used > TEXT_LEN)
        abort();
    return (uintptr_t)text + at;
}

uintptr_t fake_function(const char *name, const char *hex)
{
    size_t len;
    uintptr_t start = place(hex, &len);

    fake_symbol(name, start, len);
    return start;
}

void fake_symbol(const char *name, uintptr_t start, size_t size)
{
    if (symbol_count == SYMBOLS_MAX)
        abort();
    symbols[symbol_count++] = (struct plat_symbol){ start, size, name, NULL };
}

uintptr_t fake_bytes_at(const char *hex)
{
    size_t len;

    return place(hex, &len);
}

bool plat_text_is_built(uintptr_t line, const uint8_t *bytes)
{
    return memcmp(bytes, original + (line - (uintptr_t)text), PLAT_LINE_LEN) == 0;
}

void fake_text_poke(uintptr_t addr, uint8_t byte)
{
    writable[addr - (uintptr_t)text] = byte;
}

bool fake_text_is_original(void)
{
    return memcmp(text, original, text_used) == 0;
}

uintptr_t fake_text_end(void)
{
    return (uintptr_t)text + TEXT_LEN;
}

uintptr_t fake_exec_start(void)
{
    return (uintptr_t)exec;
}

static bool lies_in(uintptr_t addr, size_t len, const uint8_t *area, size_t area_len)
{
    return addr >= (uintptr_t)area && addr - (uintptr_t)area <= area_len &&
           len <= area_len - (addr - (uintptr_t)area);
}

void fake_extent(uintptr_t *start, uintptr_t *end)
{
    *start = (uintptr_t)text;
    *end = (uintptr_t)exec + EXEC_LEN;
}

int plat_text_read(void *dst, uintptr_t addr, size_t len)
{
    if (fake_pads_read(dst, addr, len))
        return 0;
    if (!lies_in(addr, len, text, TEXT_LEN + EXEC_LEN) ||
        range_overlaps(&bad, addr, addr + len))
        return -EFAULT;
    memcpy(dst, (const void *)addr, len);
    return 0;
}

/* note_text - one word for each byte that changes: the rest is written back as it is. */
static void note_text(const uint8_t *now, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (now[i] != bytes[i])
            note(bytes[i] == 0xcc ? "int3" : "original");
}

static const char *word_of_cell(uintptr_t addr, const uint8_t *bytes, size_t len)
{
    if (addr % PAGE_LEN == 0)
        return "header";
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != 0xcc)
            return "cell";
    return "clear";
}

int plat_text_write(uintptr_t addr, const void *bytes, size_t len)
{
    if (!held[PLAT_TEXT])
        fake_breach(__func__, "PLAT_TEXT is not held");
    if (fake_pads_write(addr, bytes, len))
        return 0;
    if (!lies_in(addr, len, text, TEXT_LEN) && !plat_exec_contains(addr))
        return -EFAULT;
    if (lies_in(addr, len, text, TEXT_LEN))
        note_text((const uint8_t *)addr, bytes, len);
    else
        note(word_of_cell(addr, bytes, len));
    memcpy(writable + (addr - (uintptr_t)text), bytes, len);
    return 0;
}

void plat_sync_cores(void)
{
    if (!fake.is_stopped)
        check_may_sleep(__func__);
    note("sync");
    fake.syncs++;
    if (fake.on_sync)
        fake.on_sync();
}

uint64_t plat_sync_count(unsigned cpu)
{
    return fake.deaf && cpu >= fake.deaf ? 0 : fake.syncs;
}

uint64_t plat_sync_ns(unsigned cpu)
{
    return cpu && cpu == fake.halted_cpu ? 0 : fake.ns + cpu;
}

void plat_stop_machine(void (*fn)(void *arg), void *arg)
{
    check_may_sleep(__func__);
    if (fake.is_stopped)
        fake_breach(__func__, "the machine is stopped already");
    note("stop");
    fake.stops++;
    fake.is_stopped = true;
    if (fake.on_stop)
        fake.on_stop();
    fn(arg);
    fake.is_stopped = false;
    note("go");
}

uintptr_t plat_stopped_ip(unsigned cpu)
{
    if (!fake.is_stopped)
        fake_breach(__func__, "the machine is not stopped");
    return fake.stopped_ip[cpu];
}

bool plat_text_contains(uintptr_t addr, size_t len)
{
    return lies_in(addr, len, text, TEXT_LEN);
}

/* ---- memory ---- */

void fake_fail_at(unsigned n)
{
    fail_in = n;
    has_failed = false;
}

bool fake_failed(void)
{
    return has_failed;
}

bool fake_must_fail(void)
{
    if (!fail_in || --fail_in)
        return false;
    has_failed = true;
    return true;
}

static size_t find_exec_pages(size_t pages)
{
    size_t run = 0;

    for (size_t i = 0; i < EXEC_LEN / PAGE_LEN; i++) {
        run = exec_page_used[i] ? 0 : run + 1;
        if (run == pages)
            return i + 1 - pages;
    }
    abort();
}

void *plat_exec_alloc(size_t len)
{
    size_t first;

    check_may_sleep(__func__);
    if (!len || len % PAGE_LEN)
        fake_breach(__func__, "not a multiple of the page size");
    if (fake_must_fail())
        return NULL;
    first = find_exec_pages(len / PAGE_LEN);
    memset(&exec_page_used[first], true, len / PAGE_LEN);
    memset(writable + TEXT_LEN + first * PAGE_LEN, 0xcc, len);
    fake.exec_bytes += len;
    return exec + first * PAGE_LEN;
}

void plat_exec_free(void *p, size_t len)
{
    size_t first = (size_t)((uint8_t *)p - exec) / PAGE_LEN;

    check_may_sleep(__func__);
    for (size_t i = 0; i < len / PAGE_LEN; i++) {
        if (!exec_page_used[first + i])
            fake_breach(__func__, "was not allocated");
        exec_page_used[first + i] = false;
    }
    fake.exec_bytes -= len;
}

void plat_exec_window(uintptr_t *start, size_t *len)
{
    *start = (uintptr_t)exec;
    *len = EXEC_LEN;
}

bool plat_exec_contains(uintptr_t addr)
{
    return lies_in(addr, 1, exec, EXEC_LEN) &&
           exec_page_used[(addr - (uintptr_t)exec) / PAGE_LEN];
}

static void *boot_alloc(size_t len)
{
    void *p = boot_memory + boot_used;

    boot_used += (len + 15) / 16 * 16;
    if (boot_used > sizeof(boot_memory))
        abort();
    return p;
}

void *plat_alloc(size_t len)
{
    void *p;

    if (booting)
        return boot_alloc(len);
    check_may_sleep(__func__);
    if (fake.on_alloc)
        fake.on_alloc();
    if (fake_must_fail())
        return NULL;
    p = calloc(1, len ? len : 1);
    if (!p)
        abort();
    fake.blocks++;
    return p;
}

void plat_free(void *p)
{
    if ((uint8_t *)p >= boot_memory && (uint8_t *)p < boot_memory + sizeof(boot_memory))
        return; /* it belongs to no test */
    check_may_sleep(__func__);
    watch();
    if (p && p == watched_site) {
        word_add("free");
        watched_site = NULL;
    }
    fake.blocks -= p != NULL;
    free(p);
}

/* ---- counters and flags ---- */

int plat_counters_map(size_t count)
{
    if (!held[PLAT_PROBES])
        fake_breach(__func__, "PLAT_PROBES is not held");
    return count > FAKE_COUNTERS || fake_must_fail() ? -ENOMEM : 0;
}

void plat_preempt_enable(void)
{
    fake.preempt_enables++;
}

void plat_flags_as(unsigned long flags)
{
    fake.flags_as = flags;
}

/* ---- time, place, locks ---- */

void plat_quiesce(void)
{
    void (*hook)(void) = fake.on_quiesce;

    check_may_sleep(__func__);
    if (held[PLAT_TEXT])
        fake_breach(__func__, "waits with PLAT_TEXT held");
    note("quiesce");
    fake.quiesces++;
    fake.on_quiesce = NULL;
    if (hook)
        hook();
}

enum plat_context plat_context(void)
{
    if (FAKE_DEPTHS.nmi)
        return PLAT_NMI;
    return cpus[fake.this_cpu].cpu.depth ? PLAT_TRAP : fake.context;
}

unsigned plat_cpu_count(void)
{
    return fake.cpus;
}

struct probe_cpu *plat_probe_cpu(unsigned cpu)
{
    return &cpus[cpu].cpu;
}

struct probe_cpu *plat_this_cpu(void)
{
    return fake.early ? NULL : &cpus[fake.this_cpu].cpu;
}

unsigned long plat_irq_save(void)
{
    return fake.irqs_off++;
}

void plat_irq_restore(unsigned long flags)
{
    if (flags != --fake.irqs_off)
        fake_breach(__func__, "not the state that was saved last");
}

void plat_lock(enum plat_lock lock)
{
    check_may_sleep(__func__);
    if (held[lock])
        fake_breach(__func__, "this lock is held already");
    if (lock == PLAT_PROBES && held[PLAT_TEXT])
        fake_breach(__func__, "PLAT_PROBES comes before PLAT_TEXT");
    held[lock] = true;
}

void plat_unlock(enum plat_lock lock)
{
    if (!held[lock])
        fake_breach(__func__, "this lock is not held");
    held[lock] = false;
}

bool plat_lock_held(enum plat_lock lock)
{
    return held[lock];
}

/* ---- symbols ---- */

int plat_symbol_find(const char *name, struct plat_symbol *out)
{
    size_t found = 0;

    for (size_t i = 0; i < symbol_count; i++) {
        if (strcmp(symbols[i].name, name))
            continue;
        *out = symbols[i];
        found++;
    }
    return found == 1 ? 0 : found ? -EADDRNOTAVAIL : -ENOENT;
}

int plat_symbol_at(uintptr_t addr, struct plat_symbol *out)
{
    for (size_t i = 0; i < symbol_count; i++) {
        if (addr - symbols[i].start >= symbols[i].size)
            continue;
        *out = symbols[i];
        return 0;
    }
    return -ENOENT;
}

bool plat_has_fixup(uintptr_t addr)
{
    return range_overlaps(&fixups, addr, addr + 1);
}

bool plat_is_entry(uintptr_t addr)
{
    return range_overlaps(&entries, addr, addr + 1);
}

bool plat_is_engine(uintptr_t addr)
{
    return range_overlaps(&engines, addr, addr + 1);
}

static int take_marks(void)
{
    return blacklist_add(&(struct nokprobe_marks){
        nokprobe, nokprobe_count, nokprobe_ranges, nokprobe_range_count });
}

void fake_take_marks(void)
{
    CHECK_EQ(fake_boot(take_marks), 0);
    nokprobe_count = nokprobe_range_count = 0;
}

/* ---- handlers, faults, the end ---- */

#define ESCAPED ((uintptr_t)0xe5caed)

int plat_read(uint64_t *out, uintptr_t addr)
{
    if (range_overlaps(&bad, addr, addr + sizeof(*out)))
        return -EFAULT;
    memcpy(out, (const void *)addr, sizeof(*out));
    return 0;
}

uintptr_t plat_seg_base(unsigned seg)
{
    return seg == INSN_SEG_FS ? fake.fs_base : fake.gs_base;
}

/* As the kernel does: the engine is asked first, like after any fault. */
void plat_escape(struct pt_regs *fault, struct pt_regs *regs)
{
    fault->ip = ESCAPED;
    fault->sp = (uintptr_t)regs;
}

void plat_given_up(const struct kprobe *p, uintptr_t sp)
{
    fake.given_up = p;
    fake.given_up_sp = sp;
}

void plat_raise_fault(struct pt_regs *regs, uintptr_t addr)
{
    fake.raised++;
    fake.raised_at = addr;
    fake.raised_ip = regs->ip;
    regs->vector = 14;
    regs->error_code = 0;
    kprobe_fault_handler(regs);
}

void plat_raise_again(struct pt_regs *regs)
{
    (void)regs;
    fake.raised_again++;
}

void plat_raise_step(struct pt_regs *regs)
{
    fake.raised_steps++;
    fake.raised_ip = regs->ip;
}

uint64_t plat_clock_ns(void)
{
    return fake.ns;
}

void plat_log(const char *fmt, ...)
{
    char line[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    unit_note("%s", line);
}

void plat_bug(const char *what, uintptr_t where)
{
    if (fake_bug_expected)
        longjmp(fake_bug_exit, 1);
    printf("Bail out! probes: %s (at 0x%lx)\n", what, where);
    abort();
}

/* ---- what happens to a CPU ---- */

uint64_t *fake_stack(void)
{
    return &stack[STACK_WORDS / 2];
}

size_t fake_stack_area(unsigned which, uintptr_t *top)
{
    *top = (uintptr_t)((which ? nmi_stack : stack) + STACK_WORDS);
    return sizeof(stack);
}

struct pt_regs fake_regs(void)
{
    struct pt_regs regs;
    unsigned long *words_of = (unsigned long *)&regs;

    for (size_t i = 0; i < sizeof(regs) / sizeof(*words_of); i++)
        words_of[i] = 0x1111111100000000ul * (i % 15 + 1) / 16 + i;
    regs.sp = (uintptr_t)fake_stack();
    regs.flags = FLAGS_FIXED | FLAGS_IF;
    regs.orig_ax = 0;
    return regs;
}

/* The traps under way, innermost first: an escape goes back to the one with its image. */
struct trap {
    struct trap *outer;
    struct pt_regs *regs;
    jmp_buf here;
};

static struct trap *traps;

/* go_on - resume the image; from an escape that is in the middle of the engine. */
static void go_on(const struct pt_regs *regs)
{
    if (regs->ip != ESCAPED)
        return;
    while (traps->regs != (struct pt_regs *)regs->sp)
        traps = traps->outer;
    longjmp(traps->here, 1);
}

/* Runs into a trap with the image @regs, as @handler sees it. */
bool fake_take(struct pt_regs *regs,
               bool (*handler)(struct pt_regs *, struct probe_cpu *))
{
    struct trap trap = { .outer = traps, .regs = regs };
    struct probe_cpu *cpu = plat_this_cpu();
    volatile bool taken = true;

    if (cpu) {
        fake.stack_base = (uintptr_t)regs - fake.stack_left;
        cpu->plat.nmi_stack_base = fake.stack_base;
    }
    traps = &trap;
    if (setjmp(trap.here))
        kprobe_resume(regs, cpu);
    else
        taken = handler(regs, cpu);
    traps = trap.outer;
    go_on(regs);
    return taken;
}

bool fake_int3(struct pt_regs *regs, uintptr_t addr)
{
    regs->ip = addr + 1;
    return fake_take(regs, kprobe_int3_handler);
}

static bool fault(struct pt_regs *regs, struct probe_cpu *cpu)
{
    (void)cpu;
    return kprobe_fault_handler(regs);
}

bool fake_fault(struct pt_regs *regs, unsigned vector, uintptr_t ip)
{
    regs->ip = ip;
    regs->vector = vector;
    return fake_take(regs, fault);
}
