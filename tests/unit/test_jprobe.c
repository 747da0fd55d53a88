/* test_jprobe.c - tests of jprobes: which jprobes are accepted, and how their handlers
 * end.
 */
#include "probes/text/text_part.h"
#include "tests/unit/port_fake.h"

#define LEA "48 8d 7f 01 c3" /* lea rdi, [rdi + 1]; ret */

static long seen[6];
static unsigned ran, behind; /* calls of handlers; of code behind jprobe_return() */

static void handler(long a, long b, long c, long d, long e, long f)
{
    const long args[6] = { a, b, c, d, e, f };

    for (unsigned i = 0; i < 6; i++)
        seen[i] = args[i];
    ran++;
    jprobe_return();
}

static void plain(void)
{
    ran++;
}

static void deeper(unsigned depth)
{
    if (!depth)
        jprobe_return();
    if (depth < 100)
        deeper(depth - 1);
    behind++;
}

static void deep(void)
{
    ran++;
    deeper(10);
    behind++;
}

static uintptr_t start(void)
{
    ran = behind = 0;
    return fake_function("f", LEA);
}

UNIT_TEST(a_handler_sees_the_arguments)
{
    struct jprobe jp = { .entry = handler };
    struct pt_regs regs, before;

    jp.kp.addr = start();
    CHECK_EQ(register_jprobe(&jp), 0);
    CHECK_EQ(kprobe_kind(&jp.kp), 'j');
    before = regs = fake_regs();
    CHECK(fake_int3(&regs, jp.kp.addr));
    CHECK_EQ(ran, 1);
    CHECK_EQ(seen[0], before.di);
    CHECK_EQ(seen[1], before.si);
    CHECK_EQ(seen[2], before.dx);
    CHECK_EQ(seen[3], before.cx);
    CHECK_EQ(seen[4], before.r8);
    CHECK_EQ(seen[5], before.r9);
    CHECK_EQ(regs.di, before.di);
    CHECK_EQ(regs.sp, before.sp);
    CHECK_EQ(fake.jprobe_words, JPROBE_STACK_LEN / 8);
    CHECK_EQ(unregister_jprobe(&jp), 0);
}

UNIT_TEST(it_ends_from_any_depth)
{
    struct jprobe jp = { .entry = deep };
    struct pt_regs regs;

    jp.kp.addr = start();
    CHECK_EQ(register_jprobe(&jp), 0);
    for (unsigned i = 1; i <= 3; i++) {
        regs = fake_regs();
        CHECK(fake_int3(&regs, jp.kp.addr));
        CHECK_EQ(ran, i);
    }
    CHECK_EQ(behind, 0);
    CHECK_EQ(unregister_jprobe(&jp), 0);
}

static struct kretprobe left;
static uintptr_t inner_sp;

static void calls_left(void)
{
    struct pt_regs inner = fake_regs();

    inner.sp = inner_sp;
    *(uintptr_t *)inner.sp = left.kp.addr; /* or any address that is near */
    CHECK(fake_int3(&inner, left.kp.addr));
    jprobe_return();
}

static int no_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

UNIT_TEST(calls_that_it_has_left_are_dropped)
{
    struct jprobe jp = { .entry = calls_left };
    struct pt_regs *regs; /* on the stack that the shadow is about */

    left = (struct kretprobe){ .handler = no_return };
    jp.kp.addr = start();
    left.kp.addr = fake_function("left", LEA);
    CHECK_EQ(register_kretprobe(&left), 0);
    CHECK_EQ(register_jprobe(&jp), 0);
    regs = (struct pt_regs *)(fake_regs().sp - sizeof(*regs));
    *regs = fake_regs();
    inner_sp = (uintptr_t)regs - 16;
    CHECK(fake_int3(regs, jp.kp.addr));
    CHECK_EQ(left.dropped, 1);
    CHECK_EQ(unregister_kretprobe(&left), 0);
    CHECK_EQ(unregister_jprobe(&jp), 0);
}

UNIT_TEST(there_is_one_at_an_address)
{
    struct jprobe one = { .entry = plain }, two = { .entry = plain };
    struct jprobe *both[2] = { &one, &two };
    struct kprobe p = { 0 };
    struct probe_reject why;

    p.addr = one.kp.addr = two.kp.addr = start();
    CHECK_EQ(register_jprobes_why(both, 2, &why), -EEXIST);
    CHECK_EQ(why.reason, PROBE_HAS_JPROBE);
    CHECK_EQ(why.index, 1);
    CHECK_EQ(register_jprobe(&one), 0);
    CHECK_EQ(kprobe_kind(&one.kp), 'j');
    CHECK_EQ(register_jprobe_why(&two, &why), -EEXIST);
    CHECK_EQ(kprobe_kind(&two.kp), 'k');
    CHECK_EQ(why.reason, PROBE_HAS_JPROBE);
    CHECK_EQ(register_kprobe(&p), 0);
    CHECK_EQ(unregister_jprobe(&one), 0);
    CHECK_EQ(kprobe_kind(&one.kp), 'k');
    CHECK_EQ(register_jprobe(&two), 0);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_EQ(unregister_jprobe(&two), 0);
}

UNIT_TEST(it_is_at_an_entry_and_has_a_handler)
{
    struct jprobe jp = { .entry = plain };
    struct probe_reject why;

    jp.kp.addr = start() + 4;
    CHECK_EQ(register_jprobe_why(&jp, &why), -EINVAL);
    CHECK_EQ(why.reason, PROBE_NOT_ENTRY);
    jp.kp.addr -= 4;
    jp.entry = NULL;
    CHECK_EQ(register_jprobe_why(&jp, &why), -EINVAL);
    CHECK_EQ(why.reason, PROBE_NO_HANDLER);
}

UNIT_TEST(a_batch_comes_and_goes)
{
    struct jprobe jps[2] = { [0] = { .entry = plain }, [1] = { .entry = handler } };
    struct jprobe *all[2] = { &jps[0], &jps[1] };
    struct pt_regs regs;

    jps[0].kp.addr = start();
    jps[1].kp.addr = fake_function("g", LEA) + 1;
    CHECK(register_jprobes(all, 2) < 0);
    CHECK(fake_text_is_original()); /* nothing is left of the first one */
    jps[1].kp.addr--;
    CHECK_EQ(register_jprobes(all, 2), 0);
    for (unsigned i = 0; i < 2; i++) {
        regs = fake_regs();
        CHECK(fake_int3(&regs, jps[i].kp.addr));
    }
    CHECK_EQ(ran, 2);
    CHECK_EQ(unregister_kprobes((struct kprobe *[]){ &jps[0].kp, &jps[1].kp }, 2), 0);
}

/* The second has to wait on, because a function can have one jprobe. */
UNIT_TEST(they_may_wait_for_their_text)
{
    struct jprobe jps[2] = { [0] = { .entry = plain }, [1] = { .entry = plain } };
    struct jprobe *both[2] = { &jps[0], &jps[1] };
    struct text_part part = { 0 };
    struct pt_regs regs = fake_regs();

    jps[0].kp.symbol_name = jps[1].kp.symbol_name = "f";
    CHECK_EQ(register_jprobe(&jps[0]), -ENOENT);
    jps[0].kp.flags = jps[1].kp.flags = KPROBE_FLAG_PENDING;
    CHECK_EQ(register_jprobes(both, 2), 0);
    part.start = start();
    part.end = part.start + 5;
    CHECK_EQ(text_comes(&part), 0);
    CHECK(fake_int3(&regs, part.start));
    CHECK_EQ(ran, 1);
    CHECK(!(jps[0].kp.flags & KPROBE_FLAG_GONE));
    CHECK(jps[1].kp.flags & KPROBE_FLAG_GONE);
    CHECK_EQ(unregister_jprobe(&jps[0]), 0);
    CHECK_EQ(unregister_jprobe(&jps[1]), 0);
    text_goes(&part);
    text_gone(&part);
}

UNIT_TEST(jprobe_return_anywhere_else_is_a_bug)
{
    start();
    CHECK(FAKE_BUG(jprobe_return()));
}

UNIT_TESTS_BETWEEN(fake_start, fake_end)
