/* test_places.c - places that can never be probed, and names of places
 * that could mislead.
 */
#include "kernel/cpu/trap.h"
#include "kernel/debug/ksyms.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/paging.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nothing.h"

extern const char entry_text_start[], entry_text_end[];
/* code of boot/ap_start.asm, which CPUs run in other modes than 64-bit mode */
extern const char ap_trampoline_template[], ap_trampoline_template_end[];

static int refusal(uintptr_t addr, struct probe_reject *why)
{
    struct kprobe p = { .addr = addr };
    int err;

    *why = (struct probe_reject){ 0 };
    err = register_kprobe_why(&p, why);
    if (!err)
        unregister_kprobe(&p);
    return err;
}

static size_t count_refused(uintptr_t start, uintptr_t end, int err,
                            enum probe_reason reason)
{
    struct probe_reject why;
    size_t refused = 0;

    for (uintptr_t addr = start; addr < end; addr++)
        refused += refusal(addr, &why) == err && why.reason == reason;
    return refused;
}

/* ---- refused places ---------------------------------------------------------------- */

/* The entry code includes that of NMI, #DF and #MC. Before it has saved the registers,
 * and after it has loaded them, the stack and GS are not those that a trap expects.
 */
KTEST(places, every_byte_of_the_entry_code_is_refused)
{
    uintptr_t start = (uintptr_t)entry_text_start, end = (uintptr_t)entry_text_end;
    static const char *const names[] = { "nmi_entry", "df_entry", "mc_entry", "exc_int3",
                                         "db_entry",  "pf_entry", "irq_entry" };
    unsigned inside = 0;
    struct ksym sym;

    ktest_report(count_refused(start, end, -EPERM, PROBE_ENTRY_CODE) == end - start,
                 "all %lu bytes", (end - start));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        inside += !ksyms_find(names[i], &sym) && sym.start >= start &&
                  sym.start + sym.size <= end;
    ktest_report(inside == ARRAY_LEN(names), "among them NMI, #DF, #MC and the traps");
}

KTEST(places, every_byte_of_the_re_entry_core_is_refused)
{
    size_t bytes = 0, refused = 0, ranges = 0;
    struct nokprobe_range range;

    for (uintptr_t at = 0; blacklist_next(at, &range) == 0; at = range.end, ranges++) {
        bytes += range.end - range.start;
        refused += count_refused(range.start, range.end, -EPERM, PROBE_BLACKLISTED);
    }
    ktest_report(ranges > 0 && refused == bytes, "all %zu bytes in %zu ranges", bytes,
                 ranges);
}

SECTION(".kprobes.text") NOINLINE long places_old_mark(long a);

long places_old_mark(long a)
{
    return 3 * a + 1;
}

KTEST(places, kprobes_text_is_refused)
{
    uintptr_t start = (uintptr_t)places_old_mark;
    struct ksym sym = { 0 };

    ktest_report(!ksyms_at(start, &sym) && count_refused(start, start + sym.size, -EPERM,
                                                         PROBE_BLACKLISTED) == sym.size,
                 "all %zu bytes of a function", sym.size);
    ktest_report(places_old_mark(2) == 7, "which runs");
}

KTEST(places, code_for_other_modes_is_no_place)
{
    struct probe_reject why;
    size_t len = (size_t)(ap_trampoline_template_end - ap_trampoline_template);
    uintptr_t start = (uintptr_t)ap_trampoline_template;
    size_t refused = 0;

    for (size_t i = 0; i < len; i++)
        refused += refusal(start + i, &why) < 0;
    ktest_report(len > 0 && refused == len, "%zu bytes that start other CPUs", len);
}

/* ---- an int3 that is not the engine's ---------------------------------------------- */

KTEST_TARGET(target, x, x * 15 + 7)

/* A debugger that has no other way writes such an int3 to memory. */
KTEST(places, a_foreign_int3_is_left_alone)
{
    uint8_t int3 = 0xcc, original = *(const uint8_t *)target;
    struct probe_reject why;
    int err;

    text_poke_alias_write((void *)target, &int3, 1);
    err = refusal((uintptr_t)target, &why);
    ktest_report(err == -EBUSY && why.reason == PROBE_FOREIGN_INT3, "refused: %s",
                 why.why);
    ktest_report(*(const volatile uint8_t *)target == int3, "and it is still there");
    text_poke_alias_write((void *)target, &original, 1);
    ktest_report(refusal((uintptr_t)target, &why) == 0 && target(2) == 37,
                 "without it, a probe can come and go");
}

/* ---- names ----------------------------------------------------------------------------- */

long places_named_twice(long x);
NOINLINE long places_named_twice(long x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 17 + 8;
}

long places_other_name(long x) __attribute__((alias("places_named_twice")));
long places_weak_name(long x) __attribute__((weak, alias("places_named_twice")));

KTEST(places, all_names_of_a_function_are_one_place)
{
    struct kprobe p[] = {
        { .symbol_name = "places_named_twice", .pre_handler = no_pre },
        { .symbol_name = "places_other_name", .pre_handler = no_pre },
        { .symbol_name = "places_weak_name", .pre_handler = no_pre },
    };
    unsigned in = 0, hit = 0;

    for (size_t i = 0; i < ARRAY_LEN(p); i++)
        in += register_kprobe(&p[i]) == 0;
    places_other_name(places_weak_name(places_named_twice(1)));
    for (size_t i = 0; i < ARRAY_LEN(p); i++) {
        hit += p[i].addr == (uintptr_t)places_named_twice && p[i].hits == 3;
        unregister_kprobe(&p[i]);
    }
    ktest_report(in == ARRAY_LEN(p), "each can be given");
    ktest_report(hit == ARRAY_LEN(p), "and each sees the calls by all of them");
}

/* A label inside of a function of assembly. It has a name, but no size. */
unsigned long flags_around(unsigned long flags); /* context_targets.asm */
extern const char flags_around_nop[];

KTEST(places, a_label_without_a_size_belongs_to_its_function)
{
    uintptr_t start = (uintptr_t)flags_around, label = (uintptr_t)flags_around_nop;
    struct kprobe by_function = { .symbol_name = "flags_around",
                                  .offset = (unsigned)(label - start) };
    struct probe_reject why;
    struct plat_symbol sym;

    ktest_report(plat_symbol_at(label, &sym) == 0 && sym.start == start,
                 "what is behind it is inside of it");
    ktest_report(refusal(label, &why) == 0, "its address can be given");
    ktest_report(register_kprobe(&by_function) == 0 && by_function.addr == label,
                 "so can the function's name and an offset");
    unregister_kprobe(&by_function);
    ktest_report(refusal(label + 1, &why) == -EILSEQ && why.at == label,
                 "and boundaries are counted from its beginning");
}

static bool has_base(const char *name, const char *base)
{
    char text[64];

    ksyms_base_name(name, text, sizeof(text));
    return strcmp(text, base) == 0 && strcmp(name, base) != 0;
}

/* work_special.c is compiled so that the compiler replaces special_weigh() by a
 * specialized copy.
 */
KTEST(places, a_copy_made_by_the_compiler_has_its_own_name)
{
    struct kprobe gone = { .symbol_name = "special_weigh" };
    struct kprobe copy = { 0 };
    struct ksym sym = { 0 };
    size_t i = 0;

    while (ksyms_get(i, &sym) && !has_base(sym.name, "special_weigh"))
        i++;
    if (i == ksyms_count()) {
        ktest_skip("this compiler makes none");
        return;
    }
    copy.symbol_name = sym.name;
    ktest_report(register_kprobe(&copy) == 0, "%s can be given", sym.name);
    ktest_report(copy.addr == sym.start, "and is where it says");
    unregister_kprobe(&copy);
    ktest_report(register_kprobe(&gone) == -ENOENT, "special_weigh itself is not there");
}

/* ---- the end of a function ------------------------------------------------------------- */

KTEST(places, behind_the_end_is_outside)
{
    struct ksym sym;
    struct kprobe at_end = { .symbol_name = "flags_around" };
    struct kprobe behind = at_end, last = at_end;
    struct probe_reject why = { 0 };

    ksyms_find("flags_around", &sym);
    last.offset = (unsigned)sym.size - 1; /* its ret */
    at_end.offset = (unsigned)sym.size;
    behind.offset = (unsigned)sym.size + 1;
    ktest_report(register_kprobe(&last) == 0, "its last instruction is inside");
    unregister_kprobe(&last);
    ktest_report(register_kprobe_why(&at_end, &why) == -ENOENT &&
                     why.reason == PROBE_PAST_END,
                 "offset = size: %s", why.why);
    ktest_report(register_kprobe(&behind) == -ENOENT, "offset = size + 1");
    ktest_report(refusal(sym.start + sym.size, &why) < 0 &&
                     why.reason == PROBE_NO_FUNCTION,
                 "its address: %s", why.why);
}
