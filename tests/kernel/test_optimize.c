/* test_optimize.c - breakpoints become jumps, and jumps become breakpoints, in any order.
 * Only the counter of traps shows the difference.
 */
#include "probes/core/registry.h"
#include "probes/explain/totals.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/jump/pad.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nothing.h"
#include "tests/kernel/share.h"
#include "tests/kernel/short_ones.h"
#include "tests/kernel/text_sum.h"

static bool target_is_right(void)
{
    for (long i = 0; i < 50; i++)
        if (short_ones(i) != 2 * i + 3)
            return false;
    return true;
}

#define INSNS_MAX 64

/* The instructions of short_ones(), and a copy of its bytes. */
static struct {
    uintptr_t addrs[INSNS_MAX];
    size_t count;
    struct plat_symbol function;
    uint8_t bytes[512];
} text;

static void note_insn(const struct insn *insn, void *arg UNUSED)
{
    if (text.count < INSNS_MAX)
        text.addrs[text.count++] = insn->addr;
}

static void look_at_text(void)
{
    text.count = 0;
    plat_symbol_at((uintptr_t)short_ones, &text.function);
    plat_lock(PLAT_PROBES);
    boundary_for_each(&text.function, note_insn, NULL);
    plat_unlock(PLAT_PROBES);
    memcpy(text.bytes, (const void *)text.function.start, text.function.size);
}

static bool text_is_as_before(void)
{
    return !memcmp(text.bytes, (const void *)text.function.start, text.function.size);
}

static bool is_jump(const struct kprobe *p)
{
    return p->flags & KPROBE_FLAG_OPTIMIZED;
}

static uint64_t traps(void)
{
    struct probe_totals t;

    account_totals(&t);
    return t.traps;
}

/* ---- one probe --------------------------------------------------------------------- */

static void becomes_a_jump(kprobe_pre_handler_t handler, const char *what)
{
    struct kprobe p = { .addr = (uintptr_t)short_ones, .pre_handler = handler };
    uint64_t before;

    look_at_text();
    ktest_report(!register_kprobe(&p), "%s: registered", what);
    optimize_run();
    ktest_report(is_jump(&p), "%s: it is a jump", what);
    before = traps();
    ktest_report(target_is_right(), "%s: the function does what it did", what);
    ktest_report(traps() == before, "%s: no hit has trapped", what);
    ktest_report(kprobe_hits(&p) == 50, "%s: 50 calls, %lu hits", what, kprobe_hits(&p));
    unregister_kprobe(&p);
    ktest_report(text_is_as_before(), "%s: the text is as it was", what);
    ktest_report(!(p.flags & KPROBE_FLAG_OPTIMIZED), "%s: and the flag is gone", what);
}

KTEST(optimize, a_probe_becomes_a_jump)
{
    jumps_by(OPTIMIZE_PUN);
    becomes_a_jump(no_pre, "a handler");
    becomes_a_jump(NULL, "a counter");
}

KTEST(optimize, by_itself_before_long)
{
    struct kprobe p = { .addr = (uintptr_t)short_ones, .pre_handler = no_pre };
    uint64_t end = clock_ns() + UINT64_C(60000000000);

    jumps_by(OPTIMIZE_PUN);
    register_kprobe(&p);
    while (!is_jump(&p) && clock_ns() < end)
        thread_sleep_ns(1000000);
    ktest_report(is_jump(&p), "it was not asked for");
    unregister_kprobe(&p);
}

/* ---- every instruction of a function ----------------------------------------------- */

static struct kprobe each[INSNS_MAX];
static struct kprobe *each_ptr[INSNS_MAX];

static size_t register_each(kprobe_pre_handler_t handler)
{
    size_t n = 0;

    memset(each, 0, sizeof(each));
    for (size_t i = 0; i < text.count; i++) {
        each[i].addr = text.addrs[i];
        each[i].pre_handler = handler;
        if (!register_kprobe(&each[i]))
            each_ptr[n++] = &each[i];
    }
    return n;
}

static size_t count_jumps(size_t n)
{
    size_t jumps = 0;

    for (size_t i = 0; i < n; i++)
        jumps += is_jump(each_ptr[i]);
    return jumps;
}

static void every_instruction(kprobe_pre_handler_t handler, const char *what)
{
    uint64_t before;
    size_t n, wrong = 0;

    look_at_text();
    n = register_each(handler);
    optimize_run();
    ktest_report(count_jumps(n) == n, "%s: %lu of %lu are jumps", what, count_jumps(n),
                 n);
    before = traps();
    ktest_report(target_is_right(), "%s: the function does what it did", what);
    ktest_report(traps() == before, "%s: no hit has trapped", what);
    for (size_t i = 0; i < n; i++)
        wrong += kprobe_hits(each_ptr[i]) != 50 && kprobe_hits(each_ptr[i]) != 0;
    ktest_report(!wrong, "%s: each instruction has been hit in each call", what);
    unregister_kprobes(each_ptr, n);
    ktest_report(text_is_as_before(), "%s: the text is as it was", what);
}

KTEST(optimize, every_instruction_of_a_function)
{
    jumps_by(OPTIMIZE_PUN);
    every_instruction(no_pre, "handlers");
    every_instruction(NULL, "counters");
}

/* ---- neighbours -------------------------------------------------------------------- */

/* H70, H78: the jump at the first instruction reads bytes of the second instruction. */
KTEST(optimize, h70_a_second_probe_where_a_jump_reads)
{
    size_t both = 0;

    jumps_by(OPTIMIZE_PUN);
    look_at_text();
    for (size_t i = 0; i + 1 < text.count; i++) {
        struct kprobe a = { .addr = text.addrs[i], .pre_handler = no_pre };
        struct kprobe b = { .addr = text.addrs[i + 1], .pre_handler = no_pre };

        if (register_kprobe(&a))
            continue;
        optimize_run();
        if (!register_kprobe(&b)) {
            both += target_is_right();
            optimize_run();
            both += target_is_right() && is_jump(&a) && is_jump(&b);
            unregister_kprobe(&b);
            both += target_is_right();
            optimize_run();
            both += target_is_right() && is_jump(&a);
        } else {
            both += 4;
        }
        unregister_kprobe(&a);
    }
    ktest_report(both == 4 * (text.count - 1), "%lu of %lu states are right", both,
                 4 * (text.count - 1));
    ktest_report(text_is_as_before(), "the text is as it was");
}

/* H72: a site that was refused a jump is tried again when another probe is unregistered.
 */
KTEST(optimize, h72_tried_again_when_a_neighbour_leaves)
{
    struct kprobe a = { .addr = (uintptr_t)short_ones, .pre_handler = no_pre };
    struct kprobe b;

    jumps_by(OPTIMIZE_PUN);
    look_at_text();
    /* so far behind that the jump of a does not reach it */
    b = (struct kprobe){ .addr = text.addrs[text.count - 1], .pre_handler = no_pre };
    register_kprobe(&a);
    register_kprobe(&b);
    plat_lock(PLAT_PROBES);
    unoptimize_around(&a.site, 1);
    optimize_refuse(a.site, PROBE_PADS_TAKEN);
    plat_unlock(PLAT_PROBES);
    optimize_run();
    ktest_report(!is_jump(&a), "refused, it stays a breakpoint");
    unregister_kprobe(&b);
    optimize_run();
    ktest_report(is_jump(&a), "with the other gone, it is a jump");
    unregister_kprobe(&a);
    ktest_report(text_is_as_before(), "the text is as it was");
}

/* ---- probes that come and go at one address ---------------------------------------- */

static volatile unsigned posts;

static void post(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                 unsigned long flags UNUSED)
{
    posts++;
}

KTEST(optimize, a_probe_that_joins_a_jump_counts_when_the_first_has_gone)
{
    struct kprobe ps[3];

    jumps_by(OPTIMIZE_PUN);
    look_at_text();
    for (size_t i = 0; i < 3; i++) {
        ps[i] = (struct kprobe){ .addr = (uintptr_t)short_ones, .pre_handler = no_pre };
        register_kprobe(&ps[i]);
        optimize_run();
    }
    target_is_right();
    for (size_t i = 0; i < 3; i++) {
        unregister_kprobe(&ps[i]);
        ktest_report(ps[i].hits == 50 * (i + 1), "%lu calls, %lu hits", 50 * (i + 1),
                     ps[i].hits);
        target_is_right();
    }
    ktest_report(text_is_as_before(), "the text is as it was");
}

/* H73: a post-handler is added at a jump, and taken away. */
KTEST(optimize, h73_a_post_handler_comes_later)
{
    struct kprobe count = { .addr = (uintptr_t)short_ones };
    struct kprobe after = { .addr = (uintptr_t)short_ones, .post_handler = post };

    jumps_by(OPTIMIZE_PUN);
    look_at_text();
    posts = 0;
    register_kprobe(&count);
    optimize_run();
    ktest_report(is_jump(&count), "a counter is a jump");
    register_kprobe(&after);
    ktest_report(target_is_right() && posts == 50, "from the return on it is called");
    optimize_run();
    ktest_report(is_jump(&count) && is_jump(&after), "no site loses its jump by it");
    ktest_report(target_is_right() && posts == 100, "and is called there too: %u", posts);
    ktest_report(kprobe_hits(&count) == 100, "no hit of the counter is lost: %lu",
                 kprobe_hits(&count));
    unregister_kprobe(&after);
    ktest_report(target_is_right() && posts == 100, "gone, it is not called any more");
    unregister_kprobe(&count);
    ktest_report(kprobe_hits(&count) == 150, "the counter has counted all: %lu",
                 kprobe_hits(&count));
    ktest_report(text_is_as_before(), "the text is as it was");
}

/* ---- H71: any order ---------------------------------------------------------------- */

enum { OP_DISABLE, OP_ENABLE, OP_RUN, OP_OFF, OP_ON, OPS };
#define ORDER_LEN 5

static void do_op(struct kprobe *p, unsigned op, bool *enabled)
{
    switch (op) {
    case OP_DISABLE:
        disable_kprobe(p);
        *enabled = false;
        break;
    case OP_ENABLE:
        enable_kprobe(p);
        *enabled = true;
        break;
    case OP_RUN:
        optimize_run();
        break;
    default:
        optimize_switch(op == OP_ON);
        break;
    }
}

/* one_order - do the operations that @order encodes, and call the function after each.
 * Return: was each call a hit exactly if the probe was enabled, and is the text as before?
 */
static bool one_order(unsigned order)
{
    struct kprobe p = { .addr = (uintptr_t)short_ones, .pre_handler = no_pre };
    bool enabled = true, right = !register_kprobe(&p);

    for (unsigned i = 0; i < ORDER_LEN; i++, order /= OPS) {
        uint64_t before;

        do_op(&p, order % OPS, &enabled);
        before = kprobe_hits(&p);
        right &= short_ones(2) == 7 && kprobe_hits(&p) - before == enabled;
    }
    unregister_kprobe(&p);
    optimize_switch(true);
    return right && text_is_as_before();
}

KTEST(optimize, h71_every_order_of_five_operations)
{
    unsigned orders = 1, wrong = 0, step = (unsigned)ktest_count(23, 1);

    jumps_by(OPTIMIZE_PUN);
    look_at_text();
    for (unsigned i = 0; i < ORDER_LEN; i++)
        orders *= OPS;
    for (unsigned order = 0; order < orders; order += step)
        wrong += !one_order(order);
    ktest_report(!wrong, "%u of %u orders went wrong", wrong, orders / step);
}

/* ---- H76: a thread is inside ------------------------------------------------------- */

static volatile bool is_gone, is_out;
static struct kprobe held = { .pre_handler = no_pre };

static int run_target(void *arg UNUSED)
{
    int wrong = short_ones(4) != 11;

    is_out = true;
    return wrong;
}

static int take_out(void *arg UNUSED)
{
    unregister_kprobe(&held);
    is_gone = true;
    return 0;
}

/* cltq_of_target - return the address of the cltq in short_ones(), an instruction of two
 * bytes; 0: there is none.
 */
static uintptr_t cltq_of_target(void)
{
    static const uint8_t cltq[] = { 0x48, 0x98 };

    for (size_t i = 0; i < text.count; i++)
        if (memcmp((const void *)text.addrs[i], cltq, sizeof(cltq)) == 0)
            return text.addrs[i];
    return 0;
}

static uintptr_t cell; /* the address of the copy in the cell */

static void write_cell(size_t off, const void *bytes, size_t len)
{
    plat_lock(PLAT_TEXT);
    plat_text_write(cell + off, bytes, len);
    plat_sync_cores();
    plat_unlock(PLAT_TEXT);
}

/* hold - change the cell so that a CPU that comes to the copy stays there:
 *
 *     before: | cltq | jmp back (5) |
 *     then:   | jmp to 0 | jmp back (5) | cltq | jmp to 2 |
 *
 * let_go() makes the first jump lead to the cltq at offset 7. That is a change of one
 * byte, so a CPU that executes the jump meanwhile sees either the old or the new jump.
 */
static void hold(void)
{
    static const uint8_t to_itself[] = { 0xeb, 0xfe };
    static const uint8_t tail[] = { 0x48, 0x98, 0xeb, 0xf7 };

    cell = (uintptr_t)detour_cell(held.site) + jump_site(held.site)->copy_off;
    write_cell(7, tail, sizeof(tail));
    write_cell(0, to_itself, sizeof(to_itself));
}

/* let_go - let a CPU that hold() keeps in the cell go on. With QEMU the CPU may not see
 * the change, see port_text.c, which solves this for text only. So the same byte is
 * written again and again until the thread is out. By then the cell may have been freed,
 * so it is read first.
 */
static void let_go(void)
{
    uint8_t byte = 5;

    write_cell(1, &byte, 1);
    while (!is_out) {
        thread_sleep_ns(1000000);
        plat_lock(PLAT_TEXT);
        if (!plat_text_read(&byte, cell + 1, 1))
            plat_text_write(cell + 1, &byte, 1);
        plat_unlock(PLAT_TEXT);
    }
}

KTEST(optimize, h76_a_detour_stays_while_a_thread_is_in_it)
{
    int inside, remover, wrong = 1;

    jumps_by(OPTIMIZE_PUN);
    look_at_text();
    is_gone = is_out = false;
    held.addr = cltq_of_target();
    register_kprobe(&held);
    optimize_run();
    ktest_report(is_jump(&held), "it is a jump");
    hold();
    inside = ktest_thread(run_target, NULL, 0);
    while (kprobe_hits(&held) == 0)
        thread_yield();
    remover = ktest_thread(take_out, NULL, 0);
    thread_sleep_ns(200000000);
    ktest_report(!is_gone, "while a thread is inside, it is not freed");
    let_go();
    thread_join(inside, &wrong);
    thread_join(remover, NULL);
    ktest_report(is_gone && !wrong, "the thread got out, and then it was");
}

/* ---- all instructions, any density ------------------------------------------------- */

static size_t pages_held(void)
{
    return pad_pages();
}

/* ---- jumps, read from the text ----------------------------------------------------- */

struct checked {
    size_t jumps, wrong;
    uintptr_t first;
};

/* check_jump - count @site in @arg if it is a jump, and count whether its bytes in the
 * text lead to its detour.
 */
static void check_jump(struct site *site, void *arg)
{
    struct checked *c = arg;
    uint8_t bytes[INSN_MAX_LEN];
    struct insn insn;

    if (site->state != SITE_OPTIMIZED)
        return;
    c->jumps++;
    if (!plat_text_read(bytes, site->addr, sizeof(bytes)) &&
        !insn_decode(&insn, bytes, sizeof(bytes), site->addr) &&
        (insn.target == (uintptr_t)site_detour(site) ||
         (insn.target == site_pad(site) &&
          pad_target(insn.target) == (uintptr_t)site_detour(site))))
        return;
    c->wrong++;
    c->first = c->first ? c->first : site->addr;
}

static void report_jumps(const char *when, unsigned percent)
{
    struct checked c = { 0 };

    plat_lock(PLAT_PROBES);
    registry_for_each(check_jump, &c);
    plat_unlock(PLAT_PROBES);
    ktest_report(!c.wrong, "%u %%, %s: of %lu jumps %lu lead elsewhere, as at 0x%lx",
                 percent, when, c.jumps, c.wrong, c.first);
}

#define MOST 10000

/* About ten of all instructions of the kernel cannot become jumps. A random part of all
 * instructions contains the same part of these ten on average, but sometimes more.
 */
#define BY_CHANCE 5

/* report_share - report that of the probes from @first on at most one in
 * @one_in is no jump.
 */
static void report_share(const char *when, unsigned percent, size_t first, size_t one_in)
{
    uint64_t waiting = 0,
             allowed = share.count / one_in + (percent < 100 ? BY_CHANCE : 0);

    for (size_t i = first; i < share.count; i++)
        waiting += !is_jump(share.pointers[i]);
    ktest_report(waiting <= allowed, "%u %%, %s: %lu of %lu are no jumps", percent, when,
                 waiting, share.count - first);
}

static void shuffle(void)
{
    for (size_t i = 0; i < share.count; i++) {
        size_t j = ktest_random() % share.count;
        struct kprobe *p = share.pointers[i];

        share.pointers[i] = share.pointers[j];
        share.pointers[j] = p;
    }
}

/* half_out - unregister all probes in two halves, in random order. */
static void half_out(void)
{
    size_t half = share.count / 2;

    shuffle();
    unregister_kprobes(share.pointers, half);
    report_jumps("half taken out", share.percent);
    optimize_run();
    report_jumps("tidied up", share.percent);
    report_share("tidied up", share.percent, half, MOST);
    unregister_kprobes(share.pointers + half, share.count - half);
}

static void one_density(unsigned percent)
{
    uint64_t before = text_sum();

    share_register(percent, true);
    report_jumps("armed", percent);
    optimize_run();
    report_jumps("looked at again", percent);
    report_share("looked at again", percent, 0, MOST);
    ktest_report(target_is_right(), "%u %%: the kernel works", percent);
    if (percent < 100)
        half_out();
    else
        unregister_kprobes(share.pointers, share.count);
    ktest_report(text_sum() == before, "%u %%: the text is as it was", percent);
    ktest_report(!pages_held(), "%u %%: no page is left", percent);
}

static void room_for_all(void)
{
    share_begin();
}

static void room_back(void)
{
    share_end();
}

KTEST(optimize, any_density_in_and_out)
{
    jumps_by(OPTIMIZE_PUN);
    room_for_all();
    one_density(1);
    if (ktest_count(0, 1)) {
        one_density(10);
        one_density(100);
    }
    room_back();
}
