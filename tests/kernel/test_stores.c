/* test_stores.c - a specialized detour can store registers itself, without an image. It
 * stores the same values that a handler would find in the image.
 */
#include "kernel/thread/thread.h"
#include "probes/core/life.h"
#include "probes/jump/jump_site.h"
#include "tests/kernel/by_hand.h"
#include "tests/kernel/ktest.h"

#include <string.h>

/* detour_targets.asm */
struct detour_target {
    void (*fn)(void);
    uintptr_t addr;
    const char *name;
};
extern const struct detour_target detour_targets[], detour_targets_end[];
extern const char detour_callee[];
struct detour_run {
    uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
    uint64_t flags;
    void (*fn)(void);
};
void detour_run(struct detour_run *run);

#define COUNT 3u
#define OFFSET 96 /* of the stores behind the first */

static struct {
    uint8_t bytes[OFFSET + 8 * COUNT];
} room, by_image;
static bool has_room;
static uint64_t begun, ended, handled, wrong;
static char token;

static struct kprobe_room begin(struct kprobe *p, uintptr_t ip)
{
    begun++;
    wrong += ip != p->addr;
    return (struct kprobe_room){ has_room ? &room : NULL, &token };
}

static void end(void *given)
{
    ended++;
    wrong += given != &token;
}

/* as_stores - do the stores of @p in C, with the values of the image, to by_image. */
static int as_stores(struct kprobe *p, struct pt_regs *regs)
{
    handled++;
    for (size_t i = 0; i < p->stores->count; i++) {
        const struct kprobe_store *s = &p->stores->store[i];
        uint64_t value = ((uint64_t *)(void *)regs)[s->reg / 8];

        if (s->is_value)
            value = (uint64_t)s->value;
        memcpy(by_image.bytes + s->offset, &value, s->size);
    }
    return 0;
}

/* All registers that can be stored. Each run stores COUNT of them, in one of all sizes.
 */
static const uint8_t registers[] = {
#define R(name) offsetof(struct pt_regs, name)
    R(r15), R(r14), R(r13), R(r12), R(bp), R(bx), R(r11), R(r10), R(r9),
    R(r8),  R(ax),  R(cx),  R(dx),  R(si), R(di), R(sp),  R(ip),
#undef R
};

static void choose(struct kprobe_stores *stores, size_t first, unsigned size)
{
    stores->count = COUNT;
    for (size_t i = 0; i < COUNT; i++)
        stores->store[i] = (struct kprobe_store){
            .reg = registers[(first + i) % sizeof(registers)],
            .size = (uint8_t)size,
            .offset = (uint16_t)(i ? OFFSET + 8 * (i - 1) : 0),
        };
    stores->store[0].is_value = true;
    stores->store[0].value = -3;
}

static uint8_t memory[64];

static struct detour_run run_once(const struct detour_target *t)
{
    struct detour_run run = { .fn = t->fn };
    uint64_t *word = (uint64_t *)&run;

    for (unsigned i = 0; i < 15; i++)
        word[i] = UINT64_C(0x0102030405060708) * (i + 1);
    run.cx = 3;
    run.si = (uintptr_t)memory;
    run.r14 = 0x1000;
    run.r15 = (uintptr_t)detour_callee;
    run.di = FLAGS_IF | FLAGS_FIXED | FLAGS_SF;
    run.flags = FLAGS_IF | FLAGS_FIXED | FLAGS_CF | FLAGS_OF;
    preempt_disable();
    detour_run(&run);
    preempt_enable();
    return run;
}

/* stores_as_image - call @t once by a trap, where as_stores() does the stores of @p, and
 * once by a jump, where the detour does them. Return: are all results the same?
 */
static bool stores_as_image(const struct detour_target *t, struct kprobe *p)
{
    struct detour_run by_trap, by_jump;
    bool is_own, same;

    memset(&room, 0xcc, sizeof(room));
    memset(&by_image, 0xcc, sizeof(by_image));
    by_hand_begin();
    p->addr = t->addr;
    if (register_kprobe(p))
        return false;
    by_trap = run_once(t);
    if (!by_hand_jump(p)) {
        unregister_kprobe(p);
        return false;
    }
    is_own = jump_site(p->site)->specialized;
    by_jump = run_once(t);
    same = !memcmp(&by_trap, &by_jump, sizeof(by_jump)) &&
           !memcmp(&room, &by_image, sizeof(room));
    by_hand_int3(p);
    unregister_kprobe(p);
    return is_own && same && p->hits == 2;
}

/* has_copy - can a copy run the probed instruction of @t? Otherwise the detour always
 * needs an image.
 */
static bool has_copy(const struct detour_target *t)
{
    static const char *const without[] = { "detour_popf", "detour_call_reg", "detour_sti",
                                           "detour_sti_call" };

    for (size_t i = 0; i < ARRAY_LEN(without); i++)
        if (!strcmp(t->name, without[i]))
            return false;
    return true;
}

KTEST(stores, what_is_stored_is_what_the_image_has)
{
    static const unsigned sizes[] = { 8, 4, 2, 1 };

    has_room = true;
    for (const struct detour_target *t = detour_targets; t < detour_targets_end; t++) {
        unsigned same = 0, tried = 0;

        if (!has_copy(t))
            continue;
        begun = ended = handled = wrong = 0;
        for (size_t first = 0; first < sizeof(registers); first++) {
            struct kprobe_stores stores = { .begin = begin, .end = end };
            struct kprobe p = { .pre_handler = as_stores, .stores = &stores };

            choose(&stores, first, sizes[first % ARRAY_LEN(sizes)]);
            same += stores_as_image(t, &p);
            tried++;
        }
        ktest_report(same == tried && begun == tried && ended == tried &&
                         handled == tried && !wrong,
                     "%s: %u of %u", t->name, same, tried);
    }
}

static const struct kprobe_stores none = { .begin = begin, .end = end };

/* This function begins with a `lea` of five bytes. */
static NOINLINE long target(long x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 9 + 2;
}

KTEST(stores, without_room_nothing_is_stored)
{
    struct kprobe_stores stores = { .begin = begin, .end = end };
    struct kprobe p = { .pre_handler = as_stores, .stores = &stores };

    choose(&stores, 3, 8);
    has_room = false;
    begun = ended = handled = 0;
    memset(&room, 0xcc, sizeof(room));
    memset(&by_image, 0xcc, sizeof(by_image));
    if (!with_jump(&p, target))
        return;
    ktest_report(target(3) == 29 && begun == 1 && !ended && !handled, "it has asked");
    ktest_report(!memcmp(&room, &by_image, sizeof(room)), "and stored nothing");
    without_jump(&p);
}

KTEST(stores, what_it_does_not_suit_is_done_to_the_image)
{
    struct kprobe p = { .pre_handler = as_stores, .stores = &none };

    has_room = true;
    begun = ended = handled = 0;
    if (!with_jump(&p, target))
        return;
    target(3);
    ktest_report(begun == 1 && ended == 1 && !handled, "no arguments: by its own code");
    kprobe_by_image(&p, true);
    target(3);
    ktest_report(begun == 1 && handled == 1, "by the image, when it is asked for");
    kprobe_by_image(&p, false);
    target(3);
    ktest_report(begun == 2 && handled == 1 && kprobe_hits(&p) == 3, "and no longer");
    without_jump(&p);
}
