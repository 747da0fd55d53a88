/* ways.c - the table of ways, and the probes of the way that is chosen. */
#include "tests/kernel/ways.h"
#include "tests/kernel/nothing.h"

#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"

long way_moved(long x), way_called(long x), way_imaged(long x), way_short(long x);

/* The kind of handler that calls @act. */
enum actor { ACT_PRE, ACT_POST, ACT_LIGHT, ACT_ENTRY, ACT_RETURN, ACT_JPROBE };

struct way {
    const char *name;
    long (*fn)(long x);
    enum optimize_method method;
    enum actor actor;
    enum detour_kind kind; /* of the jump */
    bool post;             /* the probe has a post-handler as well */
    bool second;           /* a second probe is registered at the site */
    enum step_engine step;
};

#define TRAP(text, fn, by, ...)                                                          \
    {                                                                                    \
        text, fn, .method = OPTIMIZE_OFF, .actor = by, ##__VA_ARGS__                     \
    }
#define JUMP(text, fn, by, detour, ...)                                                  \
    {                                                                                    \
        text, fn, .method = OPTIMIZE_PUN, .actor = by, .kind = detour, ##__VA_ARGS__     \
    }

/* clang-format off */
static const struct way ways[] = {
    TRAP("trap, boosted", way_moved, ACT_PRE),
    TRAP("trap, emulated", way_called, ACT_PRE),
    TRAP("trap, stepped", way_moved, ACT_PRE, .post = true),
    TRAP("trap, post-handler", way_moved, ACT_POST),
    TRAP("trap, post-handler by TF", way_moved, ACT_POST, .step = STEP_TF),
    TRAP("trap, post-handler of a call", way_called, ACT_POST),
    TRAP("trap, light handler", way_moved, ACT_LIGHT),
    TRAP("trap, the first of two", way_moved, ACT_PRE, .second = true),
    TRAP("trap, jprobe", way_moved, ACT_JPROBE),
    TRAP("trap, entry handler", way_moved, ACT_ENTRY),
    TRAP("trap, return handler", way_moved, ACT_RETURN),
    JUMP("jump, code of its own", way_moved, ACT_PRE, DETOUR_CALL),
    JUMP("jump, shared code", way_called, ACT_PRE, DETOUR_CALL),
    JUMP("jump, the first of two", way_moved, ACT_PRE, DETOUR_CALL, .second = true),
    JUMP("jump, light handler", way_moved, ACT_LIGHT, DETOUR_LIGHT),
    JUMP("jump, before a post-handler", way_moved, ACT_PRE, DETOUR_POST, .post = true),
    JUMP("jump, post-handler", way_moved, ACT_POST, DETOUR_POST),
    JUMP("jump, by the image", way_imaged, ACT_PRE, DETOUR_IMAGE),
    JUMP("jump, post-handler by the image", way_imaged, ACT_POST, DETOUR_IMAGE),
    JUMP("jump, jprobe", way_moved, ACT_JPROBE, DETOUR_CALL),
    JUMP("jump, entry handler", way_moved, ACT_ENTRY, DETOUR_CALL),
    JUMP("jump, return handler", way_moved, ACT_RETURN, DETOUR_RETURN),
    { "jump over several instructions", way_short, .method = OPTIMIZE_REGION,
      .actor = ACT_PRE, .kind = DETOUR_CALL },
};
/* clang-format on */

const struct way *way_get(size_t i)
{
    return i < ARRAY_LEN(ways) ? &ways[i] : NULL;
}

const char *way_name(const struct way *way)
{
    return way->name;
}

/* ---- the handlers ---- */

static const struct way *current;
static void (*volatile act)(void);
static uint64_t acts, calls;

static void do_act(void)
{
    __atomic_add_fetch(&acts, 1, __ATOMIC_RELAXED);
    act();
}

static int pre(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    do_act();
    return 0;
}

static bool second_is_right;

static int pre_second(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    bool program = regs->flags & FLAGS_IF;

    if (irqs_enabled() != (current->method != OPTIMIZE_OFF && program) ||
        read_flags() & FLAGS_DF)
        second_is_right = false;
    return 0;
}

static void post(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                 unsigned long flags UNUSED)
{
    do_act();
}

static void light(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    do_act();
}

static int act_at_entry(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    do_act();
    return 0;
}

static uint64_t returns;

static int count_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    __atomic_add_fetch(&returns, 1, __ATOMIC_RELAXED);
    return 0;
}

static int act_at_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    count_return(ri, regs);
    do_act();
    return 0;
}

static long jump_in(long x UNUSED)
{
    do_act();
    jprobe_return();
}

/* ---- the probes ---- */

static struct kprobe plain, second;
static struct kretprobe ret;
static struct jprobe jump;
static enum step_engine step_before;

/* mine - return the probe whose handler calls @act. */
static struct kprobe *mine(void)
{
    if (current->actor == ACT_JPROBE)
        return &jump.kp;
    return current->actor >= ACT_ENTRY ? &ret.kp : &plain;
}

static int register_plain(void)
{
    plain = (struct kprobe){ .addr = (uintptr_t)current->fn };
    if (current->actor == ACT_LIGHT)
        plain.light_handler = light;
    else
        plain.pre_handler = current->actor == ACT_PRE ? pre : no_pre;
    if (current->actor == ACT_POST)
        plain.post_handler = post;
    else if (current->post)
        plain.post_handler = no_post;
    return register_kprobe(&plain);
}

static int register_mine(void)
{
    switch (current->actor) {
    case ACT_ENTRY:
        ret = (struct kretprobe){ .kp.addr = (uintptr_t)current->fn,
                                  .handler = count_return,
                                  .entry_handler = act_at_entry };
        return register_kretprobe(&ret);
    case ACT_RETURN:
        ret = (struct kretprobe){ .kp.addr = (uintptr_t)current->fn,
                                  .handler = act_at_return };
        return register_kretprobe(&ret);
    case ACT_JPROBE:
        jump = (struct jprobe){ .kp.addr = (uintptr_t)current->fn,
                                .entry = (void *)jump_in };
        return register_jprobe(&jump);
    default:
        return register_plain();
    }
}

static bool comes_as_it_should(void)
{
    const struct site *site = mine()->site;
    bool is_jump = mine()->flags & KPROBE_FLAG_OPTIMIZED;

    if (current->method == OPTIMIZE_OFF)
        return !is_jump;
    return is_jump && jump_site(site)->kind == current->kind &&
           (current->method != OPTIMIZE_REGION || jump_site(site)->region);
}

bool way_begin(const struct way *way, void (*fn)(void))
{
    bool good;

    current = way;
    act = fn;
    acts = calls = returns = 0;
    second_is_right = true;
    step_before = step_get_engine();
    step_set_engine(way->step);
    jumps_by(way->method);
    good = register_mine() == 0;
    second = (struct kprobe){ .addr = (uintptr_t)way->fn, .pre_handler = pre_second };
    if (good && way->second)
        good = register_kprobe(&second) == 0;
    optimize_run();
    good = good && comes_as_it_should();
    if (!good)
        ktest_report(false, "%s: a hit would not come that way", way->name);
    if (!good)
        way_end();
    return good;
}

bool way_hit(void)
{
    long x = (long)(__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 1000);

    return current->fn(x) == x * 9 + 2;
}

uint64_t way_acts(void)
{
    return __atomic_load_n(&acts, __ATOMIC_RELAXED);
}

uint64_t way_hits(void)
{
    return kprobe_hits(mine());
}

bool way_second_is_right(void)
{
    return second_is_right;
}

bool way_is_off(void)
{
    return mine()->flags & KPROBE_FLAG_TRIPPED;
}

void way_end(void)
{
    if (current->second && second.site)
        unregister_kprobe(&second);
    if (current->actor == ACT_JPROBE)
        unregister_jprobe(&jump);
    else if (current->actor >= ACT_ENTRY)
        unregister_kretprobe(&ret);
    else
        unregister_kprobe(&plain);
    jumps_as_before();
    step_set_engine(step_before);
}

bool way_count_is_right(void)
{
    uint64_t seen = kprobe_hits(mine()) + mine()->nmissed;

    if (current->second)
        return kprobe_hits(&second) + second.nmissed == calls;
    if (mine() == &ret.kp)
        return kprobe_hits(&ret.kp) == returns + ret.nmissed + ret.dropped;
    return seen <= calls; /* a probe that was switched off is not hit */
}
