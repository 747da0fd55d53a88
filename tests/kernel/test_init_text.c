/* test_init_text.c - after boot, the code that only boot needed is gone: its pages, its
 * symbols, and its entries in tables.
 */
#include "kernel/module/init_text.h"

#include "kernel/debug/ksyms.h"
#include "kernel/memmap.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"
#include "probes/xmc/xmc.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/say.h"

#include <stdlib.h>

/* An address in the boot code. It is computed, because the linker refuses references to
 * symbols of that code.
 */
#define SOMEWHERE (kernel_text_end() + 16)

KTEST(init_text, no_page_of_it_is_left)
{
    size_t mapped = 0, readable = 0, not_writable = 0;
    struct page_info info;

    for (uintptr_t va = (uintptr_t)_init_text; va < (uintptr_t)_init_end;
         va += PAGE_SIZE) {
        uint64_t word;

        mapped += page_lookup(va, &info);
        readable += copy_nofault(&word, (const void *)va, sizeof(word)) == 0;
        not_writable +=
            !page_lookup((uintptr_t)phys_to_virt(virt_to_phys((void *)va)), &info) ||
            info.prot != PROT_W;
    }
    ktest_report(_init_text_end - _init_text >= (long)(4 * PAGE_SIZE),
                 "it was %ld KiB of code", (long)(_init_text_end - _init_text) / 1024);
    ktest_report(mapped == 0 && readable == 0, "no page of it is mapped");
    ktest_report(not_writable == 0, "its frames are as all free ones");
}

/* Frames are allocated from the lowest address on, and the frames of the image have low
 * addresses. So the frames of the boot code are among the first that are used again.
 */
KTEST(init_text, its_frames_are_used_for_something_else)
{
    uint64_t start = virt_to_phys(_init_text), end = virt_to_phys(_init_end);
    uint64_t taken[256];
    size_t count = 0, of_boot = 0, pages = (end - start) / PAGE_SIZE;
    struct frame_stats stats;

    while (count < ARRAY_LEN(taken) && (taken[count] = frame_alloc()) != FRAME_NONE &&
           taken[count] < end) {
        of_boot += taken[count] >= start;
        count++;
    }
    while (count--)
        frame_free(taken[count]);
    frame_stats_get(&stats);
    ktest_note("%zu of its %zu frames were free until now", of_boot, pages);
    ktest_report(of_boot <= pages, "and no more than there are");
    ktest_report(stats.free <= stats.total, "%zu of %zu frames are free", stats.free,
                 stats.total);
}

KTEST(init_text, its_names_are_unknown)
{
    struct plat_symbol function;
    struct ksym sym;
    size_t inside = 0, before = 0, count = 0, offset;
    char text[KSYMS_TEXT_LEN];

    for (size_t i = 0; ksyms_get(i, &sym) && !sym.module; i++, count++) {
        inside += sym.start > (uintptr_t)_init_text && sym.start < (uintptr_t)_init_end;
        before += sym.start < (uintptr_t)_init_text;
    }
    ktest_report(inside == 0, "none is in the list of all symbols");
    ktest_report(count == ksyms_count() && before > 1000 && before < count,
                 "which has the %zu others", count);
    ktest_report(ksyms_find("kmain", &sym) == -ENOENT &&
                     plat_symbol_find("kmain", &function) == -ENOENT,
                 "kmain cannot be found");
    ktest_report(ksyms_at(SOMEWHERE, &sym) == -ENOENT, "nor what its addresses are of");
    ktest_report(ksyms_text(text, sizeof(text), SOMEWHERE + 4) &&
                     !strcmp(text, "[boot]+0x14"),
                 "which print as %s", text);
    ktest_report(ksyms_gone((uintptr_t)_etext - 1, &offset) == NULL &&
                     ksyms_gone((uintptr_t)_init_end, &offset) == NULL,
                 "what is beside it does not");
    ktest_report(!ksyms_find("_etext", &sym) && sym.start == (uintptr_t)_etext &&
                     !ksyms_find("_rodata", &sym),
                 "the names around it stay");
}

KTEST(init_text, nothing_can_be_done_to_it)
{
    struct kprobe by_address = { .addr = SOMEWHERE };
    struct kprobe by_name = { .symbol_name = "kmain" };
    struct kprobe waits = { .symbol_name = "kmain", .flags = KPROBE_FLAG_PENDING };
    struct probe_reject why;
    uint8_t nop = 0x90;

    ktest_report(register_kprobe_why(&by_address, &why) < 0 &&
                     why.reason == PROBE_NOT_TEXT,
                 "a probe by address is refused: not text");
    ktest_report(register_kprobe(&by_name) == -ENOENT, "by name: no such name");
    ktest_report(register_kprobe(&waits) == 0 && waits.flags & KPROBE_FLAG_GONE,
                 "one that may wait, waits");
    ktest_report(unregister_kprobe(&waits) == 0, "and can be taken back");
    ktest_report(xmc(SOMEWHERE, &nop, 1) < 0, "its code cannot be exchanged");
    say("probe explain -v 0x%lx", SOMEWHERE);
    ktest_report(said("[boot]+0x10") && said("not kernel text"), "and that is explained");
}

KTEST(init_text, no_mark_of_it_is_left)
{
    struct nokprobe_range r;
    size_t inside = 0, i = 0;

    for (uintptr_t at = 0; blacklist_next(at, &r) == 0; at = r.end, i++)
        inside += r.end > (uintptr_t)_init_text && r.start < (uintptr_t)_init_end;
    ktest_report(i > 20 && inside == 0, "none of %zu blacklisted ranges is in it", i);
    say("cat /sys/kernel/debug/tracing/available_filter_functions");
    ktest_report(said("vfs_read") && !strstr(seq_str(&output), "\nkmain\n"),
                 "the tracer does not offer it");
}
