/* test_handler.c - tests of handler_read(): which functions can be left in the middle, and
 * which need no image.
 */
#include "probes/jump/handler.h"

#include "tests/unit/port_fake.h"

static unsigned facts_of(const char *hex)
{
    unsigned facts;

    plat_lock(PLAT_PROBES);
    facts = handler_read(fake_function("handler", hex));
    plat_unlock(PLAT_PROBES);
    return facts;
}

static bool is_plain(const char *hex)
{
    return facts_of(hex) & HANDLER_KEEPS;
}

UNIT_TEST(what_changes_only_what_it_may_is_plain)
{
    CHECK(is_plain("55 48 89 e5 48 ff 05 00 00 00 00 5d c3")); /* rbp may change */
    CHECK(is_plain("48 85 ff 74 03 48 ff 07 c3"));             /* jz over inc (%rdi) */
    CHECK(is_plain("eb 01 90 c3"));                            /* jmp over nop */
    CHECK(is_plain("4c 89 c8 4d 31 d2 41 bb 01 00 00 00 c3")); /* r9, r10, r11 */
    CHECK(is_plain("48 89 1f 4d 39 fe c3"));                   /* reads rbx, r14, r15 */
    CHECK(is_plain("65 48 8b 04 25 00 00 00 00 c3"));          /* mov %gs:0, %rax */
}

UNIT_TEST(what_changes_more_is_not)
{
    CHECK(!is_plain("31 db c3"));                      /* xor %ebx, %ebx */
    CHECK(!is_plain("41 5c c3"));                      /* pop %r12 */
    CHECK(!is_plain("45 88 cd c3"));                   /* mov %r9b, %r13b */
    CHECK(!is_plain("49 ff c6 c3"));                   /* inc %r14 */
    CHECK(!is_plain("4c 87 38 c3"));                   /* xchg %r15, (%rax) */
    CHECK(!is_plain("fa 8b 07 fb c3"));                /* cli, sti */
    CHECK(!is_plain("9c 9d c3"));                      /* pushf, popf */
    CHECK(!is_plain("65 48 89 04 25 00 00 00 00 c3")); /* mov %rax, %gs:0 */
}

UNIT_TEST(nor_is_what_leads_elsewhere)
{
    CHECK(!is_plain("e8 00 00 00 00 c3"));
    CHECK(!is_plain("ff 10 c3"));
    CHECK(!is_plain("eb 10 c3"));
    CHECK(!is_plain("74 10 c3"));
    CHECK(!is_plain("ff e0"));
    CHECK(!is_plain("cc c3"));
    CHECK(!is_plain("31 c0 0f 1f 44 00 00 c3")); /* a static key */
    CHECK(is_plain("0f 1f 44 00 00 31 c0 0f 1f 40 00 c3"));
}

UNIT_TEST(nor_what_cannot_be_read)
{
    CHECK(!is_plain("90 06"));
    CHECK(!is_plain("90 48"));
    plat_lock(PLAT_PROBES);
    CHECK(!handler_read(0x1000));
    plat_unlock(PLAT_PROBES);
}

static bool is_light(const char *hex)
{
    return facts_of(hex) & HANDLER_NO_IMAGE;
}

UNIT_TEST(what_returns_0_and_reads_no_image_needs_none)
{
    CHECK(is_light("48 ff 05 00 00 00 00 31 c0 c3"));    /* inc count; xor %eax, %eax */
    CHECK(is_light("55 48 89 e5 48 8b 07 33 c0 5d c3")); /* reads the probe */
    CHECK(is_light("48 85 ff 74 03 48 ff 07 31 c0 c3")); /* jz over inc (%rdi) */
    CHECK(is_light("48 85 ff 74 03 31 c0 c3 31 c0 c3")); /* two ways out */
}

UNIT_TEST(what_may_do_more_needs_one)
{
    CHECK(!is_light("48 8b 46 70 31 c0 c3"));          /* mov 0x70(%rsi), %rax */
    CHECK(!is_light("48 89 f0 31 c0 c3"));             /* mov %rsi, %rax */
    CHECK(!is_light("56 58 31 c0 c3"));                /* push %rsi */
    CHECK(!is_light("ac 31 c0 c3"));                   /* lodsb */
    CHECK(!is_light("c3"));                            /* eax as it comes */
    CHECK(!is_light("b8 01 00 00 00 c3"));             /* 1 */
    CHECK(!is_light("31 c0 ff c0 c3"));                /* 1 */
    CHECK(!is_light("31 c0 b0 01 c3"));                /* 1 */
    CHECK(!is_light("31 c9 c3"));                      /* xor %ecx, %ecx */
    CHECK(!is_light("66 31 c0 c3"));                   /* xor %ax, %ax */
    CHECK(!is_light("30 c0 c3"));                      /* xor %al, %al */
    CHECK(!is_light("45 31 c0 c3"));                   /* xor %r8d, %r8d */
    CHECK(!is_light("48 85 ff 74 02 31 c0 c3"));       /* jz over the xor */
    CHECK(!is_light("48 85 ff 74 03 31 c0 c3 c3"));    /* jz to another ret */
    CHECK(!is_light("31 c0 48 ff cf 75 fb c3"));       /* a loop */
    CHECK(!is_light("31 c0 e8 00 00 00 00 31 c0 c3")); /* a call */
    CHECK(!is_light("31 db 31 c0 c3"));                /* changes rbx */
}

UNIT_TESTS_BETWEEN(fake_start, fake_end)
