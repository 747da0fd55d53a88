/* test_watch_handlers.c - what handlers of watches may do, what they may not do, and what
 * happens when a handler faults.
 */
#include "probes/watch/watch.h"

#include "tests/kernel/ktest.h"
#include "tests/kernel/watched.h"

static void touch_next(struct watch *w UNUSED, struct pt_regs *regs UNUSED)
{
    watched.neighbour++;
}

KTEST(watch_handlers, handlers_nest)
{
    struct watch w = watch_of(&watched.target, WATCH_WRITE, 8, touch_next);
    struct watch inner = watch_of(&watched.neighbour, WATCH_WRITE, 8, note_hit);

    noted.calls = 0;
    register_watch(&w);
    register_watch(&inner);
    watched_store(1);
    ktest_report(noted.calls == 1 && watch_hits(&inner) == 1,
                 "what the handler of one writes is a hit of the other");
    ktest_report(noted_in(touch_next), "in that handler");
    unregister_watch(&inner);
    unregister_watch(&w);
}

static void fault(struct watch *w UNUSED, struct pt_regs *regs UNUSED)
{
    noted.calls++;
    ud2();
}

KTEST(watch_handlers, a_handler_that_faults_is_given_up)
{
    struct watch w = watch_of(&watched.target, WATCH_WRITE, 8, fault);
    struct watch second = watch_of(&watched.target, WATCH_WRITE, 8, NULL);

    noted.calls = 0;
    register_watch(&w);
    ktest_report(!register_watch(&second), "two watch the same bytes");
    watched_store(5);
    ktest_report(watched.target == 5 && noted.calls == 1,
                 "the program goes on behind the store");
    ktest_report(w.kp.flags & KPROBE_FLAG_TRIPPED, "the watch is off");
    ktest_report(watch_hits(&second) + watch_misses(&second) == 1,
                 "the other one at the same bytes has counted the access");
    watched_store(6);
    ktest_report(noted.calls == 1 && watch_hits(&w) == 1 && !watch_misses(&w),
                 "the next store is no hit");
    ktest_report(watch_hits(&second) == 1, "but one of the other");
    w.handler = note_hit;
    enable_watch(&w);
    watched_store(7);
    ktest_report(watch_hits(&w) == 2 && noted.calls == 2, "switched on again it is one");
    unregister_watch(&second);
    unregister_watch(&w);
    expect_no_watches();
}

KTEST(watch_handlers, the_watch_itself_may_be_watched)
{
    struct watch w = watch_of(&watched.target, WATCH_WRITE, 8, note_hit), meta;

    meta = watch_of(&w.kp.flags, WATCH_ACCESS, 4, NULL);
    noted.calls = 0;
    register_watch(&w);
    register_watch(&meta);
    watched_store(1);
    ktest_report(noted.calls == 1, "its handler is called");
    ktest_report(watch_misses(&meta) > 0, "%lu accesses of the way to it are misses",
                 watch_misses(&meta));
    unregister_watch(&meta);
    unregister_watch(&w);
}

static struct watch moved;

static void move_on(struct watch *w UNUSED, struct pt_regs *regs UNUSED)
{
    watch_move(&moved, (uintptr_t)&watched.neighbour);
}

KTEST(watch_handlers, a_handler_may_move_a_watch)
{
    struct watch w = watch_of(&watched.target, WATCH_WRITE, 8, move_on);

    moved = watch_of(NULL, WATCH_WRITE, 8, note_hit);
    noted.calls = 0;
    ktest_report(!register_watch(&moved), "one that watches nothing yet is registered");
    register_watch(&w);
    watched.neighbour++;
    ktest_report(!watch_hits(&moved), "it has no hits");
    watched_store(1);
    watched.neighbour++;
    ktest_report(watch_hits(&moved) == 1, "from the moment it is moved it has");
    ktest_report(watch_move(&moved, 0) == 0 && watch_addr(&moved) == 0, "moved away");
    watched.neighbour++;
    ktest_report(watch_hits(&moved) == 1, "it has none");
    ktest_report(watch_move(&moved, (uintptr_t)&watched.neighbour + 1) == -EINVAL,
                 "to where it is not aligned it cannot be moved");
    unregister_watch(&w);
    unregister_watch(&moved);
    expect_no_watches();
}
