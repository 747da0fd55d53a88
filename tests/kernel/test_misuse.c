/* test_misuse.c - wrong calls of the functions for probes return the right errno, and
 * change nothing.
 */
#include "tests/kernel/ktest.h"

KTEST_TARGET(target, a, a * 7 + 3)

KTEST_TARGET(other, a, a * 9 + 3)

static uint8_t byte_at(uintptr_t addr)
{
    return *(const volatile uint8_t *)addr;
}

/* ---- memory that is no registered probe ---- */

KTEST(misuse, freed_memory_is_not_registered)
{
    struct kprobe *p = kzalloc(sizeof(*p)), *again;

    p->addr = (uintptr_t)target;
    register_kprobe(p);
    unregister_kprobe(p);
    kfree(p); /* the heap fills it with 0x6b */
    ktest_report(unregister_kprobe(p) == -EINVAL, "unregister");
    ktest_report(enable_kprobe(p) == -EINVAL && disable_kprobe(p) == -EINVAL, "switch");
    ktest_report(register_kprobe(p) == -EINVAL,
                 "register: there are unknown flags in it");
    again = kmalloc(sizeof(*again)); /* checks that the freed memory was not written to */
    kfree(again);
    ktest_report(byte_at((uintptr_t)target) != 0xcc, "and nothing is armed");
}

static void fill_randomly(struct kprobe *p)
{
    uint8_t *bytes = (uint8_t *)p;

    for (size_t i = 0; i < sizeof(*p); i++)
        bytes[i] = (uint8_t)ktest_random();
}

KTEST(misuse, random_bytes_are_not_registered)
{
    unsigned wrong = 0;

    for (int i = 0; i < 1000; i++) {
        struct kprobe p;

        fill_randomly(&p);
        if (i % 2)
            p.addr = (uintptr_t)target;
        wrong += unregister_kprobe(&p) != -EINVAL;
        wrong += enable_kprobe(&p) != -EINVAL;
        p.flags |= 0x100;
        wrong += register_kprobe(&p) >= 0;
    }
    ktest_report(wrong == 0, "3000 calls with garbage, %u were taken", wrong);
}

/* ---- unregistering while CPUs use the probe ---- */

#define SLOW_NS 30000000

static volatile bool has_entered, has_left, stop;
static volatile unsigned wrong_probe;

static int slow(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    uint64_t end = clock_ns() + SLOW_NS;

    has_entered = true;
    while (clock_ns() < end)
        pause();
    has_left = true;
    return 0;
}

static int call_once(void *arg UNUSED)
{
    target(1);
    return 0;
}

KTEST(misuse, unregister_does_not_return_while_a_handler_runs)
{
    struct kprobe p = { .addr = (uintptr_t)target, .pre_handler = slow };
    int tid;

    if (ktest_lacks_cpus(2))
        return;
    has_entered = has_left = false;
    register_kprobe(&p);
    tid = ktest_thread(call_once, NULL, UINT64_C(1) << (cpu_count() - 1));
    while (!has_entered)
        thread_yield();
    unregister_kprobe(&p);
    ktest_report(has_left, "the handler has ended");
    thread_join(tid, NULL);
}

/* The test fills and frees the memory of @p as soon as unregister_kprobe() has returned.
 * So a handler that is called with other contents was called too late.
 */
static int look_at_probe(struct kprobe *p, struct pt_regs *regs)
{
    if (p->addr != (uintptr_t)target || regs->ip != p->addr + 1)
        wrong_probe++;
    return 0;
}

static int call_until_stop(void *arg UNUSED)
{
    while (!stop) {
        for (int i = 0; i < 20; i++)
            target(i);
        thread_yield();
    }
    return 0;
}

KTEST(misuse, a_probe_is_freed_as_soon_as_it_is_out)
{
    int tids[8], n = (int)cpu_count() < 8 ? (int)cpu_count() : 8;
    uint64_t hits = 0, rounds = ktest_rounds(8, 300);

    stop = false;
    wrong_probe = 0;
    for (int i = 0; i < n; i++)
        tids[i] = ktest_thread(call_until_stop, NULL, 0);
    for (uint64_t round = 0; round < rounds; round++) {
        struct kprobe *p = kzalloc(sizeof(*p));

        p->addr = (uintptr_t)target;
        p->pre_handler = look_at_probe;
        register_kprobe(p);
        target(1);
        unregister_kprobe(p);
        hits += p->hits;
        memset(p, 0x6b, sizeof(*p));
        kfree(p);
    }
    stop = true;
    for (int i = 0; i < n; i++)
        thread_join(tids[i], NULL);
    ktest_report(hits >= rounds && wrong_probe == 0,
                 "%lu hits, %u of memory that was gone", hits, wrong_probe);
}

/* The instruction at misuse_long takes so long that its copy is interrupted, and the
 * thread in the copy is preempted.
 */
#define LONG_LEN (8u << 20)

extern const char misuse_long[];

static NOINLINE void fill_slowly(uint8_t *p, uint8_t value)
{
    size_t len = LONG_LEN;

    __asm__ volatile(".globl misuse_long\n"
                     "misuse_long: rep stosb"
                     : "+D"(p), "+c"(len)
                     : "a"(value)
                     : "memory");
}

static int fill_run(void *arg)
{
    for (int i = 0; i < 4; i++)
        fill_slowly(arg, (uint8_t)i);
    return 0;
}

KTEST(misuse, a_copy_is_kept_while_a_thread_is_in_it)
{
    struct kprobe p = { .addr = (uintptr_t)misuse_long },
                  next = { .addr = (uintptr_t)other };
    uint8_t *buf = kzalloc(LONG_LEN);
    size_t wrong = 0;
    int tid;

    ktest_report(register_kprobe(&p) == 0, "a string instruction can be probed");
    tid = ktest_thread(fill_run, buf, UINT64_C(1) << (cpu_count() - 1));
    while (!READ_ONCE(p.hits))
        thread_yield();
    unregister_kprobe(&p);
    register_kprobe(&next); /* it would get the cell of p, if that was freed too early */
    thread_join(tid, NULL);
    for (size_t i = 0; i < LONG_LEN; i++)
        wrong += buf[i] != 3;
    ktest_report(p.hits >= 1 && p.hits <= 4, "%lu hits", p.hits);
    ktest_report(wrong == 0, "%u bytes filled, %zu wrong", LONG_LEN, wrong);
    unregister_kprobe(&next);
    kfree(buf);
}

/* ---- any order ---- */

#define POOL 6
#define STEPS 600

struct model {
    struct kprobe p;
    bool in, off;
};

/* step - make a random call for the probe of @m. Return: was the result
 * as the model says?
 */
static bool step(struct model *m, bool *all_on)
{
    int err, want;

    switch (ktest_random() % 5) {
    case 0:
        if (!m->in)
            m->p = (struct kprobe){ .addr = m->p.addr };
        want = m->in ? -EEXIST : 0;
        err = register_kprobe(&m->p);
        m->off = m->in && m->off;
        m->in = true;
        break;
    case 1:
        want = m->in ? 0 : -EINVAL;
        err = unregister_kprobe(&m->p);
        m->in = false;
        break;
    case 2:
        want = m->in ? 0 : -EINVAL;
        err = disable_kprobe(&m->p);
        m->off |= m->in;
        break;
    case 3:
        want = m->in ? 0 : -EINVAL;
        err = enable_kprobe(&m->p);
        m->off &= !m->in;
        break;
    default:
        *all_on = !*all_on;
        want = 0;
        err = kprobes_switch(*all_on);
    }
    return err == want;
}

/* expected_int3 - should an int3 be at @addr: is a probe of @pool there enabled? */
static bool expected_int3(const struct model *pool, uintptr_t addr, bool all_on)
{
    for (int i = 0; all_on && i < POOL; i++)
        if (pool[i].in && !pool[i].off && pool[i].p.addr == addr)
            return true;
    return false;
}

KTEST(misuse, any_order_of_calls_is_answered_as_it_should)
{
    struct model pool[POOL] = { 0 };
    unsigned wrong = 0, unlike = 0;
    size_t heap = heap_in_use();
    bool all_on = true;

    for (int i = 0; i < POOL; i++)
        pool[i].p.addr = i % 2 ? (uintptr_t)target : (uintptr_t)other;
    for (int i = 0; i < STEPS; i++) {
        wrong += !step(&pool[ktest_random() % POOL], &all_on);
        for (int k = 0; k < 2; k++) {
            uintptr_t addr = pool[k].p.addr;

            unlike += (byte_at(addr) == 0xcc) != expected_int3(pool, addr, all_on);
        }
    }
    kprobes_switch(true);
    for (int i = 0; i < POOL; i++)
        if (pool[i].in)
            unregister_kprobe(&pool[i].p);
    ktest_report(wrong == 0, "%d calls, %u wrong answers", STEPS, wrong);
    ktest_report(unlike == 0, "the text was as it should %d times", STEPS - (int)unlike);
    ktest_report(heap_in_use() == heap, "no memory is left over");
}
