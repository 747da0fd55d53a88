/* test_ring.c - tests of the ring on real processors: a thread stands for each CPU,
 * signals stand for interrupts and NMIs that write while other writers write, and one
 * thread reads all rings.
 */
#define _GNU_SOURCE
#include "probes/trace/ring/page.h"
#include "probes/trace/ring/ring.h"
#include "tests/hosted/posix.h"
#include "tests/unit/ring_memory.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CPUS 4
#define LEVELS 3 /* thread, interrupt, NMI */
#define TICK_NS 30000

/* ---- the functions that a ring uses ---- */

static uint64_t now(void)
{
    return __builtin_ia32_rdtsc();
}

static const struct ring_ops ops = { now, host_page_new, host_page_free, host_block_new,
                                     free };

/* ---- writers ---- */

struct record {
    uint64_t number; /* counts the records of its level, from 1 */
    uint32_t level;
    uint32_t sum;
    uint32_t more[]; /* each is equal to sum */
};

static struct cpu {
    struct ring *ring;
    uint64_t written[LEVELS]; /* attempts */
    uint64_t kept[LEVELS];
    uint64_t last[LEVELS]; /* the last number that the reader has seen */
    uint64_t seen, lost, time;
} cpus[CPUS];

static __thread struct cpu *this_cpu;
static _Atomic bool stop;
static _Atomic unsigned long wrong;

static uint32_t sum_of(uint64_t number, uint32_t level)
{
    return (uint32_t)(number * 2654435761u) ^ level;
}

static void put(struct cpu *cpu, unsigned level, size_t words)
{
    size_t len = sizeof(struct record) + words * 4;
    struct record *record = ring_write(cpu->ring, len);

    cpu->written[level]++;
    if (!record)
        return;
    cpu->kept[level]++;
    record->number = cpu->written[level];
    record->level = level;
    record->sum = sum_of(record->number, level);
    for (size_t i = 0; i < words; i++)
        record->more[i] = record->sum;
    ring_commit(cpu->ring);
}

static void on_interrupt(int sig)
{
    unsigned level = sig == SIGUSR1 ? 1 : 2;
    struct cpu *cpu = this_cpu;
    int before = errno;

    if (!cpu)
        return;
    for (uint64_t n = cpu->written[level] % 7 ? 2 : 400; n; n--)
        put(cpu, level, n % 9);
    errno = before;
}

static timer_t timer_start(int sig, long ns)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = sig };
    struct itimerspec spec = { { 0, ns }, { 0, ns } };
    timer_t timer;

    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    timer_settime(timer, 0, &spec, NULL);
    return timer;
}

static void *writer(void *arg)
{
    struct cpu *cpu = arg;
    timer_t irq, nmi;

    this_cpu = cpu;
    irq = timer_start(SIGUSR1, TICK_NS);
    nmi = timer_start(SIGUSR2, TICK_NS * 7 / 3);
    for (unsigned i = 0; !stop; i++)
        put(cpu, 0, i % 64 ? i % 5 : i % 900);
    timer_delete(irq);
    timer_delete(nmi);
    this_cpu = NULL;
    return NULL;
}

/* ---- the reader ---- */

static bool is_whole(const struct record *record, uint32_t len)
{
    if (record->level >= LEVELS || record->sum != sum_of(record->number, record->level))
        return false;
    for (uint32_t i = 0; sizeof(*record) + i * 4 < len; i++)
        if (record->more[i] != record->sum)
            return false;
    return true;
}

static void look_through(struct cpu *cpu, const struct ring_page *page)
{
    struct page_event event;
    struct page_iter it;

    page_iter_init(&it, page);
    while (page_next(&it, &event)) {
        const struct record *record = event.data;

        if (!is_whole(record, event.len) || event.time < cpu->time ||
            record->number <= cpu->last[record->level]) {
            wrong++;
            return;
        }
        cpu->last[record->level] = record->number;
        cpu->time = event.time;
        cpu->seen++;
    }
    wrong += it.off != it.end;
    cpu->lost += cpu->ring->read.missed;
}

static struct ring_page *read_some(struct cpu *cpu, struct ring_page *spare, unsigned max)
{
    for (; max; max--) {
        struct ring_page *page =
            ring_read(cpu->ring, &cpu->ring->read, spare, unit_random() % 2);

        if (!page)
            break;
        look_through(cpu, spare = page);
    }
    return spare;
}

/* look_at_all - copy all pages without taking them, and check that their records are
 * complete and in order.
 */
static void look_at_all(struct cpu *cpu, struct ring_page *spare)
{
    struct ring_cursor at = cpu->ring->read;
    uint64_t last = cpu->time;

    while (!stop && ring_read(cpu->ring, &at, spare, RING_LOOK)) {
        struct page_event event;
        struct page_iter it;

        page_iter_init(&it, spare);
        while (page_next(&it, &event)) {
            wrong += !is_whole(event.data, event.len) || event.time < last;
            last = event.time;
        }
    }
}

static void *reader(void *arg UNUSED)
{
    struct ring_page *spare = host_page_new();

    for (unsigned i = 0; !stop; i++) {
        if (i % 8 == 0)
            look_at_all(&cpus[i / 8 % CPUS], spare);
        spare = read_some(&cpus[i % CPUS], spare, 50);
        if (i % 16 == 0)
            usleep(300);
    }
    host_page_free(spare);
    return NULL;
}

/* read_rest - read all records that are left. Then write and read one more record: it
 * tells how many records in front of it were lost.
 */
static void read_rest(struct cpu *cpu)
{
    struct ring_page *spare = host_page_new(), *page;

    for (int more = 0; more < 2; more++) {
        while ((page = ring_read(cpu->ring, &cpu->ring->read, spare, 0)))
            look_through(cpu, spare = page);
        if (!more)
            put(cpu, 0, 0);
    }
    host_page_free(spare);
}

/* ---- tests ---- */

static uint64_t sum_up(const uint64_t *counts)
{
    return counts[0] + counts[1] + counts[2];
}

static void check_cpu(const struct cpu *cpu, bool overwrite)
{
    struct ring_stats s;

    ring_stats_get(cpu->ring, &s);
    CHECK_EQ(s.read, cpu->seen);
    CHECK_EQ(s.entries, 0);
    CHECK_EQ(s.dropped + s.overrun, sum_up(cpu->written) - sum_up(cpu->kept));
    CHECK_EQ(s.read + s.overwritten, sum_up(cpu->kept));
    CHECK(overwrite ? !s.dropped : !s.overwritten);
    CHECK_EQ(cpu->seen + cpu->lost, sum_up(cpu->written));
}

static void signals_start(void)
{
    struct sigaction irq = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART };
    struct sigaction nmi = irq;

    sigaddset(&nmi.sa_mask, SIGUSR1);
    sigaction(SIGUSR1, &irq, NULL);
    sigaction(SIGUSR2, &nmi, NULL);
}

static void run_threads(void)
{
    pthread_t threads[CPUS + 1];

    stop = false;
    wrong = 0;
    pthread_create(&threads[CPUS], NULL, reader, NULL);
    for (unsigned i = 0; i < CPUS; i++)
        pthread_create(&threads[i], NULL, writer, &cpus[i]);
    usleep((useconds_t)posix_rounds(700000, 10000000));
    stop = true;
    for (unsigned i = 0; i <= CPUS; i++)
        pthread_join(threads[i], NULL);
}

static void storm(size_t pages, bool overwrite)
{
    uint64_t written = 0, nested = 0, lost = 0;

    memset(cpus, 0, sizeof(cpus));
    for (unsigned i = 0; i < CPUS; i++)
        cpus[i].ring = ring_new(pages, overwrite, &ops);
    signals_start();
    run_threads();
    for (unsigned i = 0; i < CPUS; i++) {
        read_rest(&cpus[i]);
        check_cpu(&cpus[i], overwrite);
        written += sum_up(cpus[i].written);
        nested += cpus[i].written[1] + cpus[i].written[2];
        lost += cpus[i].lost;
        ring_free(cpus[i].ring);
    }
    CHECK_EQ(wrong, 0);
    CHECK(nested > 0);
    unit_note("%lu records, %lu by signals, %lu lost", written, nested, lost);
}

UNIT_TEST(the_oldest_make_room_in_a_small_ring)
{
    storm(3, true);
}

UNIT_TEST(the_oldest_make_room_in_a_large_one)
{
    storm(200, true);
}

UNIT_TEST(the_newest_are_dropped)
{
    storm(8, false);
}

UNIT_TESTS()
