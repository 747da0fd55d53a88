/* test_return_point.c - tests of functions that a detour has called, and that return to
 * its cell.
 */
#include "probes/returns/return_point.h"

#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/returns/holder.h"
#include "probes/returns/platform_returns.h"
#include "tests/unit/port_fake.h"

#define LEA "48 8d 7f 01 c3" /* lea rdi, [rdi + 1]; ret */
#define RETURN_ADDR ((uintptr_t)kretprobe_trampoline + 0x1000)

static unsigned returned;

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    CHECK_EQ(regs->ip, ri->ret_addr);
    returned++;
    return 0;
}

/* probed - register @rp on a new function @name, and make the detour that calls the
 * function.
 * Return: the return point.
 */
static uintptr_t probed(struct kretprobe *rp, const char *name)
{
    rp->kp.addr = fake_function(name, LEA);
    rp->handler = on_return;
    CHECK_EQ(register_kretprobe(rp), 0);
    plat_lock(PLAT_PROBES);
    CHECK_EQ(detour_prepare(rp->kp.site, NULL), 0);
    plat_unlock(PLAT_PROBES);
    CHECK_EQ(jump_site(rp->kp.site)->kind, DETOUR_RETURN);
    return (uintptr_t)detour_cell(rp->kp.site) + RETURN_POINT_OFF;
}

static void start(void)
{
    fake_start();
    returned = 0;
}

/* called - return the registers as the detour calls the function: the shadow has an
 * entry, and the return address on the stack is @point.
 * @below: place of the return address, in bytes below fake_stack()
 */
static struct pt_regs called(const struct kretprobe *rp, uintptr_t point, size_t below)
{
    struct pt_regs regs = fake_regs();

    regs.sp -= below;
    *(uintptr_t *)regs.sp = RETURN_ADDR + below;
    CHECK(fake_int3(&regs, rp->kp.addr));
    *(uintptr_t *)regs.sp = point;
    return regs;
}

static void goes_back(struct pt_regs *regs, size_t below)
{
    CHECK(fake_return(regs));
    CHECK_EQ(regs->ip, RETURN_ADDR + below);
}

UNIT_TEST(it_is_as_good_as_the_trampoline)
{
    struct kretprobe rp = { .handler = NULL };
    uintptr_t point = probed(&rp, "f");
    struct pt_regs regs = called(&rp, point, 0);

    CHECK_EQ(kretprobe_find_ret((const uintptr_t *)regs.sp), RETURN_ADDR);
    goes_back(&regs, 0);
    CHECK_EQ(returned, 1);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    CHECK(!return_point_is(point));
}

UNIT_TEST(when_the_cell_goes_the_trampoline_is_returned_to)
{
    struct kretprobe rp = { .handler = NULL };
    struct pt_regs outer, inner;
    uintptr_t point = probed(&rp, "f");

    outer = called(&rp, point, 16);
    inner = called(&rp, point, 48);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    CHECK_EQ(*(uintptr_t *)outer.sp, (uintptr_t)kretprobe_trampoline);
    CHECK_EQ(*(uintptr_t *)inner.sp, (uintptr_t)kretprobe_trampoline);
    CHECK(!return_point_is(point));
    goes_back(&inner, 48);
    goes_back(&outer, 16);
    CHECK_EQ(returned, 0);
    plat_lock(PLAT_PROBES);
    holder_sweep();
    plat_unlock(PLAT_PROBES);
}

/* One entry names a place on the stack that has another word now, and one entry is only
 * claimed. return_points_leave() changes neither.
 */
UNIT_TEST(nothing_else_is_changed)
{
    struct kretprobe rp = { .handler = NULL };
    struct pt_regs left, alive;
    struct shadow *s;
    uintptr_t point = probed(&rp, "f");

    left = called(&rp, point, 16);
    alive = called(&rp, point, 48);
    *(uintptr_t *)left.sp = point + 1;
    s = *plat_this_cpu()->plat.shadow;
    CHECK(shadow_claim(s));
    plat_lock(PLAT_PROBES);
    return_points_leave();
    plat_unlock(PLAT_PROBES);
    shadow_unclaim(s);
    CHECK_EQ(*(uintptr_t *)left.sp, point + 1);
    CHECK_EQ(*(uintptr_t *)alive.sp, (uintptr_t)kretprobe_trampoline);
    CHECK(return_point_is(point));
    *(uintptr_t *)left.sp = point;
    goes_back(&alive, 48);
    goes_back(&left, 16);
    CHECK_EQ(unregister_kretprobe(&rp), 0);
}

/* The engine waits for one more quiescence only if the detour calls the function. */
UNIT_TEST(only_detours_that_call_are_waited_for)
{
    struct kretprobe rp = { .handler = NULL };
    struct kprobe p = { .addr = 0 };
    unsigned before, returning;

    probed(&rp, "f");
    p.addr = fake_function("g", LEA);
    CHECK_EQ(register_kprobe(&p), 0);
    plat_lock(PLAT_PROBES);
    CHECK_EQ(detour_prepare(p.site, NULL), 0);
    plat_unlock(PLAT_PROBES);
    before = fake.quiesces;
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    returning = fake.quiesces - before;
    before = fake.quiesces;
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_EQ(returning, fake.quiesces - before + 1);
}

UNIT_TESTS_BETWEEN(start, fake_end)
