/* test_stores.c - a program makes a record of registers: in C, from the image of a trap, and
 * as code in a detour, without an image. The records are the same.
 */
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "tests/kernel/by_hand.h"
#include "tests/kernel/detour_targets.h"
#include "tests/kernel/ktest.h"

#define COUNT 3u
#define OFFSET 96 /* of the stores behind the first */

static struct record {
    uint8_t bytes[OFFSET + 8 * COUNT];
} room;
static bool has_room;
static uint64_t begun, ended, wrong, with_image;
static char token;

static struct kprobe_room begin(struct kprobe *p, uintptr_t ip,
                                const struct pt_regs *regs)
{
    begun++;
    with_image += regs != NULL;
    wrong += ip != p->addr;
    return (struct kprobe_room){ has_room ? &room : NULL, &token };
}

static void end(void *given)
{
    ended++;
    wrong += given != &token;
}

/* All that can be stored. Each run stores COUNT of them, in one of all sizes. */
static const uint8_t sources[] = {
    KPROBE_REG_AX,  KPROBE_REG_CX,  KPROBE_REG_DX,  KPROBE_REG_BX,  KPROBE_REG_SP,
    KPROBE_REG_BP,  KPROBE_REG_SI,  KPROBE_REG_DI,  KPROBE_REG_R8,  KPROBE_REG_R9,
    KPROBE_REG_R10, KPROBE_REG_R11, KPROBE_REG_R12, KPROBE_REG_R13, KPROBE_REG_R14,
    KPROBE_REG_R15, KPROBE_ADDRESS, KPROBE_VALUE,
};

#define OPS (COUNT + 3)

static void choose(struct kprobe_op *ops, size_t first, unsigned size)
{
    ops[0] = (struct kprobe_op)KPROBE_RESERVE(begin, COUNT + 2);
    ops[1] = (struct kprobe_op)KPROBE_CONST(UINT64_C(0x1122334455667788));
    ops[2] = (struct kprobe_op)KPROBE_STORE((uint8_t)size, 0, KPROBE_IMM, (uint64_t)-3);
    for (size_t i = 1; i < COUNT; i++)
        ops[2 + i] = (struct kprobe_op){ KPROBE_OP_STORE,
                                         sources[(first + i) % sizeof(sources)],
                                         (uint8_t)(size << 4),
                                         0,
                                         (uint32_t)(OFFSET + 8 * (i - 1)),
                                         0 };
    ops[COUNT + 2] = (struct kprobe_op)KPROBE_COMMIT(end);
}

static uint8_t memory[64];

static struct detour_run run_once(const struct detour_target *t)
{
    struct detour_run run = { .fn = t->fn };
    uint64_t *word = (uint64_t *)&run;

    for (unsigned i = 0; i < 15; i++)
        word[i] = UINT64_C(0x0102030405060708) * (i + 1);
    run.cx = 3;
    run.si = (uintptr_t)memory;
    run.r14 = 0x1000;
    run.r15 = (uintptr_t)detour_callee;
    run.di = FLAGS_IF | FLAGS_FIXED | FLAGS_SF;
    run.flags = FLAGS_IF | FLAGS_FIXED | FLAGS_CF | FLAGS_OF;
    preempt_disable();
    detour_run(&run);
    preempt_enable();
    return run;
}

/* both_the_same - call @t once by a trap, and once by a jump. Return: are all results the
 * same?
 */
static bool both_the_same(const struct detour_target *t, struct kprobe *p)
{
    struct detour_run by_trap, by_jump;
    struct record record;
    bool is_own, same;

    memset(&room, 0xcc, sizeof(room));
    by_hand_begin();
    p->addr = t->addr;
    if (register_kprobe(p))
        return false;
    by_trap = run_once(t);
    if (!by_hand_jump(p)) {
        unregister_kprobe(p);
        return false;
    }
    record = room;
    memset(&room, 0xcc, sizeof(room));
    is_own = jump_site(p->site)->specialized;
    by_jump = run_once(t);
    same = !memcmp(&by_trap, &by_jump, sizeof(by_jump)) &&
           !memcmp(&room, &record, sizeof(room));
    by_hand_int3(p);
    unregister_kprobe(p);
    return is_own && same && p->hits == 2;
}

/* has_copy - can a copy run the probed instruction of @t? Otherwise the detour always
 * needs an image.
 */
static bool has_copy(const struct detour_target *t)
{
    static const char *const without[] = { "detour_popf", "detour_call_reg", "detour_sti",
                                           "detour_sti_call" };

    for (size_t i = 0; i < ARRAY_LEN(without); i++)
        if (!strcmp(t->name, without[i]))
            return false;
    return true;
}

KTEST(stores, what_is_stored_is_what_the_image_has)
{
    static const unsigned sizes[] = { 8, 4, 2, 1 };

    has_room = true;
    for (const struct detour_target *t = detour_targets; t < detour_targets_end; t++) {
        unsigned same = 0, tried = 0;

        if (!has_copy(t))
            continue;
        begun = ended = wrong = with_image = 0;
        for (size_t first = 0; first < sizeof(sources); first++) {
            struct kprobe_op ops[OPS];
            struct kprobe_program program = { .ops = ops, .count = OPS };
            struct kprobe p = { .program = &program };

            choose(ops, first, sizes[first % ARRAY_LEN(sizes)]);
            same += both_the_same(t, &p);
            tried++;
        }
        ktest_report(same == tried && begun == 2 * tried && ended == 2 * tried &&
                         with_image == tried && !wrong,
                     "%s: %u of %u", t->name, same, tried);
    }
}

/* This function begins with a `lea` of five bytes. */
KTEST_TARGET(target, x, x * 9 + 2)

KTEST(stores, without_room_nothing_is_stored)
{
    struct kprobe_op ops[OPS];
    struct kprobe_program program = { .ops = ops, .count = OPS };
    struct kprobe p = { .program = &program };
    static const struct record none;

    choose(ops, 3, 8);
    has_room = false;
    begun = ended = 0;
    memset(&room, 0, sizeof(room));
    if (!with_jump(&p, target))
        return;
    ktest_report(target(3) == 29 && begun == 1 && !ended, "it has asked");
    ktest_report(!memcmp(&room, &none, sizeof(room)), "and stored nothing");
    without_jump(&p);
}

/* ---- more than one ---- */

static uint64_t called[2], lost;

static void first_called(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    called[0]++;
}

static uint64_t second_called(struct kprobe *p, uintptr_t ip)
{
    called[1]++;
    lost += p->addr != ip || !p->program;
    return called[1];
}

/* Programs that call stand in one detour, one behind the other; each probe has its own. */
KTEST(stores, the_programs_of_two_probes_call)
{
    const struct kprobe_op ops[] = { KPROBE_CALL(second_called),
                                     KPROBE_SUM(0, KPROBE_VALUE, 0) };
    struct kprobe_program program = { .ops = ops, .count = 2, .words = 1 };
    struct kprobe first = { .light_handler = first_called, .addr = (uintptr_t)target };
    struct kprobe second = { .program = &program, .addr = (uintptr_t)target };

    called[0] = called[1] = lost = 0;
    by_hand_begin();
    if (register_kprobe(&first) || register_kprobe(&second) || !by_hand_jump(&first)) {
        ktest_report(false, "two probes are a jump");
        return;
    }
    ktest_report(jump_site(first.site)->specialized, "they have code of their own");
    target(1);
    target(2);
    disable_kprobe(&second);
    target(3);
    enable_kprobe(&second);
    target(4);
    ktest_report(called[0] == 4 && called[1] == 3 && !lost, "%lu and %lu calls",
                 called[0], called[1]);
    ktest_report(program_sum(&program, 0) == 1 + 2 + 3, "the value is what was returned");
    by_hand_int3(&first);
    unregister_kprobe(&second);
    unregister_kprobe(&first);
}

/* ---- a function that faults ---- */

static uint64_t read_nowhere(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    called[0]++;
    return *(volatile uint64_t *)UINT64_C(0x8000000000000000);
}

/* report_ended - the program of @p, and that of @next, which stands behind it in the same
 * detour, have met one hit.
 */
static void report_ended(const struct kprobe *p, const struct kprobe *next,
                         const char *way)
{
    ktest_report(called[0] == 1 && p->flags & KPROBE_FLAG_TRIPPED, "%s: it is given up",
                 way);
    ktest_report(program_sum(p->program, 0) == 1 && !program_sum(p->program, 1) &&
                     !begun && !ended,
                 "%s: nothing behind it in its program is done", way);
    ktest_report(program_sum(next->program, 0) == 1, "%s: the next program runs", way);
}

KTEST(stores, a_function_that_faults_ends_its_program_only)
{
    const struct kprobe_op ops[] = {
        KPROBE_COUNT(0),          KPROBE_CALL(read_nowhere),
        KPROBE_RESERVE(begin, 2), KPROBE_STORE(8, 0, KPROBE_IMM, 7),
        KPROBE_COMMIT(end),       KPROBE_COUNT(1)
    };
    const struct kprobe_op counts[] = { KPROBE_COUNT(0) };

    for (unsigned by_jump = 0; by_jump < 2; by_jump++) {
        struct kprobe_program program = { .ops = ops, .count = 6, .words = 2 };
        struct kprobe_program other = { .ops = counts, .count = 1, .words = 1 };
        struct kprobe p = { .program = &program, .addr = (uintptr_t)target };
        struct kprobe next = { .program = &other, .addr = (uintptr_t)target };

        called[0] = begun = ended = 0;
        has_room = true;
        by_hand_begin();
        if (register_kprobe(&p) || register_kprobe(&next) ||
            (by_jump && !by_hand_jump(&p))) {
            ktest_report(false, "two probes are there");
            return;
        }
        ktest_report(target(3) == 29, "the program goes on");
        report_ended(&p, &next, by_jump ? "jump" : "trap");
        if (by_jump)
            by_hand_int3(&p);
        unregister_kprobe(&next);
        unregister_kprobe(&p);
    }
}

/* ---- exchange ---- */

static uint64_t handled;

static int handle(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    handled++;
    return 0;
}

KTEST(stores, a_program_is_exchanged_while_it_is_hit)
{
    static const struct kprobe_op count[] = { KPROBE_COUNT(0) };
    struct kprobe_program one = { .ops = count, .count = 1, .words = 1 }, two = one;
    struct kprobe p = { .program = &one };
    struct kprobe_exchange to_handler = { &p, NULL, handle }, to_two = { &p, &two, NULL };

    handled = 0;
    p.addr = (uintptr_t)target;
    ktest_report(!register_kprobe(&p), "it is registered");
    optimize_run();
    target(1);
    ktest_report(!kprobe_exchange(&to_handler, 1), "a handler takes the program's place");
    target(2);
    ktest_report(handled == 1 && program_sum(&one, 0) == 1, "and its words stay");
    kprobe_program_end(&one);
    ktest_report(!kprobe_exchange(&to_two, 1), "another program takes the handler's");
    optimize_run();
    target(3);
    ktest_report(handled == 1 && program_sum(&two, 0) == 1 && kprobe_hits(&p) == 3,
                 "each hit was of one of them");
    ktest_report(kprobe_exchange(&to_two, 1) == -EINVAL, "one that is in use is refused");
    unregister_kprobe(&p);
}
