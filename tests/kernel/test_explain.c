/* test_explain.c - what `probe explain` says about an address is true. */
#include "probes/core/registry.h"
#include "probes/jump/optimize.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/say.h"

#include <stdio.h>
#include <stdlib.h>

/* region_targets.asm */
uint32_t region_mix(uint32_t x);

/* lines_of - count the lines of the output. */
static size_t lines_of(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += *text == '\n';
    return count;
}

KTEST(explain, the_answer_is_short_unless_all_is_asked_for)
{
    char byte[32];

    snprintf(byte, sizeof(byte), "byte       %02x", ((const uint8_t *)vfs_read)[5]);
    ktest_report(say("probe explain vfs_read+5") == 0 && said(byte) &&
                     said(", original\n") && said("verdict    can be probed\n") &&
                     said("\njump       ") && said("\ncost       ") &&
                     lines_of(seq_str(&output)) <= 10,
                 "what a probe would be");
    say("probe add vfs_read");
    ktest_report(say("probe explain vfs_read") == 0 && said("verdict    is probed\n") &&
                     said("\nhits       0\n") && lines_of(seq_str(&output)) <= 12,
                 "what a probe is");
    ktest_report(say("probe explain vfs_read -v") == 0 && said("\nregion     ") &&
                     lines_of(seq_str(&output)) > 40,
                 "all of it");
    say("probe del all");
    ktest_report(say("probe explain vfs_read+3") == 0 &&
                     said("verdict    no probe: not an instruction boundary\n") &&
                     lines_of(seq_str(&output)) <= 5,
                 "why there can be none");
}

/* ---- tiers ----------------------------------------------------------------------------- */

KTEST(explain, each_tier_is_told_and_why_it_is_no_better)
{
    static const char switched_off[] = "jump       none: jumps are switched off\n";

    ktest_report(say("probe explain -v region_mix+2") == 0 && said(switched_off) &&
                     said("tier       boost: "),
                 "without jumps");
    jumps_by(OPTIMIZE_PUN);
    ktest_report(say("probe explain -v region_mix+2") == 0 &&
                     said("jump       plain: ") && said("\npad        0xffffffff") &&
                     said("copy       detour, at 0x") && said(", by code of its own\n"),
                 "what it would become");
    say("probe add region_mix+2");
    optimize_run();
    ktest_report(say("probe explain -v region_mix+2") == 0 &&
                     said("tier       jump: no trap is taken\n") &&
                     said("tier       boost behind a breakpoint: "),
                 "what it is");
    say("probe off all");
    ktest_report(say("probe explain -v region_mix+2") == 0 &&
                     said("jump       none: no probe is enabled\n"),
                 "disabled");
    say("probe del all");
}

/* ---- cost ------------------------------------------------------------------------------ */

/* costs - does `probe explain @place` print a cost in cycles, measured for @kind of hits?
 */
static bool costs(const char *place, const char *kind)
{
    const char *line;

    say("probe explain -v %s", place);
    line = strstr(seq_str(&output), "\ncost       ");
    return line && strtoul(line + strlen("\ncost       "), NULL, 10) > 0 &&
           said(" cycles for each hit, as hit.") && said(kind);
}

static void no_light(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
}

KTEST(explain, the_cost_is_measured_by_tier)
{
    struct kprobe light = { .symbol_name = "vfs_read", .light_handler = no_light };
    uint64_t sites = registry_count();

    ktest_report(costs("region_mix+2", "hit.int3_boostable\n"), "boosted");
    ktest_report(costs("region_choose+4", "hit.int3_emulated\n"), "emulated");
    say("probe add --post region_mix+2");
    ktest_report(costs("region_mix+2", "hit.int3_posthandler\n"), "stepped");
    say("probe del all");
    jumps_by(OPTIMIZE_PUN);
    ktest_report(costs("region_mix+2", "hit.opt_pad\n"), "a jump to a pad");
    ktest_report(costs("vfs_read", "hit.opt\n"), "straight to a detour");
    say("probe add vfs_read");
    optimize_run();
    ktest_report(costs("vfs_read", "hit.opt_count\n"), "that counts");
    say("probe del all");
    register_kprobe(&light);
    optimize_run();
    ktest_report(costs("vfs_read", "hit.opt_light\n"), "that calls a light handler");
    unregister_kprobe(&light);
    jumps_as_before();
    ktest_report(registry_count() == sites, "nothing is left");
}

/* ---- bytes ----------------------------------------------------------------------------- */

/* answers - does @line have one word for each CPU, behind the first six words? At least
 * one of them must be a number, since the CPU that changes the text is not halted.
 */
static bool answers(char *line)
{
    bool numbers = false;
    unsigned count = 0;
    char *rest = line;

    for (char *word; (word = strsep(&rest, " ")) != NULL; count++)
        if (count >= 6 && strtoul(word, NULL, 10) > 0)
            numbers = true;
    return numbers && count == 6 + cpu_count();
}

KTEST(explain, each_cpu_answers_each_phase)
{
    static const char *const steps[] = { " first ", " tail ", " first " };
    char *line;

    say("probe xmc vfs_read 0f 1f 44 00 01");
    say("cat /sys/kernel/debug/kprobes/changes | grep ' vfs_read+0x0 ' | tail -n 3");
    line = output.text;
    for (size_t i = 0; line && i < ARRAY_LEN(steps); i++) {
        char *next = strchr(line, '\n');

        ktest_report(strstr(line, steps[i]) && strstr(line, steps[i]) < next,
                     "the%sbytes", steps[i]);
        *next = '\0';
        ktest_report(answers(line), "and each CPU has answered");
        line = next + 1;
    }
    say("probe xmc vfs_read 0f 1f 44 00 00");
}

static volatile bool keep_busy;

static int stay_awake(void *unused UNUSED)
{
    while (keep_busy)
        pause();
    return 0;
}

/* With two CPUs or more, at least one CPU has nothing to do when no other thread runs. */
KTEST(explain, a_halted_cpu_is_not_said_to_answer)
{
    unsigned last = cpu_count() - 1;
    bool halted = false;
    int tid;

    if (!last) {
        ktest_report(true, "with one CPU, which executes the change");
        return;
    }
    keep_busy = true;
    tid = ktest_thread(stay_awake, NULL, UINT64_C(1) << last);
    say("probe xmc vfs_read 0f 1f 44 00 01");
    say("cat /sys/kernel/debug/kprobes/changes | tail -n 1");
    ktest_report(!strstr(strrchr(seq_str(&output), ' '), "halted"), "awake, it answers");
    keep_busy = false;
    thread_join(tid, NULL);
    for (unsigned i = 0; i < 100 && !halted; i++) {
        say("probe xmc vfs_read 0f 1f 44 00 0%u", i % 2);
        say("cat /sys/kernel/debug/kprobes/changes | tail -n 3");
        halted = strstr(seq_str(&output), " halted") != NULL;
    }
    ktest_report(halted, "halted, it need not");
    say("probe xmc vfs_read 0f 1f 44 00 00");
}

/* ---- regions --------------------------------------------------------------------------- */

KTEST(explain, a_region_is_drawn)
{
    uintptr_t at = (uintptr_t)region_mix + 2;

    ktest_report(say("probe explain -v region_mix+2") == 0 &&
                     said("\nregion     possible\n"),
                 "there could be one");
    ktest_report(said("           IA\n"
                      "           |\n"
                      "           [ 0][ 1][ 2][ 3][ 4][ 5]\n"
                      "           [ff  c0][d1  c8][31  f8]\n"
                      "           [<- DCR -------------->]\n"
                      "               [<- JTPR ----->]\n"),
                 "its picture");
    ktest_report(said("region     pass REGION_TARGET \n"), "its rules");
    say("probe explain -v region_mix+2 | grep ^DCR");
    ktest_report(said("6 bytes, 3 instructions\n"), "its bytes");
    ktest_report(*(const volatile uint8_t *)at == 0xff, "and nothing has been changed");
}

KTEST(explain, the_rule_that_forbids_a_region_is_named)
{
    ktest_report(
        say("probe explain -v region_scan+15") == 0 &&
            said("region     FAIL REGION_TARGET  something leads to where the jump "
                 "would lie (region_scan+0x12, EOPNOTSUPP)\n") &&
            said("             T          T: a branch"),
        "a branch leads there");
    say("probe add region_mix+4");
    ktest_report(
        say("probe explain -v region_mix+2") == 0 &&
            said("\nregion     none: another probe is where the jump would lie\n"),
        "a probe is in the way");
    ktest_report(
        said("region     FAIL REGION_PROBED  another probe is where the jump would "
             "lie (region_mix+0x4, EEXIST)\n"),
        "it is named");
    ktest_report(said("         P              P: another probe"), "and drawn");
    say("probe del all");
    ktest_report(say("probe explain -v kprobe_int3_handler") == 0 &&
                     said("\nregion     none: this code is the way into a hit"),
                 "none where there can be no probe");
    ktest_report(say("probe explain -v region_mix+3") == 0 &&
                     said("region     FAIL NOT_BOUNDARY   not an instruction boundary"),
                 "nor inside of an instruction: the reason that holds is named");
    ktest_report(say("probe explain -v 0x10") == 0 && !strstr(seq_str(&output), "region"),
                 "nothing is said of no code");
}
