/* platform_jump.h - what jumps ask of the machine, beyond probes/core/platform.h. */
#pragma once

#include "probes/core/platform.h"

/* ---- code ---- */

/* What the engine's jumps call: probes/jump/detour.asm. Each is entered by a call, which
 * leaves on the stack where the program goes on, in a cell whose owner is the site.
 */
enum plat_detour {
    PLAT_DETOUR_CALL,      /* pre-handlers, then the copy */
    PLAT_DETOUR_CALL_DEAD, /* the same, where the status flags are dead */
    PLAT_DETOUR_CALLED,    /* the same at a call that has pushed its return address */
    PLAT_DETOUR_IMAGE,     /* pre-handlers, and the instruction done to the image */
    PLAT_DETOUR_IMAGE_CALLED,
    PLAT_DETOUR_RETURN, /* the holder of the site has a new instance */
    PLAT_DETOUR_POST,   /* post-handlers */
    PLAT_DETOURS,
};
/* plat_detour - its address. plat_is_detour - is @addr in any of them? Context: any. */
uintptr_t plat_detour(enum plat_detour which);
bool plat_is_detour(uintptr_t addr);

/* A pattern for code of its own in front of a site's copy: what PLAT_DETOUR_CALL is for one
 * handler. It is entered at @entry, and ends where the copy begins. The bytes that are
 * still to be filled in lie in front of each @end.
 */
struct plat_pattern {
    const uint8_t *code;
    uint16_t len, entry; /* bytes */
    const struct {
        uint16_t end; /* bytes from @code */
        uint16_t what;
    } * holes;
    size_t hole_count;
};
enum plat_hole {
    PLAT_HOLE_SITE,    /* 8 bytes: the struct site */
    PLAT_HOLE_PROBE,   /* 8: the struct kprobe */
    PLAT_HOLE_ADDR,    /* 4, sign-extended: the site's address */
    PLAT_HOLE_IP,      /* 4, sign-extended: one behind that */
    PLAT_HOLE_COUNTER, /* 4: plat_counter_disp() of its counter */
    PLAT_HOLE_HANDLER, /* 4: the displacement of a call of its handler: five bytes, in whose
                        * place the body comes that a site has instead, see stores.h */
    PLAT_HOLE_COPY, /* 4: that of a jump to the copy, which begins where the pattern ends */
    PLAT_HOLE_SHARED, /* 4: the same of what it stands for: the shared code for calls there,
                        * and else as the next one */
    PLAT_HOLE_MOVED, /* 4: a displacement that is right where the pattern lies */
    PLAT_HOLES,
};
/* What it is for. */
enum plat_specialized {
    PLAT_SPECIALIZED_CALL, /* a pre-handler */
    PLAT_SPECIALIZED_LIGHT, /* a light handler of which handler_keeps_callee_saved() holds */
    PLAT_SPECIALIZED_LIGHT_KEEP, /* any light handler */
    PLAT_OWNS,
};
/* plat_detour_specialized - Context: any.  Return: NULL: there are none. */
const struct plat_pattern *plat_detour_specialized(enum plat_specialized which,
                                                   bool flags_live);

/* plat_text_store - plat_text_write() for 1, 2, 4 or 8 bytes of plat_exec_alloc() memory that
 * CPUs may be executing: each executes the old or the new ones, and after the next
 * plat_sync_cores() the new.
 */
int plat_text_store(uintptr_t addr, const void *bytes, size_t len);
/* plat_counters_map - let every CPU have the counters 0..@count-1. New ones are 0, and none
 * goes away. Those of a CPU lie one behind the other, from plat_cpu.counters on.
 * Context: thread.  Locks: PLAT_PROBES held.  Return: 0; -ENOMEM.
 */
int plat_counters_map(size_t count);
/* plat_counter_disp - where counter @i of the executing CPU lies, from GS. Context: any. */
int32_t plat_counter_disp(size_t i);

/* ---- landing pads: chosen pages, of which many may show one frame ---- */

/* plat_pad_range - pads lie in [start, end), but not in [hole_start, hole_end): from all of
 * that plat_exec_alloc() memory is in reach of a jmp32, and all of it is of kernel text.
 * Context: any.
 */
struct plat_pad_range {
    uintptr_t start, end, hole_start, hole_end;
};
void plat_pad_range(struct plat_pad_range *out);
/* plat_pad_frame_new - memory for 4096 bytes of code that no page shows yet.
 * @id: receives its name, not 0   @content: copied into it
 * plat_pad_frame_free - no page shows it any more.
 * Context: thread.  Return: 0; -ENOMEM.
 */
int plat_pad_frame_new(uint64_t *id, const uint8_t *content);
void plat_pad_frame_free(uint64_t id);
/* plat_pad_page_show - let @page show the frame @id; from now on plat_text_write() changes it
 * there, for all pages that show it.
 * @page: multiple of 4096 in the range of pads
 * @old:  the frame that it shows so far, or 0. The change is one step: no CPU ever finds a
 *        hole, and on return none finds the old frame.
 * plat_pad_pages_unmap - those pages show nothing any more.
 * Context: thread, interrupts on. Return: 0; -EBUSY the page is in use for something else;
 *          -ENOMEM.
 */
int plat_pad_page_show(uintptr_t page, uint64_t old, uint64_t id);
void plat_pad_pages_unmap(const uintptr_t *pages, size_t count);
/* ---- the optimizer ---- */

/* plat_optimize_soon - call optimize_run() before long, from a thread of the platform's own.
 * Calls that come before that are one.
 * Context: thread; boot, when it is done as soon as there are threads.
 */
void plat_optimize_soon(void);

/* ---- facts from the build ---- */

/* plat_is_compiled - does a function begin at @addr that a compiler has made? Then it keeps
 * to the calling convention. Context: any.
 */
bool plat_is_compiled(uintptr_t addr);

/* Where CPUs enter code, as the build has found: addresses as offsets from @base, sorted; and
 * ranges, sorted and without overlaps, in which CPUs may enter at any address. A @count of 0
 * means that the entries are not known.
 */
struct plat_targets {
    uintptr_t base;
    const uint32_t *offsets;
    size_t count;
    const struct plat_opaque {
        uint32_t start, end;
    } * opaque;
    size_t opaque_count;
};
/* plat_targets - the entries of the text that @addr is in.
 * Context: any.  Locks: PLAT_PROBES held, if that text can be unloaded.
 */
void plat_targets(uintptr_t addr, struct plat_targets *out);
