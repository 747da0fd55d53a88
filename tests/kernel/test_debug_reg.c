/* test_debug_reg.c - debug registers that change while a CPU is on its way through a #DB.
 *
 * Most tests make such a moment by hand: they have the image of a #DB, change registers as
 * an NMI would, and call the handler of #DB. The last test does it with NMIs.
 */
#include "kernel/cpu/debug_reg.h"

#include "kernel/cpu/msr.h"
#include "kernel/cpu/trap.h"
#include "probes/core/life.h"
#include "probes/film/film.h"
#include "probes/insn/insn.h"
#include "probes/watch/watch.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"
#include "tests/kernel/own_steps.h"
#include "tests/kernel/watched.h"

#define LAST_CPU (cpu_count() - 1)
#define DR6_NONE 0xffff0ff0ul

extern trap_direct_t trap_db_handler;

static struct {
    unsigned calls, reg;
    bool is_one;                       /* what the handler returns */
    void (*act)(struct pt_regs *regs); /* what the handler does; or NULL */
} owner;

static bool owner_hit(struct pt_regs *regs, unsigned reg)
{
    owner.calls++;
    owner.reg = reg;
    if (owner.act)
        owner.act(regs);
    return owner.is_one;
}

static NOINLINE void passed(void)
{
    __asm__ volatile("" ::: "memory");
}

static NOINLINE void elsewhere(void)
{
    __asm__ volatile("" ::: "memory");
}

static void set(unsigned reg, void *at, enum debug_reg_kind kind)
{
    debug_reg_put(reg, (uintptr_t)at, kind, kind == DEBUG_REG_EXECUTE ? 1 : 8);
    debug_regs_load();
}

/* take - take a register. The thread stays on CPU 0 until give(): another CPU has other
 * counts of changes.
 */
static unsigned take(void)
{
    thread_set_affinity(1);
    memset(&owner, 0, sizeof(owner));
    owner.is_one = true;
    return (unsigned)debug_reg_take("test", owner_hit);
}

static void give(unsigned reg)
{
    debug_reg_move(reg, 0);
    debug_regs_load_all();
    debug_reg_give(reg);
    thread_set_affinity(UINT64_MAX);
}

/* image - make the image of a #DB in front of passed(), with @bits in DR6, as entry code
 * would make it now.
 */
static struct pt_regs image(unsigned long bits)
{
    struct pt_regs regs = { .ip = (uintptr_t)passed, .flags = FLAGS_FIXED };
    uint32_t changes;

    memcpy(&changes, this_cpu()->debug_changes, sizeof(changes));
    regs.dr6 = (uint64_t)changes << 32 | DR6_NONE | bits;
    return regs;
}

static bool handle(struct pt_regs *regs)
{
    unsigned long irqs = irq_save();
    bool done = trap_db_handler(regs, this_cpu()->probe);

    irq_restore(irqs);
    return done;
}

static bool passes(const struct pt_regs *regs)
{
    return regs->flags & FLAGS_RF;
}

KTEST(debug_reg, a_hit_is_its_owners)
{
    unsigned reg = take();
    struct pt_regs regs;
    bool done;

    set(reg, passed, DEBUG_REG_EXECUTE);
    regs = image(BIT(reg));
    done = handle(&regs);
    ktest_report(done && owner.calls == 1 && owner.reg == reg, "the owner is called");
    ktest_report(passes(&regs), "and the instruction is executed");
    owner.is_one = false;
    regs = image(BIT(reg));
    done = handle(&regs);
    ktest_report(done && owner.calls == 2 && !passes(&regs),
                 "not if the owner has found out that the hit is none");
    regs = image(BIT(reg) | DR6_BS);
    done = handle(&regs);
    ktest_report(!done && owner.calls == 3 && regs.dr6 & DR6_BS,
                 "a single step beside it is left to others");
    give(reg);
    expect_no_watches();
}

/* late - report that a #DB from before a change is no hit: @regs is its image. */
static void late(struct pt_regs regs, const char *change)
{
    bool done;

    owner.calls = 0;
    done = handle(&regs);
    ktest_report(done && !owner.calls && !passes(&regs), "%s: no hit any more", change);
}

KTEST(debug_reg, a_register_that_has_changed_since_was_not_hit)
{
    unsigned reg = take();
    struct pt_regs regs;

    set(reg, passed, DEBUG_REG_EXECUTE);
    regs = image(BIT(reg));
    debug_reg_move(reg, 0);
    late(regs, "gone, and this CPU has not heard of it");
    debug_regs_load();
    late(regs, "gone");
    set(reg, elsewhere, DEBUG_REG_EXECUTE);
    late(regs, "at another place");
    set(reg, (void *)&watched.target, DEBUG_REG_WRITE);
    late(regs, "of another kind");
    set(reg, passed, DEBUG_REG_EXECUTE);
    late(regs, "gone, and there again");
    regs = image(BIT(reg));
    handle(&regs);
    ktest_report(owner.calls == 1, "the next #DB is a hit again");
    regs = image(BIT(reg));
    set(reg, passed, DEBUG_REG_EXECUTE);
    handle(&regs);
    ktest_report(owner.calls == 2, "if it has not changed at all, the hit stays one");
    give(reg);
}

KTEST(debug_reg, its_successor_gets_no_hit)
{
    unsigned reg = take(), again;
    struct pt_regs regs;

    set(reg, passed, DEBUG_REG_EXECUTE);
    regs = image(BIT(reg));
    give(reg);
    again = take();
    set(again, elsewhere, DEBUG_REG_EXECUTE);
    ktest_report(again == reg, "the register has another owner");
    late(regs, "the owner has changed");
    give(again);
}

static unsigned moved;
static bool answers[3];

static void move_it(struct pt_regs *regs)
{
    answers[0] = debug_reg_is_hit(regs->dr6, moved);
    debug_reg_move(moved, (uintptr_t)elsewhere);
    answers[1] = debug_reg_is_hit(regs->dr6, moved);
    debug_regs_load();
    answers[2] = debug_reg_is_hit(regs->dr6, moved);
}

KTEST(debug_reg, an_owner_can_ask_again)
{
    struct pt_regs regs;

    moved = take();
    owner.act = move_it;
    set(moved, passed, DEBUG_REG_EXECUTE);
    regs = image(BIT(moved));
    handle(&regs);
    ktest_report(answers[0], "in its handler the hit is one");
    ktest_report(!answers[1], "moved, it is none");
    ktest_report(!answers[2], "nor when this CPU has loaded");
    give(moved);
}

static void take_away(struct pt_regs *regs UNUSED)
{
    debug_reg_move(moved, 0);
    debug_regs_load();
}

KTEST(debug_reg, the_owner_of_one_takes_another_away)
{
    unsigned reg = take();
    struct pt_regs regs;

    moved = take();
    owner.act = take_away;
    set(reg, passed, DEBUG_REG_EXECUTE);
    set(moved, passed, DEBUG_REG_EXECUTE);
    regs = image(BIT(reg) | BIT(moved));
    handle(&regs);
    ktest_report(owner.calls == 1 && owner.reg == reg, "the second one has no hit");
    give(reg);
    give(moved);
}

/* The entry code of a #DB may not have read DR6 yet. */
KTEST(debug_reg, dr6_forgets_what_has_changed)
{
    unsigned reg = take(), other = take();
    unsigned long irqs = irq_save();
    uint64_t left;

    set(reg, passed, DEBUG_REG_EXECUTE);
    set(other, (void *)&watched.target, DEBUG_REG_WRITE);
    write_dr6(DR6_NONE | BIT(reg) | BIT(other) | DR6_BS);
    debug_reg_move(reg, 0);
    debug_regs_load();
    left = read_dr6();
    write_dr6(DR6_NONE);
    irq_restore(irqs);
    ktest_report(left == (DR6_NONE | BIT(other) | DR6_BS),
                 "the bit of the register goes, all others stay");
    give(reg);
    give(other);
}

KTEST(debug_reg, without_a_cause_it_is_over)
{
    struct pt_regs none = image(0), step = image(DR6_BS);
    bool done = handle(&none), stepped = handle(&step);

    ktest_report(done && !passes(&none), "a #DB without a cause is dropped");
    ktest_report(!stepped, "a single step is left to others");
}

static struct pt_regs inner;

static void hit_again(struct pt_regs *regs UNUSED)
{
    inner = image(BIT(owner.reg));
    handle(&inner);
}

/* Without this rule a handler that comes to a watched place would be hit without end. */
KTEST(debug_reg, what_a_hit_comes_to_is_no_hit)
{
    unsigned reg = take();
    struct pt_regs regs;

    owner.act = hit_again;
    set(reg, passed, DEBUG_REG_EXECUTE);
    regs = image(BIT(reg));
    handle(&regs);
    ktest_report(owner.calls == 1, "the owner is called once");
    ktest_report(passes(&inner) && passes(&regs), "and the CPU goes on in both places");
    owner.act = NULL;
    regs = image(BIT(reg));
    handle(&regs);
    ktest_report(owner.calls == 2, "the next hit is one again");
    give(reg);
}

/* ---- beside single steps of a program ---- */

static bool pass_in_nmi(struct pt_regs *regs UNUSED)
{
    passed();
    return false;
}

/* send_nmi_by_steps - step through the sending of an NMI. An NMI to this CPU comes when it
 * has just begun to execute the entry code of the #DB behind the instruction that sends it.
 */
static void send_nmi_by_steps(unsigned cpu, struct own_steps *steps)
{
    unsigned long irqs = irq_save();

    own_steps_begin(steps);
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    smp_send_nmi(cpu);
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    own_steps_end();
    irq_restore(irqs);
}

KTEST(debug_reg, a_hit_in_an_nmi_takes_no_step_of_a_program)
{
    static struct own_steps away, alone, beside;
    unsigned reg = take();

    nmi_take(pass_in_nmi);
    send_nmi_by_steps((cpu_id() + 1) % cpu_count(), &away);
    send_nmi_by_steps(cpu_id(), &alone);
    ktest_report(own_steps_same(&away, &alone, 5), "%lu steps, %lu without an NMI",
                 alone.count, away.count);
    set(reg, passed, DEBUG_REG_EXECUTE);
    send_nmi_by_steps(cpu_id(), &beside);
    ktest_report(owner.calls == 1, "the NMI hits the register");
    ktest_report(own_steps_same(&alone, &beside, 5), "%lu steps, %lu without the hit",
                 beside.count, alone.count);
    give(reg);
}

/* ---- beside single steps of a film ---- */

static unsigned film_hits;

static bool count_film_hit(struct pt_regs *regs UNUSED, unsigned reg UNUSED)
{
    __atomic_add_fetch(&film_hits, 1, __ATOMIC_RELAXED);
    return true;
}

uint64_t fills(uint64_t x);
KTEST_ASM(fills, "mov %edi, %eax; mov $filled, %rdi; mov $2, %ecx; rep stosq; ret")
#define FILLS_AT ((uintptr_t)fills + 14) /* its rep */
uint64_t filled[2];

static uintptr_t first_hit;

static void note_first(struct pt_regs *regs)
{
    if (!first_hit)
        first_hit = copy_original(regs->ip);
}

KTEST(debug_reg, a_hit_at_a_step_that_the_engine_raises)
{
    struct kprobe p = { .addr = FILLS_AT };
    struct own_steps steps;
    unsigned reg = take();

    owner.act = note_first;
    set(reg, &filled[1], DEBUG_REG_WRITE);
    set(reg, &filled[0], DEBUG_REG_WRITE);
    first_hit = 0;
    register_kprobe(&p);
    own_steps_of(&steps, fills, 1);
    ktest_report(first_hit == FILLS_AT, "the first round is a hit");
    unregister_kprobe(&p);
    give(reg);
}

/* A film lets its threads single-step through the copy of the probed instruction. A register
 * stops them in front of that copy.
 */
KTEST(debug_reg, a_film_takes_only_its_own_steps)
{
    struct kprobe p = { .addr = (uintptr_t)film_fixture, .flags = KPROBE_FLAG_DISABLED };
    int err = register_kprobe(&p), reg = debug_reg_take("test", count_film_hit);

    film_hits = 0;
    ktest_report(!err && reg >= 0, "a probe and a register are there");
    debug_reg_put((unsigned)reg, (uintptr_t)site_boost_slot(p.site), DEBUG_REG_EXECUTE,
                  1);
    debug_regs_load_all();
    ktest_report(!film_start(p.addr, 5), "the film begins");
    enable_kprobe(&p);
    for (unsigned ms = 0; ms < 5000 && !READ_ONCE(film_hits); ms++)
        thread_sleep_ns(
            1000000); /* a host with other work may let no thread run for long */
    debug_reg_move((unsigned)reg, 0);
    debug_regs_load_all();
    debug_reg_give((unsigned)reg);
    ktest_report(!film_stop(), "its threads come to their end");
    ktest_report(film_hits > 0, "the register was hit");
    unregister_kprobe(&p);
    expect_no_watches();
}

/* ---- with NMIs ---- */

static volatile uint64_t nmis;
static uint64_t hits, stale;
static unsigned toggled;
static volatile bool toggles, stop_passing;

/* An NMI moves the register to and fro: it watches instructions here, then there, then
 * nothing.
 */
static bool toggle(struct pt_regs *regs UNUSED)
{
    static const uintptr_t places[] = { (uintptr_t)passed, (uintptr_t)elsewhere, 0 };

    if (!toggles || cpu_id() != LAST_CPU)
        return false;
    nmis++;
    debug_reg_move(toggled, places[nmis % ARRAY_LEN(places)]);
    debug_regs_load();
    return false;
}

static bool count_hit(struct pt_regs *regs UNUSED, unsigned reg UNUSED)
{
    hits++;
    return true;
}

/* pass - an NMI may also come while this CPU loads its registers. */
static int pass(void *arg UNUSED)
{
    const uintptr_t *loaded = &this_cpu()->debug_addr[toggled];

    for (unsigned round = 0; !stop_passing; round++) {
        uint64_t before;

        passed();
        debug_reg_move(toggled, (uintptr_t)(round % 2 ? passed : elsewhere));
        debug_regs_load();
        before = nmis;
        if (READ_ONCE(*loaded) != debug_reg_addr(toggled))
            stale += nmis == before;
    }
    return 0;
}

KTEST(debug_reg, nmis_change_it_at_any_moment)
{
    uint64_t count = ktest_rounds(700, 60000);
    int tid;

    if (ktest_lacks_cpus(2))
        return;
    nmi_take(toggle);
    nmis = hits = stale = 0;
    stop_passing = false;
    toggled = (unsigned)debug_reg_take("test", count_hit);
    debug_reg_put(toggled, (uintptr_t)passed, DEBUG_REG_EXECUTE, 1);
    debug_regs_load_all();
    tid = ktest_thread(pass, NULL, BIT(LAST_CPU));
    while (!READ_ONCE(hits)) /* the thread runs, and hits */
        thread_sleep_ns(100000);
    toggles = true;
    nmi_send_many(LAST_CPU, count, &nmis);
    toggles = false;
    stop_passing = true;
    thread_join(tid, NULL);
    debug_reg_move(toggled, 0);
    debug_regs_load_all();
    debug_reg_give(toggled);
    ktest_report(nmis == count && hits > 0, "%lu NMIs, %lu hits", nmis, hits);
    ktest_report(!stale, "after each load the CPU watches what the table says");
    expect_no_watches();
}

/* ---- memory that each #DB accesses ---- */

/* static_word - return the address of static memory that the instruction at @at accesses, for
 * an array its start; 0: none.
 */
static uintptr_t static_word(uintptr_t at, struct insn *insn)
{
    if (insn_decode(insn, (const uint8_t *)at, INSN_MAX_LEN, at)) {
        insn->len = 1;
        return 0;
    }
    if (!insn->has_mem || insn->seg || (!insn->map && insn->opcode == 0x8d)) /* LEA */
        return 0;
    if (insn->rip_relative)
        return at + insn->len + (uintptr_t)insn->disp;
    return insn->disp_len == 4 && insn->disp < 0 ? (uintptr_t)insn->disp : 0;
}

/* watchable - count the instructions of function @name that access static memory which can
 * be watched. @first: the first such memory
 */
static unsigned watchable(const char *name, uintptr_t *first)
{
    struct plat_symbol fn = { 0 };
    struct insn insn;
    unsigned count = 0;

    ktest_report(!plat_symbol_find(name, &fn), "%s is there", name);
    for (uintptr_t at = fn.start; at < fn.start + fn.size; at += insn.len) {
        uintptr_t word = static_word(at, &insn);

        if (!word || watch_check_own(word, 1, WATCH_ACCESS))
            continue;
        *first = count++ ? *first : word;
        ktest_note("%s+0x%lx accesses 0x%lx", name, at - fn.start, word);
    }
    return count;
}

KTEST(debug_reg, what_each_trap_accesses_cannot_be_watched)
{
    static const char *const path[] = {
        "db_entry",        "watch_debug_handler", "not_only_a_step",
        "debug_reg_hits",  "debug_regs_at_entry", "debug_reg_is_hit",
        "debug_regs_load", "debug_regs_rest",     "plat_watch_is_inner",
    };
    uintptr_t first;

    for (size_t i = 0; i < ARRAY_LEN(path); i++)
        ktest_report(!watchable(path[i], &first), "%s: no word can be", path[i]);
}

/* hit_at - watch the word at @at, which the handling of a hit accesses, and read it. */
static void hit_at(uintptr_t at, const char *what)
{
    unsigned reg = take();

    set(reg, (void *)(at ? at : (uintptr_t)debug_reg_owner(reg) - 8), DEBUG_REG_ACCESS);
    (void)READ_ONCE(*(uint64_t *)debug_reg_addr(reg));
    give(reg);
    ktest_report(owner.calls == 1, "%s: one hit", what);
}

KTEST(debug_reg, what_only_some_traps_access_can_be_watched)
{
    uintptr_t stepping = 0;

    hit_at(0, "the pointer to the owner's function");
    watchable("film_db", &stepping);
    scene_open(0);
    hit_at(stepping & -8ul, "what a film knows of CPU 0");
    scene_close();
    expect_no_watches();
}
