/* test_static_key.c - static keys are switched while all CPUs execute the code that asks
 * for them, while this code has probes, and in modules.
 */
#include "probes/marker/static_key.h"

#include "kernel/debug/ksyms.h"
#include "kernel/module/module.h"
#include "probes/core/platform.h"
#include "probes/jump/optimize.h"
#include "probes/marker/marker.h"
#include "probes/xmc/xmc.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"

extern struct static_key ktest_key;
STATIC_KEY(ktest_key);

static NOINLINE uint64_t asks(uint64_t n)
{
    uint64_t copy = n;

    /* This inc has three bytes, so a jump there reads bytes of the NOP behind it. */
    __asm__ volatile("inc %0" : "+r"(copy));
    if (static_key_is_on(&ktest_key))
        return n + 1;
    return n;
}

static NOINLINE uint64_t asks_again(uint64_t n)
{
    return static_key_is_on(&ktest_key) ? n + 1 : n;
}

static bool both_say(bool on)
{
    return asks(5) == 5u + on && asks_again(5) == 5u + on;
}

/* text_of_asks - return the address of the inc in asks(); the NOP of the key is behind
 * it. The key is off.
 */
static uint8_t *text_of_asks(void)
{
    uint8_t *p = (uint8_t *)asks + 5; /* behind the entry NOP */

    while (*p != 0x0f || p[1] != 0x1f)
        p++;
    return p - 3;
}

KTEST(static_key, it_is_switched_at_all_its_places)
{
    size_t heap = heap_in_use();
    uint8_t before[8], *text = text_of_asks();

    memcpy(before, text, sizeof(before));
    ktest_report(both_say(false), "off");
    ktest_report(!static_key_switch(&ktest_key, true) && both_say(true), "on");
    ktest_report(!static_key_switch(&ktest_key, true) && both_say(true), "twice");
    ktest_report(text[3] == 0xe9, "a jump");
    ktest_report(!static_key_switch(&ktest_key, false) && both_say(false), "off again");
    ktest_report(!memcmp(before, text_of_asks(), sizeof(before)),
                 "the text is as it was");
    ktest_report(heap_in_use() == heap, "nothing is left over");
}

KTEST(static_key, without_memory_it_stays)
{
    size_t heap = heap_in_use();
    int err = -ENOMEM;
    long n;

    for (n = 1; err && n < 100; n++) {
        heap_fail_after(n);
        err = static_key_switch(&ktest_key, true);
        heap_fail_after(-1);
        if (!both_say(!err))
            break;
    }
    ktest_report(!err && n > 4, "each of %ld allocations may fail", n - 2);
    static_key_switch(&ktest_key, false);
    ktest_report(both_say(false) && heap_in_use() == heap, "nothing is left over");
}

static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
static uint8_t *text_of_jump;
static volatile bool exchanges;

static NOINLINE void *alloc_and_exchange(size_t len)
{
    xmc((uintptr_t)text_of_jump, nop, sizeof(nop));
    return plat_alloc(len);
}

static int go_to_exchange(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    if (!exchanges)
        return 0;
    exchanges = false;
    regs->ip = (uintptr_t)alloc_and_exchange;
    return 1;
}

KTEST(static_key, a_place_may_change_while_it_is_switched)
{
    struct kprobe p = { .symbol_name = "plat_alloc", .pre_handler = go_to_exchange };
    uint8_t jump[sizeof(nop)];
    size_t heap = heap_in_use();

    text_of_jump = text_of_asks() + 3;
    static_key_switch(&ktest_key, true);
    memcpy(jump, text_of_jump, sizeof(jump));
    static_key_switch(&ktest_key, false);
    ktest_report(register_kprobe(&p) == 0 &&
                     xmc((uintptr_t)text_of_jump, jump, sizeof(jump)) == 0,
                 "one of its two places is on");
    exchanges = true;
    ktest_report(static_key_switch(&ktest_key, true) == 0 && !exchanges && both_say(true),
                 "it goes off during the switch, and both are on");
    static_key_switch(&ktest_key, false);
    unregister_kprobe(&p);
    ktest_report(both_say(false) && heap_in_use() == heap, "nothing is left over");
}

/* ---- while all CPUs ask for the key ---- */

static volatile bool stop;
static uint64_t passed, wrong;

static int ask_forever(void *unused UNUSED)
{
    uint64_t n;

    for (n = 0; !stop; n++)
        __atomic_fetch_add(&wrong, asks(n) - n > 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&passed, n, __ATOMIC_RELAXED);
    return 0;
}

static const struct {
    const char *name;
    enum optimize_method method;
    unsigned at; /* probes: 1 in front of the NOP, 2 on the NOP */
} under[] = {
    { "no probe", OPTIMIZE_OFF, 0 },   { "int3s", OPTIMIZE_OFF, 3 },
    { "a jump", OPTIMIZE_PUN, 2 },     { "a jump that reads the NOP", OPTIMIZE_PUN, 1 },
    { "regions", OPTIMIZE_REGION, 3 },
};

static void switched_under(size_t i)
{
    uint8_t *text = text_of_asks(), before[8];
    struct kprobe probes[2] = { { .addr = (uintptr_t)text },
                                { .addr = (uintptr_t)text + 3 } };
    int tids[MAX_CPUS], failed = 0;

    memcpy(before, text, sizeof(before));
    jumps_by(under[i].method);
    for (unsigned k = 0; k < 2; k++)
        failed += under[i].at & BIT(k) && register_kprobe(&probes[k]);
    optimize_run();
    stop = false;
    passed = wrong = 0;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        tids[cpu] = ktest_thread(ask_forever, NULL, BIT(cpu));
    for (uint64_t n = ktest_rounds(1, 8); n > 0; n--) {
        failed += static_key_switch(&ktest_key, true);
        thread_sleep_ns(1000000);
        optimize_run();
        failed += static_key_switch(&ktest_key, false);
        optimize_run();
    }
    stop = true;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        thread_join(tids[cpu], NULL);
    for (unsigned k = 0; k < 2; k++)
        if (under[i].at & BIT(k)) {
            failed += kprobe_hits(&probes[k]) + probes[k].nmissed != passed;
            failed += unregister_kprobe(&probes[k]) != 0;
        }
    jumps_as_before();
    ktest_report(!failed && !wrong && !memcmp(before, text, sizeof(before)),
                 "under %s: %lu passes, %d failed", under[i].name, passed, failed);
}

KTEST(static_key, switched_under_probes_while_all_cpus_come_by)
{
    for (size_t i = 0; i < ARRAY_LEN(under); i++)
        switched_under(i);
}

/* ---- in modules ---- */

extern const uint8_t module_marks[], module_marks_end[];

static long module_says(void)
{
    struct ksym sym;

    return ksyms_find("marks_asks_key", &sym) ? -1 : ((long (*)(void))sym.start)();
}

KTEST(static_key, a_module_asks_the_keys_of_the_image)
{
    size_t len = (size_t)(module_marks_end - module_marks), heap;
    char why[MODULE_WHY_MAX];

    module_load("marks", module_marks, len, why);
    ktest_report(module_says() == 0, "off");
    static_key_switch(&ktest_key, true);
    ktest_report(module_says() == 1, "on");
    module_unload("marks", why);
    heap = heap_in_use();
    module_load("marks", module_marks, len, why);
    ktest_report(module_says() == 1, "it comes with what is on");
    static_key_switch(&ktest_key, false);
    ktest_report(module_says() == 0, "and hears of the change");
    static_key_switch(&ktest_key, true);
    module_unload("marks", why);
    ktest_report(heap_in_use() == heap, "it goes, and nothing is left over");
    static_key_switch(&ktest_key, false);
    ktest_report(both_say(false), "the others are switched without it");
}

static int answer;

static void switch_a_key(void *private UNUSED, struct marker_call *call UNUSED)
{
    answer = static_key_switch(&ktest_key, true);
}

static NOINLINE void marked(void)
{
    MARK(ktest_key, "nothing");
}

KTEST(static_key, not_from_a_markers_function)
{
    marker_connect("ktest_key", "nothing", switch_a_key, NULL);
    marked();
    marker_disconnect("ktest_key", switch_a_key, NULL);
    ktest_report(answer == -EDEADLK && both_say(false), "it is refused: %d", answer);
}
