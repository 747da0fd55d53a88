/* test_backtrace.c - what a backtrace prints for each frame: for an image its ip, for a
 * caller the address of its call instruction. The test builds the frames itself.
 */
#include "kernel/debug/backtrace.h"

#include "kernel/debug/ksyms.h"
#include "kernel/debug/panic.h"
#include "tests/kernel/ktest.h"

#include <stdarg.h>
#include <stdio.h>

#define LINES_MAX 4
#define LINE_LEN 128

extern const char entry_text_start[];

static char lines[LINES_MAX][LINE_LEN];
static size_t line_count;

static void note_line(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (line_count < LINES_MAX)
        vsnprintf(lines[line_count++], LINE_LEN, fmt, args);
    va_end(args);
}

static void print(const struct pt_regs *regs)
{
    memset(lines, 0, sizeof(lines));
    line_count = 0;
    backtrace_print(regs, note_line);
    for (size_t i = 0; i < line_count; i++)
        ktest_note("%.*s", (int)strcspn(lines[i], "\n"), lines[i]);
}

static bool line_names(size_t i, const char *name, uintptr_t offset)
{
    char text[LINE_LEN];

    snprintf(text, sizeof(text), " %s+0x%lx/", name, offset);
    return strstr(lines[i], text) != NULL;
}

static size_t size_of(uintptr_t function)
{
    struct ksym sym;

    return ksyms_at(function, &sym) ? 0 : sym.size;
}

/* panic() ends with a call that does not return. So the return address of this call is
 * the first address behind panic().
 */
KTEST(backtrace, a_call_that_ends_its_function_is_shown_in_it)
{
    size_t size = size_of((uintptr_t)panic);
    uintptr_t outer[2] = { 0, 0 };
    uintptr_t inner[2] = { (uintptr_t)outer, (uintptr_t)panic + size };
    struct pt_regs regs = { .ip = (uintptr_t)strcspn + 8, .bp = (uintptr_t)inner };

    print(&regs);
    ktest_report(size > 1 && line_count == 2, "two frames");
    ktest_report(line_names(0, "strcspn", 8), "the first is the ip itself");
    ktest_report(line_names(1, "panic", size - 1), "the caller is inside panic()");
}

/* The backtrace leads through a trap. The trap has interrupted the first instruction of a
 * function, which must not be shown as the end of the function in front of it.
 */
KTEST(backtrace, an_interrupted_instruction_is_shown_as_it_is)
{
    uintptr_t end[2] = { 0, 0 }, caller = (uintptr_t)panic + 7;
    struct {
        uintptr_t bp, ret;
        struct pt_regs regs;
    } trap = { .ret = (uintptr_t)entry_text_start };
    struct pt_regs regs = { .ip = (uintptr_t)strcspn + 8, .bp = (uintptr_t)&trap };

    trap.regs.ip = (uintptr_t)strcspn;
    trap.regs.sp = (uintptr_t)&caller;
    trap.regs.bp = (uintptr_t)end;
    print(&regs);
    ktest_report(line_count == 3, "three frames");
    ktest_report(line_names(1, "strcspn", 0), "the interrupted instruction");
    ktest_report(line_names(2, "panic", 6), "its caller, by the call");
}

KTEST(backtrace, the_calls_of_a_thread_are_all_or_none)
{
    uintptr_t caller = (uintptr_t)panic + 7, out[2];
    uintptr_t frames[4] = { (uintptr_t)&frames[2], caller, 0, caller + 1 };

    ktest_report(backtrace_calls((uintptr_t)frames, out, 2) == 2 && out[0] == caller &&
                     out[1] == caller + 1,
                 "the chain to where a thread begins");
    ktest_report(!backtrace_calls((uintptr_t)frames, out, 1), "there is no room for one");
    frames[2] = (uintptr_t)frames;
    ktest_report(!backtrace_calls((uintptr_t)frames, out, 2), "the chain leads back");
    frames[2] = 0;
    frames[1] = (uintptr_t)entry_text_start;
    ktest_report(!backtrace_calls((uintptr_t)frames, out, 2), "an image is on the way");
}
