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
#include "kernel/thread/thread.h"
#include "probes/core/registry.h"
#include "probes/insn/insn.h"
#include "probes/jump/optimize.h"
#include "probes/kprobe.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/logged.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define FORMAT "twice %lu is %lu"

extern const struct marker_insn marker_insns_start[], marker_insns_end[];

static uint64_t evaluated; /* arguments, by any CPU */

static uint64_t twice(uint64_t n)
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

KTEST(marker, the_code_around_it_keeps_its_registers)
{
    uint64_t words[] = { (uint64_t)insn_of((uintptr_t)marked)->site, 21, 42 };

    begin();
    connect(0);
    ktest_report(REGISTERS_CHANGED(words, "", "") == 0, "and its stack");
    ktest_report(REGISTERS_CHANGED(words, "push %%rax\n\t", "pop %%rax\n\t") == 0,
                 "wherever that is");
    disconnect(0);
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
        left += err && insn_of((uintptr_t)marked)->site->hooks;
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
