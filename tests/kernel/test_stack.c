/* test_stack.c - hits when little of the stack is left, and when nothing is left. */
#include "kernel/sync/spinlock.h"
#include "tests/kernel/ktest.h"

#define RESERVE                                                                          \
    2560u          /* bytes for a hit without handlers, and an interrupt on top of it */
#define FRAME 256u /* more than the frame of a trap */

static volatile uint64_t entered, surely_deep, surely_shallow;
static volatile unsigned long sum;

static uintptr_t stack_base(void)
{
    const struct thread *self = thread_current();

    return (uintptr_t)self->stack_top - self->stack_len;
}

/* dig - call itself until less than @floor bytes of the stack are left. */
static NOINLINE unsigned long dig(size_t floor)
{
    size_t left = (uintptr_t)__builtin_frame_address(0) - stack_base();

    entered++;
    if (left < PROBE_STACK_MIN)
        surely_deep++;
    if (left > PROBE_STACK_MIN + FRAME)
        surely_shallow++;
    if (left < floor)
        return 1;
    return dig(floor) + sum; /* because of sum the compiler makes no loop of it */
}

static int dig_in_thread(void *floor)
{
    dig((uintptr_t)floor);
    return 0;
}

static volatile uint64_t handled;

static int count(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    handled++;
    return 0;
}

static void count_after(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                        unsigned long flags UNUSED)
{
    handled++;
}

KTEST(stack, where_little_is_left_handlers_are_left_out)
{
    struct kprobe p = { .addr = (uintptr_t)dig, .pre_handler = count };

    entered = surely_deep = surely_shallow = handled = 0;
    register_kprobe(&p);
    thread_join(ktest_thread(dig_in_thread, (void *)RESERVE, 0), NULL);
    unregister_kprobe(&p);
    ktest_report(surely_shallow > 0 && surely_deep > 0, "%lu calls, %lu of them deep",
                 entered, surely_deep);
    ktest_report(p.missed[MISS_STACK] >= surely_deep,
                 "%lu hits were missed for want of stack", p.missed[MISS_STACK]);
    ktest_report(p.hits >= surely_shallow && handled == p.hits, "%lu were not", p.hits);
    ktest_report(p.hits + p.nmissed == entered && p.nmissed == p.missed[MISS_STACK],
                 "and that is all of them");
}

/* ---- overflow; tests/session/test_fatal.py reads the report ------------------------ */

static struct kprobe on_the_way[] = {
    { .symbol_name = "fatal_dispatch" },     { .symbol_name = "stack_guard_hit" },
    { .symbol_name = "panic_regs" },         { .symbol_name = "panic_common" },
    { .symbol_name = "panic_print" },        { .symbol_name = "panic_nmi" },
    { .symbol_name = "backtrace_print" },    { .symbol_name = "vscnprintf" },
    { .symbol_name = "vsnprintf" },          { .symbol_name = "ksyms_at" },
    { .symbol_name = "serial_write_panic" },
};

static void probe_the_way(void)
{
    unsigned in = 0;

    for (size_t i = 0; i < ARRAY_LEN(on_the_way); i++) {
        on_the_way[i].pre_handler = count;
        on_the_way[i].post_handler = count_after;
        in += register_kprobe(&on_the_way[i]) == 0;
    }
    ktest_report(in == ARRAY_LEN(on_the_way), "%u probes on the way to the report", in);
}

static void overflow(void)
{
    static struct kprobe p = { .addr = (uintptr_t)dig, .pre_handler = count };

    register_kprobe(&p);
    thread_join(ktest_thread(dig_in_thread, NULL, 0), NULL);
}

KTEST_FATAL(stack, an_overflow_is_named)
{
    overflow();
}

/* The handler of #DF has a stack of its own, so probes can be hit there as usual. */
KTEST_FATAL(stack, an_overflow_is_named_by_probed_code)
{
    probe_the_way();
    overflow();
}

static struct spinlock lock = SPINLOCK_INIT;

static int lock_again(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    spin_lock(&lock);
    return 0;
}

static NOINLINE void with_lock(void)
{
    spin_lock(&lock);
    dig(SIZE_MAX);
    spin_unlock(&lock);
}

KTEST_FATAL(stack, a_handler_that_takes_its_functions_lock_is_named)
{
    static struct kprobe p = { .addr = (uintptr_t)dig, .pre_handler = lock_again };

    register_kprobe(&p);
    with_lock();
}
