/* test_files.c - /sys/kernel/debug/kprobes, and the knobs in /proc/sys/debug. */
#include "probes/core/text_poke.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/text/text_engine.h"
#include "tests/kernel/engines.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nothing.h"
#include "tests/kernel/say.h"

#include <stdio.h>
#include <stdlib.h>

#define KPROBES "/sys/kernel/debug/kprobes/"
#define STEP "/proc/sys/debug/kprobes-step"
#define POKE "/proc/sys/debug/text-poke"
#define JUMP "/proc/sys/debug/kprobes-jump"
#define OPTIMIZATION "/proc/sys/debug/kprobes-optimization"

KTEST_TARGET(target, a, a * 11 + 3)

static bool is_armed(void)
{
    return *(const volatile uint8_t *)target == 0xcc;
}

static bool reads(const char *line, const char *wanted)
{
    bool same = say("%s", line) == 0 && strcmp(seq_str(&output), wanted) == 0;

    if (!same)
        ktest_note("%s: %.300s", line, seq_str(&output));
    return same;
}

/* ---- list, blacklist ---- */

KTEST(files, list_has_a_line_for_each_probe)
{
    struct kprobe a = { .symbol_name = "vfs_read" }, b = { .symbol_name = "vfs_read" };
    char want[200];

    ktest_report(reads("cat " KPROBES "list", ""), "no probe, no line");
    register_kprobe(&a);
    register_kprobe(&b);
    disable_kprobe(&b);
    snprintf(want, sizeof(want),
             "%016lx  k  vfs_read+0x0    \n%016lx  k  vfs_read+0x0    [DISABLED]\n",
             a.addr, b.addr);
    ktest_report(reads("cat " KPROBES "list", want), "two at one address");
    unregister_kprobe(&a);
    unregister_kprobe(&b);
}

static bool is_sorted(const char *text)
{
    unsigned long last = 0;

    for (; text && *text; text = strchr(text, '\n'), text += text != NULL) {
        unsigned long addr = strtoul(text, NULL, 16);

        if (addr <= last)
            return false;
        last = addr;
    }
    return true;
}

KTEST(files, list_is_sorted_by_address)
{
    say("probe all vfs_*");
    say("cat " KPROBES "list | grep -c '^ffffffff.*  k  vfs_.*+0x.*    $'");
    ktest_report(strtoul(seq_str(&output), NULL, 10) > 100, "many lines");
    say("cat " KPROBES "list");
    ktest_report(is_sorted(seq_str(&output)), "in order");
    say("probe del all");
}

KTEST(files, blacklist_has_ranges_and_names)
{
    say("cat " KPROBES "blacklist");
    ktest_report(strstr(seq_str(&output), "\texc_int3\n"), "exc_int3");
    ktest_report(strstr(seq_str(&output), "\tkprobe_int3_handler\n"),
                 "kprobe_int3_handler");
    ktest_report(is_sorted(seq_str(&output)), "in order");
    say("cat " KPROBES "blacklist | grep -v '^0xffffffff.*-0xffffffff.*\t.*$' | wc -l");
    ktest_report(strcmp(seq_str(&output), "0\n") == 0, "all lines look alike");
    ktest_report(say("echo x > " KPROBES "blacklist") == -EACCES, "it is only read");
    ktest_report(say("echo x > " KPROBES "list") == -EACCES, "so is list");
}

/* ---- enabled ---- */

KTEST(files, enabled_switches_all_probes)
{
    struct kprobe p = { .addr = (uintptr_t)target }, late = { .addr = (uintptr_t)target };

    register_kprobe(&p);
    ktest_report(reads("cat " KPROBES "enabled", "1\n"), "1");
    ktest_report(say("echo 0 > " KPROBES "enabled") == 0 && !is_armed(), "0 disarms");
    ktest_report(reads("cat " KPROBES "enabled", "0\n"), "0");
    ktest_report(say("echo 2 > " KPROBES "enabled") == -EINVAL && !is_armed(), "2 is no");
    target(1);
    ktest_report(p.hits == 0, "nothing is hit");
    ktest_report(register_kprobe(&late) == 0 && !is_armed(),
                 "one that is registered now waits");
    disable_kprobe(&p);
    ktest_report(say("echo 1 > " KPROBES "enabled") == 0 && is_armed(), "1 arms");
    target(1);
    ktest_report(p.hits == 0 && late.hits == 1, "what was disabled meanwhile stays so");
    unregister_kprobe(&late);
    ktest_report(!is_armed(), "alone it is not armed");
    enable_kprobe(&p);
    ktest_report(is_armed(), "until it is enabled");
    unregister_kprobe(&p);
    say("dmesg | tail -n 20");
    ktest_report(strstr(seq_str(&output), "kprobes globally disabled") &&
                     strstr(seq_str(&output), "kprobes globally enabled"),
                 "the log tells");
}

KTEST(files, modes_are_those_of_linux)
{
    ktest_report(reads("stat " KPROBES "list", "f 0400\n"), "list");
    ktest_report(reads("stat " KPROBES "blacklist", "f 0400\n"), "blacklist");
    ktest_report(reads("stat " KPROBES "enabled", "f 0600\n"), "enabled");
    ktest_report(reads("ls " KPROBES, "blacklist\nchanges\nenabled\nlist\n"),
                 "nothing else but sonde's own");
    ktest_report(reads("stat " KPROBES "changes", "f 0400\n"), "changes");
}

/* ---- kprobes-step ---- */

KTEST(files, the_step_engine_is_chosen_by_name)
{
    struct kprobe p = { .addr = (uintptr_t)target, .post_handler = no_post };
    long without = target(5);

    ktest_report(reads("cat " STEP, "int3\n"), "int3 at first");
    register_kprobe(&p);
    ktest_report(say("echo tf > " STEP) == 0 && reads("cat " STEP, "tf\n"), "tf");
    ktest_report(target(5) == without && p.hits == 1, "steps by TF");
    ktest_report(say("echo -n int3 > " STEP) == 0 && reads("cat " STEP, "int3\n"),
                 "int3, without a line feed");
    ktest_report(target(5) == without && p.hits == 2, "steps by int3");
    unregister_kprobe(&p);
    ktest_report(say("echo x > " STEP) == -EINVAL, "junk is EINVAL");
    ktest_report(say("echo tff > " STEP) == -EINVAL, "so is what only begins well");
    ktest_report(say("echo ' tf' > " STEP) == -EINVAL, "and what does not");
    ktest_report(reads("cat " STEP, "int3\n"), "nothing has changed");
}

/* ---- text-poke ---- */

static void choose_engine(const char *name, void *arg)
{
    struct kprobe p = { .addr = (uintptr_t)target };
    const char *before = arg;
    char line[80];

    text_engine_set(text_engine_find(before, strlen(before)));
    ktest_report(say("echo %s > " POKE, name) == 0, "%s is chosen", name);
    snprintf(line, sizeof(line), "%s\n", name);
    ktest_report(reads("cat " POKE, line), "and shown");
    register_kprobe(&p);
    ktest_report(is_armed() && target(5) == 58 && p.hits == 1, "arms");
    unregister_kprobe(&p);
    ktest_report(!is_armed() && target(5) == 58, "and disarms");
    ktest_report(say("echo ' %s' > " POKE, name) == -EINVAL &&
                     say("echo '%s now' > " POKE, name) == -EINVAL &&
                     say("echo %.2s > " POKE, name) == -EINVAL,
                 "other words are EINVAL");
    ktest_report(reads("cat " POKE, line), "nothing has changed");
    ktest_report(say("echo -n %s > " POKE, name) == 0, "without a line feed, too");
}

KTEST(files, the_patch_engine_is_chosen_by_name)
{
    const struct text_engine *before = text_engine_get();
    char booted[16];

    if (!ktest_word("text-poke", booted, sizeof(booted)))
        strlcpy(booted, text_engines[0]->name, sizeof(booted));
    ktest_report(!strcmp(booted, before->name), "%s at first", booted);
    for_each_engine(choose_engine, (void *)before->name);
    ktest_report(text_engine_get() == before, "%s as before", before->name);
    ktest_report(reads("stat " POKE, "f 0644\n"), "mode 0644");
}

/* ---- kprobes-jump, kprobes-optimization ---- */

static bool is_jump(const struct kprobe *p)
{
    return p->flags & KPROBE_FLAG_OPTIMIZED;
}

/* When the write to a file returns, each probe already is the jump or
 * breakpoint it has become.
 */
KTEST(files, jumps_are_chosen_by_name_and_switched)
{
    struct kprobe p = { .addr = (uintptr_t)target };

    ktest_report(reads("cat " JUMP, "off\n"), "the tests run without");
    register_kprobe(&p);
    ktest_report(!is_jump(&p), "a breakpoint");
    ktest_report(say("echo pun > " JUMP) == 0 && reads("cat " JUMP, "pun\n") &&
                     is_jump(&p) && !jump_site(p.site)->region,
                 "pun: a jump");
    ktest_report(say("echo 0 > " OPTIMIZATION) == 0 &&
                     reads("cat " OPTIMIZATION, "0\n") && !is_jump(&p) && is_armed(),
                 "0: a breakpoint");
    ktest_report(say("echo region > " JUMP) == 0 && !is_jump(&p), "no region either");
    ktest_report(say("echo 1 > " OPTIMIZATION) == 0 &&
                     reads("cat " OPTIMIZATION, "1\n") && is_jump(&p) &&
                     jump_site(p.site)->region,
                 "1: a jump, over a region");
    ktest_report(say("echo -n off > " JUMP) == 0 && reads("cat " JUMP, "off\n") &&
                     !is_jump(&p) && is_armed(),
                 "off: a breakpoint");
    ktest_report(target(5) == 58 && kprobe_hits(&p) == 1, "that works");
    unregister_kprobe(&p);
}

/* ---- junk ---- */

/* refuses - is writing @junk to @knob an error that does not change the value of @knob?
 */
static bool refuses(const char *knob, const char *junk)
{
    char value[40], line[80];
    bool told;

    say("cat %s", knob);
    snprintf(value, sizeof(value), "%s", seq_str(&output));
    told = say("echo '%s' > %s", junk, knob) == -EINVAL && said(knob) &&
           said(": write error: Invalid argument\n");
    snprintf(line, sizeof(line), "cat %s", knob);
    return told && reads(line, value);
}

KTEST(files, junk_changes_no_knob)
{
    static const char *const junk[] = {
        "",
        " ",
        "x",
        "2",
        "-1",
        "00x",
        "int3int3",
        "pun ",
        " pun",
        "PUN",
        "regions",
        "of",
        "of f",
        "tff",
        "stop_machine",
        "stop-machine,int3",
        "10",
        "0x1",
        "1 0",
        "0;1",
        "\\0",
        "\t",
        "yess!",
        "punpunpunpunpunpunpunpunpunpunpunpunpunpunpunpunpunpunpunpun",
    };
    static const char *const knobs[] = { STEP, POKE, JUMP, OPTIMIZATION };

    for (size_t i = 0; i < ARRAY_LEN(knobs); i++) {
        unsigned refused = 0;

        for (size_t j = 0; j < ARRAY_LEN(junk); j++)
            refused += refuses(knobs[i], junk[j]);
        ktest_report(refused == ARRAY_LEN(junk), "%s: %u of %zu are EINVAL", knobs[i],
                     refused, ARRAY_LEN(junk));
    }
}

/* ---- all knobs at once ---- */

#define ROUNDS 40

static uint8_t original_byte;

/* is_wrong - is there a breakpoint although kprobes are off, or no breakpoint although @p
 * is registered and enabled? The lock is held meanwhile, so nothing can change.
 */
static bool is_wrong(const struct kprobe *p)
{
    bool on, armed, wanted;

    plat_lock(PLAT_PROBES);
    on = kprobes_are_on();
    armed = *(const volatile uint8_t *)target != original_byte;
    wanted = on && !(p->flags & KPROBE_FLAG_DISABLED);
    plat_unlock(PLAT_PROBES);
    return (armed && !on) || (wanted && !armed);
}

static int turn_one(struct kprobe *p, uint64_t random)
{
    switch (random >> 61) {
    case 0:
        return disable_kprobe(p);
    case 1:
        return kprobes_switch(false);
    case 2:
        return kprobes_switch(true);
    case 3:
        step_set_engine(STEP_TF);
        return 0;
    case 4:
        step_set_engine(STEP_INT3);
        return 0;
    case 5:
    case 6:
        text_engine_set(text_engines[(random >> 32) % text_engine_count]);
        return 0;
    default:
        return enable_kprobe(p);
    }
}

/* turn_knobs - let one thread do random operations on a probe of its own and on the
 * switches that all threads share. Return: how many operations or checks went wrong.
 */
static int turn_knobs(void *arg)
{
    struct kprobe p = { .addr = (uintptr_t)target };
    uint64_t random = (uintptr_t)arg;
    int wrong = 0;

    for (int i = 0; i < ROUNDS; i++) {
        p = (struct kprobe){ .addr = (uintptr_t)target };
        if (i % 2)
            p.post_handler = no_post;
        wrong += register_kprobe(&p) != 0;
        for (int n = 0; n < 3; n++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            wrong += turn_one(&p, random) != 0;
            wrong += is_wrong(&p);
            wrong += target(i) != i * 11 + 3;
        }
        wrong += unregister_kprobe(&p) != 0;
    }
    return wrong;
}

KTEST(files, four_threads_turn_all_knobs)
{
    const struct text_engine *before = text_engine_get();
    int tids[4], wrong = 0, code;
    size_t heap = heap_in_use();

    original_byte = *(const volatile uint8_t *)target;
    for (uintptr_t i = 0; i < 4; i++)
        tids[i] = ktest_thread(turn_knobs, (void *)(ktest_random() | 1),
                               UINT64_C(1) << i % cpu_count());
    for (int i = 0; i < 4; i++) {
        thread_join(tids[i], &code);
        wrong += code;
    }
    ktest_report(wrong == 0,
                 "%d rounds: %d times an answer, a result or the text was wrong",
                 4 * ROUNDS, wrong);
    kprobes_switch(true);
    step_set_engine(STEP_INT3);
    text_engine_set(before);
    ktest_report(!is_armed(), "the text is as it was");
    ktest_report(heap_in_use() == heap, "no memory is left over");
}
