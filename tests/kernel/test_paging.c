/* test_paging.c - the permissions of all mapped pages are as they should be, and changes
 * of mappings reach every CPU.
 */
#include "kernel/mm/paging.h"

#include "kernel/mm/exec.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/free_set.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"

/* ---- rules that all pages keep ---- */

struct survey {
    struct free_set executable; /* by frame number: has an executable mapping */
    size_t write_exec;          /* pages that are writable and executable */
    size_t text_wrong, rodata_wrong, data_wrong;
    size_t exec_elsewhere; /* executable pages outside [-4 GiB, 0) */
    size_t exec_writable;  /* pages that can write an executable frame */
    size_t below_image, low_half, poke, unexpected;
    size_t image_pages, boot_pages;
};

static bool is_within(uintptr_t va, const char *start, const char *end)
{
    return va >= (uintptr_t)start && va < (uintptr_t)end;
}

static void survey_image(struct survey *s, uintptr_t va, const struct page_info *info)
{
    s->image_pages++;
    if (is_within(va, _init_text, _init_end))
        s->boot_pages++;
    else if (is_within(va, _text, _etext))
        s->text_wrong += info->prot != PROT_X;
    else if (is_within(va, _rodata, _erodata) || is_within(va, _tables, _end))
        s->rodata_wrong += info->prot != PROT_R;
    else
        s->data_wrong += info->prot != PROT_W;
}

static void survey_reach(struct survey *s, uintptr_t va, const struct page_info *info)
{
    if (is_within(va, _text, _end))
        survey_image(s, va, info);
    else if (va >= KERNEL_VMA && va < IMAGE_START)
        s->below_image++;
    else if (!(info->prot & PROT_X) &&
             (va < module_window_start() || va >= arena_high_start()))
        s->unexpected++;
}

static void survey_page(uintptr_t va, const struct page_info *info, void *arg)
{
    struct survey *s = arg;

    s->write_exec += info->prot & PROT_W && info->prot & PROT_X;
    s->low_half += va < DIRECT_MAP_BASE;
    s->poke += va >= POKE_AREA_BASE && va < PERCPU_AREA_BASE;
    if (va >= REACH_START)
        survey_reach(s, va, info);
    if (!(info->prot & PROT_X))
        return;
    s->exec_elsewhere += va < REACH_START;
    if (info->phys / PAGE_SIZE < s->executable.count)
        free_set_add(&s->executable, info->phys / PAGE_SIZE, info->size / PAGE_SIZE);
}

/* survey_writable - count mappings that can write to an executable frame. The alias
 * through which text is written may do so; it is open for a moment only.
 */
static void survey_writable(uintptr_t va, const struct page_info *info, void *arg)
{
    struct survey *s = arg;
    size_t first = info->phys / PAGE_SIZE;

    if (va >= POKE_AREA_BASE && va < REACH_START)
        return;
    if (info->prot & PROT_W && first + info->size / PAGE_SIZE <= s->executable.count)
        s->exec_writable +=
            free_set_has_any(&s->executable, first, info->size / PAGE_SIZE);
}

/* The survey looks at the frames of the first 64 GiB; all executable frames lie there. */
#define SURVEY_FRAMES (64 * GiB / PAGE_SIZE)

static struct survey *survey_make(void)
{
    struct survey *s = kzalloc(sizeof(*s));
    void *storage = vmap_alloc(free_set_storage(SURVEY_FRAMES), PROT_W);

    free_set_init(&s->executable, SURVEY_FRAMES, storage);
    page_walk(survey_page, s);
    page_walk(survey_writable, s);
    return s;
}

static void survey_drop(struct survey *s)
{
    vmap_free(s->executable.level[0], free_set_storage(SURVEY_FRAMES));
    kfree(s);
}

KTEST(paging, no_page_breaks_the_rules)
{
    void *code = exec_alloc(2 * PAGE_SIZE);
    struct survey *s = survey_make();

    ktest_report(s->write_exec == 0, "no page is writable and executable");
    ktest_report(s->exec_elsewhere == 0, "nothing is executable outside [-4 GiB, 0)");
    ktest_report(s->executable.free >= (size_t)(_etext - _text) / PAGE_SIZE + 2,
                 "%zu frames are executable", s->executable.free);
    ktest_report(s->exec_writable == 0, "none of them is writable anywhere");
    ktest_report(s->image_pages ==
                     (size_t)(_init_text - _text + _end - _init_end) / PAGE_SIZE,
                 "all of the image is mapped");
    ktest_report(s->boot_pages == 0, "but what only boot needed");
    ktest_report(s->text_wrong == 0, "text is executable and nothing else");
    ktest_report(s->rodata_wrong == 0, "read-only data is that");
    ktest_report(s->data_wrong == 0, "data is writable and not executable");
    ktest_report(s->below_image == 0, "the 2 MiB below the image are absent");
    ktest_report(s->unexpected == 0, "the reserved range holds nothing foreign");
    ktest_report(s->poke == 0, "no poke alias is open");
    ktest_report(s->low_half == 0, "there is no identity map");
    survey_drop(s);
    exec_free(code, 2 * PAGE_SIZE);
}

KTEST_TARGET(target, x, x * 19 + 9)

static volatile bool toggling;

static int toggle(void *count)
{
    struct kprobe p = { .addr = (uintptr_t)target };

    while (toggling) {
        if (register_kprobe(&p) || target(1) != 28 || unregister_kprobe(&p))
            return 1;
        ++*(volatile uint64_t *)count;
    }
    return 0;
}

/* One probe stays registered, so that the page of its copy is not freed. Otherwise the
 * first walk over all mappings could find a page executable, and the second walk could
 * find its frame freed and writable.
 */
KTEST(paging, nor_while_probes_come_and_go)
{
    struct kprobe stays = { .addr = (uintptr_t)survey_make };
    size_t both = 0, writable = 0, elsewhere = 0;
    uint64_t toggles = 0;
    int tid, failed = 1;

    register_kprobe(&stays);
    toggling = true;
    tid = ktest_thread(toggle, &toggles, 0);
    for (uint64_t n = 0; n < ktest_count(3, 50) || toggles < 3; n++) {
        struct survey *s = survey_make();

        both += s->write_exec;
        writable += s->exec_writable;
        elsewhere += s->exec_elsewhere;
        survey_drop(s);
    }
    toggling = false;
    thread_join(tid, &failed);
    unregister_kprobe(&stays);
    ktest_report(!failed, "%lu times on and off meanwhile", toggles);
    ktest_report(both == 0, "no page is writable and executable");
    ktest_report(writable == 0, "no executable frame is writable but for its alias");
    ktest_report(elsewhere == 0, "nothing is executable outside [-4 GiB, 0)");
}

KTEST(paging, protections_are_on)
{
    uint64_t word = 0;

    ktest_report(copy_nofault((void *)(uintptr_t)memcpy, &word, 1) == -EFAULT,
                 "text cannot be written");
    ktest_report(copy_nofault(phys_to_virt(virt_to_phys(_text)), &word, 1) == -EFAULT,
                 "nor through the direct map");
    ktest_report(copy_nofault(_rodata, &word, 1) == -EFAULT, "nor read-only data");
    ktest_report(copy_nofault(phys_to_virt(virt_to_phys(_rodata)), &word, 1) == -EFAULT,
                 "at either place");
    ktest_report(copy_nofault(&word, (void *)0x1000, 8) == -EFAULT,
                 "the first pages are absent");
    ktest_report(copy_nofault(&word, (void *)KERNEL_VMA, 8) == -EFAULT,
                 "so is what is below the image");
    ktest_report(copy_nofault(&word, phys_to_virt(0xe0000), 8) == 0,
                 "the BIOS area is readable in the direct map");
}

/* ---- single pages ---- */

/* A page of addresses that only the test uses, and a frame for it. vmap_alloc() has
 * reserved both; the page is not mapped.
 */
struct window {
    uintptr_t va;
    uint64_t phys;
};

static struct window window_open(void)
{
    struct window w = { (uintptr_t)vmap_alloc(PAGE_SIZE, PROT_W), 0 };

    page_unmap(w.va, &w.phys);
    return w;
}

static void window_close(struct window w)
{
    frame_free(w.phys);
    vmap_free((void *)w.va, PAGE_SIZE);
}

KTEST(paging, a_page_is_mapped_changed_and_unmapped)
{
    struct window w = window_open();
    struct page_info info = { 0 };
    uint64_t out = 0;
    char c = 'x';

    ktest_report(!page_lookup(w.va, &info), "at first there is nothing");
    ktest_report(page_unmap(w.va, NULL) == -ENOENT, "and nothing to unmap");
    ktest_report(page_protect(w.va, PROT_R) == -ENOENT, "or to protect");
    ktest_report(page_map(w.va, w.phys, PROT_W) == 0, "it is mapped");
    ktest_report(page_map(w.va, w.phys, PROT_W) == -EEXIST, "but not twice");
    ktest_report(page_lookup(w.va + 5, &info) && info.phys == w.phys + 5 &&
                     info.prot == PROT_W && info.size == PAGE_SIZE,
                 "it is found, the offset included");
    ktest_report(copy_nofault((void *)w.va, &c, 1) == 0, "it can be written");
    ktest_report(page_protect(w.va, PROT_R) == 0 &&
                     copy_nofault((void *)w.va, &c, 1) == -EFAULT,
                 "made read-only it cannot");
    ktest_report(copy_nofault(&c, (void *)w.va, 1) == 0 && c == 'x', "but read");
    ktest_report(page_protect(w.va, PROT_X) == -EPERM,
                 "it cannot become executable while the direct map can write it");
    ktest_report(page_unmap(w.va, &out) == 0 && out == w.phys,
                 "unmapping gives its frame");
    ktest_report(copy_nofault(&c, (void *)w.va, 1) == -EFAULT, "then it is absent");
    window_close(w);
}

KTEST(paging, what_is_not_canonical_maps_to_nothing)
{
    struct page_info info;

    ktest_report(!page_lookup(UINT64_C(0x0000800000000000), &info),
                 "just above the hole");
    ktest_report(!page_lookup(UINT64_C(0xffff7fffffffffff), &info), "just below its end");
    ktest_report(page_lookup((uintptr_t)&info, &info), "while a stack does");
}

KTEST(paging, a_large_page_is_split_without_a_trace)
{
    uint64_t run = frame_alloc_run_aligned(512, 512);
    struct page_info info = { 0 };
    uint8_t *p = phys_to_virt(run);

    if (run == FRAME_NONE) {
        ktest_skip("no 2 MiB of memory in one piece");
        return;
    }
    for (size_t i = 0; i < 512; i++)
        p[i * PAGE_SIZE] = (uint8_t)i;
    ktest_report(page_protect((uintptr_t)p + 7 * PAGE_SIZE, PROT_R) == 0,
                 "one page in it is protected");
    ktest_report(page_lookup((uintptr_t)p + 6 * PAGE_SIZE + 9, &info) &&
                     info.size == PAGE_SIZE && info.prot == PROT_W &&
                     info.phys == run + 6 * PAGE_SIZE + 9,
                 "its neighbours are small pages with the rights they had");
    ktest_report(copy_nofault(p + 7 * PAGE_SIZE, p, 1) == -EFAULT &&
                     copy_nofault(p + 8 * PAGE_SIZE, p + 8 * PAGE_SIZE, 1) == 0,
                 "only the one cannot be written");
    for (size_t i = 0; i < 512; i++) {
        if (p[i * PAGE_SIZE] != (uint8_t)i)
            ktest_report(false, "page %zu has changed", i);
    }
    page_protect((uintptr_t)p + 7 * PAGE_SIZE, PROT_W);
    frame_free_run(run, 512);
}

/* ---- other CPUs ---- */

struct touch {
    uintptr_t va;
    bool write;
    unsigned faults, others; /* CPUs that faulted; that read another byte than 'x' */
};

static void touch(void *arg)
{
    struct touch *t = arg;
    char c = 'x';
    int err = t->write ? copy_nofault((void *)t->va, &c, 1)
                       : copy_nofault(&c, (void *)t->va, 1);

    if (err)
        __atomic_add_fetch(&t->faults, 1, __ATOMIC_RELAXED);
    if (c != 'x')
        __atomic_add_fetch(&t->others, 1, __ATOMIC_RELAXED);
}

static struct touch touch_everywhere(uintptr_t va, bool write)
{
    struct touch t = { .va = va, .write = write };

    smp_call_all(touch, &t);
    return t;
}

KTEST(paging, changes_reach_every_cpu)
{
    struct window w = window_open();
    uint64_t other = frame_alloc();

    page_map(w.va, w.phys, PROT_W);
    memset(phys_to_virt(other), 'y', PAGE_SIZE);
    ktest_report(touch_everywhere(w.va, true).faults == 0, "all CPUs write a new page");
    page_protect(w.va, PROT_R);
    ktest_report(touch_everywhere(w.va, true).faults == cpu_count(),
                 "none can when it is read-only");
    ktest_report(touch_everywhere(w.va, false).others == 0, "all of them read it");
    ktest_report(page_replace(w.va, other) == 0 &&
                     touch_everywhere(w.va, false).others == cpu_count(),
                 "all see the frame that replaces it");
    page_protect(w.va, PROT_W);
    ktest_report(touch_everywhere(w.va, true).faults == 0, "writable again, for all");
    page_unmap(w.va, NULL);
    ktest_report(touch_everywhere(w.va, false).faults == cpu_count(),
                 "no CPU has it when it is gone");
    frame_free(other);
    window_close(w);
}

static int map_and_unmap(void *arg UNUSED)
{
    int bad = 0;

    for (size_t i = 1; i <= 30; i++) {
        size_t len = i * 3000;
        uint8_t *p = vmap_alloc(len, PROT_W);

        if (!p)
            return 1;
        for (size_t off = 0; off < len; off += PAGE_SIZE) {
            bad += p[off] != 0;
            p[off] = (uint8_t)cpu_id();
        }
        for (size_t off = 0; off < len; off += PAGE_SIZE)
            bad += p[off] != (uint8_t)cpu_id();
        vmap_free(p, len);
    }
    return bad;
}

KTEST(paging, cpus_map_and_unmap_at_once)
{
    ktest_report(each_cpu_run(map_and_unmap, NULL) == 0,
                 "each found its pages zeroed, and its own");
}

/* ---- mappings and stacks ---- */

KTEST(paging, behind_a_mapping_is_a_hole)
{
    uint8_t *a = vmap_alloc(2 * PAGE_SIZE - 10, PROT_W);
    uint8_t *b = vmap_alloc(1, PROT_R);
    uint8_t c = 0;

    ktest_report(copy_nofault(a + 2 * PAGE_SIZE - 1, &c, 1) == 0,
                 "its last byte is there");
    ktest_report(copy_nofault(&c, a + 2 * PAGE_SIZE, 1) == -EFAULT,
                 "the next one is not");
    ktest_report(copy_nofault(b, &c, 1) == -EFAULT, "read-only ones are");
    ktest_report(vmap_alloc(8 * GiB, PROT_W) == NULL, "8 GiB are refused");
    vmap_free(a, 2 * PAGE_SIZE - 10);
    vmap_free(b, 1);
    vmap_free(NULL, 1);
    ktest_report(copy_nofault(&c, a, 1) == -EFAULT, "a freed one is gone");
}

KTEST(paging, devices_are_not_cached)
{
    uint64_t phys = UINT64_C(0xfee00000); /* a local APIC, which every machine has */
    struct page_info info = { 0 };
    uint8_t *regs = vmap_device(phys + 0x20, 16);

    ktest_report(regs && page_lookup((uintptr_t)regs, &info), "it is mapped");
    ktest_report(info.phys == phys + 0x20, "where it is asked for");
    ktest_report(info.prot == (PROT_W | PROT_NOCACHE), "writable, uncached");
}

KTEST(paging, stacks_have_a_guard_below)
{
    struct frame_stats before, after;
    uint8_t *top, *bottom;
    uintptr_t base = 0;

    stack_free(stack_alloc(3 * PAGE_SIZE), 3 * PAGE_SIZE); /* page tables stay */
    frame_stats_get(&before);
    top = stack_alloc(3 * PAGE_SIZE);
    bottom = top - 3 * PAGE_SIZE;
    memset(bottom, 1, 3 * PAGE_SIZE);
    ktest_report(stack_guard_hit((uintptr_t)bottom - 1, &base) &&
                     base == (uintptr_t)bottom,
                 "a byte below it is an overflow of it");
    ktest_report(stack_guard_hit((uintptr_t)bottom - PAGE_SIZE, NULL), "so is a page");
    ktest_report(!stack_guard_hit((uintptr_t)bottom, NULL), "its lowest byte is not");
    ktest_report(!stack_guard_hit((uintptr_t)bottom - PAGE_SIZE - 1, NULL) ||
                     stack_guard_hit((uintptr_t)bottom - 1, NULL),
                 "further down is another stack's business");
    ktest_report(!stack_guard_hit((uintptr_t)_text, NULL), "text is no stack");
    ktest_report(copy_nofault(bottom - 1, top - 1, 1) == -EFAULT, "the guard faults");
    stack_free(top, 3 * PAGE_SIZE);
    ktest_report(!stack_guard_hit((uintptr_t)bottom - 1, NULL), "no stack, no guard");
    frame_stats_get(&after);
    ktest_report(before.free == after.free, "its frames came back");
}
