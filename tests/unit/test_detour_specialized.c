/* test_detour_specialized.c - tests of specialized detours: the bytes that are filled in,
 * the sites that have such a detour, and when they lose it.
 */
#include "probes/jump/detour_specialized.h"

#include "kernel/base/bits.h"
#include "probes/core/insn_slot.h"
#include "probes/insn/encode.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/program/program.h"
#include "tests/unit/port_fake.h"

#define ENTRY 5u
#define SITE_END 15u
#define PROBE_END 25u
#define COUNTER_END 34u
#define HANDLER_END 39u

static const char code[] = "e8 00 00 00 00 "
                           "48 be 00 00 00 00 00 00 00 00 "
                           "48 bf 00 00 00 00 00 00 00 00 "
                           "65 48 ff 04 25 00 00 00 00 "
                           "e8 00 00 00 00";

static const __typeof__(*((struct plat_pattern *)0)->holes) holes[] = {
    { ENTRY, PLAT_HOLE_MOVED },         { SITE_END, PLAT_HOLE_SITE },
    { PROBE_END, PLAT_HOLE_PROBE },     { COUNTER_END, PLAT_HOLE_COUNTER },
    { HANDLER_END, PLAT_HOLE_HANDLER }, { COUNTER_END, PLAT_HOLE_IP },
};

static struct plat_pattern pattern;
static struct kprobe p;
static kprobe_pre_handler_t handler, other_handler; /* never called; in reach of cells */

static int prepare(void)
{
    struct probe_reject why;
    int err;

    plat_lock(PLAT_PROBES);
    err = detour_prepare(p.site, &why);
    plat_unlock(PLAT_PROBES);
    return err;
}

static void release(void)
{
    plat_lock(PLAT_PROBES);
    detour_release(p.site);
    plat_unlock(PLAT_PROBES);
}

static void start_machine(void)
{
    pattern = (struct plat_pattern){
        .code = (const uint8_t *)fake_function("pattern", code),
        .len = HANDLER_END,
        .entry = ENTRY,
        .holes = holes,
        .hole_count = ARRAY_LEN(holes) - 1,
    };
    handler = (kprobe_pre_handler_t)fake_function("handler", "c3");
    other_handler = (kprobe_pre_handler_t)fake_function("other", "c3");
    fake.specialized = &pattern;
}

/* start - register a probe like @like, with the handler, on the first instruction of
 * @hex, and make its detour.
 */
static void start(const char *hex, struct kprobe like)
{
    start_machine();
    p = like;
    p.pre_handler = handler;
    p.addr = fake_function("fn", hex);
    CHECK_EQ(register_kprobe(&p), 0);
    CHECK_EQ(prepare(), 0);
}

static void end(void)
{
    if (p.site)
        CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static const struct kprobe simple;

static int32_t half(uintptr_t end)
{
    int32_t value;

    memcpy(&value, (const void *)(end - sizeof(value)), sizeof(value));
    return value;
}

UNIT_TEST(the_copy_and_the_way_back_are_behind_it)
{
    struct insn insn;
    uintptr_t copy;

    start("48 89 e5 48 01 c8 c3", simple);
    copy = (uintptr_t)detour_cell(p.site) + HANDLER_END;
    CHECK(memcmp((const void *)copy, p.site->bytes, 3) == 0);
    CHECK_EQ(insn_decode(&insn, (const uint8_t *)copy + 3, INSN_MAX_LEN, copy + 3), 0);
    CHECK_EQ(insn.kind, INSN_JMP_REL);
    CHECK_EQ(insn.target, p.addr + 3);
    CHECK_EQ(copy_original((uintptr_t)site_detour(p.site)), p.addr);
    CHECK_EQ(copy_original(copy), p.addr);
    CHECK_EQ(copy_original(copy + 3), p.addr + 3);
}

UNIT_TEST(only_one_simple_handler_has_it)
{
    static const struct kprobe others[] = {
        { .post_handler = no_post },
        { .flags = KPROBE_FLAG_IRQS_OFF },
        { .flags = KPROBE_FLAG_DISABLED },
    };

    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        start("48 89 e5 c3", others[i]);
        CHECK(!jump_site(p.site)->specialized);
        end();
    }
    start("e8 10 00 00 00 c3", simple); /* a direct call */
    CHECK(!jump_site(p.site)->specialized);
    end();
    start_machine();
    p = (struct kprobe){ .addr = fake_function("fn", "48 89 e5 c3") };
    CHECK_EQ(register_kprobe(&p), 0);
    CHECK_EQ(prepare(), 0);
    CHECK(!jump_site(p.site)->specialized && jump_site(p.site)->kind == DETOUR_PROGRAM);
    CHECK(!detour_specialized_is_denied(p.site));
}

#define OWN_PER_PAGE 11 /* cells of specialized detours: 373 bytes for each */

/* The two allocations that may fail are the page and the memory that describes it. */
UNIT_TEST(without_memory_for_it_the_code_is_shared)
{
    for (unsigned n = 1; n <= 2; n++) {
        start("48 01 c8 c3", simple);
        release();
        insn_slot_exit();
        CHECK_EQ(insn_slot_detour_bytes(), 0);
        fake_fail_at(n);
        CHECK_EQ(prepare(), 0);
        CHECK(fake_failed());
        CHECK(detour_specialized_is_denied(p.site));
        CHECK(!jump_site(p.site)->specialized && detour_is_current(p.site));
        CHECK(site_detour(p.site) + INSN_CALL32_LEN == p.site->boost_slot);
        release();
        CHECK_EQ(prepare(), 0);
        CHECK(jump_site(p.site)->specialized && !detour_specialized_is_denied(p.site));
        end();
    }
}

static void put_all(uint8_t **cells, size_t count)
{
    plat_lock(PLAT_PROBES);
    for (size_t i = 0; i < count; i++)
        insn_slot_put(cells[i]);
    plat_unlock(PLAT_PROBES);
}

UNIT_TEST(some_memory_is_left_to_copies)
{
    uint8_t *others[OWN_PER_PAGE - 1];
    size_t limit;

    start("48 89 e5 c3", simple);
    limit = insn_slot_detour_limit(1);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        others[i] = insn_slot_reserve(INSN_SLOT_DETOUR_LEN);
        CHECK(others[i]);
    }
    CHECK_EQ(insn_slot_detour_bytes(), 4096);
    CHECK(!insn_slot_reserve(INSN_SLOT_DETOUR_LEN));
    release();
    CHECK_EQ(prepare(), 0);
    CHECK(jump_site(p.site)->specialized); /* in the cell that release() has given back */
    insn_slot_detour_limit(0);
    release();
    CHECK_EQ(prepare(), 0);
    CHECK(!jump_site(p.site)->specialized && detour_is_current(p.site));
    CHECK_EQ(insn_slot_detour_limit(limit), 0);
    put_all(others, ARRAY_LEN(others));
}

UNIT_TEST(it_is_current_for_that_very_probe)
{
    struct kprobe other = { 0 };

    start("48 89 e5 c3", simple);
    CHECK(detour_is_current(p.site));
    p.counter++;
    CHECK(!detour_is_current(p.site));
    p.counter--;
    p.pre_handler = other_handler;
    CHECK(!detour_is_current(p.site));
    p.pre_handler = handler;
    other.pre_handler = handler;
    other.addr = p.addr;
    CHECK_EQ(register_kprobe(&other), 0);
    CHECK(!detour_is_current(p.site));
    release();
    CHECK_EQ(prepare(), 0);
    CHECK(!jump_site(p.site)->specialized);
    CHECK_EQ(unregister_kprobe(&other), 0);
    CHECK(detour_is_current(p.site)); /* the shared code may stay */
}

/* The hole of an ip has room for 32 bits, but the addresses of the fake's text are
 * larger. So the pattern cannot be filled in.
 */
UNIT_TEST(what_is_out_of_reach_is_called_by_what_is_shared)
{
    start("48 89 e5 c3", simple);
    pattern.hole_count = ARRAY_LEN(holes);
    for (size_t i = 0; i < 10 * OWN_PER_PAGE; i++) {
        release();
        CHECK_EQ(prepare(), 0);
        CHECK(!jump_site(p.site)->specialized && site_detour(p.site));
    }
    pattern.hole_count--;
    release();
    CHECK_EQ(prepare(), 0);
    CHECK(jump_site(p.site)->specialized); /* no cell has been lost */
}

/* ---- for a light handler ---- */

static void start_light(const char *hex, struct kprobe like)
{
    start_machine();
    p = like;
    p.light_handler = (kprobe_light_handler_t)(uintptr_t)handler;
    p.addr = fake_function("fn", hex);
    CHECK_EQ(register_kprobe(&p), 0);
    CHECK_EQ(prepare(), 0);
}

UNIT_TEST(a_light_handler_is_called_by_the_code_of_programs)
{
    /* In place of the pattern's call: the counter, the address, the call. */
    const size_t called = HANDLER_END + INSN_INC_GS_LEN + INSN_MOV_IMM_MAX_LEN;
    uintptr_t cell;

    start_light("48 89 e5 48 01 c8 c3", simple);
    CHECK_EQ(jump_site(p.site)->kind, DETOUR_LIGHT);
    CHECK(jump_site(p.site)->specialized &&
          jump_site(p.site)->which == PLAT_SPECIALIZED_LIGHT &&
          detour_is_current(p.site));
    cell = (uintptr_t)detour_cell(p.site);
    CHECK_EQ(cell + called + (uintptr_t)(intptr_t)half(cell + called),
             (uintptr_t)handler);
    CHECK_EQ(copy_original(cell + called), p.addr);
}

/* Out of reach and no room are two answers. */
UNIT_TEST(long_programs_have_no_room)
{
    static struct kprobe_op ops[KPROBE_OPS_MAX];
    struct kprobe_program programs[2];
    struct kprobe others[2];
    uint8_t out[INSN_SLOT_LONG_CODE_MAX];
    size_t len;

    for (size_t i = 0; i < KPROBE_OPS_MAX; i++)
        ops[i] = (struct kprobe_op){ .code = KPROBE_OP_SUM,
                                     .source = KPROBE_IMM,
                                     .imm = UINT64_C(1) << 40 };
    start_light("48 89 e5 48 01 c8 c3", simple);
    CHECK_EQ(detour_specialized_put(out, UINT64_C(1) << 60, p.site,
                                    PLAT_SPECIALIZED_LIGHT, false, &len),
             -ERANGE);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        programs[i] = (struct kprobe_program){ ops, KPROBE_OPS_MAX, .words = 1 };
        others[i] = (struct kprobe){ .addr = p.addr, .program = &programs[i] };
        CHECK_EQ(register_kprobe(&others[i]), 0);
    }
    CHECK_EQ(
        detour_specialized_put(out, p.addr, p.site, PLAT_SPECIALIZED_LIGHT, false, &len),
        -E2BIG);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        CHECK_EQ(unregister_kprobe(&others[i]), 0);
}

/* For rare cases a pattern calls shared code, which it names itself. At a direct call the
 * hole leads to the routine for calls, because the return address is on the stack
 * already.
 */
UNIT_TEST(what_is_rare_is_left_to_what_is_shared)
{
    static const __typeof__(*((struct plat_pattern *)0)->holes) rare[] = {
        { ENTRY, PLAT_HOLE_SHARED },
    };
    uintptr_t cell;

    start_light("48 89 e5 c3", simple);
    pattern.holes = rare;
    pattern.hole_count = 1;
    release();
    CHECK_EQ(prepare(), 0);
    cell = (uintptr_t)detour_cell(p.site);
    CHECK_EQ(cell + (uintptr_t)(intptr_t)half(cell + ENTRY), (uintptr_t)pattern.code);
    end();
    start_light("e8 10 00 00 00 c3", simple);
    pattern.holes = rare;
    pattern.hole_count = 1;
    release();
    CHECK_EQ(prepare(), 0);
    CHECK(jump_site(p.site)->specialized);
    cell = (uintptr_t)detour_cell(p.site);
    CHECK_EQ(cell + ENTRY + (uintptr_t)(intptr_t)half(cell + ENTRY),
             plat_detour(PLAT_DETOUR_CALLED));
}

static int no_fault(struct kprobe *q UNUSED, struct pt_regs *regs UNUSED,
                    int trapnr UNUSED)
{
    return 0;
}

UNIT_TEST(more_is_kept_for_whom_more_can_be_lost)
{
    static const struct kprobe asked = { .fault_handler = no_fault };

    start_light("48 89 e5 c3", asked);
    CHECK(jump_site(p.site)->specialized &&
          jump_site(p.site)->which == PLAT_SPECIALIZED_LIGHT_KEEP);
    end();
    start_machine();
    p = (struct kprobe){ .addr = fake_function("fn", "48 89 e5 c3") };
    p.light_handler = (kprobe_light_handler_t)fake_function("changing", "31 db c3");
    CHECK_EQ(register_kprobe(&p), 0);
    CHECK_EQ(prepare(), 0);
    CHECK(jump_site(p.site)->specialized &&
          jump_site(p.site)->which == PLAT_SPECIALIZED_LIGHT_KEEP);
}

UNIT_TEST(with_anything_else_it_is_called_with_an_image)
{
    static const struct kprobe post = { .post_handler = no_post };
    static const struct kprobe masked = { .flags = KPROBE_FLAG_IRQS_OFF };
    struct kprobe other = { 0 };

    start_light("48 89 e5 c3", post);
    CHECK(!jump_site(p.site)->specialized && jump_site(p.site)->kind == DETOUR_POST);
    end();
    start_light("48 89 e5 c3", masked);
    CHECK(!jump_site(p.site)->specialized && jump_site(p.site)->kind == DETOUR_CALL);
    end();
    start_light("48 89 e5 c3", simple);
    other.addr = p.addr;
    CHECK_EQ(register_kprobe(&other),
             0); /* it only counts, and the code does that, too */
    CHECK(!detour_is_current(p.site));
    release();
    CHECK_EQ(prepare(), 0);
    CHECK(jump_site(p.site)->specialized && jump_site(p.site)->kind == DETOUR_LIGHT);
    CHECK_EQ(unregister_kprobe(&other), 0);
    other.pre_handler = handler;
    CHECK_EQ(register_kprobe(&other), 0);
    release();
    CHECK_EQ(prepare(), 0);
    CHECK(!jump_site(p.site)->specialized && jump_site(p.site)->kind == DETOUR_CALL);
    CHECK_EQ(unregister_kprobe(&other), 0);
}

UNIT_TESTS_BETWEEN(fake_start, end)
