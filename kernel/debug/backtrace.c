/* backtrace.c - walks the chain of frame pointers, across traps.
 *
 * Every read may fail: the chain may belong to code that has just crashed, or that
 * another CPU executes at the same time.
 */
#include "kernel/debug/backtrace.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/debug/ksyms.h"
#include "kernel/memmap.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/extable.h"

#include <stdbool.h>

#define BACKTRACE_MAX 48 /* at most 64: struct frame_walk has a bit for each */

extern const char entry_text_start[], entry_text_end[];
extern const char image_text_start[], image_text_end[];

static backtrace_resolver_t resolver;

INIT void backtrace_set_resolver(backtrace_resolver_t fn)
{
    resolver = fn;
}

uintptr_t backtrace_original(uintptr_t addr, const uintptr_t *slot, uintptr_t sp)
{
    return resolver ? resolver(addr, slot, sp) : addr;
}

struct frame_walk {
    uintptr_t bp;
    uintptr_t *out;
    size_t count, max;
    uint64_t images; /* bit i < 64: out[i] is no return address, but the ip of an image */
};

/* emit_caller - store @addr in the result, after the resolver has changed it.
 * @slot: where @addr lies as a return address; NULL: @addr is the ip of an image with @sp
 */
static uintptr_t emit_caller(struct frame_walk *w, uintptr_t addr, const uintptr_t *slot,
                             uintptr_t sp)
{
    addr = backtrace_original(addr, slot, sp);
    if (w->count == w->max)
        return addr;
    if (!slot && w->count < 64)
        w->images |= BIT(w->count);
    w->out[w->count++] = addr;
    return addr;
}

static bool backtrace_is_entry_code(uintptr_t addr)
{
    return addr >= (uintptr_t)entry_text_start && addr < (uintptr_t)entry_text_end;
}

/* is_below_image - does an image lie right above the frame of the function that returns
 * to @ret? It does if entry code, code that builds images, or generated code has called
 * the function. But a return address that the engine has exchanged leads to such code,
 * too, and then no image is there.
 */
static bool is_below_image(uintptr_t ret, const uintptr_t *slot)
{
    if (backtrace_original(ret, slot, 0) != ret)
        return false;
    return backtrace_is_entry_code(ret) ||
           (ret >= (uintptr_t)image_text_start && ret < (uintptr_t)image_text_end) ||
           exec_contains(ret);
}

/* missing_caller - find out whether the code at @ip has no frame yet. At the start of a
 * function its return address is at the top of the stack, and bp still belongs to the caller.
 */
static bool missing_caller(uintptr_t ip, uintptr_t sp, uintptr_t *caller)
{
    struct ksym sym;

    return !ksyms_at(ip, &sym) && ip - sym.start <= 5 &&
           !copy_nofault(caller, (const void *)sp, sizeof(*caller));
}

/* start_at_regs - go on at the registers of an image. If entry code has just called the
 * function at their ip, the next image lies right above the return address.
 */
static void start_at_regs(struct frame_walk *w, const struct pt_regs *regs)
{
    struct pt_regs above;
    uintptr_t ip, caller;

    for (;; regs = &above) {
        ip = emit_caller(w, regs->ip, NULL, regs->sp);
        w->bp = regs->bp;
        if (!missing_caller(ip, regs->sp, &caller))
            return;
        emit_caller(w, caller, (const uintptr_t *)regs->sp, 0);
        if (!backtrace_is_entry_code(caller) || w->count == w->max ||
            copy_nofault(&above, (const void *)(regs->sp + 8), sizeof(above)))
            return;
    }
}

struct frame {
    uintptr_t bp, ret;
};

static bool read_frame(struct frame *frame, uintptr_t bp)
{
    return is_aligned(bp, 8) && !copy_nofault(frame, (const void *)bp, sizeof(*frame));
}

/* step - go one frame outwards. If an image lies right above the frame, go on with the
 * registers in the image.
 * Return: false: the chain ends.
 */
static bool step(struct frame_walk *w)
{
    struct frame frame;
    struct pt_regs regs;
    uintptr_t slot = w->bp + 8;

    if (!read_frame(&frame, w->bp))
        return false;
    if (is_below_image(frame.ret, (const uintptr_t *)slot)) {
        if (copy_nofault(&regs, (const void *)(w->bp + 16), sizeof(regs)))
            return false;
        start_at_regs(w, &regs);
        return true;
    }
    if (!frame.ret)
        return false;
    emit_caller(w, frame.ret, (const uintptr_t *)slot, 0);
    if (frame.bp <= w->bp)
        return false;
    w->bp = frame.bp;
    return true;
}

static void walk_frames(struct frame_walk *w, const struct pt_regs *regs, uintptr_t frame)
{
    w->bp = frame;
    if (regs)
        start_at_regs(w, regs);
    for (size_t hops = 0; hops < 2 * w->max && w->count < w->max; hops++)
        if (!step(w))
            break;
}

size_t backtrace_collect(const struct pt_regs *regs, uintptr_t *out, size_t max)
{
    struct frame_walk w = { .out = out, .max = max };

    walk_frames(&w, regs, (uintptr_t)__builtin_frame_address(0));
    return w.count;
}

size_t backtrace_calls(uintptr_t bp, uintptr_t *out, size_t max)
{
    struct frame_walk w = { .out = out, .max = max };
    struct frame frame;

    for (; w.count < max && read_frame(&frame, bp); bp = frame.bp) {
        const uintptr_t *slot = (const uintptr_t *)(bp + 8);

        if (is_below_image(frame.ret, slot))
            return 0;
        emit_caller(&w, frame.ret, slot, 0);
        if (!frame.bp)
            return w.count;
        if (frame.bp <= bp)
            return 0;
    }
    return 0;
}

/* print_frame - print one line. For a caller, @addr is the last byte of its call: the
 * return address may belong to the next function, if the called function does not return.
 */
static void print_frame(uintptr_t addr, void (*line)(const char *fmt, ...))
{
    char place[KSYMS_TEXT_LEN];
    size_t len = ksyms_text(place, sizeof(place), addr);

    line("  0x%016lx%s%s\n", addr, len ? " " : "", len ? place : "");
}

void backtrace_print(const struct pt_regs *regs, void (*line)(const char *fmt, ...))
{
    uintptr_t at[BACKTRACE_MAX];
    struct frame_walk w = { .out = at, .max = BACKTRACE_MAX };

    walk_frames(&w, regs, (uintptr_t)__builtin_frame_address(0));
    for (size_t i = 0; i < w.count; i++)
        print_frame(w.images & BIT(i) ? at[i] : at[i] - 1, line);
}
