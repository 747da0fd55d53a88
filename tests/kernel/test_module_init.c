/* test_module_init.c - constructors and destructors of modules that do what they should
 * not do, or that sleep while other modules are loaded and unloaded.
 */
#include "kernel/work/work.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/loaded.h"
#include "tests/kernel/modules/acts.h"
#include "tests/kernel/say.h"

enum acts acts_at_load, acts_at_unload;
bool acts_sleeps, acts_go_on;
int acts_result;

static void will_act(enum acts at_load, enum acts at_unload)
{
    acts_at_load = at_load;
    acts_at_unload = at_unload;
    acts_sleeps = acts_go_on = false;
    acts_result = 1;
}

static bool is_state(const char *state)
{
    say("grep acts /proc/modules");
    return strstr(seq_str(&output), state);
}

static int load_acts(void *unused UNUSED)
{
    return LOAD(acts);
}

static int unload_acts(void *unused UNUSED)
{
    return unload("acts");
}

/* while_it_sleeps - check what can be done while the constructor or destructor sleeps:
 * nothing with its own module, and all with another one. @state: of the module in
 * /proc/modules
 */
static void while_it_sleeps(const char *state)
{
    ktest_report(module_unload("acts", loaded_why) == -EBUSY &&
                     strstr(loaded_why, "loads or unloads it"),
                 "it cannot be unloaded: %s", loaded_why);
    ktest_report(LOAD(acts) == -EEXIST, "nor loaded once more");
    ktest_report(is_state(state), "it is in /proc/modules");
    ktest_report(say("run acts") == -ENOENT, "its workload is not to be had");
    ktest_report(load_guest() == 0 && call("guest_twice", 2, 0) == 4 &&
                     unload("guest") == 0,
                 "another one comes and goes");
}

static int joined(int tid)
{
    int code;

    WRITE_ONCE(acts_go_on, true);
    thread_join(tid, &code);
    return code;
}

static int in_a_thread(int (*fn)(void *))
{
    int tid = ktest_thread(fn, NULL, 0);

    while (!READ_ONCE(acts_sleeps))
        thread_sleep_ns(1000000);
    return tid;
}

KTEST(module_init, one_that_sleeps_holds_up_its_module_only)
{
    int tid;

    will_act(ACTS_SLEEP, ACTS_SLEEP);
    tid = in_a_thread(load_acts);
    while_it_sleeps(" Loading ");
    ktest_report(joined(tid) == 0 && is_state(" Live "), "then it is loaded");
    acts_go_on = false;
    tid = in_a_thread(unload_acts);
    while_it_sleeps(" Unloading ");
    ktest_report(joined(tid) == 0 && !is_state(" "), "then it is unloaded");
}

KTEST(module_init, it_may_load_and_unload_others)
{
    will_act(ACTS_LOAD, ACTS_UNLOAD);
    ktest_report(LOAD(acts) == 0 && acts_result == 0 &&
                     call("plain:plain_switch", 4, 0) == 12,
                 "a constructor loads another module");
    ktest_report(unload("acts") == 0 && acts_result == 0 && !of("plain:plain_switch"),
                 "a destructor unloads it");
    will_act(ACTS_UNLOAD, ACTS_LOAD);
    ktest_report(LOAD(plain) == 0 && LOAD(acts) == 0 && acts_result == 0 &&
                     !of("plain:plain_switch"),
                 "and the other way round");
    ktest_report(unload("acts") == 0 && unload("plain") == 0, "all are gone");
}

KTEST(module_init, it_may_not_load_or_unload_itself)
{
    will_act(ACTS_LOAD_ITSELF, ACTS_LOAD_ITSELF);
    ktest_report(LOAD(acts) == 0 && acts_result == -EEXIST,
                 "a constructor does not load its own module");
    acts_result = 1;
    ktest_report(unload("acts") == 0 && acts_result == -EEXIST, "a destructor neither");
    will_act(ACTS_UNLOAD_ITSELF, ACTS_UNLOAD_ITSELF);
    ktest_report(LOAD(acts) == 0 && acts_result == -EDEADLK,
                 "a constructor does not unload its own module");
    acts_result = 1;
    ktest_report(unload("acts") == 0 && acts_result == -EDEADLK, "a destructor neither");
}

/* unload_below - call unload("acts"), @depth frames below the caller. */
static NOINLINE long unload_below(long depth)
{
    long err = depth ? unload_below(depth - 1) : unload("acts");

    __asm__ volatile("" : "+r"(err)); /* else the compiler makes a loop of it */
    return err;
}

KTEST(module_init, it_does_not_go_below_its_own_call)
{
    will_act(ACTS_NOT, ACTS_NOT);
    LOAD(acts);
    ktest_report(call("acts_call", (long)unload_below, 100) == -EDEADLK,
                 "a hundred frames below: %s", loaded_why);
    say("probe ret unload_below");
    ktest_report(call("acts_call", (long)unload_below, 0) == -EDEADLK,
                 "a return probe has its return address: %s", loaded_why);
    say("probe del all");
    ktest_report(unload_below(100) == 0, "as many frames below other code it goes");
}

KTEST(module_init, a_module_in_it_refuses_itself_only)
{
    will_act(ACTS_LOAD_REFUSED, ACTS_NOT);
    ktest_report(LOAD(acts) == 0 && acts_result == -ENODEV,
                 "a constructor loads a module that refuses: %d", acts_result);
    ktest_report(!of("refuses_unload_err") && say("run acts") == 0,
                 "that one is gone, and its own is there");
    unload("acts");
}

KTEST(module_init, what_it_has_begun_before_it_refuses)
{
    size_t bytes;

    will_act(ACTS_NOT, ACTS_NOT);
    LOAD(acts);
    unload("acts");
    bytes = heap_in_use();
    will_act(ACTS_PROBE, ACTS_NOT);
    ktest_report(LOAD(acts) == -ENODEV && acts_result == 0 && heap_in_use() == bytes &&
                     say("cat /sys/kernel/debug/kprobes/list") == 0 && !output.len,
                 "its probe is taken out, and nothing is left");
    will_act(ACTS_THREAD, ACTS_NOT);
    ktest_report(LOAD(acts) == -ENODEV && acts_result > 0 && strstr(loaded_why, "(acts)"),
                 "a thread that it has left inside keeps it");
    ktest_note("%s", loaded_why);
    ktest_report(is_state(" Unloading ") && say("module info acts") == 0 &&
                     said("kept    thread "),
                 "it stays, and says what by");
    ktest_report(module_unload("acts", loaded_why) == -EBUSY &&
                     strstr(loaded_why, "(acts)"),
                 "as long as the thread is there");
    joined(acts_result);
    ktest_report(unload("acts") == 0, "then it goes");
}

KTEST_FATAL(module_init, a_constructor_that_faults_is_named)
{
    will_act(ACTS_FAULT, ACTS_NOT);
    LOAD(acts);
}

KTEST_FATAL(module_init, what_has_gone_is_named)
{
    long (*volatile twice)(long);

    load_guest();
    twice = (long (*)(long))of("guest_twice");
    unload("guest");
    twice(1);
}

/* ---- a module with handlers for probes on another module ---- */

KTEST(module_init, a_handler_and_what_it_is_on_go_in_any_order)
{
    ktest_report(LOAD(watcher) == 0 && load_guest() == 0 && value("watcher_hits") == 1 &&
                     value("watcher_returns") == 1,
                 "a handler waits for another module, and sees its constructor");
    ktest_report(unload("guest") == 0 && load_guest() == 0 &&
                     value("watcher_hits") == 2 && value("watcher_returns") == 2,
                 "the other one goes first, and comes back");
    ktest_report(unload("watcher") == 0 && call("guest_twice", 4, 0) == 8,
                 "the handler goes first");
    ktest_report(LOAD(watcher) == 0 && unload("guest") == 0 && unload("watcher") == 0 &&
                     say("cat /sys/kernel/debug/kprobes/list") == 0 && !output.len &&
                     load_guest() == 0 && call("guest_twice", 4, 0) == 8,
                 "it goes while it waits");
    unload("guest");
}
