/* platform_jump.h - what jumps need of the platform, beyond probes/core/platform.h. */
#pragma once

#include "probes/core/platform.h"

/* ---- code ---- */

/* The routines that the cells of detours call: probes/jump/detour.asm. A call in a cell
 * of the site enters the routine. The return address on the stack is where the CPU goes
 * on in that cell.
 */
enum plat_detour {
    PLAT_DETOUR_CALL,      /* pre-handlers, then the copy */
    PLAT_DETOUR_CALL_DEAD, /* the same, if the status flags are dead */
    PLAT_DETOUR_CALLED, /* the same for a direct call: it has pushed its return address */
    PLAT_DETOUR_IMAGE,  /* pre-handlers, and the instruction applied to the image */
    PLAT_DETOUR_IMAGE_CALLED,
    PLAT_DETOUR_RETURN, /* a return probe: one more instance for the holder of the site */
    PLAT_DETOUR_POST,   /* post-handlers */
    PLAT_DETOURS,
};
/* plat_detour - the address of @which. plat_is_detour - is @addr in any of these
 * routines?
 * Context: any.
 */
uintptr_t plat_detour(enum plat_detour which);
bool plat_is_detour(uintptr_t addr);

/* A pattern: code with holes. A specialized detour is a copy of it, with the holes filled
 * in, in front of the copy of the instruction. For one handler it does the work of
 * PLAT_DETOUR_CALL. CPUs enter it at @entry, and leave it at its end, where the copy of
 * the instruction begins. The bytes of a hole lie directly in front of its @end.
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
    PLAT_HOLE_IP,      /* 4, sign-extended: the site's address + 1 */
    PLAT_HOLE_COUNTER, /* 4: plat_counter_disp() of its counter */
    PLAT_HOLE_HANDLER, /* 4: the displacement of the call of its handler. In a pattern for
                        * programs, their code takes the place of the five bytes */
    PLAT_HOLE_ACROSS,  /* 4: the displacement of a jump across this call */
    PLAT_HOLE_COPY,    /* 4: the displacement of a jump to the end of the pattern */
    PLAT_HOLE_SHARED,  /* 4: the displacement of a call of shared code. At a direct call
                        * that is PLAT_DETOUR_CALLED; else it is as PLAT_HOLE_MOVED */
    PLAT_HOLE_MOVED, /* 4: a displacement that is right in the pattern, made right here */
    PLAT_HOLES,
};
/* What a pattern is for. */
enum plat_specialized {
    PLAT_SPECIALIZED_CALL,       /* a pre-handler */
    PLAT_SPECIALIZED_LEAF,       /* one with HANDLER_KEEPS, and without a fault handler */
    PLAT_SPECIALIZED_LIGHT,      /* a light handler with HANDLER_KEEPS, or a
                                  * pre-handler with HANDLER_NO_IMAGE */
    PLAT_SPECIALIZED_LIGHT_KEEP, /* any light handler */
    PLAT_OWNS,
};
/* plat_detour_specialized - the pattern for @which.
 * @flags_live: the pattern must save the status flags
 * Context: any.  Return: NULL: the platform has no patterns.
 */
const struct plat_pattern *plat_detour_specialized(enum plat_specialized which,
                                                   bool flags_live);

/* plat_text_store - as plat_text_write(), for 1, 2, 4 or 8 bytes of plat_exec_alloc()
 * memory that CPUs may be executing. Each CPU executes the old bytes or the new ones, and
 * after the next plat_sync_cores() the new ones.
 */
int plat_text_store(uintptr_t addr, const void *bytes, size_t len);
/* plat_counters_map - map the counters 0..@count-1 for every CPU. New counters are 0, and
 * no counter goes away. The counters of a CPU lie one behind the other, from
 * plat_cpu.counters on.
 * Context: thread or held.  Locks: PLAT_PROBES held.  Return: 0; -ENOMEM.
 */
int plat_counters_map(size_t count);
/* plat_counter_disp - the displacement from GS to counter @i of the executing CPU.
 * Context: any.
 */
int32_t plat_counter_disp(size_t i);

/* ---- landing pads: chosen pages, of which many may show one frame ---- */

/* plat_pad_range - tell where pads can be: in [start, end), but not in [hole_start,
 * hole_end). A jmp32 anywhere there reaches all plat_exec_alloc() memory, and a jmp32
 * anywhere in kernel text reaches all of the range. Context: any.
 */
struct plat_pad_range {
    uintptr_t start, end, hole_start, hole_end;
};
void plat_pad_range(struct plat_pad_range *out);
/* plat_pad_frame_new - allocate memory for 4096 bytes of code. No page shows it yet.
 * @id: receives the name of the frame, not 0   @content: copied into the frame
 * plat_pad_frame_free - free the frame @id. No page shows it any more.
 * Context: thread.  Return: 0; -ENOMEM.
 */
int plat_pad_frame_new(uint64_t *id, const uint8_t *content);
void plat_pad_frame_free(uint64_t id);
/* plat_pad_page_show - let @page show the frame @id. From now on plat_text_write() to
 * @page changes the frame, and so all pages that show it.
 * @page: multiple of 4096 in the range of pads
 * @old:  the frame that @page shows so far, or 0. The change is one step: no CPU ever
 *        finds the page unmapped, and on return no CPU finds the old frame.
 * plat_pad_pages_unmap - let @count pages show nothing any more.
 * Context: thread, interrupts on. Return: 0; -EBUSY the page is in use for something else;
 *          -ENOMEM.
 */
int plat_pad_page_show(uintptr_t page, uint64_t old, uint64_t id);
void plat_pad_pages_unmap(const uintptr_t *pages, size_t count);
/* ---- the optimizer ---- */

/* plat_optimize_soon - let a thread of the platform call optimize_run() soon. Further
 * calls before that have no effect.
 * Context: thread or boot. In `boot`, it is done as soon as there are threads.
 */
void plat_optimize_soon(void);

/* plat_optimize_settle - wait until that thread has nothing to do: each probe that may be a
 * jump is one, and what earlier jumps have left over is freed. Context: thread, preemptible.
 */
void plat_optimize_settle(void);

/* ---- facts from the build ---- */

/* plat_is_compiled - does a function begin at @addr that a compiler has made? Such a
 * function follows the calling convention. Context: any.
 */
bool plat_is_compiled(uintptr_t addr);

/* The addresses where CPUs enter code other than from the instruction in front, as the
 * build has found them: as offsets from @base, sorted. And ranges in which CPUs may enter
 * at any address, sorted and without overlaps. A @count of 0 means that the entries are
 * not known.
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
/* plat_targets - the entries of the text that contains @addr.
 * Context: any. If that text can be unloaded, the caller holds PLAT_PROBES.
 */
void plat_targets(uintptr_t addr, struct plat_targets *out);
