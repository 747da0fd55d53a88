/* test_clock.c - time goes forward, at a constant rate, and is the same on all CPUs. */
#include "tests/kernel/ktest.h"

KTEST(clock, rate_is_known)
{
    ktest_note("%llu kHz", (unsigned long long)clock_cycles_per_ms());
    ktest_report(clock_cycles_per_ms() > 1000, "the TSC runs at more than 1 MHz");
}

KTEST(clock, never_runs_backwards_on_one_cpu)
{
    uint64_t last = clock_ns();
    unsigned backwards = 0;

    for (unsigned n = 0; n < 100000; n++) {
        uint64_t now = clock_ns();

        backwards += now < last;
        last = now;
    }
    ktest_report(backwards == 0, "100000 readings in a row never decreased");
}

KTEST(clock, nanoseconds_follow_the_cycles)
{
    uint64_t cycles = rdtsc();
    uint64_t ns = clock_ns();
    uint64_t expected;

    clock_spin_ns(5000000);
    ns = clock_ns() - ns;
    cycles = rdtsc() - cycles;
    expected = cycles * 1000000 / clock_cycles_per_ms();
    ktest_report(ns >= 5000000, "a spin of 5 ms took 5 ms at least");
    ktest_report(ns <= expected + 1000, "the clock is not faster than its counter");
}

/* CPU 0 and another CPU take turns. In each turn the CPU reads the time of the turn
 * before, and then writes its own time.
 */
static struct {
    uint64_t turn;  /* even: the turn of CPU 0; odd: the turn of the other CPU */
    uint64_t stamp; /* the time of the last turn */
    uint64_t backwards;
} pingpong;

#define TURNS 400u

static void play(uint64_t parity)
{
    for (uint64_t turn = parity; turn < TURNS; turn += 2) {
        uint64_t before, now;

        while (__atomic_load_n(&pingpong.turn, __ATOMIC_ACQUIRE) != turn)
            pause();
        before = pingpong.stamp;
        now = clock_ns();
        if (now < before)
            pingpong.backwards++;
        pingpong.stamp = now;
        __atomic_store_n(&pingpong.turn, turn + 1, __ATOMIC_RELEASE);
    }
}

static int play_odd(void *arg UNUSED)
{
    play(1);
    return 0;
}

static int play_even(void *arg UNUSED)
{
    play(0);
    return 0;
}

KTEST(clock, cpus_agree)
{
    if (ktest_lacks_cpus(2))
        return;
    for (unsigned cpu = 1; cpu < cpu_count(); cpu++) {
        struct clone_args even = { .fn = play_even, .cpus = BIT(0) };
        struct clone_args odd = { .fn = play_odd, .cpus = BIT(cpu) };
        int a, b;

        pingpong.turn = 0;
        pingpong.stamp = 0;
        pingpong.backwards = 0;
        a = kernel_clone(&even);
        b = kernel_clone(&odd);
        thread_join(a, NULL);
        thread_join(b, NULL);
        ktest_report(pingpong.backwards == 0 && pingpong.turn >= TURNS,
                     "CPU 0 and CPU %u, in turns, always read a later time", cpu);
    }
}

KTEST(clock, jiffies_count_ticks)
{
    uint64_t before = READ_ONCE(jiffies);

    thread_sleep_ns(60000000);
    ktest_report(READ_ONCE(jiffies) > before, "ticks came while a thread slept 60 ms");
}
