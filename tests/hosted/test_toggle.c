/* test_toggle.c - tests that make and remove breakpoints and jumps in code that four
 * threads run. The jumps lie over one instruction or over several. The instructions have
 * every length, and lie at every offset of a cache line, and across lines and pages.
 */
#define _GNU_SOURCE
#include "probes/core/life.h"
#include "probes/jump/optimize.h"
#include "probes/kprobe.h"
#include "probes/region/targets.h"
#include "tests/hosted/posix.h"
#include "tests/unit/symbol_list.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define RUNNERS 4
#define LINE 64
#define PAGE 4096
#define STRIDE 128 /* bytes for each function */
#define LEAD 4     /* bytes in front of the instruction that carries the probe */
#define WINDOW 16  /* functions that the threads run at a time */
#define SITES_MAX 1200

/* A probed function. It is int f(int x): mov %edi,%eax; mov %edi,%edx; SITE; xor
 * %edx,%eax; ret
 */
struct toggled {
    struct kprobe kp;
    int (*fn)(int x);
    size_t len; /* bytes of the instruction SITE */
    bool on;    /* the probe is enabled */
};

static struct toggled sites[SITES_MAX];
static size_t site_count, blocks_at_rest;

/* ---- the code ---- */

/* site_code - make one instruction of @len bytes: a cdq, a jmp to the next instruction,
 * or an increment of eax.
 */
static void site_code(uint8_t *out, size_t len, bool jump)
{
    static const uint8_t cdq[] = { 0x99 }, inc[] = { 0xff, 0xc0 },
                         add[] = { 0x83, 0xc0, 0x01 };

    memset(out, 0x2e, len); /* prefixes that mean nothing */
    if (jump && len == 2)
        memcpy(out, "\xeb\x00", 2);
    else if (jump && len == 5)
        memcpy(out, "\xe9\x00\x00\x00\x00", 5);
    else if (len == 1)
        memcpy(out, cdq, 1);
    else if (len == 2)
        memcpy(out, inc, 2);
    else
        memcpy(out + len - 3, add, 3);
}

static bool is_jump(const struct toggled *t)
{
    return (t->len == 2 || t->len == 5) && t->kp.addr % 2;
}

static int expected(const struct toggled *t, int x)
{
    if (t->len == 1)
        return x ^ (x < 0 ? -1 : 0);
    return (is_jump(t) ? x : x + 1) ^ x;
}

static int before(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

static void after(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                  unsigned long flags UNUSED)
{
}

/* site_add - make a function whose instruction SITE has @len bytes and begins at
 * @addr.
 */
static void site_add(uintptr_t addr, size_t len)
{
    struct toggled *t = &sites[site_count++];
    uint8_t code[LEAD + 15 + 3] = { 0x89, 0xf8, 0x89, 0xfa };

    t->len = len;
    t->kp.addr = addr;
    t->kp.flags = KPROBE_FLAG_DISABLED;
    if (site_count % 4)
        t->kp.pre_handler = before;
    if (site_count % 3 == 0)
        t->kp.post_handler = after;
    t->fn = (int (*)(int))(addr - LEAD);
    site_code(code + LEAD, len, is_jump(t));
    memcpy(code + LEAD + len, "\x31\xd0\xc3", 3);
    posix_text_set(addr - LEAD, code, LEAD + len + 3);
    symbol_add("toggled", addr - LEAD, LEAD + len + 3);
}

static void make_every_offset(void)
{
    uintptr_t at = (uintptr_t)posix_text_new(15 * LINE * STRIDE + PAGE) + STRIDE / 2;

    for (size_t len = 1; len <= 15; len++)
        for (size_t off = 0; off < LINE; off++, at += STRIDE)
            site_add(at + off, len);
}

static void make_every_page_crossing(void)
{
    for (size_t len = 2; len <= 15; len++) {
        uintptr_t at = (uintptr_t)posix_text_new(len * PAGE);

        for (size_t split = 1; split < len; split++)
            site_add(at + split * PAGE - split, len);
    }
}

/* In slow_fn the instruction behind the site takes some milliseconds. So a thread is
 * nearly always in the middle of a region there.
 */
static uint32_t (*slow_fn)(void *to, size_t len, uint32_t x);
#define SLOW_SITE 3
#define SLOW_LEN ((size_t)32 << 20)

static void make_slow(void)
{
    /* mov %rsi,%rcx; SITE: cld; rep stosb; mov %edx,%eax; ret */
    static const uint8_t code[] = {
        0x48, 0x89, 0xf1, 0xfc, 0xf3, 0xaa, 0x89, 0xd0, 0xc3
    };
    uintptr_t at = (uintptr_t)posix_text_new(PAGE);

    posix_text_set(at, code, sizeof(code));
    symbol_add("slow", at, sizeof(code));
    slow_fn = (uint32_t(*)(void *, size_t, uint32_t))at;
}

static int target_remove(uintptr_t from, uintptr_t to)
{
    return targets_remove(from, to) ? 0 : -1;
}

static void for_each_target(int (*fn)(uintptr_t from, uintptr_t to))
{
    plat_lock(PLAT_PROBES);
    for (size_t i = 0; i < site_count; i++)
        if (is_jump(&sites[i]))
            CHECK_EQ(fn(sites[i].kp.addr, sites[i].kp.addr + sites[i].len), 0);
    plat_unlock(PLAT_PROBES);
}

/* tell_targets - declare that only the jumps of these functions lead into the middle of
 * them.
 */
static void tell_targets(void)
{
    posix_text_entered(sites[0].kp.addr - LEAD, (uintptr_t)slow_fn + PAGE);
    for_each_target(targets_add);
}

static void sites_make(void)
{
    struct probe_reject why;
    struct kprobe **ps;

    posix_init();
    if (site_count)
        return;
    blocks_at_rest = posix_blocks();
    make_every_offset();
    make_every_page_crossing();
    make_slow();
    tell_targets();
    ps = calloc(site_count, sizeof(*ps));
    for (size_t i = 0; i < site_count; i++)
        ps[i] = &sites[i].kp;
    if (register_kprobes_why(ps, site_count, &why)) {
        printf("Bail out! 0x%lx: %s\n", why.at, why.why);
        exit(1);
    }
    free(ps);
}

/* ---- running and toggling ---- */

static _Atomic size_t window; /* number of the first function that the threads run */
static _Atomic bool stop;
static _Atomic unsigned long runs, wrong;

static void run_window(size_t first, int x)
{
    for (size_t i = 0; i < WINDOW; i++) {
        const struct toggled *t = &sites[(first + i) % site_count];

        wrong += t->fn(x) != expected(t, x);
    }
}

static void *runner(void *arg)
{
    int x = (int)(long)arg;

    posix_thread_enter();
    for (; !stop; x = (int)((unsigned)x * 5 + 1)) {
        run_window(window, x);
        runs += WINDOW;
    }
    posix_thread_leave();
    return NULL;
}

static void toggle(struct toggled *t)
{
    t->on = !t->on;
    CHECK_EQ(t->on ? enable_kprobe(&t->kp) : disable_kprobe(&t->kp), 0);
}

/* toggle_some - switch one in four probes of the window that begins at @first. First the
 * enabled ones of them are disabled together, then the disabled ones are enabled.
 * Return: how many were switched.
 */
static unsigned toggle_some(size_t first)
{
    struct kprobe *coming[WINDOW], *going[WINDOW];
    uint64_t which = unit_random() & unit_random(); /* one in four */
    size_t in = 0, out = 0;

    for (size_t i = 0; i < WINDOW; i++) {
        struct toggled *t = &sites[(first + i) % site_count];

        if (!(which >> i & 1))
            continue;
        if (t->on)
            going[out++] = &t->kp;
        else
            coming[in++] = &t->kp;
        t->on = !t->on;
    }
    CHECK_EQ(disable_kprobes(going, out), 0);
    CHECK_EQ(enable_kprobes(coming, in), 0);
    return (unsigned)(in + out);
}

/* optimize_at_times - run the optimizer seldom. So several probes become jumps together,
 * and other probes are disabled before they become jumps.
 */
static void optimize_at_times(void)
{
    if (unit_random() % 8 == 0)
        optimize_run();
}

/* let_them_run - wait until the threads have run the window, so that they are in the code
 * while it changes, even on a busy machine.
 */
static void let_them_run(void)
{
    unsigned long before = runs;

    while (runs < before + WINDOW * RUNNERS)
        sched_yield();
}

/* toggle_window - switch probes of the window that begins at @first, @times times in all.
 * About half of them are enabled at any time.
 */
static void toggle_window(size_t first, unsigned times)
{
    for (unsigned done = 0, turn = 0; done < times; turn++) {
        done += toggle_some(first);
        optimize_at_times();
        if (turn % 20 == 0)
            let_them_run();
    }
}

static void toggle_all(unsigned long toggles)
{
    unsigned per_window = (unsigned)(toggles * WINDOW / site_count + 1);

    for (size_t first = 0; first < site_count; first += WINDOW) {
        window = first;
        toggle_window(first, per_window);
    }
}

static uint64_t total_hits(void)
{
    uint64_t hits = 0;

    for (size_t i = 0; i < site_count; i++)
        hits += kprobe_hits(&sites[i].kp);
    return hits;
}

/* A million toggles look for faults of the processor, so they are made for one compiler
 * only.
 */
#ifdef __clang__
#define TOGGLES_LONG 50000
#else
#define TOGGLES_LONG 1000000
#endif
#define TOGGLES 2000

static void toggle_under_threads(unsigned long toggles)
{
    uint64_t before = total_hits();
    pthread_t threads[RUNNERS];

    stop = false;
    runs = wrong = 0;
    for (long i = 0; i < RUNNERS; i++)
        pthread_create(&threads[i], NULL, runner, (void *)(i * 12345 - 20000));
    toggle_all(toggles);
    stop = true;
    for (int i = 0; i < RUNNERS; i++)
        pthread_join(threads[i], NULL);
    unit_note("%zu sites, %lu toggles, %lu runs, %lu hits", site_count, toggles, runs,
              total_hits() - before);
    CHECK_EQ(wrong, 0);
    CHECK(total_hits() > before);
}

UNIT_TEST(four_threads_never_compute_anything_else)
{
    sites_make();
    toggle_under_threads(posix_rounds(TOGGLES, TOGGLES_LONG));
}

static void toggle_jumps_under_threads(enum optimize_method method)
{
    struct optimize_stats before, after;

    sites_make();
    optimize_set_method(method);
    optimize_stats_get(&before);
    toggle_under_threads(posix_rounds(TOGGLES / 5, TOGGLES_LONG / 100));
    optimize_stats_get(&after);
    unit_note("%lu jumps", (after.optimized - before.optimized));
    CHECK(after.optimized - before.optimized > TOGGLES / 50);
    optimize_set_method(OPTIMIZE_OFF);
}

/* A jump needs more steps than a breakpoint: it becomes a breakpoint first, and its pad
 * and its detour are freed only when each thread has been outside.
 */
UNIT_TEST(nor_when_jumps_come_and_go)
{
    toggle_jumps_under_threads(OPTIMIZE_PUN);
}

/* A thread may be in the middle of the instructions that the jump displaces. */
UNIT_TEST(nor_when_they_displace_several_instructions)
{
    toggle_jumps_under_threads(OPTIMIZE_REGION);
}

static void *run_slowly(void *arg)
{
    uint8_t *memory = arg;

    posix_thread_enter();
    for (uint32_t x = 0; !stop; x++) {
        wrong += slow_fn(memory, SLOW_LEN, x) != x;
        runs++;
        usleep(100); /* so that the thread is outside of the function at times */
    }
    posix_thread_leave();
    return NULL;
}

static void jump_over_slow(struct kprobe *p)
{
    CHECK_EQ(register_kprobe(p), 0);
    optimize_run();
    CHECK(p->flags & KPROBE_FLAG_OPTIMIZED);
    for (unsigned long before = runs; runs < before + 2;)
        sched_yield();
    CHECK_EQ(unregister_kprobe(p), 0);
}

UNIT_TEST(a_thread_inside_is_waited_for)
{
    unsigned long rounds = posix_rounds(12, 500);
    uint8_t *memory = malloc(SLOW_LEN);
    pthread_t thread;

    sites_make();
    optimize_set_method(OPTIMIZE_REGION);
    stop = false;
    runs = wrong = 0;
    pthread_create(&thread, NULL, run_slowly, memory);
    for (unsigned long i = 0; i < rounds; i++) {
        struct kprobe p = { .addr = (uintptr_t)slow_fn + SLOW_SITE };

        jump_over_slow(&p);
    }
    stop = true;
    pthread_join(thread, NULL);
    CHECK_EQ(wrong, 0);
    free(memory);
    optimize_set_method(OPTIMIZE_OFF);
}

static bool has_region(const struct toggled *t)
{
    return !is_jump(t) || t->len != 2; /* a short jmp leads to bytes under the jump */
}

UNIT_TEST(only_where_no_code_jumps_to_the_middle_of_it)
{
    size_t wrongly = 0;

    sites_make();
    optimize_set_method(OPTIMIZE_REGION);
    for (size_t i = 0; i < site_count; i++)
        if (!sites[i].on)
            toggle(&sites[i]);
    optimize_run();
    for (size_t i = 0; i < site_count; i++)
        wrongly += !!(sites[i].kp.flags & KPROBE_FLAG_OPTIMIZED) != has_region(&sites[i]);
    CHECK_EQ(wrongly, 0);
    optimize_set_method(OPTIMIZE_OFF);
    for (size_t i = 0; i < site_count; i++)
        toggle(&sites[i]);
}

UNIT_TEST(every_site_is_hit_when_it_is_armed)
{
    sites_make();
    for (size_t i = 0; i < site_count; i++) {
        struct toggled *t = &sites[i];
        uint64_t hits = kprobe_hits(&t->kp);

        if (!t->on)
            toggle(t);
        CHECK_EQ(t->fn(-7), expected(t, -7));
        CHECK_EQ(kprobe_hits(&t->kp), hits + 1);
        toggle(t);
        CHECK_EQ(t->fn(-7), expected(t, -7));
        CHECK_EQ(kprobe_hits(&t->kp), hits + 1);
        CHECK_EQ(t->kp.nmissed, 0);
    }
}

UNIT_TEST(the_text_is_as_it_was)
{
    sites_make();
    for (size_t i = 0; i < site_count; i++)
        CHECK_EQ(unregister_kprobe(&sites[i].kp), 0);
    for (size_t i = 0; i < site_count; i++) {
        uint8_t code[15];

        site_code(code, sites[i].len, is_jump(&sites[i]));
        CHECK(!memcmp((const void *)sites[i].kp.addr, code, sites[i].len));
    }
    for_each_target(target_remove);
    CHECK_EQ(posix_blocks(), blocks_at_rest);
    site_count = 0;
}

UNIT_TESTS()
