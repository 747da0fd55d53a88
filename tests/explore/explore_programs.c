/* explore_programs.c - two probes with programs are at one place, whose detour has the code
 * of both. One probe is disabled, and goes, while a CPU executes the place; another probe
 * gets its counters. After a jump the CPU executes the bytes of the detour.
 */
#include "probes/jump/counter.h"
#include "probes/jump/optimize.h"
#include "tests/explore/text.h"
#include "tests/unit/port_fake.h"

#define CODE "b8 11 11 11 11 c3"
#define JMP32 0xe9

static const uint8_t move[] = { 0xb8, 0x11, 0x11, 0x11, 0x11 };
static const uint8_t inc_gs[] = { 0x65, 0x48, 0xff, 0x04, 0x25 };
static const struct kprobe_op count[] = { KPROBE_COUNT(0) };

static struct one {
    struct kprobe p;
    struct kprobe_program program;
} * goes, stays, late;
static uintptr_t fn, other;
static bool is_off; /* disable_kprobe() has returned */

static void one_register(struct one *one, uintptr_t addr)
{
    one->program = (struct kprobe_program){ .ops = count, .count = 1, .words = 1 };
    one->p = (struct kprobe){ .addr = addr, .program = &one->program };
    explore_check(!register_kprobe(&one->p), "the probe comes");
}

static void once(void)
{
    text_once();
    fn = text_function("fn", CODE);
    other = text_function("other", CODE);
    fake_compiled(fn);
}

static void start(void)
{
    text_start();
    optimize_set_method(OPTIMIZE_PUN);
    goes = explore_alloc(sizeof(*goes));
    one_register(goes, fn);
    one_register(&stays, fn);
    optimize_run();
    explore_check(stays.p.flags & KPROBE_FLAG_OPTIMIZED, "the place is a jump");
}

static void go(void)
{
    explore_check(!disable_kprobe(&goes->p), "the probe is disabled");
    WRITE_ONCE(is_off, true);
    optimize_run();
    explore_check(!unregister_kprobe(&goes->p), "the probe goes");
    explore_free(goes);
    one_register(&late, other);
}

/* ---- the CPU ---- */

/* count_at - `inc %gs:disp32`. Return: is it the word of @goes? */
static bool count_at(const uint8_t *disp)
{
    int32_t at;
    uint32_t number;

    memcpy(&at, disp, sizeof(at));
    number = (uint32_t)(at - plat_counter_disp(0)) / sizeof(uint64_t);
    WRITE_ONCE(*counter_word(explore_cpu(), number),
               *counter_word(explore_cpu(), number) + 1);
    return number != stays.p.counter && number != stays.program.first;
}

/* run_code - execute a detour, or a copy, up to the jump back. Return: has it counted for
 * another probe than @stays?
 */
static bool run_code(uintptr_t ip)
{
    bool counted = false;

    for (;;) {
        const uint8_t *bytes = (const uint8_t *)ip;

        explore_point();
        if (!memcmp(bytes, inc_gs, sizeof(inc_gs))) {
            counted |= count_at(bytes + sizeof(inc_gs));
            ip += sizeof(inc_gs) + sizeof(int32_t);
        } else if (!memcmp(bytes, move, sizeof(move))) {
            ip += sizeof(move);
        } else {
            explore_check(bytes[0] == JMP32, "the code is there");
            return counted;
        }
    }
}

static uintptr_t jump_target(const uint8_t *jump)
{
    int32_t distance;

    memcpy(&distance, jump + 1, sizeof(distance));
    return fn + sizeof(move) + (uintptr_t)(intptr_t)distance;
}

/* by_jump - interrupts may come as soon as the CPU is in the detour. */
static void by_jump(const uint8_t *jump, bool was_off)
{
    bool counted;

    machine_enter();
    machine_irqs(true);
    counted = run_code(jump_target(jump));
    machine_leave();
    explore_check(!was_off || !counted,
                  "a disabled probe counts no hit that begins later");
    explore_seen(counted ? "by the code of both" : "by the code of the other one");
}

static void run(void)
{
    bool was_off = READ_ONCE(is_off);
    uint8_t bytes[sizeof(move)];
    uintptr_t ip = fn;

    while (ip == fn) {
        machine_irqs(false);
        text_fetch(fn, bytes, sizeof(bytes));
        if (bytes[0] == JMP32) {
            by_jump(bytes, was_off);
            return;
        }
        explore_check(bytes[0] == 0xcc, "the place is a jump or an int3");
        ip = text_trap(fn);
        if (ip != fn)
            run_code(ip);
        text_leave();
    }
    explore_seen("by a trap");
}

static void end(void)
{
    explore_check(kprobe_hits(&stays.p) == 1, "the hit counts for the probe that stays");
    explore_check(program_sum(&stays.program, 0) == 1, "and runs its program once");
    explore_check(!kprobe_hits(&late.p), "no hit counts for a probe elsewhere");
    explore_check(!program_sum(&late.program, 0), "and none runs its program");
    explore_check(!unregister_kprobe(&stays.p), "the other probe goes");
    explore_check(!unregister_kprobe(&late.p), "the late one goes");
    explore_check(!explore_blocks(), "no memory is left");
}

const struct scenario scenario = {
    .once = once,
    .start = start,
    .end = end,
    .actors = { { "change", go, 0, EXPLORE_THREAD },
                { "program", run, 1, EXPLORE_THREAD } },
    .outcomes = { "by the code of both", "by the code of the other one", "by a trap" },
};
