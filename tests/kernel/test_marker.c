/* test_marker.c - a marker that is off evaluates nothing, a marker that is on calls
 * the functions that are connected to it. marker_connect_all() connects all its
 * functions, or none.
 */
#include "probes/marker/marker.h"

#include "probes/insn/insn.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/marked.h"

#include <limits.h>
#include <stdio.h>

KTEST(marker, off_it_is_three_instructions_without_memory)
{
    size_t count = 0, good = 0;

    for (const struct marker_insn *i = marker_insns_start; i < marker_insns_end; i++) {
        const uint8_t *at = (const uint8_t *)i->insn;
        struct insn jne = { 0 };

        count++;
        good += !memcmp(at, "\xb0\x00\x84\xc0", 4) &&
                !insn_decode(&jne, at + 4, INSN_MAX_LEN, i->insn + 4) &&
                jne.kind == INSN_JCC && (at[4] == 0x75 || at[5] == 0x85);
    }
    ktest_report(count >= 12, "%lu markers", count);
    ktest_report(good == count, "mov $0,%%al; test %%al,%%al; jne: %lu", good);
}

KTEST(marker, arguments_are_evaluated_where_it_is_on)
{
    size_t heap = heap_in_use();

    look_begin();
    marked(1);
    ktest_report(looked.evaluated == 0, "not while it is off");
    ktest_report(look_connect(0) == 0, "a function is connected");
    marked(1);
    marked_again(2);
    ktest_report(looked.calls[0] == 2 && looked.evaluated == 2 && !looked.wrong,
                 "called at both places");
    ktest_report(look_connect(0) == -EEXIST, "not twice");
    ktest_report(look_connect(1) == 0, "another one as well");
    marked(1);
    ktest_report(looked.calls[0] == 3 && looked.calls[1] == 1 && !looked.wrong,
                 "both are called");
    ktest_report(look_disconnect(0) == 0, "the first goes");
    marked(1);
    ktest_report(looked.calls[0] == 3 && looked.calls[1] == 2, "and is not called");
    ktest_report(look_disconnect(1) == 0 && look_disconnect(1) == -ENOENT,
                 "the other one, once");
    looked.evaluated = 0;
    marked(1);
    ktest_report(looked.evaluated == 0 && looked.calls[1] == 2, "all is off");
    ktest_report(heap_in_use() == heap, "nothing is left over");
}

/* This marker has arguments of many types. */
static NOINLINE void marked_with_all(void)
{
    MARK(ktest_all, "%d %ld %s %c %p %x %llu %hhu", -1, LONG_MIN, "three", 'c',
         looked.calls, ~0u, ~0ull, (uint8_t)200);
}

static void look_at_all(void *private, struct marker_call *call)
{
    va_list again;
    char text[128];

    va_copy(again, call->args);
    vsnprintf(private, 128, call->format, call->args);
    vsnprintf(text, sizeof(text), call->format, again);
    va_end(again);
    looked.wrong += strcmp(text, private) != 0;
}

KTEST(marker, arguments_of_all_types)
{
    char text[128] = "", want[128];

    look_begin();
    marker_connect("ktest_all", "%d %ld %s %c %p %x %llu %hhu", look_at_all, text);
    marked_with_all();
    marker_disconnect("ktest_all", look_at_all, text);
    snprintf(want, sizeof(want), "%d %ld %s %c %p %x %llu %hhu", -1, LONG_MIN, "three",
             'c', (void *)looked.calls, ~0u, ~0ull, (uint8_t)200);
    ktest_report(!strcmp(text, want) && !looked.wrong, "%s", text);
}

/* REGISTERS_CHANGED - call marker_enter() as a marker that is on does. @push and @pop may
 * move the stack pointer, so that it is a multiple of 16 at the call, or is not.
 * Return: bits that differ in the registers, or in the word on top of the stack; 0: none.
 */
#define REGISTERS_CHANGED(words, push, pop)                                              \
    ({                                                                                   \
        uint64_t rax_ = (uint64_t)(words), changed_;                                     \
                                                                                         \
        __asm__ volatile("mov $1, %%ecx\n\tmov $2, %%edx\n\tmov $3, %%esi\n\t"           \
                         "mov $4, %%edi\n\tmov $5, %%r8d\n\tmov $6, %%r9d\n\t"           \
                         "mov $7, %%r10d\n\tmov $8, %%r11d\n\t" push                     \
                         "push $9\n\tcall marker_enter\n\tpop %1\n\t" pop                \
                         "xor $9, %1\n\txor $1, %%ecx\n\txor $2, %%edx\n\t"              \
                         "xor $3, %%esi\n\txor $4, %%edi\n\txor $5, %%r8d\n\t"           \
                         "xor $6, %%r9d\n\txor $7, %%r10d\n\txor $8, %%r11d\n\t"         \
                         "or %%rcx, %1\n\tor %%rdx, %1\n\tor %%rsi, %1\n\t"              \
                         "or %%rdi, %1\n\tor %%r8, %1\n\tor %%r9, %1\n\t"                \
                         "or %%r10, %1\n\tor %%r11, %1"                                  \
                         : "+a"(rax_), "=&b"(changed_)                                   \
                         :                                                               \
                         : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",         \
                           "memory", "cc");                                              \
        changed_ | (rax_ ^ (uint64_t)(words));                                           \
    })

/* This function changes all registers that a C function may change. */
static void look_and_spoil(void *private, struct marker_call *call)
{
    look(private, call);
    __asm__ volatile("mov $-1, %%rcx\n\tmov %%rcx, %%rdx\n\tmov %%rcx, %%rsi\n\t"
                     "mov %%rcx, %%rdi\n\tmov %%rcx, %%r8\n\tmov %%rcx, %%r9\n\t"
                     "mov %%rcx, %%r10\n\tmov %%rcx, %%r11" ::
                         : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
}

KTEST(marker, the_code_around_it_keeps_its_registers)
{
    uint64_t words[] = { (uint64_t)insn_of((uintptr_t)marked)->site, 21, 42 };

    look_begin();
    marker_connect("ktest_marked", MARKED_FORMAT, look_and_spoil, &looked.calls[0]);
    ktest_report(REGISTERS_CHANGED(words, "", "") == 0, "and its stack");
    ktest_report(REGISTERS_CHANGED(words, "push %%rax\n\t", "pop %%rax\n\t") == 0,
                 "wherever that is");
    marker_disconnect("ktest_marked", look_and_spoil, &looked.calls[0]);
    ktest_report(looked.calls[0] == 2 && !looked.wrong,
                 "a function was called each time");
}

KTEST(marker, another_format_is_refused)
{
    static char name[MARKER_NAME_MAX + 1];

    memset(name, 'n', MARKER_NAME_MAX);
    look_begin();
    ktest_report(marker_connect("ktest_other", MARKED_FORMAT, look, &looked.calls[0]) ==
                     -EINVAL,
                 "not that of the marker");
    marked_otherwise();
    ktest_report(looked.calls[0] == 0, "nothing is called");
    ktest_report(marker_connect("ktest_none", MARKED_FORMAT, look, &looked.calls[0]) == 0,
                 "a name may wait for its marker");
    ktest_report(marker_connect("ktest_none", "x", look, &looked.calls[1]) == -EINVAL,
                 "with one format");
    ktest_report(marker_disconnect("ktest_none", look, &looked.calls[0]) == 0, "and go");
    ktest_report(marker_connect(name, MARKED_FORMAT, look, &looked.calls[0]) == -EINVAL &&
                     marker_connect("", MARKED_FORMAT, look, &looked.calls[0]) == -EINVAL,
                 "no name, and a long one");
}

static void add_functions(const struct marker_facts *m, void *arg)
{
    const struct marker_facts *sum = arg;

    if (!strcmp(m->name, sum->name))
        ((struct marker_facts *)arg)->functions += m->functions;
}

static size_t functions_of(const char *name)
{
    struct marker_facts sum = { .name = name };

    marker_for_each(add_functions, &sum);
    return sum.functions;
}

KTEST(marker, without_memory_it_is_on_or_off)
{
    size_t heap = heap_in_use();
    int err = -ENOMEM;
    unsigned n, left = 0;

    look_begin();
    for (n = 1; err && n < 100; n++) {
        heap_fail_after((long)n);
        err = look_connect(0);
        heap_fail_after(-1);
        looked.calls[0] = 0;
        marked(1);
        left += err && functions_of("ktest_marked");
        if (err != (looked.calls[0] ? 0 : -ENOMEM))
            break;
    }
    ktest_report(!err && n > 3, "connected at the %u. try", n);
    ktest_report(!left, "until then with no function");
    ktest_report(look_connect(1) == 0, "a second one");
    heap_fail_after(1);
    ktest_report(look_disconnect(0) == 0, "one goes without memory");
    heap_fail_after(-1);
    looked.calls[0] = looked.calls[1] = 0;
    marked(1);
    ktest_report(looked.calls[0] == 0 && looked.calls[1] == 1, "the other one is called");
    look_disconnect(1);
    marked(1);
    ktest_report(looked.calls[1] == 1, "until it goes");
    ktest_report(heap_in_use() == heap, "and nothing is left over");
}

/* ---- several at once ---- */

#define WISHES 3

static uint64_t other_calls;

static void count_other(void *private, struct marker_call *call UNUSED)
{
    ++*(uint64_t *)private;
}

/* Two functions for one marker name, and one for another name. */
static struct marker_wish wishes[WISHES] = {
    { "ktest_marked", MARKED_FORMAT, look, &looked.calls[0] },
    { "ktest_other", "nothing", count_other, &other_calls },
    { "ktest_marked", MARKED_FORMAT, look, &looked.calls[1] },
};

static void pass_both(void)
{
    look_begin();
    other_calls = 0;
    marked(1);
    marked_otherwise();
}

KTEST(marker, several_are_connected_at_once)
{
    size_t heap = heap_in_use();
    uint64_t start = each_cpu_syncs(), one, all;

    marker_connect("ktest_other", "nothing", count_other, &other_calls);
    one = each_cpu_syncs() - start;
    marker_disconnect("ktest_other", count_other, &other_calls);
    start = each_cpu_syncs();
    ktest_report(!marker_connect_all(wishes, WISHES), "three functions of two markers");
    all = each_cpu_syncs() - start;
    pass_both();
    ktest_report(looked.calls[0] == 1 && looked.calls[1] == 1 && other_calls == 1 &&
                     !looked.wrong,
                 "each is called");
    ktest_report(all == one, "with as many synchronisations as one: %lu", all);
    ktest_report(marker_connect_all(wishes, WISHES) == -EEXIST, "not twice");
    ktest_report(!marker_disconnect_all(wishes, WISHES), "and all at once they go");
    pass_both();
    ktest_report(!looked.evaluated && !other_calls, "none is called");
    ktest_report(marker_disconnect_all(wishes, WISHES) == -ENOENT, "once");
    ktest_report(heap_in_use() == heap, "nothing is left over");
}

KTEST(marker, several_or_none)
{
    size_t heap = heap_in_use();
    int err = -ENOMEM;
    unsigned failed = 0, n;

    wishes[2].format = "x";
    ktest_report(marker_connect_all(wishes, WISHES) == -EINVAL, "the last is refused");
    wishes[2].format = MARKED_FORMAT;
    pass_both();
    ktest_report(!looked.evaluated && !other_calls, "and none is connected");
    look_connect(0);
    ktest_report(marker_disconnect_all(wishes, WISHES) == -ENOENT, "one of three is");
    pass_both();
    ktest_report(looked.calls[0] == 1, "and stays");
    look_disconnect(0);
    for (n = 1; err && n < 100; n++) {
        heap_fail_after((long)n);
        err = marker_connect_all(wishes, WISHES);
        heap_fail_after(-1);
        pass_both();
        failed +=
            looked.calls[0] != !err || looked.calls[1] != !err || other_calls != !err;
    }
    ktest_report(!err && n > 5 && !failed, "without memory none is, %u times", n - 2);
    heap_fail_after(1);
    ktest_report(!marker_disconnect_all(wishes, WISHES), "without memory all go");
    heap_fail_after(-1);
    pass_both();
    ktest_report(!looked.calls[0] && !looked.calls[1] && !other_calls,
                 "and none is called");
    look_connect(0);
    look_disconnect(0);
    ktest_report(!marker_connect_all(wishes, WISHES), "all come back");
    for (unsigned i = WISHES; i-- > 0;) {
        heap_fail_after(1);
        failed += marker_disconnect_all(&wishes[i], 1) != 0;
        heap_fail_after(-1);
    }
    pass_both();
    ktest_report(!failed && !looked.calls[0] && !looked.calls[1] && !other_calls,
                 "and go one by one, without memory");
    look_connect(0);
    ktest_report(!look_disconnect(0) && heap_in_use() == heap, "nothing is left over");
}

/* byte_is_on - is the immediate of the marker, its second byte, not 0? It can be read
 * from the text, since the marker has no probes.
 */
static bool byte_is_on(void)
{
    return *(const volatile uint8_t *)(insn_of((uintptr_t)marked)->insn + 1);
}

KTEST(marker, its_byte_follows_when_there_is_memory)
{
    look_begin();
    look_connect(0);
    heap_fail_after(1);
    ktest_report(!look_disconnect(0) && byte_is_on(), "without memory the byte stays");
    heap_fail_after(-1);
    marked(1);
    ktest_report(!looked.calls[0], "but nothing is called");
    marker_connect("ktest_other", "nothing", count_other, &other_calls);
    marker_disconnect("ktest_other", count_other, &other_calls);
    ktest_report(!byte_is_on(), "it changes with that of another marker");
}
