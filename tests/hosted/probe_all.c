/* probe_all.c - puts probes on every instruction of the fixtures. */
#include "tests/hosted/probe_all.h"

#include "kernel/mm/extable.h"
#include "probes/jump/optimize.h"
#include "tests/hosted/fixture.h"
#include "tests/hosted/posix.h"
#include "tests/unit/unit.h"

struct counter *counters;
static size_t count;
static struct kprobe **set;

static struct counter *counter_of(struct kprobe *kp)
{
    return (struct counter *)kp; /* kp is the first member */
}

static int pre(struct kprobe *kp, struct pt_regs *regs)
{
    counter_of(kp)->pre++;
    return regs->ip == kp->addr + 1 ? 0 : (abort(), 1);
}

static void light(struct kprobe *kp, uintptr_t ip)
{
    counter_of(kp)->pre++;
    if (ip != kp->addr)
        abort();
}

static void post(struct kprobe *kp, struct pt_regs *regs UNUSED,
                 unsigned long flags UNUSED)
{
    counter_of(kp)->post++;
}

size_t probe_all_count(void)
{
    return count;
}

static void refused(struct kprobe *kp, const struct probe_reject *why, void *arg UNUSED)
{
    unit_note("0x%lx is refused: %s", kp->addr, why->why);
    CHECK_EQ(why->err, 0);
}

static void keep_accepted(struct kprobe **ps, size_t n)
{
    long in = register_kprobes_some(ps, n, refused, NULL);

    CHECK(in > 0);
    CHECK_EQ(unregister_kprobes(ps, (size_t)in), 0);
    counters = calloc((size_t)in, sizeof(*counters));
    set = calloc((size_t)in, sizeof(set[0]));
    for (size_t i = 0; i < (size_t)in; i++) {
        counters[i].kp.addr = ps[i]->addr;
        set[i] = &counters[i].kp;
    }
    count = (size_t)in;
}

void counters_init(void)
{
    static uintptr_t addrs[FIXTURES_TEXT_MAX];
    struct kprobe *all, **ps;
    size_t n;

    if (counters)
        return;
    /* No branch leads to the padding behind a fixture: jumps may cover it. */
    posix_text_entered(fixtures_start(), fixtures_start() + fixtures_size());
    n = fixture_boundaries(addrs);
    all = calloc(n, sizeof(*all));
    ps = calloc(n, sizeof(*ps));
    for (size_t i = 0; i < n; i++) {
        all[i].addr = addrs[i];
        ps[i] = &all[i];
    }
    keep_accepted(ps, n);
    free(all);
    free(ps);
    unit_note("%zu instructions in %zu bytes, %zu can carry probes", n, fixtures_size(),
              count);
}

static bool wants_post(enum way_asked way)
{
    return way == ASK_STEP_INT3 || way == ASK_STEP_TF || way == ASK_JUMP_POST;
}

static bool wants_pre(enum way_asked way)
{
    return way != ASK_JUMP_COUNT && way != ASK_JUMP_LIGHT;
}

void counters_reset(enum way_asked way)
{
    for (size_t i = 0; i < count; i++) {
        counters[i] = (struct counter){ .kp = { .addr = counters[i].kp.addr } };
        if (wants_pre(way))
            counters[i].kp.pre_handler = pre;
        if (way == ASK_JUMP_LIGHT)
            counters[i].kp.light_handler = light;
        if (wants_post(way))
            counters[i].kp.post_handler = post;
        set[i] = &counters[i].kp;
    }
    step_set_engine(way == ASK_STEP_TF ? STEP_TF : STEP_INT3);
    optimize_set_method(by_jumps(way) ? OPTIMIZE_PUN : OPTIMIZE_OFF);
}

static bool is_jump(const struct kprobe *kp)
{
    return READ_ONCE(kp->flags) & KPROBE_FLAG_OPTIMIZED;
}

size_t probe_all(enum way_asked way)
{
    size_t jumps = 0;

    counters_reset(way);
    CHECK_EQ(register_kprobes(set, count), 0);
    optimize_run();
    for (size_t i = 0; i < count; i++)
        jumps += is_jump(set[i]);
    return jumps;
}

bool probe_one(size_t i)
{
    CHECK_EQ(register_kprobe(&counters[i].kp), 0);
    optimize_run();
    return is_jump(&counters[i].kp);
}

void unprobe_all(void)
{
    CHECK_EQ(unregister_kprobes(set, count), 0);
    for (size_t i = 0; i < fixtures_size(); i++)
        CHECK_EQ(*(const uint8_t *)(fixtures_start() + i),
                 fixture_original(fixtures_start() + i));
}

uint64_t trapping(const uint32_t *counts)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += is_jump(set[i]) ? 0 : counts[set[i]->addr - fixtures_start()];
    return sum;
}

static uint32_t wanted_post(const struct kprobe *kp, uint32_t wanted, enum way_asked way)
{
    if (!wants_post(way))
        return 0;
    if (extable_find(kp->addr) || fixture_trap_is_lost(kp->addr))
        return UINT32_MAX; /* any: it may have faulted, or was not seen to end */
    return wanted;
}

void check_counts(const uint32_t *counts, uint32_t times, enum way_asked way)
{
    for (size_t i = 0; i < count; i++) {
        const struct counter *c = &counters[i];
        uint32_t wanted = counts[c->kp.addr - fixtures_start()] * times;
        uint32_t wanted_after = wanted_post(&c->kp, wanted, way);
        uint64_t hits = kprobe_hits(&c->kp);
        bool right = c->pre == (way == ASK_JUMP_COUNT ? 0 : wanted) && hits == wanted &&
                     c->kp.nmissed == 0 &&
                     (c->post == wanted_after || wanted_after == UINT32_MAX);
        struct plat_symbol sym;

        CHECK(right);
        if (right || plat_symbol_at(c->kp.addr, &sym))
            continue;
        unit_note("%s+0x%lx: executed %u times, %u pre, %u post, %lu hits, %lu missed",
                  sym.name, c->kp.addr - sym.start, wanted, c->pre, c->post, hits,
                  c->kp.nmissed);
    }
}
