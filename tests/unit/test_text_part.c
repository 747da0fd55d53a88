/* test_text_part.c - tests that unload a text with very many probes, and load it again:
 * the probes wait, and are armed again.
 */
#include "probes/text/text_part.h"

#include "probes/core/extend.h"
#include "probes/text/text_history.h"
#include "tests/unit/port_fake.h"

#define COUNT 300 /* more than text_part.c has static memory for */
#define STEP 7    /* has no common divisor with COUNT */
#define REFUSED 296

static struct kprobe probes[COUNT], *pointers[COUNT], second, other;
static struct text_part part;
static uintptr_t text;

/* start - load the text, and register its probes. They are not sorted by address, and two
 * of them share an address.
 */
static void start(void)
{
    char bytes[3 * COUNT + 3] = "";

    fake_start();
    for (unsigned i = 0; i < COUNT; i++)
        strcat(bytes, "90 ");
    strcat(bytes, "c3");
    text = fake_function("fn", bytes);
    part = (struct text_part){ .start = text, .end = text + COUNT + 1 };
    CHECK_EQ(text_comes(&part), 0);
    for (unsigned i = 0; i < COUNT; i++) {
        probes[i] = (struct kprobe){ .symbol_name = "fn" };
        probes[i].offset = i * STEP % COUNT;
        pointers[i] = &probes[i];
    }
    CHECK_EQ(register_kprobes(pointers, COUNT), 0);
    second = (struct kprobe){ .symbol_name = "fn", .offset = 9 };
    CHECK_EQ(register_kprobe(&second), 0);
    other = (struct kprobe){ .symbol_name = "of_another", .flags = KPROBE_FLAG_PENDING };
    CHECK_EQ(register_kprobe(&other), 0);
}

static void end(void)
{
    CHECK_EQ(unregister_kprobe(&other), 0);
    CHECK_EQ(unregister_kprobe(&second), 0);
    CHECK_EQ(unregister_kprobes(pointers, COUNT), 0);
    CHECK(fake_text_is_original());
    text_goes(&part);
    text_gone(&part);
    fake_end();
}

static void check_all_wait(bool in_order)
{
    const struct kprobe *p = ext_waiting()->probes;
    unsigned count = 0, last = 0;

    CHECK(p == &other);
    for (p = p->next; p; p = p->next, count++) {
        CHECK(p->flags & KPROBE_FLAG_GONE);
        CHECK(!in_order || p->offset >= last);
        CHECK(p != &second || !in_order || last == 9);
        last = p->offset;
    }
    CHECK_EQ(count, COUNT + 1);
}

static void check_all_are_armed(void)
{
    CHECK(ext_waiting()->probes == &other && !other.next);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK(!(probes[i].flags & KPROBE_FLAG_GONE));
        CHECK_EQ(probes[i].addr, text + i * STEP % COUNT);
        CHECK_EQ(*(const uint8_t *)probes[i].addr, 0xcc);
    }
    CHECK_EQ(second.addr, text + 9);
}

UNIT_TEST(they_go_by_address_and_come_back)
{
    for (unsigned i = 0; i < 3; i++) {
        text_goes(&part);
        CHECK(fake_text_is_original());
        check_all_wait(true);
        text_gone(&part);
        CHECK_EQ(text_comes(&part), 0);
        check_all_are_armed();
    }
}

UNIT_TEST(what_lies_behind_it_stays)
{
    struct kprobe behind = { .pre_handler = NULL };

    part.end--;
    behind.addr = part.end;
    CHECK_EQ(register_kprobe(&behind), 0);
    text_goes(&part);
    CHECK(ext_text_leaves(text) && !ext_text_leaves(part.end));
    CHECK_EQ(*(const uint8_t *)part.end, 0xcc);
    CHECK_EQ(unregister_kprobe(&behind), 0);
    text_gone(&part);
    CHECK_EQ(text_comes(&part), 0);
}

UNIT_TEST(they_go_without_memory)
{
    for (unsigned n = 1; n < 8; n++) {
        fake_fail_at(n);
        text_goes(&part);
        fake_fail_at(0);
        CHECK(fake_text_is_original());
        check_all_wait(n > 1);
        text_gone(&part);
        CHECK_EQ(text_comes(&part), 0);
        check_all_are_armed();
    }
}

/* The text that comes next is another one, so it begins within a range of the old one. */
UNIT_TEST(marks_that_could_not_go_go_later)
{
    const struct nokprobe_range range = { text + 7, text + 11, "of old" };
    const struct nokprobe_marks none = part.nokprobe;

    for (unsigned n = 0; n < 2; n++) {
        text_goes(&part);
        text_gone(&part);
        part.nokprobe = (struct nokprobe_marks){ .ranges = &range, .range_count = 1 };
        CHECK_EQ(text_comes(&part), 0);
        CHECK(blacklist_why(text + 7) && blacklist_why(text + 10));
        text_goes(&part);
        fake_fail_at(n);
        text_gone(&part);
        fake_fail_at(0);
        CHECK_EQ(!blacklist_why(text + 10), !n);
        part.nokprobe = none;
        part.start += 8;
        CHECK_EQ(text_comes(&part), 0);
        CHECK(!blacklist_why(text + 7) && !blacklist_why(text + 10));
        part.start = text;
    }
    text_goes(&part);
    text_gone(&part);
    CHECK_EQ(text_comes(&part), 0);
    check_all_are_armed();
}

static size_t count_changes(uintptr_t start, uintptr_t end)
{
    static struct text_change found[TEXT_HISTORY_LEN];
    size_t count;

    plat_lock(PLAT_TEXT);
    count = text_history_find(start, end, found, ARRAY_LEN(found));
    plat_unlock(PLAT_TEXT);
    return count;
}

UNIT_TEST(its_changes_are_not_those_of_the_next_text)
{
    struct kprobe behind = { .pre_handler = NULL };

    part.end--;
    behind.addr = part.end;
    CHECK_EQ(register_kprobe(&behind), 0);
    text_goes(&part);
    CHECK(count_changes(text, part.end) > 0);
    text_gone(&part);
    CHECK_EQ(count_changes(text, part.end), 0);
    CHECK_EQ(count_changes(part.end, part.end + 1), 1);
    CHECK_EQ(unregister_kprobe(&behind), 0);
    CHECK_EQ(text_comes(&part), 0);
}

/* The boundaries are found as an execute watch finds them, while the text is closed. */
UNIT_TEST(its_boundaries_are_not_those_of_the_next_text)
{
    struct plat_symbol fn;
    struct insn insn;

    text_goes(&part);
    plat_lock(PLAT_PROBES);
    CHECK(!plat_symbol_find("fn", &fn) && !boundary_find(text + 4, &fn, &insn, NULL));
    plat_unlock(PLAT_PROBES);
    text_gone(&part);
    fake_text_poke(text + 3, 0x66);
    CHECK_EQ(text_comes(&part), 0);
    CHECK_EQ(*(const uint8_t *)(text + 3), 0xcc);
    CHECK_EQ(*(const uint8_t *)(text + 4), 0x90);
    text_goes(&part);
    text_gone(&part);
    fake_text_poke(text + 3, 0x90);
    CHECK_EQ(text_comes(&part), 0);
    check_all_are_armed();
}

UNIT_TEST(a_probe_that_was_given_up_stays_so)
{
    const uint32_t given_up = KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED;

    CHECK_EQ(disable_kprobe(&second), 0);
    second.flags |= KPROBE_FLAG_TRIPPED; /* as fault.c does */
    for (unsigned i = 0; i < 2; i++) {
        text_goes(&part);
        text_gone(&part);
        CHECK_EQ(second.flags, given_up | KPROBE_FLAG_GONE);
        CHECK_EQ(text_comes(&part), 0);
        CHECK_EQ(second.flags, given_up);
    }
    CHECK_EQ(enable_kprobe(&second), 0);
    CHECK_EQ(second.flags, 0);
}

UNIT_TEST(nothing_can_wait_in_a_hit)
{
    fake.context = PLAT_TRAP;
    FAKE_BUG(text_goes(&part));
    FAKE_BUG(text_gone(&part));
    fake.context = PLAT_THREAD;
    check_all_are_armed();
}

UNIT_TEST(words_of_a_program_wait_with_its_probe)
{
    static const struct kprobe_op ops[] = { KPROBE_COUNT(0) };
    struct kprobe_program program = { .ops = ops, .count = 1, .words = 1 };
    struct kprobe counting = { .symbol_name = "fn", .offset = 20, .program = &program };
    struct pt_regs regs = { 0 };

    CHECK_EQ(register_kprobe(&counting), 0);
    for (unsigned i = 1; i <= 3; i++) {
        counting.pre_handler(&counting, &regs);
        text_goes(&part);
        CHECK_EQ(program_sum(&program, 0), i);
        text_gone(&part);
        CHECK_EQ(text_comes(&part), 0);
        CHECK_EQ(program_sum(&program, 0), i);
    }
    text_goes(&part);
    CHECK_EQ(unregister_kprobe(&counting), 0); /* while it waits */
    CHECK_EQ(program.first, 0);
    text_gone(&part);
    CHECK_EQ(text_comes(&part), 0);
}

static unsigned waiting(void)
{
    unsigned count = 0;

    for (const struct kprobe *p = ext_waiting()->probes; p; p = p->next)
        count++;
    return count;
}

/* One byte of the text is no instruction any more. So its probe, and the probes behind
 * it, are refused and wait. The probes in front of it are armed.
 */
UNIT_TEST(a_probe_that_is_refused_waits)
{
    text_goes(&part);
    text_gone(&part);
    fake_text_poke(text + REFUSED, 0x06);
    CHECK_EQ(text_comes(&part), 0);
    CHECK_EQ(waiting(), 1 + COUNT - REFUSED);
    CHECK(strstr(fake.logged, " is not armed again: "));
    CHECK_EQ(*(const uint8_t *)(text + REFUSED - 1), 0xcc);
    text_goes(&part);
    check_all_wait(false);
    text_gone(&part);
    fake_text_poke(text + REFUSED, 0x90);
    CHECK_EQ(text_comes(&part), 0);
    check_all_are_armed();
}

/* Probes at the front, in the middle and at the end of the waiting list are unregistered.
 * A copy of a waiting probe is refused, because it is not registered.
 */
UNIT_TEST(they_leave_the_others_waiting)
{
    struct kprobe *some[] = { &other, NULL, &probes[3], &probes[4], &probes[3] }, copy;

    text_goes(&part);
    CHECK_EQ(ext_waiting()->probes == &other, 1);
    for (some[1] = &other; some[1]->next; some[1] = some[1]->next)
        ;
    copy = *some[1];
    CHECK_EQ(unregister_kprobe(&copy), -EINVAL);
    copy = other;
    CHECK_EQ(unregister_kprobe(&copy), -EINVAL);
    CHECK_EQ(unregister_kprobes(some, 5), 0);
    CHECK_EQ(waiting(), COUNT + 2 - 4);
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(unregister_kprobe(some[i]), -EINVAL);
        some[i]->flags = KPROBE_FLAG_PENDING;
        some[i]->addr = 0;
    }
    text_gone(&part);
    CHECK_EQ(register_kprobe(&other), 0);
    CHECK_EQ(text_comes(&part), 0);
    CHECK(ext_waiting()->probes == &other && !other.next);
    CHECK_EQ(register_kprobes(&some[1], 3), 0);
    check_all_are_armed();
}

/* The count tells whether the code of a module still has registered probes. If it has
 * none, the engine need not search all probes when the module is unloaded.
 */
UNIT_TEST(probes_of_its_own_are_counted)
{
    struct kprobe inside = { .symbol_name = "fn", .offset = 1 }, by_handler = inside,
                  foreign = inside, *both[] = { &inside, &by_handler };

    part.memory = (uintptr_t)&inside;
    part.memory_end = (uintptr_t)(&inside + 1);
    by_handler.pre_handler = (kprobe_pre_handler_t)part.memory;
    foreign.pre_handler = no_pre;
    CHECK_EQ(register_kprobe(&foreign), 0);
    CHECK_EQ(part.own_count, 0);
    CHECK_EQ(register_kprobes(both, 2), 0);
    CHECK_EQ(part.own_count, 2);
    CHECK_EQ(register_kprobe(&inside), -EEXIST);
    CHECK_EQ(part.own_count, 2);
    text_goes(&part);
    CHECK(inside.flags & KPROBE_FLAG_GONE);
    CHECK_EQ(part.own_count, 2); /* both probes wait, and are still registered */
    CHECK_EQ(unregister_kprobe(&by_handler), 0);
    CHECK_EQ(part.own_count, 1);
    CHECK_EQ(unregister_kprobe(&inside), 0);
    CHECK_EQ(part.own_count, 0);
    inside = (struct kprobe){ .symbol_name = "later", .flags = KPROBE_FLAG_PENDING };
    CHECK_EQ(register_kprobe(&inside), 0);
    CHECK_EQ(part.own_count, 1);
    CHECK_EQ(unregister_kprobe(&inside), 0);
    CHECK_EQ(part.own_count, 0);
    CHECK_EQ(unregister_kprobe(&foreign), 0);
    text_gone(&part);
    CHECK_EQ(text_comes(&part), 0);
}

/* Each pointer in turn is the one thing of a probe that leads into a module's memory. */
UNIT_TEST(all_that_a_probe_uses_is_its_own)
{
    static struct kprobe_program own;
    struct kprobe_op ops[] = { KPROBE_IF(KPROBE_REG_DI, KPROBE_A, (uintptr_t)&own, 1),
                               KPROBE_CALL(ops),
                               KPROBE_RESERVE(ops, 1),
                               KPROBE_COMMIT(ops),
                               KPROBE_BY(ops, 4),
                               KPROBE_UNLESS(ops, 0) };
    struct kprobe_program program = { .ops = ops, .count = ARRAY_LEN(ops) };
    struct kprobe p = { .program = &program };
    struct kretprobe rp = { .kp.kind = KPROBE_KIND_RETURN };
    struct jprobe jp = { .kp.kind = KPROBE_KIND_JPROBE };
    void *used[] = { &p.symbol_name, &p.pre_handler,   &p.light_handler, &p.post_handler,
                     &p.program,     &p.fault_handler, &program.ops,     &ops[1].imm,
                     &ops[2].imm,    &ops[3].imm,      &ops[4].imm,      &ops[5].imm,
                     &jp.entry,      &rp.handler,      &rp.entry_handler };

    part.memory = (uintptr_t)&own;
    part.memory_end = part.memory + 1;
    for (size_t i = 0; i < ARRAY_LEN(used); i++) {
        uintptr_t before, inside = part.memory;

        memcpy(&before, used[i], sizeof(before));
        CHECK_EQ(text_owns(&part, &p) + text_owns(&part, &rp.kp) +
                     text_owns(&part, &jp.kp),
                 0);
        memcpy(used[i], &inside, sizeof(inside));
        CHECK_EQ(text_owns(&part, &p) + text_owns(&part, &rp.kp) +
                     text_owns(&part, &jp.kp),
                 1);
        memcpy(used[i], &before, sizeof(before));
    }
}

UNIT_TEST(an_exchange_changes_the_owner)
{
    static const struct kprobe_op ops[] = { KPROBE_COUNT(0) };
    struct kprobe_program program = { .ops = ops, .count = 1, .words = 1 };
    struct kprobe p = { .symbol_name = "fn", .offset = 1, .pre_handler = no_pre };

    part.memory = (uintptr_t)&program;
    part.memory_end = part.memory + 1;
    CHECK_EQ(register_kprobe(&p), 0);
    CHECK_EQ(kprobe_exchange(&(struct kprobe_exchange){ &p, &program, NULL }, 1), 0);
    CHECK_EQ(part.own_count, 1);
    CHECK_EQ(kprobe_exchange(&(struct kprobe_exchange){ &p, NULL, no_pre }, 1), 0);
    CHECK_EQ(part.own_count, 0);
    kprobe_program_end(&program);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

/* When a set is refused, the probes of it that were counted already are not counted any
 * more.
 */
UNIT_TEST(a_refused_set_is_not_counted)
{
    struct kprobe ps[3] = { { .symbol_name = "fn", .offset = 1 },
                            { .symbol_name = "later", .flags = KPROBE_FLAG_PENDING },
                            { .symbol_name = "fn", .offset = COUNT + 7 } };
    struct kprobe *set[] = { &ps[0], &ps[1], &ps[2] }, *twice[] = { &ps[1], &ps[1] };

    part.memory = (uintptr_t)ps;
    part.memory_end = (uintptr_t)(ps + 3);
    CHECK(register_kprobes(set, 3) < 0);
    CHECK_EQ(part.own_count, 0);
    CHECK_EQ(register_kprobes(twice, 2), -EEXIST);
    CHECK_EQ(part.own_count, 0);
    for (unsigned n = 1; n < 6; n++) {
        fake_fail_at(n);
        CHECK(register_kprobes(set, 2) == 0 || part.own_count == 0);
        fake_fail_at(0);
        if (!part.own_count)
            continue;
        CHECK_EQ(part.own_count, 2);
        CHECK_EQ(unregister_kprobes(set, 2), 0);
        ps[1].flags = KPROBE_FLAG_PENDING;
    }
    CHECK_EQ(part.own_count, 0);
}

UNIT_TESTS_BETWEEN(start, end)
