/* test_module.c - modules are loaded and unloaded while they have probes,
 * threads and returns.
 *
 * The modules are the objects of tests/kernel/modules/, which the image
 * contains as files.
 */
#include "kernel/console/shell_state.h"
#include "kernel/debug/ksyms.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"
#include "kernel/module/module.h"
#include "kernel/work/work.h"
#include "probes/console/console_probe.h"
#include "probes/jump/optimize.h"
#include "probes/region/targets.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/loaded.h"
#include "tests/kernel/logged.h"
#include "tests/kernel/nothing.h"
#include "tests/kernel/say.h"

#include <stdio.h>
#include <stdlib.h>

#define EVENTS "/sys/kernel/tracing/kprobe_events"

/* ---- in and out ---- */

KTEST(module, it_is_linked_called_and_known_by_name)
{
    struct ksym sym;

    ktest_report(load_guest() == 0, "loaded");
    ktest_report(call("guest:guest_twice", 21, 0) == 42, "its function runs");
    ktest_report(value("guest_calls") == 2, "its constructor has run before");
    ktest_report(ksyms_at(of("guest_mix") + 3, &sym) == 0 &&
                     !strcmp(sym.name, "guest_mix") && sym.offset == 3 && sym.module &&
                     !strcmp(sym.module, "guest"),
                 "an address of it has a name and a module");
    ktest_report(say("grep [guest] /proc/kallsyms") == 0 &&
                     strstr(seq_str(&output), " T guest_twice\t[guest]\n"),
                 "/proc/kallsyms names both");
    ktest_report(say("cat /proc/modules") == 0 &&
                     strstr(seq_str(&output), "guest ") == seq_str(&output) &&
                     strtoul(seq_str(&output) + strlen("guest "), NULL, 10) > 0 &&
                     strstr(seq_str(&output), " 0 - Live 0xffffffff8"),
                 "/proc/modules as Linux has it");
    ktest_report(LOAD(guest) == -EEXIST && strstr(loaded_why, "`module reload`"),
                 "a second one of that name is refused, and told what exchanges it");
    ktest_report(say("run guest") == 0, "its workload runs");
    ktest_report(unload("guest") == 0, "unloaded");
    ktest_report(!of("guest_twice") && say("run guest") == -ENOENT, "nothing is left");
}

static unsigned prot_of(uintptr_t addr)
{
    struct page_info info;

    return page_lookup(addr, &info) ? info.prot : ~0u;
}

KTEST(module, nothing_is_writable_and_executable)
{
    struct page_info info;
    uintptr_t text;

    load_guest();
    text = of("guest_twice");
    page_lookup(text, &info);
    ktest_report(prot_of(text) == PROT_X, "text is executed and not written");
    ktest_report(prot_of((uintptr_t)phys_to_virt(info.phys)) == PROT_R,
                 "nor by its direct map");
    ktest_report(prot_of(of("guest:workload_guest")) == PROT_R, "rodata is read only");
    ktest_report(prot_of(of("guest_calls")) == PROT_W, "data is not executed");
    ktest_report(*(const uint32_t *)text == 0x00441f0f, "five entry NOPs are one");
    unload("guest");
    ktest_report(prot_of(text) == ~0u, "its pages are gone");
    ktest_report(prot_of((uintptr_t)phys_to_virt(info.phys)) & PROT_W,
                 "and its frame is memory again");
    ktest_report(((const uint8_t *)phys_to_virt(info.phys))[text % PAGE_SIZE] == 0xcc,
                 "in which no code is left");
}

KTEST(module, what_is_used_stays)
{
    load_guest();
    ktest_report(LOAD(user) == 0, "a module that uses another one");
    ktest_report(value("user_hits") == 1, "its probe on the other one was hit");
    ktest_report(module_unload("guest", loaded_why) == -EBUSY &&
                     strstr(loaded_why, "user"),
                 "what it uses stays: %s", loaded_why);
    ktest_report(unload("user") == 0, "the user goes first");
    ktest_report(call("guest_twice", 4, 0) == 8 &&
                     vfs_stat("/tmp", &(struct vfs_stat){ 0 }) == 0,
                 "probes that it has left behind have gone with it");
    ktest_report(say("cat /sys/kernel/debug/kprobes/list") == 0 && !output.len,
                 "none is left");
    ktest_report(unload("guest") == 0, "then the other");
    ktest_report(LOAD(user) == -ENOEXEC && strstr(loaded_why, "guest_twice"),
                 "without it there is a name that is not found: %s", loaded_why);
}

KTEST(module, a_constructor_can_refuse)
{
    size_t bytes = heap_in_use();

    ktest_report(LOAD(refuses) == -ENODEV && strstr(loaded_why, "constructors"),
                 "its error is that of the load");
    ktest_report(!of("refuses_unload_err") && heap_in_use() < bytes + 200,
                 "and nothing is left but names");
    bytes = heap_in_use();
    LOAD(refuses);
    ktest_report(heap_in_use() == bytes, "nor these the second time");
}

KTEST(module, each_allocation_may_fail)
{
    size_t bytes, blocks;
    long n = 1;

    load_guest();
    unload("guest");
    bytes = heap_in_use();
    blocks = heap_block_count();
    for (; n < 100; n++) {
        int err;

        heap_fail_after(n);
        err = LOAD(guest);
        heap_fail_after(-1);
        if (!err)
            break;
        if (err != -ENOMEM || strstr(loaded_why, "refused") || heap_in_use() != bytes ||
            heap_block_count() != blocks) {
            ktest_report(false, "allocation %ld: %d %s, %zu bytes more", n, err,
                         loaded_why, heap_in_use() - bytes);
            return;
        }
    }
    ktest_report(n > 5 && n < 100, "%ld allocations, and none may fail unnoticed", n - 1);
    unload("guest");
}

/* Frames that a test has taken: their first words are the piece that was taken before, and
 * how many frames this piece has.
 */
static uint64_t held_frames;

static void take_frames(size_t count)
{
    for (uint64_t phys; (phys = frame_alloc_run(count)) != FRAME_NONE; held_frames = phys)
        memcpy(phys_to_virt(phys), (uint64_t[]){ held_frames, count }, 16);
}

static void give_frames(void)
{
    uint64_t phys = held_frames, *words = phys_to_virt(phys);

    held_frames = words[0];
    frame_free_run(phys, words[1]);
}

KTEST(module, each_frame_may_be_missing)
{
    struct frame_stats stats;
    int err = 0;
    long n = 0;

    frame_stats_get(&stats);
    if (stats.free > 512 * MiB / PAGE_SIZE) {
        ktest_skip("to take all this memory takes too long");
        return;
    }
    load_guest();
    unload("guest");
    for (size_t count = 1 << 12; count; count >>= 3)
        take_frames(count);
    for (; n < 100 && (err = LOAD(guest)) == -ENOMEM; n++)
        give_frames();
    while (held_frames)
        give_frames();
    ktest_report(n > 2 && !err, "%ld times too few, then it is loaded: %d", n, err);
    unload("guest");
}

KTEST(module, reloads_leak_nothing)
{
    struct frame_stats before, after;
    uint64_t rounds = ktest_rounds(30, 1000);
    size_t bytes, blocks;
    bool same = true;

    load_guest();
    unload("guest");
    frame_stats_get(&before);
    bytes = heap_in_use();
    blocks = heap_block_count();
    for (uint64_t i = 0; i < rounds; i++)
        same &=
            load_guest() == 0 && call("guest_twice", 1, 0) == 2 && unload("guest") == 0;
    frame_stats_get(&after);
    ktest_report(same, "%lu times in and out", rounds);
    ktest_report(heap_in_use() == bytes && heap_block_count() == blocks,
                 "the heap is the same to the byte");
    ktest_report(after.free == before.free, "and so are the frames");
}

KTEST(module, one_of_other_headers_is_refused)
{
    ktest_report(LOAD(old) == -ENOEXEC && strstr(loaded_why, "other headers"),
                 "it is: %s", loaded_why);
}

/* ---- damage ---- */

/* A generator of random numbers of its own, so that the same damage can
 * be done once more.
 */
static uint64_t damage_state;

static uint64_t damage_random(void)
{
    return work_next(&damage_state);
}

static size_t damage(uint8_t *file, size_t len)
{
    for (uint64_t n = 1 + damage_random() % 3; n > 0; n--) {
        size_t at = damage_random() % len;

        switch (damage_random() % 4) {
        case 0:
            file[at] = (uint8_t)damage_random();
            break;
        case 1:
            file[at] ^= (uint8_t)(1u << damage_random() % 8);
            break;
        case 2:
            file[at] = 0xff;
            break;
        default:
            memset(file + at, 0, len - at < 8 ? len - at : 8);
        }
    }
    return damage_random() % 16 ? len : damage_random() % len;
}

struct damaged {
    uint64_t refused, loaded, strange;
    size_t bytes, blocks;
    struct frame_stats frames;
};

/* load_damaged - damage and load plain.c @rounds times; the damage depends on @seed only.
 * @file: memory for a copy of the file   @d: receives what happened, and the memory in
 *        use
 * Return: false: a module could not be unloaded.
 */
static bool load_damaged(uint8_t *file, uint64_t rounds, uint64_t seed, struct damaged *d)
{
    size_t len = (size_t)(module_plain_end - module_plain);

    *d = (struct damaged){ 0 };
    damage_state = seed;
    for (uint64_t i = 0; i < rounds; i++) {
        int err;

        memcpy(file, module_plain, len);
        err = module_load("plain", file, damage(file, len), loaded_why);
        d->loaded += err == 0;
        d->refused += (err == -ENOEXEC && *loaded_why) || err == -ENOMEM;
        d->strange += err && (err != -ENOEXEC || !*loaded_why) && err != -ENOMEM;
        if (!err && unload("plain"))
            return false;
    }
    d->bytes = heap_in_use();
    d->blocks = heap_block_count();
    frame_stats_get(&d->frames);
    return true;
}

/* Most damage hits tables, since these are most of a small file. The kernel keeps the
 * names of symbols, and damage makes new names. So the same damage is done twice: the
 * second time all names are known, and no memory may be lost.
 */
KTEST(module, a_damaged_file_is_refused_or_loaded)
{
    uint64_t rounds = ktest_rounds(200, 4000), seed = ktest_random();
    uint8_t *file = kmalloc((size_t)(module_plain_end - module_plain));
    struct damaged first, second;

    ktest_report(LOAD(plain) == 0 && call("plain_switch", 0, 0) == 1,
                 "whole, it is loaded");
    unload("plain");
    if (!load_damaged(file, rounds, seed, &first) ||
        !load_damaged(file, rounds, seed, &second)) {
        ktest_report(false, "one cannot be unloaded");
        return;
    }
    ktest_report(!first.strange && first.refused > rounds / 4,
                 "%lu files: %lu are refused, with ENOEXEC and a sentence, or ENOMEM",
                 rounds, first.refused);
    ktest_report(second.refused == first.refused && second.loaded == first.loaded,
                 "the second time the same ones");
    ktest_report(second.bytes == first.bytes && second.blocks == first.blocks,
                 "nothing is left of them in the heap, to the byte");
    ktest_report(second.frames.free == first.frames.free, "and no frame");
    kfree(file);
}

/* ---- threads inside ---- */

static int unload_guest(void *unused UNUSED)
{
    return module_unload("guest", loaded_why);
}

/* unload_on_cpu_0 - unload guest.c. Meanwhile no other thread runs on CPU 0.
 * Return: as module_unload().
 */
static int unload_on_cpu_0(void)
{
    int err;

    thread_join(ktest_thread(unload_guest, NULL, 1), &err);
    return err;
}

KTEST(module, a_thread_inside_keeps_it_and_is_named)
{
    /* not on the stack: a thread that holds the function's address may call it */
    static struct clone_args args = { .name = "sleeper", .cpus = 1 };
    int tid;

    load_guest();
    WRITE_ONCE(guest_holds, true);
    args.fn = (int (*)(void *))of("guest_sleeper");
    tid = kernel_clone(&args);
    thread_sleep_ns(5000000);
    ktest_report(unload_on_cpu_0() == -EBUSY &&
                     strstr(loaded_why, "(sleeper) sleeps in guest:guest_sleeper+0x") &&
                     strstr(loaded_why, ": try again when it has left") &&
                     !strstr(loaded_why, "guest:guest_sleeper+0x0"),
                 "it is kept: %s", loaded_why);
    ktest_report(say("module info guest") == 0 && strstr(seq_str(&output), "Unloading") &&
                     strstr(seq_str(&output), "(sleeper)"),
                 "and `module info` says by what");
    WRITE_ONCE(guest_holds, false);
    thread_join(tid, NULL);
    ktest_report(unload("guest") == 0, "the second time it goes");
}

static struct {
    uintptr_t addr;
    bool sleeps, stop;
} in_hands;

static int spin_with_a_register(void *unused UNUSED)
{
    asm volatile("1: cmpb $0, %1; je 1b" : : "b"(in_hands.addr), "m"(in_hands.stop));
    return 0;
}

static int hold_an_address(void *unused UNUSED)
{
    volatile uintptr_t words[8];

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        words[i] = in_hands.addr;
    while (!READ_ONCE(in_hands.stop))
        if (in_hands.sleeps)
            thread_sleep_ns(100000000); /* not about to wake up */
    return (int)(words[0] >> 63);
}

/* unload_beside - unload guest.c on @cpu while a thread of CPU 0 is in @fn with @addr: it
 * was interrupted; or it runs, if @cpu is another one. Return: as module_unload().
 */
static int unload_beside(int (*fn)(void *unused), uintptr_t addr, unsigned cpu)
{
    int tid, err;

    in_hands.addr = addr;
    in_hands.stop = false;
    tid = kernel_clone(&(struct clone_args){ .fn = fn, .name = "holder", .cpus = 1 });
    thread_sleep_ns(5000000);
    thread_join(ktest_thread(unload_guest, NULL, BIT(cpu)), &err);
    WRITE_ONCE(in_hands.stop, true);
    thread_join(tid, NULL);
    return err;
}

/* unload_held - unload guest.c on @cpu while a thread of CPU 0 has @addr on its stack, as
 * above, or it sleeps.
 */
static int unload_held(uintptr_t addr, bool sleeps, unsigned cpu)
{
    in_hands.sleeps = sleeps;
    return unload_beside(hold_an_address, addr, cpu);
}

/* padding_behind - return the address behind a function of guest.c. No symbol has it. */
static uintptr_t padding_behind(const char *name)
{
    static struct ksym sym; /* not on the stack, as above */
    uintptr_t end = ksyms_find(name, &sym) ? 0 : sym.start + sym.size;

    ktest_report(ksyms_at(end, &sym) != 0, "an address between functions");
    return end;
}

KTEST(module, what_a_thread_holds_may_be_a_function_or_be_left_over)
{
    load_guest();
    ktest_report(unload_held(of("guest_twice"), true, 0) == -EBUSY &&
                     strstr(loaded_why, "(holder)"),
                 "a thread that holds the address of a function may call it: %s",
                 loaded_why);
    ktest_report(unload_held(of("guest_twice") + 5, false, 0) == -EBUSY &&
                     strstr(loaded_why, "(holder)"),
                 "one that was interrupted may return to any word on its stack: %s",
                 loaded_why);
    if (cpu_count() > 1)
        ktest_report(unload_held(of("guest_twice") + 5, false, 1) == -EBUSY &&
                         strstr(loaded_why, "(holder) runs"),
                     "so may a thread that runs: %s", loaded_why);
    ktest_report(unload_held(padding_behind("guest_twice"), false, 0) == -EBUSY &&
                     strstr(loaded_why, "in its text at 0x"),
                 "also to a word between its functions: %s", loaded_why);
    ktest_report(unload_held(of("guest_twice") & ~(PAGE_SIZE - 1), false, 0) == 0,
                 "the address where its memory begins is that of no function");
    load_guest();
    ktest_report(
        unload_held(of("guest_twice") + 5, true, 0) == 0,
        "a thread that sleeps returns to its callers only: the word is left over");
}

KTEST(module, a_thread_with_an_address_in_a_register_keeps_it)
{
    load_guest();
    for (unsigned cpu = 0; cpu < 2 && cpu < cpu_count(); cpu++)
        ktest_report(unload_beside(spin_with_a_register, of("guest_twice") + 5, cpu) ==
                         -EBUSY,
                     "seen from CPU %u: %s", cpu, loaded_why);
    unload("guest");
}

/* ---- probes ---- */

KTEST(module, a_probe_waits_goes_and_comes_back)
{
    struct kprobe late = { .symbol_name = "guest:guest_twice",
                           .pre_handler = no_pre,
                           .flags = KPROBE_FLAG_PENDING };
    struct kprobe early = { .symbol_name = "guest:guest_twice" };

    ktest_report(register_kprobe(&early) == -ENOENT,
                 "a name that is not there is refused");
    ktest_report(register_kprobe(&late) == 0 && late.flags & KPROBE_FLAG_GONE,
                 "unless the probe may wait");
    ktest_report(register_kprobe(&late) == -EEXIST, "it is registered");
    disable_kprobe(&late);
    load_guest();
    ktest_report(late.flags & KPROBE_FLAG_DISABLED && kprobe_hits(&late) == 0,
                 "switched off while it waits, it comes switched off");
    unload("guest");
    ktest_report(enable_kprobe(&late) == 0, "it is switched on while it waits");
    load_guest();
    ktest_report(kprobe_hits(&late) == 1, "it was armed before the constructor ran");
    ktest_report(!(late.flags & KPROBE_FLAG_GONE) && late.addr == of("guest_twice"),
                 "and has an address now");
    ktest_report(register_kprobe(&early) == 0, "now the other is accepted");
    call("guest_twice", 1, 0);
    unload("guest");
    ktest_report(late.flags & KPROBE_FLAG_GONE && kprobe_hits(&late) == 2 &&
                     kprobe_hits(&early) == 1,
                 "both are gone with their counts");
    ktest_report(unregister_kprobe(&early) == 0 && !(early.flags & KPROBE_FLAG_GONE),
                 "one that is gone can be unregistered");
    ktest_report(unregister_kprobe(&early) == -EINVAL, "once");
    load_guest();
    call("guest_twice", 1, 0);
    ktest_report(kprobe_hits(&late) == 4, "the other counts on");
    ktest_report(unregister_kprobe(&late) == 0, "and goes");
    unload("guest");
}

KTEST(module, nothing_calls_it_any_more)
{
    unsigned taken = 0, named;

    LOAD(watcher);
    vfs_stat("/tmp", &(struct vfs_stat){ 0 });
    WRITE_ONCE(guest_total, guest_total);
    ktest_report(value("watcher_calls") == 1 && watch_hits(&lent_watch) == 1,
                 "its program and its watches are called");
    named = logged("watcher: its probe at ", "guest:guest_twice+0x0 is taken out");
    unload("watcher");
    named =
        logged("watcher: its probe at ", "guest:guest_twice+0x0 is taken out") - named;
    ktest_report(named == 2, "probes whose function is not there are named");
    for (unsigned i = 0; i < WATCH_SLOTS; i++)
        taken += watch_owner(i) != NULL;
    ktest_report(!taken && !lent_watch.is_registered, "no watch is left");
    ktest_report(unregister_kprobe(&lent_probe) == -EINVAL, "nor a probe that calls it");
}

/* Only a module that has not unregistered its probes makes the kernel
 * walk over all sites.
 */
KTEST(module, it_goes_without_a_walk_over_all_sites)
{
    struct kprobe walks = { .symbol_name = "registry_for_each" };
    struct kprobe on_it = { .symbol_name = "guest:guest_twice",
                            .pre_handler = no_pre,
                            .flags = KPROBE_FLAG_PENDING };

    ktest_report(register_kprobe(&walks) == 0 && register_kprobe(&on_it) == 0,
                 "a probe on the walk, and one on the module");
    load_guest();
    optimize_run();
    unload("guest");
    optimize_run();
    ktest_report(on_it.flags & KPROBE_FLAG_GONE && kprobe_hits(&on_it) == 1,
                 "it has come and gone");
    ktest_report(kprobe_hits(&walks) == 0, "no walk");
    ktest_report(LOAD(watcher) == 0 && unload("watcher") == 0 && kprobe_hits(&walks) > 0,
                 "one that leaves its probes behind has them looked for");
    ktest_report(unregister_kprobe(&on_it) == 0 && unregister_kprobe(&walks) == 0,
                 "they are unregistered");
}

KTEST(module, a_probe_by_address_does_not_come_back)
{
    struct kprobe p = { .pre_handler = no_pre };
    uintptr_t addr;

    load_guest();
    addr = p.addr = of("guest_twice");
    ktest_report(register_kprobe(&p) == 0, "registered by address");
    unload("guest");
    ktest_report(p.flags & KPROBE_FLAG_GONE, "gone");
    load_guest();
    call("guest_twice", 1, 0);
    ktest_report(of("guest_twice") == addr && p.flags & KPROBE_FLAG_GONE &&
                     kprobe_hits(&p) == 0,
                 "the same address later is another instruction");
    unregister_kprobe(&p);
    unload("guest");
}

static uint64_t returned;

static int note_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs)
{
    returned += regs_return_value(regs);
    return 0;
}

KTEST(module, return_probes_and_their_detours)
{
    struct kretprobe rp = { .kp.symbol_name = "guest:guest_twice",
                            .handler = note_return };

    jumps_by(OPTIMIZE_PUN);
    load_guest();
    returned = 0;
    ktest_report(register_kretprobe(&rp) == 0, "registered");
    optimize_run();
    ktest_report(call("guest_twice", 5, 0) == 10 && returned == 10, "its return is seen");
    unload("guest");
    load_guest();
    optimize_run();
    ktest_report(returned == 10 + 2 && call("guest_twice", 6, 0) == 12 &&
                     returned == 10 + 2 + 12,
                 "and so are those of the next load, its constructor's included");
    ktest_report(unregister_kretprobe(&rp) == 0, "unregistered");
    unload("guest");
}

KTEST(module, the_console_waits_for_returns_too)
{
    ktest_report(say("probe ret guest:guest_twice twice") == -ENOENT,
                 "without the module its function has no name");
    ktest_report(say("probe ret --pending guest:guest_twice twice") == 0 &&
                     said("twice waits for guest:guest_twice"),
                 "unless it may wait");
    ktest_report(say("probe list twice") == 0 && said("guest:guest_twice [PENDING]"),
                 "as the list says");
    load_guest();
    call("guest_twice", 21, 0);
    ktest_report(say("probe list twice") == 0 && said(" r ") && said(" 2  ") &&
                     said("guest:guest_twice"),
                 "it follows the constructor's call, and those behind");
    unload("guest");
    ktest_report(say("probe list twice") == 0 && said(" 2  ") && said(" [GONE]"),
                 "and stays when they are over");
    ktest_report(say("probe ret --twice x") == -EINVAL && said("--pending"),
                 "another option is refused");
    say("probe del twice");
}

KTEST(module, h103_a_module_comes_back_elsewhere)
{
    struct kprobe p = { .symbol_name = "guest:guest_twice",
                        .pre_handler = no_pre,
                        .flags = KPROBE_FLAG_PENDING };
    uintptr_t first;

    load_guest();
    first = of("guest_twice");
    register_kprobe(&p);
    unload("guest");
    ktest_report(LOAD(plain) == 0 && !(of("plain_switch") >> 12 ^ first >> 12),
                 "another one is where it was");
    load_guest();
    ktest_report(of("guest_twice") != first && p.addr == of("guest_twice"),
                 "the probe is where it is now");
    ktest_report(call("plain_switch", 4, 0) == 12 && kprobe_hits(&p) == 1,
                 "and not where it was");
    unregister_kprobe(&p);
    unload("guest");
    unload("plain");
}

/* A thread has called thread_sleep_ns() from the module, and this function has a
 * return probe. So the stack has the trampoline in place of the address in the module
 * to which the thread will return. The kernel must still find this address when the
 * module is unloaded.
 */
KTEST(module, h91_a_call_returns_behind_its_module)
{
    struct kretprobe rp = { .kp.symbol_name = "thread_sleep_ns", .handler = note_return };
    int tid;

    load_guest();
    register_kretprobe(&rp);
    WRITE_ONCE(guest_holds, true);
    tid = kernel_clone(&(struct clone_args){ .fn = (int (*)(void *))of("guest_sleeper"),
                                             .name = "sleeper" });
    thread_sleep_ns(5000000);
    ktest_report(module_unload("guest", loaded_why) == -EBUSY &&
                     strstr(loaded_why, "(sleeper)"),
                 "a thread that will return there keeps it");
    ktest_note("%s", loaded_why);
    WRITE_ONCE(guest_holds, false);
    thread_join(tid, NULL);
    unregister_kretprobe(&rp);
    ktest_report(unload("guest") == 0, "then it goes");
}

#define TRACING "/sys/kernel/tracing/"

KTEST(module, events_are_about_its_functions)
{
    say("echo 'p:guest_in guest:guest_twice a=%%di' > " TRACING "kprobe_events");
    say("echo 'r:guest_out guest:guest_twice v=$retval' >> " TRACING "kprobe_events");
    ktest_report(say("echo 1 > " TRACING "events/kprobes/enable") == 0,
                 "defined and switched on before it is there");
    for (int i = 0; i < 2; i++) {
        load_guest();
        call("guest_twice", 21, 0);
        ktest_report(say("grep guest_in: " TRACING "trace | tail -n 1") == 0 &&
                         said("guest_twice+0x0") && said(" a=0x15"),
                     "recorded, load %d", i + 1);
        ktest_report(say("grep guest_out: " TRACING "trace | tail -n 1") == 0 &&
                         said(" v=0x2a"),
                     "and its return");
        unload("guest");
    }
    ktest_report(say("cat " TRACING "kprobe_profile") == 0 && said("  guest_in "),
                 "the events stay");
    say("echo 0 > " TRACING "events/kprobes/enable");
    ktest_report(say("echo > " TRACING "kprobe_events") == 0, "and can be removed");
    say("echo > " TRACING "trace");
}

KTEST(module, an_event_by_the_symbol_alone_comes_back)
{
    load_guest();
    ktest_report(say("echo 'p:bare guest_twice' > " TRACING "kprobe_events") == 0 &&
                     say("echo 1 > " TRACING "events/kprobes/enable") == 0,
                 "defined without the name of its module");
    for (int i = 0; i < 2; i++) {
        call("guest_twice", 21, 0);
        unload("guest");
        load_guest();
    }
    unload("guest");
    ktest_report(say("cat " TRACING "kprobe_profile") == 0 && said(" 4 "),
                 "it counts on each time");
    say("echo 0 > " TRACING "events/kprobes/enable");
    say("echo > " TRACING "kprobe_events");
    say("echo > " TRACING "trace");
}

KTEST(module, events_are_refused_where_it_has_no_such_place)
{
    load_guest();
    ktest_report(say("echo 'p guest:nosuch' > " TRACING "kprobe_events") == -EINVAL &&
                     say("echo 'r guest:nosuch' > " TRACING "kprobe_events") == -EINVAL,
                 "a symbol that the loaded module has not");
    ktest_report(say("echo 'p guest:guest_twice+1000000' > " TRACING "kprobe_events") ==
                     -EINVAL,
                 "an offset behind its function");
    ktest_report(say("tail -n 3 " TRACING "error_log") == 0 &&
                     said("Failed to register probe event") &&
                     said("guest_twice+1000000"),
                 "which the log tells");
    unload("guest");
    ktest_report(say("echo 'p:later guest:nosuch' > " TRACING "kprobe_events") == 0,
                 "before it is loaded, it may have any");
    say("echo > " TRACING "kprobe_events");
}

KTEST(module, a_name_of_the_image_stays_the_images)
{
    load_guest();
    ktest_report(say("echo 'p:twin vfs_read' > " TRACING "kprobe_events") == 0 &&
                     say("echo 'p:own guest:vfs_read' >> " TRACING "kprobe_events") == 0,
                 "the name alone is no question of two");
    say("echo > " TRACING "kprobe_events");
    ktest_report(say("trace count vfs_read -- run vfs") == 0 && said(" 720 "),
                 "the image's function is counted");
    ktest_report(say("trace count 'vfs_rea[d]' -- run vfs") == 0 && said(" 720 "),
                 "by a pattern, too");
    ktest_report(say("probe watch jiffies w twin") == 0 && say("probe del twin") == 0,
                 "so it is with data");
    unload("guest");
}

KTEST(module, its_name_stands_in_front_of_patterns_and_clones)
{
    load_guest();
    ktest_report(say("trace count 'guest:vfs_*' -- run vfs") == 0 &&
                     !strstr(seq_str(&output), "720  vfs_read"),
                 "a question about functions of the module alone");
    ktest_report(say("probe all 'guest:guest_tw*'") == 0 && said("of 1 functions"),
                 "and probes on them");
    say("probe del all");
    ktest_report(say("trace count 'user:guest_*' -- echo") == -ENOENT &&
                     said("no function matches user:guest_*"),
                 "another module has none");
    ktest_report(say("probe add guest:guest_weigh") == -ENOENT &&
                     said("the compiler has made guest:guest_weigh.constprop.0 of it"),
                 "what the compiler has made of its function is named");
    unload("guest");
}

static struct kprobe meanwhile;

static NOINLINE int load_meanwhile(struct console_probe **out, const char *name,
                                   size_t room)
{
    disable_kprobe(&meanwhile);
    load_guest();
    return console_probe_new(out, name, room);
}

static int go_to_load(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    regs->ip = (uintptr_t)load_meanwhile;
    return 1;
}

KTEST(module, it_may_come_while_places_are_collected)
{
    meanwhile =
        (struct kprobe){ .symbol_name = "console_probe_new", .pre_handler = go_to_load };
    ktest_report(LOAD(acts) == 0 && register_kprobe(&meanwhile) == 0,
                 "a module with one sleeper; then the guest comes with another");
    ktest_report(say("probe all '*_sleeper' --entries") == 0 &&
                     said("armed 1 of 1 entries") && of("guest_twice"),
                 "the set has the places for which it has room");
    say("probe del all");
    ktest_report(unregister_kprobe(&meanwhile) == 0, "unregistered");
    unload("guest");
    unload("acts");
}

KTEST(module, parameters_are_known_from_debug_data)
{
    load_guest();
    ktest_report(say("trace args guest_twice -- run guest") == 0 && said(" a="),
                 "all of them");
    ktest_report(say("trace 'guest:guest_twice { count by a }' -- run guest") == 0,
                 "one of them");
    ktest_report(say("probe add --if 'b == 3' guest:guest_mix") == 0, "in a condition");
    ktest_report(say("echo 'p:mix guest:guest_mix b a:u8' >> " EVENTS) == 0 &&
                     say("cat " EVENTS) == 0 && said("b=b a=a:u8"),
                 "in an event");
    say("probe del all");
    say("echo > " EVENTS);
    unload("guest");
}

KTEST(module, parameters_that_are_not_known_are_no_silence)
{
    LOAD(leaps);
    ktest_report(say("trace args jump_leap -- echo") == 0 &&
                     said("^ its parameters are not known"),
                 "all of them");
    ktest_report(say("trace 'jump_leap { print a }' -- echo") != 0 &&
                     said("^ its parameters are not known"),
                 "one of them");
    ktest_report(say("probe add --if 'a == 3' leaps:jump_leap") == -EINVAL &&
                     said("at the entry of a function with debug data"),
                 "in a condition");
    unload("leaps");
}

/* ---- marks ---- */

static size_t count_blacklist(void)
{
    struct nokprobe_range range;
    size_t count = 0;

    for (uintptr_t at = 0; blacklist_next(at, &range) == 0; at = range.end)
        count++;
    return count;
}

KTEST(module, its_blacklist_comes_and_goes)
{
    struct kprobe marked = { .symbol_name = "guest:guarded" };
    struct kprobe old = { .symbol_name = "guest:guest_old_mark", .offset = 5 };
    size_t before = count_blacklist();

    load_guest();
    ktest_report(count_blacklist() == before + 3,
                 "a function, a section and a range more");
    ktest_report(register_kprobe(&marked) == -EPERM, "NOKPROBE in a module");
    ktest_report(register_kprobe(&old) == -EPERM, ".kprobes.text too, in its middle");
    ktest_report(say("probe blacklist | grep 'guarded .guest. *its author has'") == 0 &&
                     strstr(seq_str(&output), " guarded [guest] "),
                 "listed, with the module and a reason that is true");
    ktest_report(say("probe all guest:guarded") == 0 &&
                     said("its author has marked it\n"),
                 "and so says a set");
    ktest_report(say("cat /sys/kernel/debug/kprobes/blacklist") == 0 &&
                     strstr(seq_str(&output), "\tguarded [guest]\n"),
                 "the file names the module, too");
    unload("guest");
    ktest_report(count_blacklist() == before, "gone with it");
    ktest_report(LOAD(leaky_mark) == -ENOEXEC && strstr(loaded_why, "leaky") &&
                     strstr(loaded_why, "log_"),
                 "a mark that is not closed is refused: %s", loaded_why);
    ktest_report(LOAD(leaky_pointer) == -ENOEXEC && strstr(loaded_why, "pointer, which"),
                 "and one of a function that calls through a pointer: %s", loaded_why);
}

KTEST(module, a_range_has_its_own_reason)
{
    struct probe_reject why = { 0 };
    struct nokprobe_range range;
    struct kprobe p = { 0 };
    uintptr_t start;

    load_guest();
    start = of("guest_part");
    ktest_report(!blacklist_next(start, &range) && range.start > start, "a range of it");
    ktest_report(!targets_find(range.start, range.start + 1) &&
                     !targets_find(range.end, range.end + 1),
                 "its bounds are no places where code is entered");
    p.addr = range.start;
    ktest_report(register_kprobe_why(&p, &why) == -EPERM &&
                     strstr(why.why, "one half is not there yet"),
                 "refused, in the module's words");
    p = (struct kprobe){ .addr = start };
    ktest_report(register_kprobe(&p) == 0 && unregister_kprobe(&p) == 0, "not before");
    p = (struct kprobe){ .addr = range.end };
    ktest_report(register_kprobe(&p) == 0, "nor behind");
    ktest_report(call("guest_part", 1, 0) == 16 && p.hits == 1, "there it is hit");
    unregister_kprobe(&p);
    ktest_report(say("probe blacklist") == 0 && said(" guest_part+0x") &&
                     said(" one half is not there yet\n"),
                 "the list has place and reason");
    ktest_report(say("probe explain -v guest_part+0x%lx", range.start - start) == 0 &&
                     said("FAIL BLACKLISTED    one half is not there yet ("),
                 "and so says an explanation");
    unload("guest");
    ktest_report(strstr(why.why, "one half"), "a reason that was told stays");
    ktest_report(LOAD(bad_range) == -ENOEXEC && strstr(loaded_why, "cut_range"),
                 "one that ends inside of an instruction is refused: %s", loaded_why);
}

KTEST(module, a_static_key_is_a_variable)
{
    ktest_report(LOAD(bad_key) == -ENOEXEC && strstr(loaded_why, "static key"),
                 "a function is refused: %s", loaded_why);
}

static bool completes(const char *text, const char *with)
{
    struct shell_completion c;
    char line[64];
    bool found;

    strlcpy(line, text, sizeof(line));
    shell_complete(line, &c);
    found = strstr(seq_str(&c.names), with);
    seq_free(&c.names);
    return found;
}

KTEST(module, its_command_completes_verbs_files_and_names)
{
    load_guest();
    ktest_report(completes("module re", "reload"), "a verb");
    ktest_report(completes("module load /proc/vers", "/proc/version"), "a file");
    ktest_report(completes("module info gu", "guest"), "a module");
    unload("guest");
}

/* ---- every instruction ---- */

#define ALL_MAX 128 /* more than the instructions of two small functions */

struct all {
    struct kprobe probes[ALL_MAX], *ps[ALL_MAX];
    size_t count, jumps;
};

static struct all all;

static void take_insn(const struct insn *insn, void *unused UNUSED)
{
    if (all.count == ALL_MAX)
        return;
    all.probes[all.count] = (struct kprobe){ .addr = insn->addr };
    all.ps[all.count] = &all.probes[all.count];
    all.count++;
}

static void take_function(const char *name)
{
    struct plat_symbol function;

    if (plat_symbol_find(name, &function))
        return;
    plat_lock(PLAT_PROBES);
    boundary_for_each(&function, take_insn, NULL);
    plat_unlock(PLAT_PROBES);
}

static void refused(struct kprobe *p, const struct probe_reject *because,
                    void *unused UNUSED)
{
    ktest_note("0x%lx: %s", p->addr, because->why);
}

static bool same_results(const long expected[64])
{
    for (long i = 0; i < 64; i++)
        if (call("guest_mix", i, i * 3) != expected[i])
            return false;
    return true;
}

/* take_all - fill all with a probe for each instruction of two functions of the module,
 * and @expected with what guest_mix() returns.
 */
static void take_all(long expected[64])
{
    memset(&all, 0, sizeof(all));
    for (long i = 0; i < 64; i++)
        expected[i] = call("guest_mix", i, i * 3);
    take_function("guest:guest_mix");
    take_function("guest:guest_twice");
}

KTEST(module, every_instruction_of_it_becomes_a_jump)
{
    struct exec_stats before, after;
    long expected[64], in;
    uint64_t hits = 0;

    jumps_by(OPTIMIZE_PUN);
    exec_stats_get(&before);
    load_guest();
    take_all(expected);
    in = register_kprobes_some(all.ps, all.count, refused, NULL);
    ktest_report(in == (long)all.count && in > 40, "%ld of %zu instructions", in,
                 all.count);
    optimize_run();
    for (long i = 0; i < in; i++)
        all.jumps += (all.ps[i]->flags & KPROBE_FLAG_OPTIMIZED) != 0;
    ktest_report(all.jumps == all.count, "%zu of them are jumps", all.jumps);
    ktest_report(same_results(expected), "and it does what it did");
    for (long i = 0; i < in; i++)
        hits += kprobe_hits(all.ps[i]);
    ktest_report(hits > 1000, "%lu hits", hits);
    ktest_report(unload("guest") == 0, "it goes with all of them");
    unregister_kprobes(all.ps, (size_t)in);
    exec_stats_get(&after);
    ktest_report(after.arena_free_pages == before.arena_free_pages &&
                     after.pad_pages == before.pad_pages,
                 "no cell or pad is left");
}

/* Only one probe is registered at a time, because a region must not contain the
 * instruction of another probe. The regions depend on the targets that the engine has
 * found in the module.
 */
KTEST(module, regions_lie_over_it)
{
    long expected[64];
    bool same = true;

    jumps_by(OPTIMIZE_REGION);
    load_guest();
    take_all(expected);
    for (size_t i = 0; i < all.count; i++) {
        register_kprobe(all.ps[i]);
        optimize_run();
        all.jumps += (all.ps[i]->flags & KPROBE_FLAG_OPTIMIZED) != 0;
        same &= same_results(expected);
        unregister_kprobe(all.ps[i]);
    }
    ktest_report(all.jumps > 10, "%zu of %zu are jumps", all.jumps, all.count);
    ktest_report(same, "and it does what it did");
    ktest_report(unload("guest") == 0, "it goes");
}

static bool leaps_right(const char *name)
{
    for (long i = 0; i < 64; i++) {
        bool twice = !strcmp(name, "table_leap") && !(i & 1);

        if ((int)call(name, i, 0) != (twice ? 2 * i : i + 1))
            return false;
    }
    return true;
}

/* If a region lay where such a jump leads, the CPU would execute the middle of the
 * region's jump.
 */
KTEST(module, no_region_lies_where_its_code_computes_a_target)
{
    static const struct {
        const char *leaps, *lands;
    } places[] = { { "jump_leap", "jump_leap" },         { "return_leap", "return_leap" },
                   { "call_leap", "call_leap" },         { "table_leap", "table_leap" },
                   { "distance_leap", "distance_leap" }, { "entry_leap", "entry_land" } };

    jumps_by(OPTIMIZE_REGION);
    ktest_report(LOAD(leaps) == 0, "loaded %s", loaded_why);
    for (size_t k = 0; k < ARRAY_LEN(places); k++) {
        bool right = true;

        memset(&all, 0, sizeof(all));
        take_function(places[k].lands);
        for (size_t i = 0; i < all.count; i++) {
            register_kprobe(all.ps[i]);
            optimize_run();
            right &= leaps_right(places[k].leaps);
            unregister_kprobe(all.ps[i]);
        }
        ktest_report(right && all.count >= 4, "%s: %zu instructions", places[k].lands,
                     all.count);
    }
    ktest_report(unload("leaps") == 0, "it goes");
}

extern const uint8_t region_mix_at[], region_late_at[], region_choose_at[];

/* A module may lead into the middle of functions that it does not contain. */
KTEST(module, no_region_lies_where_it_leads_elsewhere)
{
    static struct {
        const uint8_t *at;
        const char *function, *leap;
        struct kprobe probe;
    } places[] = { { region_mix_at, "region_mix", "mix_leap", { 0 } },
                   { region_late_at, "region_late", "late_leap", { 0 } },
                   { region_choose_at, "region_choose", "choose_leap", { 0 } } };

    jumps_by(OPTIMIZE_REGION);
    for (size_t k = 0; k < ARRAY_LEN(places); k++) {
        struct kprobe *p = &places[k].probe;
        bool was, stays, comes_back, right = true;

        *p = (struct kprobe){ .addr = (uintptr_t)places[k].at };
        register_kprobe(p);
        optimize_run();
        was = p->flags & KPROBE_FLAG_OPTIMIZED;
        ktest_report(LOAD(leaps) == 0, "loaded %s", loaded_why);
        stays = p->flags & KPROBE_FLAG_OPTIMIZED;
        optimize_run();
        stays |= (p->flags & KPROBE_FLAG_OPTIMIZED) != 0;
        for (long i = 1; i < 64 && !stays; i += 2)
            right &=
                (int)call(places[k].leap, i, 0) == (int)call(places[k].function, i, 0);
        unload("leaps");
        optimize_run();
        comes_back = p->flags & KPROBE_FLAG_OPTIMIZED;
        unregister_kprobe(p);
        ktest_report(was && !stays && right && comes_back, "%s: %d %d %d %d",
                     places[k].leap, was, stays, right, comes_back);
    }
}
