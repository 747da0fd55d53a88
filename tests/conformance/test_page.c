/* test_page.c - instructions at the edge of a page of text, and at the edge of a page of
 * the memory that they access.
 */
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"
#include "tests/conformance/outcome.h"
#include "tests/conformance/tier.h"
#include "tests/kernel/ktest.h"

FIXTURES(page_end);
FIXTURES(page_first_byte);
FIXTURES(page_middle);
FIXTURES(long_string);

KTEST(conformance, h25_text_at_the_end_of_a_page)
{
    static const struct group groups[] = {
        GROUP(page_end, values, 0),
        GROUP(page_first_byte, values, 0),
        GROUP(page_middle, values, 0),
    };
    size_t crossing = 0;

    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        uintptr_t insn = groups[i].rows->insn;

        crossing += align_down(insn, PAGE_SIZE) != align_down(insn + 11, PAGE_SIZE);
        tier_test(&groups[i]);
    }
    ktest_report(crossing == ARRAY_LEN(groups), "they do lie there");
}

/* ---- memory that is mapped when it is needed ---- */

#define LATE_COUNT 300 /* bytes that are moved */
#define LATE_FIRST 100 /* the first of them, which go to the page that is mapped */

static struct {
    uintptr_t start;
    uint64_t frame;
    unsigned pre, post;
} late;

static bool map_late(struct pt_regs *regs)
{
    return regs->cr2 == late.start + PAGE_SIZE &&
           !page_map(late.start + PAGE_SIZE, late.frame, PROT_W);
}

static int count_pre(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    late.pre++;
    return 0;
}

static void count_post(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                       unsigned long flags UNUSED)
{
    late.post++;
}

/* move_late - run a rep movsb whose target is partly on a page that is not yet mapped;
 * the fault handler maps it.
 */
static void move_late(struct outcome *out)
{
    struct setup setup = { 0 };

    vary_long_strings(&setup, 0);
    setup.image.cx = LATE_COUNT;
    setup.image.di = late.start + PAGE_SIZE - LATE_FIRST;
    memset((void *)late.start, 0, PAGE_SIZE);
    memset(phys_to_virt(late.frame), 0, PAGE_SIZE);
    fixture_set_repair(map_late);
    fixture_run(fixtures_long_string, &setup, out);
    fixture_set_repair(NULL);
}

static bool moved(const struct outcome *out)
{
    const char *to = (const char *)late.start + PAGE_SIZE - LATE_FIRST;
    const char *from = (const char *)out->image.si - LATE_COUNT;

    return out->fault.count == 1 && memcmp(to, from, LATE_COUNT) == 0;
}

static void moved_probed(const struct outcome *unprobed, const char *how, bool post,
                         enum step_engine engine)
{
    struct kprobe p = { .addr = fixtures_long_string->insn,
                        .pre_handler = count_pre,
                        .post_handler = post ? count_post : NULL };
    struct outcome out;

    step_set_engine(engine);
    late.pre = late.post = 0;
    register_kprobe(&p);
    move_late(&out);
    unregister_kprobe(&p);
    ktest_report(moved(&out) && outcome_same(unprobed, &out, 0),
                 "%s: the rest is moved when the page is there", how);
    ktest_report(late.pre == 2 && late.post == post,
                 "%s: it is begun twice and ends once", how);
    page_unmap(late.start + PAGE_SIZE, NULL);
    step_set_engine(STEP_INT3);
}

KTEST(conformance, h15_rep_movs_goes_on_behind_a_page_fault)
{
    struct outcome unprobed;
    uint64_t cpus;

    late.start = (uintptr_t)vmap_alloc(2 * PAGE_SIZE, PROT_W);
    if (!late.start || page_unmap(late.start + PAGE_SIZE, &late.frame)) {
        ktest_report(false, "there is memory");
        return;
    }
    cpus = thread_current()->cpus;
    thread_set_affinity(BIT(cpu_id()));
    move_late(&unprobed);
    ktest_report(moved(&unprobed), "without a probe: the rest is moved");
    page_unmap(late.start + PAGE_SIZE, NULL);
    moved_probed(&unprobed, "boost", false, STEP_INT3);
    moved_probed(&unprobed, "step by int3", true, STEP_INT3);
    moved_probed(&unprobed, "step by TF", true, STEP_TF);
    thread_set_affinity(cpus);
    page_map(late.start + PAGE_SIZE, late.frame, PROT_W);
    vmap_free((void *)late.start, 2 * PAGE_SIZE);
}
