/* test_alone.c - breakpoints by the core alone, on code of the running kernel.
 * Each way to run an instruction is tested, from the registration of a probe until
 * its cells are freed.
 */
#include "probes/core/registry.h"
#include "tests/kernel/ktest.h"

#define CALLS 100

static NOINLINE long twice(long a)
{
    __asm__ volatile("" : "+r"(a));
    return 2 * a;
}

static NOINLINE long caller(long a)
{
    return twice(a) + 1;
}

static unsigned before, behind;

static int pre(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    before++;
    return 0;
}

static void post(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                 unsigned long flags UNUSED)
{
    behind++;
}

static uintptr_t call_in(const void *function)
{
    uintptr_t at = (uintptr_t)function;
    struct insn insn = { 0 };

    while (!insn_decode(&insn, (const uint8_t *)at, INSN_MAX_LEN, at) &&
           insn.kind != INSN_CALL_REL)
        at = insn_next(&insn);
    return at;
}

static bool result_is_right(void)
{
    bool right = true;

    for (long i = 0; i < CALLS; i++)
        right &= caller(i) == 2 * i + 1;
    return right;
}

static void live(uintptr_t addr, enum site_way way, bool with_post, const char *what)
{
    struct kprobe p = { .addr = addr, .pre_handler = pre };
    size_t blocks = heap_block_count();
    int err;

    before = behind = 0;
    p.post_handler = with_post ? post : NULL;
    err = register_kprobe(&p);
    ktest_report(!err && p.site->state == SITE_ARMED && p.site->way == way,
                 "%s: armed, to be run that way", what);
    if (err)
        return;
    ktest_report(result_is_right(), "%s: the program does what it did", what);
    ktest_report(before == CALLS && kprobe_hits(&p) == CALLS && !p.nmissed,
                 "%s: each of %d calls is a hit", what, CALLS);
    ktest_report(behind == (with_post ? CALLS : 0), "%s: post-handlers", what);
    ktest_report(p.site->state == SITE_ARMED, "%s: still a breakpoint", what);
    ktest_report(!unregister_kprobe(&p) && !registry_find(addr), "%s: taken out", what);
    ktest_report(*(const uint8_t *)addr != 0xcc && result_is_right() && before == CALLS,
                 "%s: and sees no more", what);
    ktest_report(heap_block_count() == blocks, "%s: no memory is left", what);
}

KTEST(alone, a_breakpoint_from_register_to_reclaim)
{
    live((uintptr_t)twice, WAY_BOOST, false, "boost");
    live((uintptr_t)twice, WAY_STEP, true, "step");
    live(call_in(caller), WAY_EMULATE, false, "emulate");
}
