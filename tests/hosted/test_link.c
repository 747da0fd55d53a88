/* test_link.c - tests of links on a real processor: neighbours are enabled and disabled,
 * and links are made and cut, while threads go from one detour to the next.
 */
#include "probes/jump/link.h"

#include "probes/core/life.h"
#include "probes/jump/optimize.h"
#include "tests/hosted/posix.h"
#include "tests/unit/symbol_list.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sched.h>

#define RUNNERS 4
#define COUNT 6
#define INSN_LEN 7
#define TURNS 300
#define TURNS_LONG 3000

static struct kprobe row[COUNT];
static struct kprobe *pointers[COUNT];
static int (*row_call)(int x);
static _Atomic bool stop;
static _Atomic unsigned long calls, wrong;

/* row_make - make int f(int x): lea 1(%rdi),%rax; five times lea 2(%rax),%rax; ret. Each
 * lea has seven bytes.
 */
static void row_make(void)
{
    uint8_t code[COUNT * INSN_LEN + 1];
    uintptr_t at = (uintptr_t)posix_text_new(sizeof(code));

    for (size_t i = 0; i < COUNT; i++) {
        const uint8_t lea[INSN_LEN] = { 0x48, 0x8d, i ? 0x80 : 0x87, i ? 2 : 1 };

        memcpy(code + i * INSN_LEN, lea, sizeof(lea));
        row[i] = (struct kprobe){ .addr = at + i * INSN_LEN };
        pointers[i] = &row[i];
    }
    code[COUNT * INSN_LEN] = 0xc3;
    posix_text_set(at, code, sizeof(code));
    symbol_add("row", at, sizeof(code));
    row_call = (int (*)(int))at;
}

static int expected(int x)
{
    return x + 1 + 2 * (COUNT - 1);
}

static void *runner(void *arg)
{
    int x = (int)(long)arg;

    posix_thread_enter();
    for (; !stop; x++) {
        wrong += row_call(x) != expected(x);
        calls++;
    }
    posix_thread_leave();
    return NULL;
}

static void let_them_run(void)
{
    unsigned long before = calls;

    while (calls < before + 4UL * RUNNERS)
        sched_yield();
}

/* counts_no_more - check that the disabled probe @p counts no more hits. Threads that
 * were on their way to its detour may count once each.
 */
static void counts_no_more(const struct kprobe *p)
{
    uint64_t hits = kprobe_hits(p);

    let_them_run();
    CHECK(kprobe_hits(p) - hits <= RUNNERS);
}

static void turn(struct kprobe *p)
{
    if (p->flags & KPROBE_FLAG_DISABLED) {
        CHECK_EQ(enable_kprobe(p), 0);
    } else {
        CHECK_EQ(disable_kprobe(p), 0);
        counts_no_more(p);
    }
    if (unit_random() % 2)
        optimize_run();
}

static void start(void)
{
    posix_init();
    row_make();
    optimize_set_method(OPTIMIZE_PUN);
    CHECK_EQ(register_kprobes(pointers, COUNT), 0);
    optimize_run();
    CHECK_EQ(link_count(), COUNT - 1);
}

static void end(void)
{
    CHECK_EQ(unregister_kprobes(pointers, COUNT), 0);
    CHECK_EQ(link_count(), 0);
    optimize_set_method(OPTIMIZE_OFF);
}

/* The second and the fourth probe stay enabled. */
UNIT_TEST(neighbours_come_and_go_under_threads)
{
    unsigned long turns = posix_rounds(TURNS, TURNS_LONG);
    pthread_t threads[RUNNERS];

    start();
    stop = false;
    calls = wrong = 0;
    for (long i = 0; i < RUNNERS; i++)
        pthread_create(&threads[i], NULL, runner, (void *)(i * 1000));
    for (unsigned long i = 0; i < turns; i++) {
        turn(&row[2 * (unit_random() % 3)]);
        let_them_run();
    }
    stop = true;
    for (int i = 0; i < RUNNERS; i++)
        pthread_join(threads[i], NULL);
    unit_note("%lu turns, %lu calls", turns, calls);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(kprobe_hits(&row[1]), calls);
    CHECK_EQ(kprobe_hits(&row[3]), calls);
    end();
}

UNIT_TESTS()
