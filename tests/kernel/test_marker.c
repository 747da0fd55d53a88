/* test_marker.c - markers are switched while all CPUs come by. */
#include "probes/marker/marker.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/ksyms.h"
#include "kernel/mm/heap.h"
#include "kernel/module/module.h"
#include "kernel/sync/spinlock.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "probes/core/platform.h"
#include "probes/core/registry.h"
#include "probes/insn/insn.h"
#include "probes/jump/optimize.h"
#include "probes/kprobe.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/logged.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define FORMAT "twice %lu is %lu"

extern const struct marker_insn marker_insns_start[], marker_insns_end[];

static uint64_t evaluated; /* arguments, by any CPU */

static NOINLINE uint64_t twice(uint64_t n)
{
    __atomic_fetch_add(&evaluated, 1, __ATOMIC_RELAXED);
    return 2 * n;
}

static NOINLINE uint64_t marked(uint64_t n)
{
    n += 3;
    MARK(ktest_marked, FORMAT, n, twice(n));
    return n;
}

static NOINLINE void marked_again(uint64_t n)
{
    MARK(ktest_marked, FORMAT, n, twice(n));
}

static NOINLINE void marked_otherwise(void)
{
    MARK(ktest_other, "nothing");
}

static uint64_t calls[2], wrong;

static void look(void *private, struct marker_call *call)
{
    uint64_t n = va_arg(call->args, uint64_t), twice_n = va_arg(call->args, uint64_t);
    bool is_right = twice_n == 2 * n && strcmp(call->format, FORMAT) == 0;

    __atomic_fetch_add((uint64_t *)private, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&wrong, !is_right, __ATOMIC_RELAXED);
}

/* look_again - passes the marker that it runs for. */
static void look_again(void *private, struct marker_call *call)
{
    look(private, call);
    marked(1);
}

static const struct marker_insn *insn_of(uintptr_t fn)
{
    for (const struct marker_insn *i = marker_insns_start; i < marker_insns_end; i++)
        if (i->insn >= fn && i->insn < fn + 64)
            return i;
    return NULL;
}

static void begin(void)
{
    memset(calls, 0, sizeof(calls));
    evaluated = wrong = 0;
}

static int connect(unsigned i)
{
    return marker_connect("ktest_marked", FORMAT, look, &calls[i]);
}

static int disconnect(unsigned i)
{
    return marker_disconnect("ktest_marked", look, &calls[i]);
}

KTEST(marker, off_it_is_three_instructions_without_memory)
{
    size_t count = 0, good = 0;

    for (const struct marker_insn *i = marker_insns_start; i < marker_insns_end; i++) {
        const uint8_t *at = (const uint8_t *)i->insn;
        struct insn jne = { 0 };

        count++;
        good += !memcmp(at, "\xb0\x00\x84\xc0", 4) &&
                !insn_decode(&jne, at + 4, INSN_MAX_LEN, i->insn + 4) &&
                jne.kind == INSN_JCC && (at[4] == 0x75 || at[5] == 0x85);
    }
    ktest_report(count >= 12, "%lu markers", count);
    ktest_report(good == count, "mov $0,%%al; test %%al,%%al; jne: %lu", good);
}

KTEST(marker, arguments_are_evaluated_where_it_is_on)
{
    size_t heap = heap_in_use();

    begin();
    marked(1);
    ktest_report(evaluated == 0, "not while it is off");
    ktest_report(connect(0) == 0, "a function is connected");
    marked(1);
    marked_again(2);
    ktest_report(calls[0] == 2 && evaluated == 2 && !wrong, "called at both places");
    ktest_report(connect(0) == -EEXIST, "not twice");
    ktest_report(connect(1) == 0, "another one as well");
    marked(1);
    ktest_report(calls[0] == 3 && calls[1] == 1 && !wrong, "both are called");
    ktest_report(disconnect(0) == 0, "the first goes");
    marked(1);
    ktest_report(calls[0] == 3 && calls[1] == 2, "and is not called");
    ktest_report(disconnect(1) == 0 && disconnect(1) == -ENOENT, "the other one, once");
    evaluated = 0;
    marked(1);
    ktest_report(evaluated == 0 && calls[1] == 2, "all is off");
    ktest_report(heap_in_use() == heap, "nothing is left over");
}

/* What functions find: each argument, of whatever type. */
static NOINLINE void marked_with_all(void)
{
    MARK(ktest_all, "%d %ld %s %c %p %x %llu %hhu", -1, LONG_MIN, "three", 'c', calls,
         ~0u, ~0ull, (uint8_t)200);
}

static void look_at_all(void *private, struct marker_call *call)
{
    va_list again;
    char text[128];

    va_copy(again, call->args);
    vsnprintf(private, 128, call->format, call->args);
    vsnprintf(text, sizeof(text), call->format, again);
    va_end(again);
    wrong += strcmp(text, private) != 0;
}

KTEST(marker, arguments_of_all_types)
{
    char text[128] = "", want[128];

    begin();
    marker_connect("ktest_all", "%d %ld %s %c %p %x %llu %hhu", look_at_all, text);
    marked_with_all();
    marker_disconnect("ktest_all", look_at_all, text);
    snprintf(want, sizeof(want), "%d %ld %s %c %p %x %llu %hhu", -1, LONG_MIN, "three",
             'c', (void *)calls, ~0u, ~0ull, (uint8_t)200);
    ktest_report(!strcmp(text, want) && !wrong, "%s", text);
}

/* What a marker that is on changes, at a stack that is at a multiple of 16, or not. */
#define REGISTERS_CHANGED(words, push, pop)                                              \
    ({                                                                                   \
        uint64_t rax_ = (uint64_t)(words), changed_;                                     \
                                                                                         \
        __asm__ volatile("mov $1, %%ecx\n\tmov $2, %%edx\n\tmov $3, %%esi\n\t"           \
                         "mov $4, %%edi\n\tmov $5, %%r8d\n\tmov $6, %%r9d\n\t"           \
                         "mov $7, %%r10d\n\tmov $8, %%r11d\n\t" push                     \
                         "push $9\n\tcall marker_enter\n\tpop %1\n\t" pop                \
                         "xor $9, %1\n\txor $1, %%ecx\n\txor $2, %%edx\n\t"              \
                         "xor $3, %%esi\n\txor $4, %%edi\n\txor $5, %%r8d\n\t"           \
                         "xor $6, %%r9d\n\txor $7, %%r10d\n\txor $8, %%r11d\n\t"         \
                         "or %%rcx, %1\n\tor %%rdx, %1\n\tor %%rsi, %1\n\t"              \
                         "or %%rdi, %1\n\tor %%r8, %1\n\tor %%r9, %1\n\t"                \
                         "or %%r10, %1\n\tor %%r11, %1"                                  \
                         : "+a"(rax_), "=&b"(changed_)                                   \
                         :                                                               \
                         : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",         \
                           "memory", "cc");                                              \
        changed_ | (rax_ ^ (uint64_t)(words));                                           \
    })

/* What a function may change, it changes. */
static void look_and_spoil(void *private, struct marker_call *call)
{
    look(private, call);
    __asm__ volatile("mov $-1, %%rcx\n\tmov %%rcx, %%rdx\n\tmov %%rcx, %%rsi\n\t"
                     "mov %%rcx, %%rdi\n\tmov %%rcx, %%r8\n\tmov %%rcx, %%r9\n\t"
                     "mov %%rcx, %%r10\n\tmov %%rcx, %%r11" ::
                         : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
}

KTEST(marker, the_code_around_it_keeps_its_registers)
{
    uint64_t words[] = { (uint64_t)insn_of((uintptr_t)marked)->site, 21, 42 };

    begin();
    marker_connect("ktest_marked", FORMAT, look_and_spoil, &calls[0]);
    ktest_report(REGISTERS_CHANGED(words, "", "") == 0, "and its stack");
    ktest_report(REGISTERS_CHANGED(words, "push %%rax\n\t", "pop %%rax\n\t") == 0,
                 "wherever that is");
    marker_disconnect("ktest_marked", look_and_spoil, &calls[0]);
    ktest_report(calls[0] == 2 && !wrong, "a function was called each time");
}

KTEST(marker, another_format_is_refused)
{
    static char name[MARKER_NAME_MAX + 1];

    memset(name, 'n', MARKER_NAME_MAX);
    begin();
    ktest_report(marker_connect("ktest_other", FORMAT, look, &calls[0]) == -EINVAL,
                 "not that of the marker");
    marked_otherwise();
    ktest_report(calls[0] == 0, "nothing is called");
    ktest_report(marker_connect("ktest_none", FORMAT, look, &calls[0]) == 0,
                 "a name may wait for its marker");
    ktest_report(marker_connect("ktest_none", "x", look, &calls[1]) == -EINVAL,
                 "with one format");
    ktest_report(marker_disconnect("ktest_none", look, &calls[0]) == 0, "and go");
    ktest_report(marker_connect(name, FORMAT, look, &calls[0]) == -EINVAL &&
                     marker_connect("", FORMAT, look, &calls[0]) == -EINVAL,
                 "no name, and a long one");
}

KTEST(marker, a_function_that_passes_its_marker_is_not_called_again)
{
    const struct marker_site *site = insn_of((uintptr_t)marked)->site;
    uint64_t missed = site->missed;

    begin();
    marker_connect("ktest_marked", FORMAT, look_again, &calls[0]);
    marked(1);
    marker_disconnect("ktest_marked", look_again, &calls[0]);
    ktest_report(calls[0] == 1, "called once");
    ktest_report(site->missed == missed + 1, "and the other time is counted");
}

static int answers[3];

/* switch_it - what would wait for itself. */
static void switch_it(void *private, struct marker_call *call)
{
    look(private, call);
    answers[0] = connect(1);
    answers[1] = disconnect(0);
    answers[2] = marker_disconnect("ktest_marked", switch_it, private);
}

KTEST(marker, a_function_may_not_switch_markers)
{
    begin();
    marker_connect("ktest_marked", FORMAT, switch_it, &calls[0]);
    marked(1);
    ktest_report(calls[0] == 1 && answers[0] == -EDEADLK && answers[1] == -EDEADLK &&
                     answers[2] == -EDEADLK,
                 "its own least of all: %d %d %d", answers[0], answers[1], answers[2]);
    ktest_report(!marker_disconnect("ktest_marked", switch_it, &calls[0]),
                 "behind it, it may");
    marked(1);
    ktest_report(calls[0] == 1, "and then it is off");
}

/* ---- in modules ---- */

extern const uint8_t module_marks[], module_marks_end[];

#define MARKS_LEN ((size_t)(module_marks_end - module_marks))

static int load(void)
{
    static char why[MODULE_WHY_MAX];
    int err = module_load("marks", module_marks, MARKS_LEN, why);

    if (err && err != -ENOMEM)
        ktest_note("%d %s", err, why);
    return err;
}

static int unload(void)
{
    char why[MODULE_WHY_MAX];
    int err = module_unload("marks", why);

    if (err)
        ktest_note("%d %s", err, why);
    return err;
}

static uintptr_t of(const char *name)
{
    struct ksym sym;

    return ksyms_find(name, &sym) ? 0 : sym.start;
}

static void pass_module(long n)
{
    ((long (*)(long))of("marks_pass"))(n);
}

static uint64_t in_module, ip_seen;

static void look_at_module(void *private UNUSED, struct marker_call *call)
{
    in_module += !strcmp(call->format, "i %ld") && !strcmp(call->name, "ktest_module");
    ip_seen = call->ip;
}

KTEST(marker, those_of_a_module_come_and_go)
{
    struct ksym sym;
    size_t heap;

    load(); /* names of symbols stay */
    unload();
    heap = heap_in_use();
    in_module = 0;
    ktest_report(!marker_connect("ktest_module", "i %ld", look_at_module, NULL),
                 "a function waits for it");
    ktest_report(load() == 0 && in_module == 3, "it is called by the constructor");
    pass_module(2);
    ktest_report(in_module == 5 && *(const uint8_t *)ip_seen == 0xb0 &&
                     !ksyms_at(ip_seen, &sym) && !strcmp(sym.name, "marks_pass"),
                 "and behind it");
    marker_disconnect("ktest_module", look_at_module, NULL);
    pass_module(2);
    ktest_report(in_module == 5, "it is switched off");
    marker_connect("ktest_module", "i %ld", look_at_module, NULL);
    pass_module(2);
    ktest_report(in_module == 7, "and on");
    ktest_report(unload() == 0, "the module goes with it");
    ktest_report(load() == 0 && in_module == 10, "and comes back");
    marker_disconnect("ktest_module", look_at_module, NULL);
    ktest_report(unload() == 0, "and goes");
    ktest_report(heap_in_use() == heap, "nothing is left over");
}

KTEST(marker, a_name_of_image_and_module)
{
    begin();
    connect(0);
    ktest_report(load() == 0, "loaded");
    ((void (*)(uint64_t))of("marks_pass_image"))(4);
    marked(1);
    ktest_report(calls[0] == 2 && !wrong, "its marker calls the image's function");
    ktest_report(*(const long *)of("marks_calls") == 2, "and both call the module's");
    disconnect(0);
    marked(1);
    ktest_report(calls[0] == 2 && *(const long *)of("marks_calls") == 3, "or it alone");
    ktest_report(unload() == 0, "it goes, and has left its function behind");
    evaluated = 0;
    marked(1);
    ktest_report(!evaluated, "which is called no more");
}

KTEST(marker, of_another_format_in_a_module)
{
    unsigned before;

    begin();
    marker_connect("ktest_other", "nothing", look_at_module, NULL);
    before = logged("marks: a marker has another format", "");
    ktest_report(load() == 0 &&
                     logged("marks: a marker has another format", "") == before + 1,
                 "it is loaded, and the log says so");
    in_module = ip_seen = 0;
    ((void (*)(void))of("marks_pass_odd"))();
    ktest_report(!ip_seen, "but calls nothing");
    ktest_report(marker_connect("ktest_other", "nothing", look, &calls[0]) == -EINVAL,
                 "nor may another one be connected meanwhile");
    unload();
    ktest_report(!marker_connect("ktest_other", "nothing", look_at_module, &calls[0]),
                 "then it may");
    marker_disconnect("ktest_other", look_at_module, NULL);
    marker_disconnect("ktest_other", look_at_module, &calls[0]);
}

/* A switch would write over whatever is there. */
KTEST(marker, what_is_no_marker_is_refused)
{
    static const uint8_t off[] = { 0xb0, 0, 0x84, 0xc0 };
    uint8_t *file = kmalloc(MARKS_LEN);
    char why[MODULE_WHY_MAX];
    size_t at = 0;

    memcpy(file, module_marks, MARKS_LEN);
    while (memcmp(file + at, off, sizeof(off)) != 0)
        at++;
    file[at + 2] = 0x85;
    ktest_report(module_load("marks", file, MARKS_LEN, why) == -ENOEXEC &&
                     strstr(why, "a marker that is not its own"),
                 "other instructions: %s", why);
    kfree(file);
}

KTEST(marker, a_module_whose_markers_cannot_be_switched_on)
{
    size_t heap;
    long n;
    int err = -ENOMEM;

    load();
    unload();
    marker_connect("ktest_module", "i %ld", look_at_module, NULL);
    heap = heap_in_use();
    for (n = 1; err && n < 200; n++) {
        heap_fail_after(n);
        err = load();
        heap_fail_after(-1);
        if (err && err != -ENOMEM)
            break;
    }
    ktest_report(!err && n > 5, "each of %ld allocations may fail: %d", n - 2, err);
    if (!err)
        unload();
    ktest_report(heap_in_use() == heap, "nothing is left over");
    marker_disconnect("ktest_module", look_at_module, NULL);
}

/* ---- while all CPUs come by ---- */

static volatile bool stop;
static uint64_t (*pass)(uint64_t n);
static uint64_t passed, passed_in_nmis;

static int pass_forever(void *unused UNUSED)
{
    uint64_t n = 0;

    while (!stop)
        pass(n++);
    __atomic_fetch_add(&passed, n, __ATOMIC_RELAXED);
    return 0;
}

static bool pass_in_nmi(struct pt_regs *regs UNUSED)
{
    if (stop)
        return false;
    pass(1);
    __atomic_fetch_add(&passed_in_nmis, 1, __ATOMIC_RELAXED);
    return true;
}

/* send_nmis - to one CPU after the other, in the middle of whatever it does. */
static int send_nmis(void *unused UNUSED)
{
    for (unsigned cpu = 0; !stop; cpu = (cpu + 1) % cpu_count()) {
        smp_send_nmi(cpu);
        thread_yield();
    }
    return 0;
}

static int tids[MAX_CPUS + 1];

static void storm_begin(uint64_t (*fn)(uint64_t n))
{
    static bool handled;

    if (!handled)
        trap_set_handler(TRAP_NMI, pass_in_nmi);
    handled = true;
    begin();
    pass = fn;
    stop = false;
    passed = passed_in_nmis = 0;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        tids[cpu] = kernel_clone(&(struct clone_args){
            .fn = pass_forever, .name = "marks", .cpus = BIT(cpu) });
    tids[cpu_count()] =
        kernel_clone(&(struct clone_args){ .fn = send_nmis, .name = "nmis" });
}

static void storm_end(void)
{
    stop = true;
    for (unsigned i = 0; i <= cpu_count(); i++)
        thread_join(tids[i], NULL);
}

/* is_called - does a CPU call function @i from now on? */
static bool is_called(unsigned i)
{
    uint64_t before = READ_ONCE(calls[i]);

    for (unsigned n = 0; n < 10000 && READ_ONCE(calls[i]) == before; n++)
        thread_yield();
    return READ_ONCE(calls[i]) != before;
}

/* is_called_by_module - does a CPU call the function of the module? */
static bool is_called_by_module(void)
{
    const volatile long *its = (const volatile long *)of("marks_calls");
    long before = *its;

    for (unsigned n = 0; n < 10000 && *its == before; n++)
        thread_yield();
    return *its != before;
}

KTEST(marker, switched_while_all_cpus_come_by)
{
    struct kprobe p = { .addr = insn_of((uintptr_t)marked)->insn };
    uint64_t rounds = ktest_rounds(8, 200), after;
    size_t heap = heap_in_use();
    int failed = 0;

    storm_begin(marked);
    for (uint64_t n = 0; n < rounds; n++) {
        failed += connect(0) || !is_called(0);
        failed += n % 2 && register_kprobe(&p);
        failed += connect(1) || !is_called(1);
        failed += disconnect(0) != 0;
        failed += n % 2 && unregister_kprobe(&p);
        failed += disconnect(1) != 0;
        after = calls[0] + calls[1];
        thread_yield();
        failed += after != calls[0] + calls[1];
        p = (struct kprobe){ .addr = p.addr };
    }
    storm_end();
    ktest_report(!failed, "it was switched, on is on, and off is off: %d", failed);
    ktest_report(calls[0] && calls[1] && !wrong, "%lu and %lu calls of %lu, %lu wrong",
                 calls[0], calls[1], passed, wrong);
    ktest_report(passed_in_nmis, "%lu times in NMIs", passed_in_nmis);
    ktest_report(evaluated <= passed + passed_in_nmis, "arguments only where it was on");
    ktest_report(heap_in_use() == heap, "nothing is left over");
}

/* ---- under probes ---- */

/* The jump of the first one reads the immediate behind it as a part of its displacement. */
static NOINLINE uint64_t marked_beside(uint64_t n)
{
    __asm__ volatile("inc %0" : "+r"(n)); /* three bytes */
    MARK(ktest_marked, FORMAT, n, twice(n));
    return n;
}

#define BESIDE 3

static const struct {
    const char *name;
    enum optimize_method method;
    unsigned at; /* 1: in front of the marker, 2: its first instruction, 4: its second */
    unsigned jumps;
} under[] = {
    { "an int3", OPTIMIZE_OFF, 2, 0 },
    { "int3s around it", OPTIMIZE_OFF, 7, 0 },
    { "a jump", OPTIMIZE_PUN, 2, 1 },
    { "a jump that reads the immediate", OPTIMIZE_PUN, 1, 1 },
    { "jumps that read each other", OPTIMIZE_PUN, 7, 3 },
    { "a region", OPTIMIZE_REGION, 2, 1 },
    { "a region that begins in front of it", OPTIMIZE_REGION, 1, 1 },
    { "a region, and int3s inside of it", OPTIMIZE_REGION, 7, 1 },
};

static struct kprobe probes[BESIDE];

static unsigned probes_register(uint8_t *text, unsigned at)
{
    unsigned count = 0, failed = 0;

    for (unsigned i = 0; i < BESIDE; i++) {
        uintptr_t addr = (uintptr_t)text + (const unsigned[]){ 0, 3, 5 }[i];

        if (at & BIT(i))
            probes[count++] = (struct kprobe){ .addr = addr };
    }
    for (unsigned i = 0; i < count; i++)
        failed += register_kprobe(&probes[i]) != 0;
    optimize_run();
    return failed ? 0 : count;
}

static unsigned jumps_among(unsigned count)
{
    unsigned jumps = 0;

    for (unsigned i = 0; i < count; i++)
        jumps += (probes[i].flags & KPROBE_FLAG_OPTIMIZED) != 0;
    return jumps;
}

static void switched_under(size_t i)
{
    uint8_t *text = (uint8_t *)insn_of((uintptr_t)marked_beside)->insn - 3;
    unsigned count, jumps, failed = 0;
    uint8_t before[8];

    memcpy(before, text, sizeof(before));
    jumps_by(under[i].method);
    count = probes_register(text, under[i].at);
    jumps = jumps_among(count);
    storm_begin(marked_beside);
    failed += connect(0) || !is_called(0);
    optimize_run();
    failed += !is_called(0) || disconnect(0);
    optimize_run();
    failed += jumps_among(count) != jumps;
    storm_end();
    for (unsigned k = 0; k < count; k++) {
        failed += kprobe_hits(&probes[k]) + probes[k].nmissed != passed + passed_in_nmis;
        failed += unregister_kprobe(&probes[k]) != 0;
    }
    jumps_as_before();
    ktest_report(count && jumps == under[i].jumps, "%s: %u probes, %u jumps",
                 under[i].name, count, jumps);
    ktest_report(!failed && !wrong, "switched under it, and each pass is a hit: %u",
                 failed);
    ktest_report(!memcmp(text, before, sizeof(before)), "the text is as it was");
}

KTEST(marker, switched_under_probes)
{
    for (size_t i = 0; i < ARRAY_LEN(under); i++)
        switched_under(i);
}

/* ---- modules meanwhile ---- */

static uint64_t module_calls;

static void count_module(void *private UNUSED, struct marker_call *call)
{
    long i = va_arg(call->args, long);

    __atomic_fetch_add(&module_calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&wrong, i < 0 || i > 2, __ATOMIC_RELAXED);
}

/* Its constructor passes its markers three times. */
KTEST(marker, modules_come_and_go_while_all_cpus_come_by)
{
    uint64_t rounds = ktest_rounds(3, 100), loads = 0;
    int failed = 0;

    storm_begin(marked);
    module_calls = 0;
    failed += marker_connect("ktest_module", "i %ld", count_module, NULL) != 0;
    for (uint64_t n = 0; n < rounds; n++) {
        failed += connect(0) != 0;
        failed += load() != 0;
        loads++;
        failed += n % 2 && (disconnect(0) || !is_called_by_module());
        failed += unload() != 0;
        failed += n % 2 == 0 && disconnect(0);
    }
    failed += marker_disconnect("ktest_module", count_module, NULL) != 0;
    storm_end();
    ktest_report(!failed, "all of it is done");
    ktest_report(module_calls == 3 * loads && !wrong, "%lu calls in %lu constructors",
                 module_calls, loads);
}

static void add_functions(const struct marker_facts *m, void *arg)
{
    const struct marker_facts *sum = arg;

    if (!strcmp(m->name, sum->name))
        ((struct marker_facts *)arg)->functions += m->functions;
}

static size_t functions_of(const char *name)
{
    struct marker_facts sum = { .name = name };

    marker_for_each(add_functions, &sum);
    return sum.functions;
}

KTEST(marker, without_memory_it_is_on_or_off)
{
    size_t heap = heap_in_use();
    int err = -ENOMEM;
    unsigned n, left = 0;

    begin();
    for (n = 1; err && n < 100; n++) {
        heap_fail_after((long)n);
        err = connect(0);
        heap_fail_after(-1);
        calls[0] = 0;
        marked(1);
        left += err && functions_of("ktest_marked");
        if (err != (calls[0] ? 0 : -ENOMEM))
            break;
    }
    ktest_report(!err && n > 3, "connected at the %u. try", n);
    ktest_report(!left, "until then with no function");
    ktest_report(connect(1) == 0, "a second one");
    heap_fail_after(1);
    ktest_report(disconnect(0) == 0, "one goes without memory");
    heap_fail_after(-1);
    calls[0] = calls[1] = 0;
    marked(1);
    ktest_report(calls[0] == 0 && calls[1] == 1, "the other one is called");
    disconnect(1);
    marked(1);
    ktest_report(calls[1] == 1, "until it goes");
    ktest_report(heap_in_use() == heap, "and nothing is left over");
}

/* ---- several at once ---- */

#define WISHES 3

static uint64_t other_calls;

static void count_other(void *private, struct marker_call *call UNUSED)
{
    ++*(uint64_t *)private;
}

/* Two functions of one name, and one of another. */
static struct marker_wish wishes[WISHES] = {
    { "ktest_marked", FORMAT, look, &calls[0] },
    { "ktest_other", "nothing", count_other, &other_calls },
    { "ktest_marked", FORMAT, look, &calls[1] },
};

static void pass_both(void)
{
    begin();
    other_calls = 0;
    marked(1);
    marked_otherwise();
}

KTEST(marker, several_are_connected_at_once)
{
    size_t heap = heap_in_use();
    uint64_t start = each_cpu_syncs(), one, all;

    marker_connect("ktest_other", "nothing", count_other, &other_calls);
    one = each_cpu_syncs() - start;
    marker_disconnect("ktest_other", count_other, &other_calls);
    start = each_cpu_syncs();
    ktest_report(!marker_connect_all(wishes, WISHES), "three functions of two markers");
    all = each_cpu_syncs() - start;
    pass_both();
    ktest_report(calls[0] == 1 && calls[1] == 1 && other_calls == 1 && !wrong,
                 "each is called");
    ktest_report(all == one, "with as many synchronisations as one: %lu", all);
    ktest_report(marker_connect_all(wishes, WISHES) == -EEXIST, "not twice");
    ktest_report(!marker_disconnect_all(wishes, WISHES), "and all at once they go");
    pass_both();
    ktest_report(!evaluated && !other_calls, "none is called");
    ktest_report(marker_disconnect_all(wishes, WISHES) == -ENOENT, "once");
    ktest_report(heap_in_use() == heap, "nothing is left over");
}

KTEST(marker, several_or_none)
{
    size_t heap = heap_in_use();
    int err = -ENOMEM;
    unsigned failed = 0, n;

    wishes[2].format = "x";
    ktest_report(marker_connect_all(wishes, WISHES) == -EINVAL, "the last is refused");
    wishes[2].format = FORMAT;
    pass_both();
    ktest_report(!evaluated && !other_calls, "and none is connected");
    connect(0);
    ktest_report(marker_disconnect_all(wishes, WISHES) == -ENOENT, "one of three is");
    pass_both();
    ktest_report(calls[0] == 1, "and stays");
    disconnect(0);
    for (n = 1; err && n < 100; n++) {
        heap_fail_after((long)n);
        err = marker_connect_all(wishes, WISHES);
        heap_fail_after(-1);
        pass_both();
        failed += calls[0] != !err || calls[1] != !err || other_calls != !err;
    }
    ktest_report(!err && n > 5 && !failed, "without memory none is, %u times", n - 2);
    heap_fail_after(1);
    ktest_report(!marker_disconnect_all(wishes, WISHES), "without memory all go");
    heap_fail_after(-1);
    pass_both();
    ktest_report(!calls[0] && !calls[1] && !other_calls, "and none is called");
    connect(0);
    disconnect(0);
    ktest_report(!marker_connect_all(wishes, WISHES), "all come back");
    for (unsigned i = WISHES; i-- > 0;) {
        heap_fail_after(1);
        failed += marker_disconnect_all(&wishes[i], 1) != 0;
        heap_fail_after(-1);
    }
    pass_both();
    ktest_report(!failed && !calls[0] && !calls[1] && !other_calls,
                 "and go one by one, without memory");
    connect(0);
    ktest_report(!disconnect(0) && heap_in_use() == heap, "nothing is left over");
}

/* The byte is the program's own: there are no probes. */
static bool byte_is_on(void)
{
    return *(const volatile uint8_t *)(insn_of((uintptr_t)marked)->insn + 1);
}

KTEST(marker, its_byte_follows_when_there_is_memory)
{
    begin();
    connect(0);
    heap_fail_after(1);
    ktest_report(!disconnect(0) && byte_is_on(), "without memory the byte stays");
    heap_fail_after(-1);
    marked(1);
    ktest_report(!calls[0], "but nothing is called");
    marker_connect("ktest_other", "nothing", count_other, &other_calls);
    marker_disconnect("ktest_other", count_other, &other_calls);
    ktest_report(!byte_is_on(), "it changes with that of another marker");
}

/* ---- functions that misbehave ---- */

static int pass_marker(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    marked(1);
    return 0;
}

static void fault_once(void *private, struct marker_call *call)
{
    look(private, call);
    if (calls[0] == 1)
        __asm__ volatile("ud2");
}

/* The handler is given up in the middle of the marker. */
KTEST(marker, a_handler_that_is_given_up_inside_of_it)
{
    const struct marker_site *site = insn_of((uintptr_t)marked)->site;
    uint64_t missed = site->missed;
    struct kprobe p = { .addr = (uintptr_t)marked_again, .pre_handler = pass_marker };
    int preempt = preempt_count();

    begin();
    marker_connect("ktest_marked", FORMAT, fault_once, &calls[0]);
    register_kprobe(&p);
    for (unsigned i = 0; i < 3; i++)
        marked_again(1);
    marked(1);
    ktest_report(p.flags & KPROBE_FLAG_TRIPPED, "its handler is given up");
    ktest_report(!marker_is_running() && preempt_count() == preempt,
                 "the marker runs no longer");
    ktest_report(calls[0] == 5 && site->missed == missed, "and is passed as before: %lu",
                 calls[0]);
    unregister_kprobe(&p);
    ktest_report(!marker_disconnect("ktest_marked", fault_once, &calls[0]),
                 "its function may go");
}

static bool turn_on;

static void leave_interrupts(void *private, struct marker_call *call)
{
    look(private, call);
    if (turn_on)
        sti();
    else
        cli();
}

KTEST(marker, what_a_function_does_to_interrupts_ends_with_it)
{
    unsigned long flags;
    bool on, off;

    begin();
    marker_connect("ktest_marked", FORMAT, leave_interrupts, &calls[0]);
    turn_on = false;
    marked(1);
    on = irqs_enabled();
    sti();
    turn_on = true;
    flags = irq_save();
    marked(1);
    off = !irqs_enabled();
    irq_restore(flags);
    marker_disconnect("ktest_marked", leave_interrupts, &calls[0]);
    ktest_report(on && off && calls[0] == 2, "on stays on, off stays off: %d %d", on,
                 off);
}

static bool is_inside, may_end;

static void take_long(void *private, struct marker_call *call)
{
    uint64_t end = clock_ns() + 30 * 1000000;

    look(private, call);
    WRITE_ONCE(is_inside, true);
    while (clock_ns() < end)
        pause();
    WRITE_ONCE(may_end, true);
    WRITE_ONCE(is_inside, false);
}

static int pass_once(void *unused UNUSED)
{
    marked(1);
    return 0;
}

KTEST(marker, one_that_takes_long_is_waited_for)
{
    unsigned cpu = cpu_count() - 1;
    int tid, err;

    begin();
    is_inside = may_end = false;
    marker_connect("ktest_marked", FORMAT, take_long, &calls[0]);
    tid = kernel_clone(
        &(struct clone_args){ .fn = pass_once, .name = "long", .cpus = BIT(cpu) });
    while (!READ_ONCE(is_inside) && !READ_ONCE(may_end))
        thread_yield();
    err = marker_disconnect("ktest_marked", take_long, &calls[0]);
    ktest_report(!err && READ_ONCE(may_end) && !READ_ONCE(is_inside),
                 "it has ended when it is disconnected");
    thread_join(tid, NULL);
    marked(1);
    ktest_report(calls[0] == 1, "and is not called again");
}

/* ---- probes on what a marker runs ---- */

static uint64_t handler_calls;

static int pass_again(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    handler_calls++;
    marked(2);
    return 0;
}

static int count_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    handler_calls++;
    return 0;
}

KTEST(marker, a_handler_on_it_may_pass_it)
{
    struct kprobe p = { .addr = insn_of((uintptr_t)marked)->insn,
                        .pre_handler = pass_again };
    uint64_t hits;

    begin();
    handler_calls = 0;
    connect(0);
    register_kprobe(&p);
    for (unsigned i = 0; i < 5; i++)
        marked(1);
    hits = kprobe_hits(&p);
    unregister_kprobe(&p);
    disconnect(0);
    ktest_report(handler_calls == 5 && hits == 5 && p.nmissed == 5,
                 "%lu hits, %lu missed", hits, p.nmissed);
    ktest_report(calls[0] == 10 && !wrong, "its function is called in either place: %lu",
                 calls[0]);
}

KTEST(marker, its_functions_may_have_probes)
{
    static const struct {
        void *fn;
        uint64_t hits;
    } on[] = { { (void *)look, 10 }, { (void *)marker_run, 10 }, { (void *)twice, 10 } };
    struct kretprobe rp = { .handler = count_return, .kp.addr = (uintptr_t)marked };
    unsigned failed = 0;

    connect(0);
    for (size_t i = 0; i < ARRAY_LEN(on); i++) {
        struct kprobe p = { .addr = (uintptr_t)on[i].fn, .pre_handler = pass_marker };

        begin();
        failed += register_kprobe(&p) != 0;
        for (unsigned n = 0; n < 10; n++)
            marked(1);
        failed += kprobe_hits(&p) < on[i].hits || calls[0] < 10 || wrong;
        failed += unregister_kprobe(&p) != 0;
    }
    ktest_report(!failed, "whose handlers pass the marker: %u", failed);
    begin();
    handler_calls = 0;
    failed = register_kretprobe(&rp) != 0;
    for (unsigned n = 0; n < 10; n++)
        failed += marked(n) != n + 3;
    unregister_kretprobe(&rp);
    disconnect(0);
    ktest_report(!failed && handler_calls == 10 && calls[0] == 10 && !wrong,
                 "and it may be in a function with a return probe: %lu returns",
                 handler_calls);
}

/* ---- what ends in a panic ---- */

static void fault_always(void *private UNUSED, struct marker_call *call UNUSED)
{
    __asm__ volatile("ud2");
}

static void sleep_inside(void *private UNUSED, struct marker_call *call UNUSED)
{
    thread_sleep_ns(1000);
    barrier(); /* no tail call: it is to be in the report */
}

static struct spinlock its_lock = SPINLOCK_INIT;

static void take_lock(void *private UNUSED, struct marker_call *call UNUSED)
{
    spin_lock(&its_lock);
    spin_unlock(&its_lock);
}

KTEST_FATAL(marker, a_function_that_faults_is_named)
{
    marker_connect("ktest_marked", FORMAT, fault_always, NULL);
    marked(1);
}

KTEST_FATAL(marker, a_function_that_sleeps_is_named)
{
    marker_connect("ktest_marked", FORMAT, sleep_inside, NULL);
    marked(1);
}

KTEST_FATAL(marker, a_function_that_takes_the_lock_around_it_is_named)
{
    marker_connect("ktest_marked", FORMAT, take_lock, NULL);
    spin_lock(&its_lock);
    marked(1);
}
