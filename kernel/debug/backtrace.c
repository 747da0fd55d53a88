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

#define BEFORE_FRAME 6   /* bytes of a function, at most, in front of `mov rbp, rsp` */
#define DETOUR_WORDS 32  /* that a detour pushes, at most */
#define BACKTRACE_MAX 48 /* at most 64: struct frame_walk has a bit for each */

extern const char entry_text_start[], entry_text_end[];
extern const char image_text_start[], image_text_end[];

backtrace_resolver_t backtrace_resolver;

uintptr_t backtrace_original(uintptr_t addr, const uintptr_t *slot, uintptr_t sp)
{
    return backtrace_resolver ? backtrace_resolver(addr, slot, sp) : addr;
}

struct frame_walk {
    uintptr_t bp;
    uintptr_t *out;
    size_t count, max;
    uint64_t images; /* bit i < 64: out[i] is no return address, but the ip of an image */
};

/* emit_caller - store @addr, an original address, in the result.
 * @is_image: it is no return address, but the ip of an image
 */
static void emit_caller(struct frame_walk *w, uintptr_t addr, bool is_image)
{
    if (w->count == w->max)
        return;
    if (is_image && w->count < 64)
        w->images |= BIT(w->count);
    w->out[w->count++] = addr;
}

static bool lies_between(uintptr_t addr, const char *start, const char *end)
{
    return addr >= (uintptr_t)start && addr < (uintptr_t)end;
}

static bool backtrace_is_entry_code(uintptr_t addr)
{
    return lies_between(addr, entry_text_start, entry_text_end) ||
           lies_between(addr, image_text_start, image_text_end);
}

/* backtrace_original_return - return the original of the return address @ret at @slot. Most
 * are in text of the image, where only those in entry code are the engine's.
 */
static uintptr_t backtrace_original_return(uintptr_t ret, const uintptr_t *slot)
{
    return lies_between(ret, _text, _etext) && !backtrace_is_entry_code(ret)
               ? ret
               : backtrace_original(ret, slot, 0);
}

/* is_below_image - does an image lie right above the return address @ret at @slot? It does
 * if entry code, or code that builds images, has called the function. Right above an address
 * in generated code lies what this code has pushed. But a return address that the engine
 * has exchanged leads to such code, too, and then no image is there.
 */
static bool is_below_image(uintptr_t ret, const uintptr_t *slot)
{
    bool is_entry = backtrace_is_entry_code(ret);

    if (lies_between(ret, _text, _etext) ? !is_entry : !exec_contains(ret))
        return false;
    return backtrace_original(ret, slot, 0) == ret;
}

/* image_above - get the registers of the code that has called the function with the return
 * address @ret at @slot. Generated code has no image: @ret, the stack pointer and @bp are
 * enough, because the resolver knows the rest.
 * Return: false: the image cannot be read.
 */
static bool image_above(struct pt_regs *out, uintptr_t ret, const uintptr_t *slot,
                        uintptr_t bp)
{
    if (!exec_contains(ret))
        return !copy_nofault(out, slot + 1, sizeof(*out));
    *out = (struct pt_regs){ .ip = ret, .sp = (uintptr_t)(slot + 1), .bp = bp };
    return true;
}

/* is_behind_call - does the instruction in front of @ret call @function by its name? */
static bool is_behind_call(uintptr_t ret, uintptr_t function)
{
    struct PACKED {
        uint8_t opcode;
        int32_t disp;
    } call;

    return !copy_nofault(&call, (const void *)(ret - sizeof(call)), sizeof(call)) &&
           call.opcode == 0xe8 && ret + (uintptr_t)(intptr_t)call.disp == function;
}

/* is_return - is @addr at @slot certainly the return address of @function? */
static bool is_return(uintptr_t addr, const uintptr_t *slot, uintptr_t function)
{
    return is_behind_call(addr, function) ||
           backtrace_original_return(addr, slot) != addr;
}

/* missing_caller - find the return address of a function that has no frame yet, because the
 * CPU is at @ip, in its first instructions: it is at the top of the stack, or behind rbp,
 * which the function has pushed. If @in_copy, it is somewhere behind what a detour has
 * pushed. In any case it lies below the frame of the caller.
 * Return: where it lies; NULL: no caller is missing, or it is not certain.
 */
static const uintptr_t *missing_caller(const struct frame_walk *w, uintptr_t ip,
                                       uintptr_t sp, bool in_copy)
{
    const uintptr_t *slot = (const uintptr_t *)sp;
    size_t max = in_copy ? DETOUR_WORDS : 2, room = (w->bp - sp) / 8;
    uintptr_t words[DETOUR_WORDS];
    struct ksym sym;

    room = room < max ? room : max;
    if (ksyms_at(ip, &sym) || ip - sym.start > BEFORE_FRAME ||
        copy_nofault(words, slot, room * 8))
        return NULL;
    for (size_t i = 0; i < room; i++)
        if (words[i] >= REACH_START &&
            (!in_copy || is_return(words[i], &slot[i], sym.start)))
            return &slot[i];
    return NULL;
}

/* start_at_regs - go on at the registers of an image. If the function at their ip has just
 * been called from below another image, go on there.
 */
static void start_at_regs(struct frame_walk *w, struct pt_regs regs)
{
    for (;;) {
        uintptr_t ip = backtrace_original(regs.ip, NULL, regs.sp);
        const uintptr_t *slot;

        emit_caller(w, ip, true);
        w->bp = regs.bp;
        slot = missing_caller(w, ip, regs.sp, ip != regs.ip);
        if (!slot || w->count == w->max)
            return;
        if (!is_below_image(*slot, slot)) {
            emit_caller(w, backtrace_original_return(*slot, slot), false);
            return;
        }
        if (!image_above(&regs, *slot, slot, w->bp))
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
    const uintptr_t *slot = (const uintptr_t *)(w->bp + 8);
    struct frame frame;
    struct pt_regs regs;

    if (!read_frame(&frame, w->bp))
        return false;
    if (is_below_image(frame.ret, slot)) {
        if (!image_above(&regs, frame.ret, slot, frame.bp))
            return false;
        start_at_regs(w, regs);
        return true;
    }
    if (!frame.ret)
        return false;
    emit_caller(w, backtrace_original_return(frame.ret, slot), false);
    if (frame.bp <= w->bp)
        return false;
    w->bp = frame.bp;
    return true;
}

static void walk_frames(struct frame_walk *w, const struct pt_regs *regs, uintptr_t frame)
{
    w->bp = frame;
    if (regs)
        start_at_regs(w, *regs);
    for (size_t hops = 0; hops < 2 * w->max && w->count < w->max; hops++)
        if (!step(w))
            break;
}

size_t backtrace_collect(const struct pt_regs *regs, uintptr_t *out, size_t max)
{
    struct frame_walk w = { .out = out, .max = max };
    struct ksym sym;

    walk_frames(&w, regs, (uintptr_t)__builtin_frame_address(0));
    for (size_t i = 1; i < w.count; i++)
        if (i < 64 && w.images & BIT(i) && !ksyms_at(out[i], &sym) && !sym.offset)
            out[i]++;
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
        emit_caller(&w, backtrace_original_return(frame.ret, slot), false);
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
