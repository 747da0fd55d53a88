/* test_link.c - linked detours: each leads straight into the next. Links are made and
 * removed while CPUs are inside of the detours.
 */
#include "probes/jump/detour.h"
#include "probes/jump/link.h"

#include "probes/core/insn_slot.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/platform_jump.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/own_steps.h"
#include "tests/kernel/return_targets.h"

#define COUNT 6

/* link_targets.asm */
uint64_t link_row(uint64_t x);
extern const uintptr_t link_row_addrs[COUNT];

static struct kprobe row[COUNT];
static struct kprobe *pointers[COUNT];

static uint64_t expected(uint64_t x)
{
    return 3 * (x + 8) + 21;
}

static void start(void)
{
    jumps_by(OPTIMIZE_PUN);
    memset(row, 0, sizeof(row));
    for (size_t i = 0; i < COUNT; i++) {
        row[i].addr = link_row_addrs[i];
        pointers[i] = &row[i];
    }
    register_kprobes(pointers, COUNT);
    optimize_run();
}

static void end(void)
{
    unregister_kprobes(pointers, COUNT);
}

static uintptr_t into(size_t i)
{
    uintptr_t jump;

    plat_lock(PLAT_PROBES);
    jump = link_into(row[i].addr);
    plat_unlock(PLAT_PROBES);
    return jump;
}

static bool all_are_linked(void)
{
    for (size_t i = 1; i < COUNT; i++)
        if (!into(i))
            return false;
    return true;
}

/* ---- under single steps ---- */

KTEST(link, a_program_that_steps_itself_sees_no_more_than_before)
{
    static struct own_steps without, with;

    own_steps_of(&without, link_row, 20);
    start();
    ktest_report(all_are_linked(), "linked");
    ktest_report(own_steps_of(&with, link_row, 20) == expected(20),
                 "the function returns what it did");
    ktest_report(own_steps_same(&without, &with, 0), "it comes to the same %zu places",
                 without.count);
    end();
}

/* ---- a thread is inside ---- */

static volatile bool is_out, is_gone;

static int run_row(void *unused UNUSED)
{
    int wrong = link_row(5) != expected(5);

    is_out = true;
    return wrong;
}

static int take_out(void *p)
{
    unregister_kprobe(p);
    is_gone = true;
    return 0;
}

#define WORD_LEN 8

static uintptr_t word; /* the aligned word in the first cell where the copy begins */
static uint8_t original[WORD_LEN];

static void write_word(void *bytes)
{
    plat_text_store(word, bytes, WORD_LEN);
}

/* store - write @bytes to the word while the machine is stopped: a CPU may execute these
 * bytes as several instructions, so another CPU may not exchange them while it runs.
 */
static void store(uint8_t *bytes)
{
    plat_lock(PLAT_TEXT);
    plat_stop_machine(write_word, bytes);
    plat_unlock(PLAT_TEXT);
}

/* hold - replace the copy of the first instruction by a jump to itself, so that a CPU
 * that comes there stays there. store(original) undoes this.
 * Return: false: these two bytes are not in one aligned word.
 */
static bool hold(void)
{
    uintptr_t copy =
        detour_start(row[0].site, (uintptr_t)insn_slot_start(site_detour(row[0].site)));
    uint8_t bytes[WORD_LEN];

    word = align_down(copy, WORD_LEN);
    if (copy + 2 > word + WORD_LEN)
        return false;
    memcpy(original, (const void *)word, sizeof(original));
    memcpy(bytes, original, sizeof(bytes));
    bytes[copy - word] = 0xeb;
    bytes[copy - word + 1] = 0xfe;
    store(bytes);
    return true;
}

/* A link leads from the detour in which a thread is held into that of the probe. */
KTEST(link, the_second_leaves_with_a_thread_on_the_way_to_it)
{
    int inside, remover, wrong = 1;

    start();
    is_out = is_gone = false;
    ktest_report(all_are_linked() && hold(), "linked, and held in the first");
    inside = ktest_thread(run_row, NULL, 0);
    while (kprobe_hits(&row[0]) == 0)
        thread_yield();
    remover = ktest_thread(take_out, &row[1], 0);
    thread_sleep_ns(100000000);
    ktest_report(!is_gone && !is_out, "it stays while a thread is inside");
    store(original);
    thread_join(inside, &wrong);
    thread_join(remover, NULL);
    ktest_report(is_gone && is_out && !wrong, "the thread gets out, and then it goes");
    ktest_report(kprobe_hits(&row[1]) == 0, "and is not hit when it is gone");
    ktest_report(kprobe_hits(&row[5]) == 1, "the last is hit");
    unregister_kprobe(&row[0]);
    unregister_kprobes(pointers + 2, COUNT - 2);
}

static int take_all_out(void *unused UNUSED)
{
    unregister_kprobes(pointers, COUNT);
    is_gone = true;
    return 0;
}

/* The links are cut, so the thread that was inside goes on in the text. */
KTEST(link, all_leave_with_a_thread_inside)
{
    int inside, remover, wrong = 1;

    start();
    is_out = is_gone = false;
    ktest_report(all_are_linked() && hold(), "linked, and held in the first");
    inside = ktest_thread(run_row, NULL, 0);
    while (kprobe_hits(&row[0]) == 0)
        thread_yield();
    remover = ktest_thread(take_all_out, NULL, 0);
    thread_sleep_ns(100000000);
    ktest_report(!is_gone && !is_out, "none is freed while a thread is inside");
    store(original);
    thread_join(inside, &wrong);
    thread_join(remover, NULL);
    ktest_report(is_gone && is_out && !wrong, "the thread gets out, and then they are");
}
