/* test_verbs.c - verbs of the engine meet at one function, up to four at a time, and begin
 * and end in random order: a probe of each kind at each place, a watch, a key, an exchange of
 * instructions, a switch. After each step each of them sees each call, and the function does
 * what it should. In the end its text is as it was.
 */
#include "probes/jump/optimize.h"
#include "probes/kprobe.h"
#include "probes/marker/static_key.h"
#include "probes/text/text_engine.h"
#include "probes/watch/watch.h"
#include "probes/xmc/xmc.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/text_sum.h"

#define CALLS 3
#define ACTIVE_MAX 4
#define INC_LEN 3

extern struct static_key verbs_key;
STATIC_KEY(verbs_key);

/* PLACE - an instruction whose address is kept in verbs_NAME. */
#define PLACE(name, insn)                                                                \
    ".pushsection .rodata\nverbs_" name ": .quad 1f\n.popsection\n1: " insn "\n"
extern const uintptr_t verbs_inc, verbs_store, verbs_call, verbs_ret, verbs_jmp,
    verbs_cli, verbs_sti, verbs_behind_sti, verbs_popf;

static uint64_t word ALIGNED(8);

static NOINLINE uint64_t verbs_target(uint64_t n)
{
    __asm__ volatile(PLACE("inc", "inc %0") : "+r"(n));
    if (static_key_is_on(&verbs_key))
        n += 100;
    __asm__ volatile(PLACE("store", "mov %1, %0") : "=m"(word) : "r"(n));
    __asm__ volatile(PLACE("call", "call 2f") PLACE("jmp", "jmp 3f") "2:" PLACE(
                         "ret", "ret") "3: pushf\n" PLACE("cli", "cli")
                         PLACE("sti", "sti") PLACE("behind_sti", "nop")
                             PLACE("popf", "popf")
                     :
                     :
                     : "cc", "memory");
    return n;
}

/* place_of_key - the NOP of the key, behind the inc. The key is off. */
static uintptr_t place_of_key(void)
{
    static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
    uintptr_t at = verbs_inc + INC_LEN;

    while (memcmp((void *)at, nop, sizeof(nop)))
        at++;
    return at;
}

/* ---- the verbs ---- */

enum kind {
    PRE, /* the first four are at each place */
    POST,
    PROGRAM,
    EXECUTE,
    RETURN,
    JPROBE,
    STORED,
    KEY, /* the others are there once */
    XMC,
    ALL_OFF,
    JUMPS,
    ENGINE,
    KINDS
};
#define AT_EACH_PLACE (EXECUTE + 1)
#define PLACES 11
#define VERBS (AT_EACH_PLACE * PLACES + KINDS - AT_EACH_PLACE)

static const char *const kind_names[] = { "pre-handler", "post-handler", "program",
                                          "execute",     "return",       "jprobe",
                                          "write",       "key on",       "exchanged",
                                          "probes off",  "jumps off",    "other engine" };
static const char *const place_names[PLACES] = { "entry", "inc",        "key", "store",
                                                 "call",  "ret",        "jmp", "cli",
                                                 "sti",   "behind sti", "popf" };

struct verb {
    enum kind kind;
    unsigned place;
    union {
        struct kprobe kp;
        struct kretprobe rp;
        struct jprobe jp;
        struct watch w;
        const struct text_engine *engine;
    };
    struct kprobe_program program;
    uint64_t seen; /* before the calls */
};

static struct verb *active[ACTIVE_MAX];
static size_t count;
static uint64_t begun, refused;

static uintptr_t places[PLACES];
static uint8_t old_inc[INC_LEN];

static int verb_pre(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

static void verb_post(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                      unsigned long flags UNUSED)
{
}

static uint64_t verb_jprobe(uint64_t n UNUSED)
{
    jprobe_return();
}

static const struct kprobe_op nothing[] = { KPROBE_END };

static struct verb *verb_draw(void)
{
    struct verb *v = kzalloc(sizeof(*v));
    uint64_t i = ktest_random() % VERBS;

    v->kind = i < AT_EACH_PLACE * PLACES ? i / PLACES
                                         : i - AT_EACH_PLACE * PLACES + AT_EACH_PLACE;
    v->place = v->kind < AT_EACH_PLACE ? (unsigned)(i % PLACES) : 0;
    return v;
}

static bool is_probe(const struct verb *v)
{
    return v->kind <= PROGRAM || v->kind == RETURN || v->kind == JPROBE;
}

static int exchange_inc(bool back)
{
    uint8_t insn[INC_LEN];

    memcpy(insn, old_inc, INC_LEN);
    if (!back)
        insn[INC_LEN - 1] |= 1 << 3; /* a dec */
    return xmc(verbs_inc, insn, INC_LEN);
}

static int verb_begin(struct verb *v)
{
    switch (v->kind) {
    case PRE:
    case POST:
    case PROGRAM:
        v->kp = (struct kprobe){ .addr = places[v->place] };
        if (v->kind == PRE)
            v->kp.pre_handler = verb_pre;
        if (v->kind == POST)
            v->kp.post_handler = verb_post;
        if (v->kind == PROGRAM)
            v->kp.program = &v->program;
        v->program.ops = nothing;
        v->program.count = ARRAY_LEN(nothing);
        return register_kprobe(&v->kp);
    case RETURN:
        v->rp = (struct kretprobe){ .kp.addr = places[0] };
        return register_kretprobe(&v->rp);
    case JPROBE:
        v->jp = (struct jprobe){ .kp.addr = places[0], .entry = verb_jprobe };
        return register_jprobe(&v->jp);
    case EXECUTE:
        v->w =
            (struct watch){ .addr = places[v->place], .kind = WATCH_EXECUTE, .len = 1 };
        return register_watch(&v->w);
    case STORED:
        v->w = (struct watch){ .addr = (uintptr_t)&word, .kind = WATCH_WRITE, .len = 8 };
        return register_watch(&v->w);
    case KEY:
        return static_key_switch(&verbs_key, true);
    case XMC:
        return exchange_inc(false);
    case ALL_OFF:
        return kprobes_switch(false);
    case JUMPS:
        return optimize_switch(false);
    case ENGINE:
        v->engine = text_engine_get();
        text_engine_set(text_engines[v->engine == text_engines[0]]);
        return 0;
    case KINDS:
        break;
    }
    return -EINVAL;
}

static int verb_end(struct verb *v)
{
    switch (v->kind) {
    case PRE:
    case POST:
    case PROGRAM:
        return unregister_kprobe(&v->kp);
    case RETURN:
        return unregister_kretprobe(&v->rp);
    case JPROBE:
        return unregister_jprobe(&v->jp);
    case EXECUTE:
    case STORED:
        return unregister_watch(&v->w);
    case KEY:
        return static_key_switch(&verbs_key, false);
    case XMC:
        return exchange_inc(true);
    case ALL_OFF:
        return kprobes_switch(true);
    case JUMPS:
        return optimize_switch(true);
    case ENGINE:
        text_engine_set(v->engine);
        return 0;
    case KINDS:
        break;
    }
    return -EINVAL;
}

static uint64_t verb_hits(const struct verb *v)
{
    if (v->kind == EXECUTE || v->kind == STORED)
        return watch_hits(&v->w);
    return is_probe(v) ? kprobe_hits(&v->kp) : 0;
}

/* ---- several of them ---- */

/* verbs_see - call the function. Return: do the active verbs see it, and does it do what it
 * should? While kprobes are off, no probe does.
 */
static bool verbs_see(void)
{
    uint64_t expected = 1000 + 1;
    bool off = false, right = true;

    for (size_t i = 0; i < count; i++) {
        off |= active[i]->kind == ALL_OFF;
        expected += active[i]->kind == KEY ? 100 : 0;
        expected -= active[i]->kind == XMC ? 2 : 0;
        active[i]->seen = verb_hits(active[i]);
    }
    for (unsigned n = 0; n < CALLS; n++)
        right &= verbs_target(1000) == expected;
    if (!right)
        ktest_note("the value is wrong");
    for (size_t i = 0; i < count; i++) {
        const struct verb *v = active[i];
        bool sees = is_probe(v) ? !off : v->kind == EXECUTE || v->kind == STORED;
        uint64_t seen = verb_hits(v) - v->seen;

        if (seen == (sees ? CALLS : 0))
            continue;
        ktest_note("%s at %s has seen %lu of %u calls", kind_names[v->kind],
                   place_names[v->place], seen, sees ? CALLS : 0);
        right = false;
    }
    return right;
}

/* is_once - is @v a switch that is on already? */
static bool is_once(const struct verb *v)
{
    for (size_t i = 0; i < count; i++)
        if (v->kind >= KEY && active[i]->kind == v->kind)
            return true;
    return false;
}

static bool verbs_end_one(void)
{
    struct verb *v = active[ktest_random() % count];
    int err = verb_end(v);

    for (size_t i = 0; i < count; i++)
        if (active[i] == v)
            active[i] = active[--count];
    if (err)
        ktest_note("%s at %s ended with %d", kind_names[v->kind], place_names[v->place],
                   err);
    kfree(v);
    return !err;
}

/* verbs_begin_one - begin one more. If it is refused, nothing has changed. */
static void verbs_begin_one(void)
{
    struct verb *v = verb_draw();

    if (!is_once(v) && !verb_begin(v)) {
        active[count++] = v;
        begun++;
    } else {
        refused++;
        kfree(v);
    }
}

static bool verbs_step(void)
{
    bool ends = count == ACTIVE_MAX || (count && ktest_random() % 2);
    bool right = true;

    if (ends)
        right = verbs_end_one();
    else
        verbs_begin_one();
    right &= verbs_see();
    for (size_t i = 0; !right && i < count; i++)
        ktest_note("active: %s at %s", kind_names[active[i]->kind],
                   place_names[active[i]->place]);
    return right;
}

static void meet(enum optimize_method method, uint64_t steps)
{
    uint64_t sum = text_sum(), n = 0;
    bool right = true;

    begun = refused = 0;
    jumps_by(method);
    while (n < steps && verbs_step())
        n++;
    while (count)
        right &= verbs_end_one();
    ktest_report(right && n == steps && begun > refused,
                 "%lu of %lu steps went well, %lu verbs began and %lu were refused", n,
                 steps, begun, refused);
    ktest_report(text_sum() == sum, "the text is as it was");
}

KTEST(verbs, they_meet)
{
    memcpy(old_inc, (void *)verbs_inc, INC_LEN);
    memcpy(places,
           (uintptr_t[]){ (uintptr_t)verbs_target, verbs_inc, place_of_key(), verbs_store,
                          verbs_call, verbs_ret, verbs_jmp, verbs_cli, verbs_sti,
                          verbs_behind_sti, verbs_popf },
           sizeof(places));
    for (enum optimize_method m = 0; m < OPTIMIZE_METHODS; m++)
        meet(m, ktest_count(500, 20000));
}
