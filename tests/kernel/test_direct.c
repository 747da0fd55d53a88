/* test_direct.c - records of events with simple arguments. A program makes such a record,
 * without an image; the record is the same as one made from an image.
 */
#include "probes/jump/jump_site.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/live/live.h"
#include "tests/kernel/by_hand.h"
#include "tests/kernel/ktest.h"

#include <stdio.h>

/* This function begins with a `lea` of five bytes. */
static NOINLINE long target(long x, long y)
{
    __asm__ volatile("" : "+r"(x), "+r"(y));
    return x * 9 + 2;
}

/* hit - call target(), each time with the same registers, flags and return address. */
static NOINLINE void hit(void)
{
    __asm__ volatile("movl $0x1234567, %%edi\n\t"
                     "movabsq $0x89abcdef01234567, %%rsi\n\t"
                     "movl $3, %%edx\n\t"
                     "movl $4, %%ecx\n\t"
                     "movl $5, %%ebx\n\t"
                     "movl $8, %%r8d\n\t"
                     "movl $11, %%r11d\n\t"
                     "movl $12, %%r12d\n\t"
                     "xorl %%eax, %%eax\n\t"
                     "call %P0"
                     :
                     : "i"(target)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
                       "r12", "memory", "cc");
}

#define RECORD_MAX 96

static struct taken {
    size_t len;
    uint8_t bytes[RECORD_MAX];
} taken[4];

/* take_all - move all records from the buffer to taken[]. Return: how many they are. */
static size_t take_all(void)
{
    struct merged one;
    struct merge m;
    size_t count = 0;

    memset(taken, 0, sizeof(taken));
    if (buffer_merge(&m, -1, BUFFER_LIVE, MERGE_TAKE))
        return 0;
    while (buffer_merge_next(&m, &one)) {
        if (count < ARRAY_LEN(taken) && one.event.len <= RECORD_MAX) {
            taken[count].len = one.event.len;
            memcpy(taken[count].bytes, one.event.data, one.event.len);
        }
        count++;
    }
    buffer_merge_end(&m);
    return count;
}

/* forget_moment - clear the fields in the head of a record that may differ between
 * two hits: preemption is off while an image is made, and a tick may have asked
 * for a thread switch.
 */
static void forget_moment(struct taken *t)
{
    struct record_head *head = (struct record_head *)(void *)t->bytes;

    head->preempt_count = 0;
    head->flags &= (uint8_t)~RECORD_NEED_RESCHED;
}

/* bytes_written - return how many bytes of the record @t of @e were written. Up to
 * three more bytes make its length a whole number of words; they have any value.
 * If @e has strings, the last word of the fixed part has the place and the length
 * of the last string.
 */
static size_t bytes_written(const struct live_event *e, const struct taken *t)
{
    uint32_t string;

    if (!e->has_strings)
        return e->fixed;
    memcpy(&string, t->bytes + e->fixed - sizeof(string), sizeof(string));
    return (string & 0xffff) + (string >> 16);
}

static bool records_are_same(const struct live_event *e, struct taken *a, struct taken *b)
{
    size_t len = bytes_written(e, a);

    forget_moment(a);
    forget_moment(b);
    return a->len == b->len && len <= a->len && a->len - len < 4 &&
           !memcmp(a->bytes, b->bytes, len);
}

/* event_new - define an event at target() with @args, switch it on, and
 * make its probe a jump.
 * @p: receives its probe
 * Return: the event; NULL: it could not be made, so the test fails.
 */
static struct live_event *event_new(const char *args, struct live_probe **p)
{
    struct live_event *e;
    char line[160];

    snprintf(line, sizeof(line), "p:direct/e 0x%lx %s", (unsigned long)target, args);
    by_hand_begin();
    if (live_command(line))
        return NULL;
    e = live_event_find("direct", "e");
    *p = CONTAINER_OF(e->probes.next, struct live_probe, sibling);
    if (live_switch(&e, 1, true) || !by_hand_jump(&(*p)->rp.kp))
        return NULL;
    return e;
}

static void event_gone(struct live_event *e, struct live_probe *p)
{
    by_hand_int3(&p->rp.kp);
    live_switch(&e, 1, false);
    live_command("-:direct/e");
}

/* jump_again - what the hits of @p do has changed: let its detour be made anew. */
static void jump_again(struct live_probe *p)
{
    by_hand_int3(&p->rp.kp);
    if (!by_hand_jump(&p->rp.kp))
        ktest_report(false, "it is a jump again");
}

/* by_image - let the hits of @p be handled with an image from now on. */
static void by_image(struct live_probe *p)
{
    struct kprobe_exchange one = { &p->rp.kp, NULL, live_hit_probe };

    if (kprobe_exchange(&one, 1))
        ktest_report(false, "hits are handled with an image");
    jump_again(p);
}

static void stored_as_fetched(const char *args, bool direct)
{
    struct live_probe *p;
    struct live_event *e;
    bool wanted, same;
    size_t count;

    trace_lock();
    e = event_new(args, &p);
    if (!e) {
        trace_unlock();
        ktest_report(false, "there is an event of %s", args);
        return;
    }
    buffer_reset(-1);
    wanted =
        jump_site(p->rp.kp.site)->specialized && (p->rp.kp.program != NULL) == direct;
    hit();
    by_image(p);
    hit();
    count = take_all();
    same = count == 2 && records_are_same(e, &taken[0], &taken[1]);
    event_gone(e, p);
    trace_unlock();
    ktest_report(wanted, "`%s`: %s", args, direct ? "stored as it is" : "by an image");
    ktest_report(same, "`%s`: %zu records, which are the same", args, count);
}

KTEST(direct, a_record_is_the_same_without_an_image)
{
    stored_as_fetched("", true);
    stored_as_fetched("a=%di", true);
    stored_as_fetched("a=%di b=%si:u16 c=%r12", true);
    stored_as_fetched("a=%ip b=\\7:s8 c=\\-5 d=%sp:x32", true);
    stored_as_fetched("a=%di b=%si c=%dx d=%cx e=%bx", true);
    stored_as_fetched("a=%di b=%si c=%dx d=%cx e=%bx f=%bp g=%ax h=%r8 i=%r11", true);
    stored_as_fetched("a=+0(%sp):u8 b=+0(+8(%sp)):s16 c=+4(%si):u32", true);
    stored_as_fetched("a=$comm", false);
    stored_as_fetched("a=%flags", false);
    stored_as_fetched("a=+0(%sp):u8[3]", false);
    stored_as_fetched("a=%di:b4@2/8", false);
}

/* The filter is set and removed while the detour exists. */
KTEST(direct, a_filter_is_asked_all_the_same)
{
    struct live_probe *p;
    struct live_event *e;
    size_t all, kept, again;

    trace_lock();
    e = event_new("a=%di", &p);
    if (!e) {
        trace_unlock();
        ktest_report(false, "there is an event");
        return;
    }
    buffer_reset(-1);
    target(1, 0);
    target(2, 0);
    all = take_all();
    live_set_filter(e, "a == 2", false);
    jump_again(p);
    target(1, 0);
    target(2, 0);
    kept = take_all();
    live_set_filter(e, "0", false);
    jump_again(p);
    target(1, 0);
    target(2, 0);
    again = take_all();
    event_gone(e, p);
    trace_unlock();
    ktest_report(all == 2 && kept == 1 && again == 2,
                 "%zu records without a filter, %zu with, %zu without", all, kept, again);
}
