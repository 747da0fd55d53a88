/* test_pun.c - tests of plans of jumps: each rung of the ladder, pads that do not
 * overlap, and neighbours that are evicted.
 */
#include "probes/jump/pun.h"

#include "tests/unit/unit.h"

#define TEXT UINT64_C(0xffffffff80200000)
#define TEXT_MAX 4096
#define PUNS_MAX 1024
#define EVICTED_MAX 4
#define DETOUR UINT64_C(0xffffffff7e012340)

/* The text that jumps are planned for; set by world_start(). */
static struct {
    uint8_t bytes[TEXT_MAX];
    size_t len;
    size_t padding, padding_end; /* offsets of the bytes that are padding */
    bool evicts;                 /* neighbours may be evicted */
    uintptr_t taken;             /* no pad can be at this address */
    struct pun puns[PUNS_MAX], evicted[EVICTED_MAX];
    struct pun_batch batch;
} world;

static bool pad_is_free(void *arg UNUSED, uintptr_t pad)
{
    return pad != world.taken;
}

static bool byte_at(void *arg UNUSED, uintptr_t addr, uint8_t *byte)
{
    if (addr - TEXT >= world.len)
        return false;
    *byte = world.bytes[addr - TEXT];
    return true;
}

static bool is_padding(void *arg UNUSED, uintptr_t addr)
{
    return addr - TEXT >= world.padding && addr - TEXT < world.padding_end;
}

static bool pun_ask(struct pun *p, uintptr_t addr)
{
    struct insn insn;

    if (addr - TEXT >= world.padding || insn_decode(&insn, &world.bytes[addr - TEXT],
                                                    world.padding - (addr - TEXT), addr))
        return false;
    *p = (struct pun){ .addr = addr, .len = insn.len };
    p->is_call = insn.kind == INSN_CALL_REL;
    memcpy(p->bytes, insn.bytes, insn.len);
    return true;
}

static bool neighbour(void *arg UNUSED, uintptr_t addr, struct pun *out)
{
    return world.evicts && pun_ask(out, addr);
}

static const struct pun_env env = {
    .pads_start = UINT64_C(0xffffffff00000000),
    .pads_end = UINT64_C(0xfffffffffe000000),
    .hole_start = UINT64_C(0xffffffff7e000000),
    .hole_end = UINT64_C(0xffffffff86400000),
    .pad_is_free = pad_is_free,
    .byte_at = byte_at,
    .is_padding = is_padding,
    .neighbour = neighbour,
};

/* world_start - set the text to @hex, and @padding bytes behind it that are never
 * executed.
 */
static void world_start(const char *hex, size_t padding)
{
    world.len = 0;
    for (char *end; *hex; hex = *end ? end + 1 : end)
        world.bytes[world.len++] = (uint8_t)strtoul(hex, &end, 16);
    world.padding = world.len;
    memset(world.bytes + world.len, 0x90, padding);
    world.len += padding;
    world.padding_end = world.len;
    world.evicts = false;
    world.taken = 0;
    world.batch = (struct pun_batch){ .env = &env,
                                      .puns = world.puns,
                                      .evicted = world.evicted,
                                      .evicted_max = EVICTED_MAX };
}

/* ask - add the instruction at @off to the batch to be planned. */
static struct pun *ask(size_t off)
{
    struct pun *p = &world.puns[world.batch.count++];

    CHECK(pun_ask(p, TEXT + off));
    p->detour = DETOUR + off * 32;
    return p;
}

static void ask_all(void)
{
    for (size_t off = 0; off < world.padding;
         off += world.puns[world.batch.count - 1].len)
        ask(off);
}

static size_t plan(void)
{
    struct pun_batch *batch = &world.batch;
    size_t failed;

    batch->work = malloc(pun_work_len(batch->count, batch->evicted_max));
    failed = pun_plan(batch);
    free(batch->work);
    return failed;
}

/* text_after - return the text with all planned jumps in it. */
static const uint8_t *text_after(void)
{
    static uint8_t text[TEXT_MAX + INSN_MAX_LEN];
    const struct pun_batch *batch = &world.batch;

    memcpy(text, world.bytes, world.len);
    for (size_t i = 0; i < batch->count + batch->evicted_count; i++) {
        const struct pun *p =
            i < batch->count ? &batch->puns[i] : &batch->evicted[i - batch->count];

        if (p->rung == PUN_NONE)
            text[p->addr - TEXT] = 0xcc;
        memcpy(text + (p->addr - TEXT), p->jump, p->rung == PUN_NONE ? 0 : p->jump_len);
    }
    return text;
}

/* check_lands - check that the plan @p makes the text a jump that leads where the plan
 * says.
 */
static void check_lands(const struct pun *p)
{
    const uint8_t *text = text_after();
    struct insn insn;

    CHECK_EQ(insn_decode(&insn, text + (p->addr - TEXT), INSN_MAX_LEN, p->addr), 0);
    CHECK_EQ(insn.kind, p->is_call ? INSN_CALL_REL : INSN_JMP_REL);
    CHECK_EQ(insn.target, p->pad ? p->pad : p->detour);
    CHECK_EQ(insn.len, p->span);
    CHECK(!p->pad || p->pad + PUN_PAD_LEN <= env.hole_start || p->pad >= env.hole_end);
}

static void check_all_land(void)
{
    for (size_t i = 0; i < world.batch.count; i++) {
        if (world.puns[i].rung != PUN_NONE)
            check_lands(&world.puns[i]);
    }
    for (size_t i = 0; i < world.batch.evicted_count; i++)
        check_lands(&world.evicted[i]);
}

/* ---- each rung ---- */

UNIT_TEST(a_longer_one_keeps_its_tail)
{
    struct pun *p;

    world_start("48 c7 c0 11 22 33 44 c3", 0);
    p = ask(0);
    CHECK_EQ(plan(), 0);
    CHECK_EQ(p->jump_len, 5);
    CHECK_EQ(p->span, 5);
    CHECK_EQ(pun_pinned(p), 0);
}

UNIT_TEST(a_call_with_a_prefix_keeps_it)
{
    struct pun *p;

    world_start("2e e8 11 22 33 44 c3", 0);
    p = ask(0);
    CHECK_EQ(plan(), 0);
    CHECK_EQ(p->span, 6);
    CHECK_EQ(p->jump[0], 0x2e);
    check_lands(p);
}

UNIT_TEST(without_a_detour_yet_it_goes_to_a_pad)
{
    struct pun *p;

    world_start("0f 1f 44 00 00 e8 11 22 33 44 c3", 0);
    p = ask(0);
    p->detour = 0;
    ask(5)->detour = 0;
    CHECK_EQ(plan(), 0);
    CHECK_EQ(p->rung, PUN_FAR);
    CHECK(p->pad && p[1].pad);
    check_all_land();
}

/* With 00 as its most significant byte, the displacement leads into the image. A prefix
 * moves the displacement by one byte: then that byte is 25, and leads to a place for a
 * pad.
 */
UNIT_TEST(a_prefix_moves_the_displacement)
{
    struct pun *p;

    world_start("48 89 e5 10 00 25 11 22 33 44", 0);
    p = ask(0);
    CHECK_EQ(plan(), 0);
    CHECK_EQ(p->rung, PUN_PADDED);
    CHECK_EQ(p->prefixes, 1);
    check_lands(p);
}

UNIT_TEST(dead_padding_makes_room)
{
    struct pun *p;

    world_start("c3", 8);
    p = ask(0);
    CHECK_EQ(plan(), 0);
    CHECK_EQ(p->rung, PUN_DIRECT);
    CHECK_EQ(p->jump_len, 5);
    check_lands(p);
}

/* ---- where no plan is ---- */

UNIT_TEST(bytes_that_are_not_known_are_not_used)
{
    world_start("55 90 90", 0);
    ask(0);
    CHECK_EQ(plan(), 1);
    CHECK_EQ(world.puns[0].why, PUN_UNKNOWN);
}

UNIT_TEST(a_pad_that_is_taken_is_not_taken_again)
{
    world_start("55 48 89 e5 41 54 c3", 0);
    world.taken = TEXT + 5 + 0x41e58948;
    ask(0);
    CHECK_EQ(plan(), 1);
    CHECK_EQ(world.puns[0].why, PUN_TAKEN);
}

/* ---- together ---- */

/* The most significant byte of the displacement is the third byte of the mov's operand,
 * 00. So the mov has to become a jump, too.
 */
UNIT_TEST(a_neighbour_in_the_way_is_evicted)
{
    world_start("55 b8 01 02 00 00 c3 90 90 90 90", 0);
    world.evicts = true;
    ask(0);
    CHECK_EQ(plan(), 0);
    CHECK_EQ(world.batch.evicted_count, 1);
    CHECK_EQ(world.evicted[0].addr, TEXT + 1);
    CHECK(world.evicted[0].is_evicted);
    check_all_land();
}

UNIT_TEST(the_evicted_have_to_fit)
{
    world_start("55 b8 01 02 00 00 c3 90 90 90 90", 0);
    world.evicts = true;
    world.batch.evicted_max = 0;
    ask(0);
    CHECK_EQ(plan(), 1);
    CHECK_EQ(world.batch.evicted_count, 0);
}

/* As a direct jump without a prefix, the nop would give the push a displacement with the
 * most significant byte 00, which leads into the image. With a prefix that byte is 25.
 */
UNIT_TEST(the_one_in_front_gets_the_byte_that_it_needs)
{
    struct pun *push, *nop;

    world_start("55 0f 1f 84 00 00 00 00 00 c3", 0);
    push = ask(0);
    nop = ask(1);
    nop->detour = TEXT + 1 + 6 + 0x25ff;
    CHECK_EQ(plan(), 0);
    CHECK_EQ(nop->rung, PUN_DIRECT);
    CHECK_EQ(nop->prefixes, 1);
    CHECK_EQ(push->rung, PUN_PLAIN);
    check_all_land();
}

static void check_pads_apart(void)
{
    for (size_t i = 0; i < world.batch.count; i++) {
        for (size_t j = 0; j < i; j++) {
            uintptr_t a = world.puns[i].pad, b = world.puns[j].pad;

            CHECK(!a || !b || a - b + 4 > 8);
        }
    }
}

UNIT_TEST(a_whole_function_at_once)
{
    world_start("55 48 89 e5 41 57 41 56 53 48 83 ec 18 e8 11 22 33 44 89 c3 31 c0 85 db "
                "74 05 48 8b 03 ff d0 48 83 c4 18 5b 41 5e 41 5f 5d c3",
                6);
    ask_all();
    CHECK_EQ(plan(), 0);
    check_all_land();
    check_pads_apart();
}

/* begins_a_row - do six instructions of one byte begin at number @i? Their first two
 * jumps have the same displacement, and so pads that overlap.
 */
static bool begins_a_row(size_t i)
{
    size_t next = i;

    while (next < i + 6 && next < world.batch.count && world.puns[next].len == 1)
        next++;
    return next == i + 6;
}

/* The text is 400 random instructions of one to four bytes. */
UNIT_TEST(long_runs_of_short_instructions)
{
    static const char *const some[] = { "90",    "53",       "5b",         "31 c0",
                                        "89 d8", "41 54",    "48 89 e5",   "48 83 c0 08",
                                        "c9",    "0f b6 c0", "48 8b 43 08" };
    char hex[3 * 2000];
    size_t len = 0, unlucky = 0;

    for (unsigned i = 0; i < 400; i++)
        len += (size_t)snprintf(hex + len, sizeof(hex) - len, "%s%s", i ? " " : "",
                                some[unit_random() % 11]);
    world_start(hex, 16);
    ask_all();
    plan();
    for (size_t i = 0; i < world.batch.count; i++)
        unlucky += world.puns[i].rung == PUN_NONE && !begins_a_row(i);
    CHECK(unlucky <= 2);
    check_all_land();
    check_pads_apart();
}

/* ---- earlier plans ---- */

UNIT_TEST(what_still_holds_is_kept)
{
    uintptr_t pads[3];

    world_start("55 48 89 e5 41 54 c3", 8);
    ask_all();
    CHECK_EQ(plan(), 0);
    for (unsigned i = 0; i < 3; i++)
        pads[i] = world.puns[i].pad;
    CHECK_EQ(plan(), 0);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(world.puns[i].is_kept);
        CHECK_EQ(world.puns[i].pad, pads[i]);
    }
}

/* The second probe is on bytes that the first jump pins, so the first jump gets another
 * pad.
 */
UNIT_TEST(what_holds_no_longer_is_planned_again)
{
    struct pun first;

    world_start("55 48 89 e5 41 54 c3", 8);
    ask(0);
    CHECK_EQ(plan(), 0);
    first = world.puns[0];
    world.batch.count = 1;
    ask(1);
    CHECK_EQ(plan(), 0);
    CHECK(!world.puns[0].is_kept);
    CHECK(world.puns[0].pad != first.pad);
    check_all_land();
}

UNIT_TEST(another_detour_is_another_jump)
{
    world_start("0f 1f 44 00 00 c3", 0);
    ask(0);
    CHECK_EQ(plan(), 0);
    world.puns[0].detour += 64;
    CHECK_EQ(plan(), 0);
    CHECK(!world.puns[0].is_kept);
    check_all_land();
}

UNIT_TESTS()
