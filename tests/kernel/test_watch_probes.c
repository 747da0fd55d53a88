/* test_watch_probes.c - watches and probes at the same instruction. A hit of the watch
 * has the address of the instruction, even if the CPU has executed a copy of it. And the
 * execution of a probed instruction can be watched.
 */
#include "probes/watch/watch.h"

#include "probes/jump/optimize.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nothing.h"
#include "tests/kernel/watched.h"

#define STORE_INSNS 16

/* probe_all - register a probe on each instruction of watched_store(). Return: how many.
 */
static size_t probe_all(struct kprobe p[STORE_INSNS], kprobe_post_handler_t post)
{
    struct plat_symbol sym = { 0 };
    size_t count = 0;

    plat_symbol_at((uintptr_t)watched_store, &sym);
    for (unsigned off = 0; off < sym.size && count < STORE_INSNS; off++) {
        p[count] = (struct kprobe){ .addr = (uintptr_t)watched_store + off,
                                    .pre_handler = no_pre,
                                    .post_handler = post };
        count += register_kprobe(&p[count]) == 0;
    }
    optimize_run();
    return count;
}

static void place_with_probes(const char *how, kprobe_post_handler_t post)
{
    struct watch w = watch_of(&watched.target, WATCH_WRITE, 8, note_hit);
    struct kprobe p[STORE_INSNS];
    uintptr_t plain;
    size_t count;

    register_watch(&w);
    watched_store(1);
    plain = noted.ip;
    count = probe_all(p, post);
    noted.ip = 0;
    watched_store(2);
    ktest_report(watched.target == 2, "the store is done, %s", how);
    ktest_report(noted.ip == plain && watch_hits(&w) == 2,
                 "it is told of at the same place, %s", how);
    while (count--)
        unregister_kprobe(&p[count]);
    unregister_watch(&w);
}

KTEST(watch_probes, a_copy_is_told_of_by_its_original)
{
    place_with_probes("boosted", NULL);
    place_with_probes("stepped by int3", no_post);
    step_set_engine(STEP_TF);
    place_with_probes("stepped by TF", no_post);
    step_set_engine(STEP_INT3);
    jumps_by(OPTIMIZE_PUN);
    place_with_probes("by a jump", NULL);
    jumps_as_before();
    jumps_by(OPTIMIZE_REGION);
    place_with_probes("in a region", NULL);
}

/* ---- accesses that are emulated, and behind an STI ---- */

static NOINLINE void store_behind_sti(uint64_t value)
{
    __asm__ volatile("sti\n\tmov %1, %0" : "=m"(watched.target) : "r"(value) : "memory");
}

static uintptr_t sti_of(void *fn)
{
    const uint8_t *p = fn;

    while (*p != 0xfb)
        p++;
    return (uintptr_t)p;
}

static void behind_sti(const char *how, kprobe_post_handler_t post)
{
    struct kprobe p = { .addr = sti_of((void *)store_behind_sti),
                        .pre_handler = no_pre,
                        .post_handler = post };
    struct watch w = watch_of(&watched.target, WATCH_WRITE, 8, note_hit);
    struct watch next = watch_of((void *)(p.addr + 1), WATCH_EXECUTE, 1, NULL);
    uintptr_t plain;

    register_watch(&w);
    store_behind_sti(1);
    plain = READ_ONCE(noted.ip);
    register_kprobe(&p);
    optimize_run();
    WRITE_ONCE(noted.ip, 0);
    store_behind_sti(2);
    ktest_report(watched.target == 2 && watch_hits(&w) == 2 && kprobe_hits(&p) == 1 &&
                     READ_ONCE(noted.ip) == plain,
                 "%s: it is told of at its place", how);
    register_watch(&next);
    store_behind_sti(3);
    ktest_report(watch_hits(&next) == 1, "%s: a watch on its instruction is hit", how);
    unregister_watch(&next);
    unregister_kprobe(&p);
    unregister_watch(&w);
}

KTEST(watch_probes, an_access_behind_a_probed_sti)
{
    jumps_by(OPTIMIZE_OFF);
    behind_sti("in its copy", NULL);
    behind_sti("stepped by int3", no_post);
    step_set_engine(STEP_TF);
    behind_sti("stepped by TF", no_post);
    step_set_engine(STEP_INT3);
    jumps_as_before();
    jumps_by(OPTIMIZE_PUN);
    behind_sti("by a jump", NULL);
}

/* The address at which a call of leaf() stores its return address. The tests that watch
 * this word use jumps only: an int3 would push its frame to the watched word, and then
 * QEMU 7.2 ends with a failed assertion.
 */
static volatile uintptr_t return_slot;

static NOINLINE void leaf(void)
{
    return_slot = (uintptr_t)__builtin_frame_address(0) + 8;
}

static struct watch on_stack;
static uint64_t stack_calls;
static uintptr_t stack_ip;
static volatile bool is_watched;

/* call_leaf - call leaf() while the word at return_slot is watched, and note the
 * hits of this call. Interrupts are off, since an interrupt would use the same word
 * of the stack. The call of watch_move() that ends the watching uses it, too, so the
 * hits are noted before.
 */
static NOINLINE void call_leaf(void)
{
    unsigned long flags = irq_save();

    noted.ip = noted.calls = 0;
    if (is_watched)
        watch_move(&on_stack, return_slot);
    leaf();
    barrier();
    stack_calls = READ_ONCE(noted.calls);
    stack_ip = READ_ONCE(noted.ip);
    if (is_watched)
        watch_move(&on_stack, 0);
    irq_restore(flags);
}

static uintptr_t call_of(void *fn, void *callee)
{
    const uint8_t *p = fn;

    for (;; p++) {
        int32_t disp;

        memcpy(&disp, p + 1, sizeof(disp));
        if (*p == 0xe8 &&
            (uintptr_t)p + 5 + (uintptr_t)(intptr_t)disp == (uintptr_t)callee)
            return (uintptr_t)p;
    }
}

static void on_the_stack(void)
{
    struct kprobe p = { .addr = call_of((void *)call_leaf, (void *)leaf),
                        .pre_handler = no_pre };

    on_stack = watch_of(NULL, WATCH_WRITE, 8, note_hit);
    register_watch(&on_stack);
    is_watched = false;
    call_leaf();
    is_watched = true;
    call_leaf();
    ktest_report(stack_calls == 1 && stack_ip == (uintptr_t)leaf, "a call is a hit");
    register_kprobe(&p);
    optimize_run();
    call_leaf();
    ktest_report(stack_calls == 1 && stack_ip == (uintptr_t)leaf && kprobe_hits(&p) == 1,
                 "one, and at the same place");
    unregister_kprobe(&p);
    unregister_watch(&on_stack);
}

KTEST(watch_probes, a_word_of_the_stack)
{
    jumps_by(OPTIMIZE_PUN);
    on_the_stack();
}

static void watch_probed(const char *how)
{
    struct watch w = { 0 };
    struct kprobe p[STORE_INSNS];
    size_t count = probe_all(p, NULL), last = 0;
    uint64_t all = 0;

    for (size_t i = 0; i < count; i++) {
        w = watch_of((void *)p[i].addr, WATCH_EXECUTE, 1, NULL);
        if (register_watch(&w))
            continue;
        optimize_run();
        watched_store(1);
        all += watch_hits(&w) == 1;
        last += kprobe_hits(&p[i]) >= 1;
        unregister_watch(&w);
        optimize_run();
    }
    ktest_report(count > 1 && last == count, "%s: all %zu probes are hit", how, count);
    ktest_report(all == count, "%s: all %lu watches on their instructions are", how, all);
    while (count--)
        unregister_kprobe(&p[count]);
}

uint32_t region_mix(uint32_t x);
extern uint8_t region_mix_at[];

/* The address is computed at run time: a constant of the linker would be a target. */
KTEST(watch_probes, an_instruction_that_a_region_displaces_can_be_watched)
{
    static uint8_t *volatile start = region_mix_at;
    struct kprobe p = { .addr = (uintptr_t)start };
    struct watch w = watch_of(start + 2, WATCH_EXECUTE, 1, NULL);

    jumps_by(OPTIMIZE_REGION);
    register_kprobe(&p);
    optimize_run();
    ktest_report(p.flags & KPROBE_FLAG_OPTIMIZED, "a jump displaces it");
    register_watch(&w);
    region_mix(1);
    ktest_report(watch_hits(&w) == 1, "the CPU comes to it");
    unregister_watch(&w);
    optimize_run();
    ktest_report(p.flags & KPROBE_FLAG_OPTIMIZED, "the jump comes back");
    unregister_kprobe(&p);
    jumps_as_before();
}

KTEST(watch_probes, an_instruction_that_carries_a_probe_can_be_watched)
{
    watch_probed("breakpoints");
    jumps_by(OPTIMIZE_PUN);
    watch_probed("jumps");
    jumps_as_before();
    jumps_by(OPTIMIZE_REGION);
    watch_probed("regions");
    jumps_as_before();
    expect_no_watches();
}

KTEST_TARGET(here, x, x + 1)
KTEST_TARGET(there, x, x + 2)

static unsigned long here_sp;

static int note_sp(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    here_sp = regs->sp;
    return 0;
}

/* call_here - always with the same stack. */
static NOINLINE void call_here(void)
{
    here(1);
    barrier();
}

/* The detour saves registers where the watched words are. watch_move() uses them as well. */
KTEST(watch_probes, what_a_detour_saves_is_a_miss)
{
    struct kprobe p = { .addr = (uintptr_t)here, .pre_handler = note_sp };
    struct watch w = watch_of(NULL, WATCH_WRITE, 8, note_hit);
    uint64_t hits = 0;

    jumps_by(OPTIMIZE_PUN);
    register_watch(&w);
    register_kprobe(&p);
    optimize_run();
    call_here();
    for (unsigned off = 48; off <= 160; off += 8) {
        unsigned long flags = irq_save();

        watch_move(&w, here_sp - off);
        noted.calls = 0;
        call_here();
        barrier();
        hits += READ_ONCE(noted.calls);
        watch_move(&w, 0);
        irq_restore(flags);
    }
    ktest_report(watch_misses(&w) && !hits, "%lu misses, and %lu hits", watch_misses(&w),
                 hits);
    unregister_kprobe(&p);
    unregister_watch(&w);
}

static int go_there(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    regs->ip = (uintptr_t)there;
    return 1;
}

KTEST(watch_probes, where_a_handler_sends_the_cpu)
{
    struct kprobe p = { .addr = (uintptr_t)here, .pre_handler = go_there };
    struct watch at_here = watch_of((void *)here, WATCH_EXECUTE, 1, NULL);
    struct watch at_there = watch_of((void *)there, WATCH_EXECUTE, 1, NULL);

    register_watch(&at_here);
    register_watch(&at_there);
    register_kprobe(&p);
    ktest_report(here(1) == 3 && watch_hits(&at_here) == 1, "the watched probe is hit");
    ktest_report(watch_hits(&at_there) == 1, "and so is the watch on its aim");
    unregister_kprobe(&p);
    unregister_watch(&at_here);
    unregister_watch(&at_there);
}
