/* test_xmc.c - instructions are exchanged while CPUs execute them, and while probes are on
 * them or in front of them.
 */
#include "probes/region/region.h"
#include "probes/xmc/xmc.h"

#include "probes/core/registry.h"
#include "probes/jump/optimize.h"
#include "probes/text/text_engine.h"
#include "tests/kernel/engines.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nothing.h"
#include "tests/kernel/poke_targets.h"

#define CODE_LEN 5

/* poke_targets.asm */
void fill_long(void *to, size_t len);
uint64_t wide_target(void);
bool flags_target(long a, long b);
extern const char flags_target_probed[], flags_target_writer[];

/* ---- while CPUs execute it ---- */

/* exchanges - exchange the targets again and again while CPUs call them.
 * @arg: the number of calls is added to this uint64_t
 */
static void exchanges(const char *engine, void *arg)
{
    uint64_t *calls = arg;
    uint64_t rounds = ktest_count(1, 12);
    unsigned failed = 0;
    int tids[MAX_CPUS];

    runners_start(tids);
    for (uint64_t n = 0; n < rounds; n++) {
        for (size_t i = n % 16; i < TARGETS; i += 16)
            failed += xmc(poke_targets[i], new_code, CODE_LEN) != 0;
        for (size_t i = n % 16; i < TARGETS; i += 16)
            failed += xmc(poke_targets[i], old_code, CODE_LEN) != 0;
    }
    runners_stop(tids);
    seen_report(engine, seen_sum(seen));
    ktest_report(failed == 0, "all exchanges were made");
    *calls += seen_sum(seen).calls;
}

KTEST(xmc, one_for_one_under_running_cpus)
{
    size_t heap = heap_in_use(), sites = registry_count();
    uint64_t calls = 0;

    for_each_engine(exchanges, &calls);
    ktest_report(registry_count() == sites && heap_in_use() == heap,
                 "nothing is left over");
}

/* These probes are on the targets, as jumps or as breakpoints, while the targets are
 * exchanged and called. Each call must be a hit, and return the old or the new value.
 */
static struct kprobe under[TARGETS];

static void exchanges_under(bool jumps)
{
    struct kprobe *ps[TARGETS];
    uint64_t hits = 0, calls = 0;
    bool all_there = true;

    for (size_t i = 0; i < TARGETS; i++) {
        under[i] = (struct kprobe){ .addr = poke_targets[i] };
        ps[i] = &under[i];
    }
    optimize_switch(jumps);
    ktest_report(register_kprobes(ps, TARGETS) == 0, "a probe at each, jumps: %d", jumps);
    for_each_engine(exchanges, &calls);
    for (size_t i = 0; i < TARGETS; i++)
        hits += kprobe_hits(&under[i]);
    unregister_kprobes(ps, TARGETS);
    optimize_switch(true);
    for (size_t i = 0; i < TARGETS; i++)
        all_there &= !memcmp((const void *)poke_targets[i], old_code, CODE_LEN);
    ktest_report(hits == calls, "%lu calls, %lu hits", calls, hits);
    ktest_report(all_there, "the text is as it was");
}

KTEST(xmc, under_probes)
{
    exchanges_under(false);
    exchanges_under(true);
}

/* No CPU executes the function while it is exchanged. */
KTEST(xmc, where_no_cpu_ever_runs)
{
    static const uint8_t several[] = { 0x31, 0xc0, 0x0f, 0x1f, 0x00 };
    uint8_t *at = (uint8_t *)poke_targets[3];

    ktest_report(xmc((uintptr_t)at, several, CODE_LEN) == 0, "it is exchanged");
    ktest_report(!memcmp(at, several, CODE_LEN), "for several instructions");
    ktest_report(((uint32_t(*)(void))at)() == 0, "which do what they should");
    ktest_report(xmc((uintptr_t)at, old_code, CODE_LEN) == 0 &&
                     !memcmp(at, old_code, CODE_LEN),
                 "and become one again");
}

static void stores_end(uint64_t value)
{
    ktest_report(wide_target() == value, "%lx", value);
}

KTEST(xmc, by_one_store)
{
    uint8_t code[8];
    struct probe_reject why;
    uintptr_t at = (uintptr_t)wide_target;

    memcpy(code, (const void *)at, sizeof(code));
    stores_end(0x11111111);
    code[4] = 0x77;
    ktest_report(!xmc_why(at, code, 8, XMC_STORE, &why), "eight aligned bytes");
    stores_end(0x11111177);
    code[4] = 0x11;
    ktest_report(!xmc_why(at, code, 8, XMC_STORE, &why), "and back");
    stores_end(0x11111111);
    ktest_report(xmc_why(poke_targets[0], new_code, CODE_LEN, XMC_STORE, &why) ==
                         -EINVAL &&
                     why.reason == PROBE_XMC_STORE,
                 "five are refused");
}

/* ---- several instructions, with a thread between them ---- */

#define FILL_LEN (8 * MiB)

static struct {
    volatile uint8_t *memory;
    volatile uint64_t filled, left_alone, wrong;
} fill;

static volatile bool exchanged;

/* fill_forever - call fill_long() again and again, and count whether it has filled all of
 * the memory, or nothing.
 */
static int fill_forever(void *unused UNUSED)
{
    while (!exchanged) {
        uint8_t first, last;

        fill.memory[0] = fill.memory[FILL_LEN - 1] = 0;
        fill_long((void *)fill.memory, FILL_LEN);
        first = fill.memory[0];
        last = fill.memory[FILL_LEN - 1];
        fill.filled += first && last;
        fill.left_alone += !first && !last;
        fill.wrong += first != last;
    }
    return 0;
}

static void several_for_one(const char *engine, void *unused UNUSED)
{
    static const uint8_t one[] = { 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 };
    uintptr_t at = (uintptr_t)fill_long;
    uint8_t before[sizeof(one)];
    struct probe_reject why = { 0 };
    int tid, err;

    memcpy(before, (const void *)at, sizeof(before));
    fill.filled = fill.left_alone = fill.wrong = 0;
    exchanged = false;
    tid = ktest_thread(fill_forever, NULL, BIT(cpu_count() - 1));
    while (!fill.filled)
        thread_yield();
    err = xmc_why(at, one, sizeof(one), XMC_INT3, &why);
    while (!err && !fill.left_alone)
        thread_yield();
    exchanged = true;
    thread_join(tid, NULL);
    ktest_report(err == 0, "%s: three instructions become one %s", engine,
                 err ? why.why : "");
    ktest_report(fill.wrong == 0, "%lu times the old ones ran, %lu times the new one",
                 fill.filled, fill.left_alone);
    ktest_report(!memcmp((const void *)at, one, sizeof(one)), "its bytes are there");
    plat_lock(PLAT_TEXT);
    plat_text_write(at, before, sizeof(before)); /* no thread executes it any more */
    plat_sync_cores();
    plat_unlock(PLAT_TEXT);
}

KTEST(xmc, several_for_one_with_a_thread_between_them)
{
    fill.memory = kzalloc(FILL_LEN);
    if (!fill.memory) {
        ktest_skip("no memory");
        return;
    }
    for_each_engine(several_for_one, NULL);
    kfree((void *)fill.memory);
}

/* ---- probes on exchanged instructions ---- */

static enum probe_reason region_refusal(uintptr_t addr)
{
    struct probe_reject why = { 0 };
    struct region region;

    plat_lock(PLAT_PROBES);
    region_plan(addr, &region, &why);
    plat_unlock(PLAT_PROBES);
    return why.reason;
}

static uint32_t call_target(uintptr_t addr)
{
    return ((uint32_t(*)(void))addr)();
}

static void probe_both(struct kprobe *first, struct kprobe *second)
{
    ktest_report(!register_kprobe(first) && !register_kprobe(second),
                 "both of the new ones carry a probe");
    optimize_run();
    ktest_report(first->flags & second->flags & KPROBE_FLAG_OPTIMIZED, "by jumps");
    ktest_report(call_target(first->addr) == 0, "the new ones do what they should");
    ktest_report(kprobe_hits(first) == 1 && kprobe_hits(second) == 1, "and are counted");
    ktest_report(xmc(first->addr, old_code, CODE_LEN) == -EEXIST,
                 "they are not exchanged under their probes");
    unregister_kprobe(first);
    unregister_kprobe(second);
}

/* H81: after an exchange, the tables that the build has made are wrong for this place. */
KTEST(xmc, h81_what_was_exchanged_is_probed_as_it_is_now)
{
    static const uint8_t several[] = { 0x31, 0xc0, 0x0f, 0x1f, 0x00 };
    uintptr_t at = poke_targets[5];
    struct kprobe first = { .addr = at }, second = { .addr = at + 2 };
    struct kprobe other = { .addr = at + CODE_LEN }; /* boundaries are remembered */
    enum optimize_method method = optimize_get_method();

    optimize_set_method(OPTIMIZE_PUN);
    register_kprobe(&other);
    ktest_report(register_kprobe(&second) == -EILSEQ, "one instruction as built");
    ktest_report(!xmc(at, several, CODE_LEN), "two are patched in");
    ktest_report(region_refusal(at) == PROBE_REGION_CHANGED,
                 "no region relies on what the build knows");
    probe_both(&first, &second);
    ktest_report(!memcmp((const void *)at, several, CODE_LEN), "what was patched stays");
    ktest_report(!xmc(at, old_code, CODE_LEN), "and one is back");
    ktest_report(register_kprobe(&second) == -EILSEQ, "which is one again");
    ktest_report(call_target(at) == 0x11111111, "and does what it did");
    unregister_kprobe(&other);
    optimize_set_method(method);
}

/* ---- behind a jump ---- */

static void do_nothing(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
}

/* flags_pass - register @p as a jump. The instruction behind it writes all status flags,
 * so at first the detour may change them. Then exchange this instruction for one that
 * writes none: from now on the detour must keep the flags.
 */
static void flags_pass(struct kprobe p, const char *what)
{
    static const uint8_t nop[] = { 0x66, 0x90 }, cmp[] = { 0x39, 0xc9 };
    uintptr_t writer = (uintptr_t)flags_target_writer;

    p.addr = (uintptr_t)flags_target_probed;
    register_kprobe(&p);
    optimize_run();
    ktest_report(p.flags & KPROBE_FLAG_OPTIMIZED, "%s: a jump", what);
    ktest_report(flags_target(1, 2), "%s: flags are written behind it", what);
    ktest_report(!xmc(writer, nop, sizeof(nop)), "%s: no longer", what);
    ktest_report(p.flags & KPROBE_FLAG_OPTIMIZED, "%s: still the jump", what);
    ktest_report(flags_target(7, 7) && !flags_target(7, 8),
                 "%s: flags from in front of it are read behind it", what);
    ktest_report(!xmc(writer, cmp, sizeof(cmp)), "%s: and back", what);
    unregister_kprobe(&p);
}

KTEST(xmc, flags_pass_jumps_that_were_there_before)
{
    enum optimize_method method = optimize_get_method();

    optimize_set_method(OPTIMIZE_PUN);
    flags_pass((struct kprobe){ 0 }, "a counter");
    flags_pass((struct kprobe){ .light_handler = do_nothing }, "a light handler");
    flags_pass((struct kprobe){ .pre_handler = no_pre }, "a handler");
    flags_pass((struct kprobe){ .post_handler = NULL,
                                .pre_handler = no_pre,
                                .flags = KPROBE_FLAG_IRQS_OFF },
               "a handler with interrupts off");
    optimize_set_method(method);
}
