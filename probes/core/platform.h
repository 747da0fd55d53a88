/* platform.h - everything the engine asks of the machine.
 *
 * Plain functions, found by the linker: the kernel has them in probes/port/port_kernel.c,
 * the unit tests in tests/unit/port_fake.c, the hosted engine in
 * tests/hosted/port_posix.c. docs/architecture.md has a row for each.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kprobe;
struct probe_cpu;
struct shadow;

/* ---- text ---- */

/* plat_text_read - copy bytes that may be unreadable. Context: any. Return: 0; -EFAULT. */
int plat_text_read(void *dst, uintptr_t addr, size_t len);
/* plat_text_write - change bytes of text or of plat_exec_alloc() memory, through a writable
 * alias, and verify it. Promises nothing about other CPUs, but that 1, 2, 4 or 8 bytes at a
 * multiple of as many are stored at once.
 * @len: 1..4096
 * Context: thread; machine stopped.  Locks: PLAT_TEXT held.
 * Return:  0; -EFAULT neither of the two.
 */
int plat_text_write(uintptr_t addr, const void *bytes, size_t len);
/* plat_text_store - the same for 1, 2, 4 or 8 bytes of plat_exec_alloc() memory that CPUs may
 * be executing: each executes the old or the new ones, and after the next plat_sync_cores()
 * the new.
 */
int plat_text_store(uintptr_t addr, const void *bytes, size_t len);
/* plat_sync_cores - every CPU has executed a serialising instruction since the call, or will
 * before it executes anything else. A CPU that was in an NMI has left it.
 * Context: thread, interrupts on; machine stopped.
 */
void plat_sync_cores(void);
/* plat_sync_count - how often CPU @cpu, 0..plat_cpu_count()-1, has done so for
 * plat_sync_cores(). Context: any.
 */
uint64_t plat_sync_count(unsigned cpu);
/* plat_stop_machine - run @fn(@arg) while all other CPUs stand still, with interrupts off;
 * they still take NMIs. @fn may not sleep.
 * Context: thread, interrupts on.
 * plat_stopped_ip - where @cpu was interrupted. Context: machine stopped.
 * Return: 0 for the CPU that runs @fn.
 */
void plat_stop_machine(void (*fn)(void *arg), void *arg);
uintptr_t plat_stopped_ip(unsigned cpu);
/* plat_text_contains - is all of [addr, addr + len) text that may be probed at all?
 * Context: any.
 */
bool plat_text_contains(uintptr_t addr, size_t len);
#define PLAT_LINE_LEN 64
/* plat_text_is_built - are these the bytes that the build has put into a line of text?
 * @line: multiple of PLAT_LINE_LEN   @bytes: as many, without what the engine has changed
 * Context: thread.  Return: true also for a line of which nothing is known.
 */
bool plat_text_is_built(uintptr_t line, const uint8_t *bytes);

/* ---- executable memory ---- */

/* plat_exec_alloc - pages within rel32 of all text, filled with int3.
 * @len: multiple of 4096
 * Context: thread.  Return: NULL when there is none left.
 */
void *plat_exec_alloc(size_t len);
void plat_exec_free(void *p, size_t len);
/* plat_exec_window - a range that plat_exec_alloc() never leaves; other things may lie in
 * it. At most some hundred MiB. Context: any.
 */
void plat_exec_window(uintptr_t *start, size_t *len);
/* plat_exec_contains - does @addr lie in memory of plat_exec_alloc()? Context: any. */
bool plat_exec_contains(uintptr_t addr);

/* What the engine's jumps call: probes/jump/detour.asm. Each is entered by a call, which
 * leaves on the stack where the program goes on, in a cell whose owner is the site.
 */
enum plat_detour {
    PLAT_DETOUR_CALL,      /* pre-handlers, then the copy */
    PLAT_DETOUR_CALL_DEAD, /* the same, where the status flags are dead */
    PLAT_DETOUR_CALLED,    /* the same at a call that has pushed its return address */
    PLAT_DETOUR_IMAGE,     /* pre-handlers, and the instruction done to the image */
    PLAT_DETOUR_IMAGE_CALLED,
    PLAT_DETOUR_RETURN,      /* site->plain has a new instance */
    PLAT_DETOUR_RETURN_DEAD, /* the same, where the status flags are dead */
    PLAT_DETOUR_POST,        /* post-handlers */
    PLAT_DETOURS,
};
/* plat_detour - its address. plat_is_detour - is @addr in any of them? Context: any. */
uintptr_t plat_detour(enum plat_detour which);
bool plat_is_detour(uintptr_t addr);

/* A pattern for code of its own in front of a site's copy: what PLAT_DETOUR_CALL is for one
 * handler. It is entered at @entry, and ends where the copy begins. What is to be filled in
 * lies in front of each @end.
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
    PLAT_HOLE_HANDLER, /* 4: the displacement of a call of its handler */
    PLAT_HOLE_SHARED, /* 4: the same of what it stands for: the shared code for calls there,
                        * and else as the next one */
    PLAT_HOLE_MOVED, /* 4: a displacement that is right where the pattern lies */
    PLAT_HOLES,
};
/* What it is for. */
enum plat_own {
    PLAT_OWN_CALL,       /* a pre-handler */
    PLAT_OWN_LIGHT,      /* a light handler of which handler_is_plain() holds */
    PLAT_OWN_LIGHT_KEEP, /* any light handler */
    PLAT_OWNS,
};
/* plat_detour_own - Context: any.  Return: NULL: there are none. */
const struct plat_pattern *plat_detour_own(enum plat_own which, bool flags_live);

/* What lies on the stack while a light handler runs: what it would have restored, should it
 * never return. The word below is where it would return to.
 */
struct plat_light {
    struct kprobe *probe;
    unsigned long bp;
    /* Of PLAT_OWN_LIGHT_KEEP; the low half of preempt is plat_depths.preempt. */
    unsigned long preempt, bx, r12, r13, r14, r15, flags;
};

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
/* plat_pad_page_map - let @page show the frame; from now on plat_text_write() changes it
 * there, for all pages that show it.
 * plat_pad_page_remap - let a mapped @page show this frame instead, in one step: no CPU ever
 * finds a hole, and on return none finds the old one.
 * plat_pad_pages_unmap - those mapped pages show nothing any more.
 * @page: multiple of 4096 in the range of pads
 * Context: thread, interrupts on. Return: 0; -EBUSY the page is in use for something else;
 *          -ENOMEM.
 */
int plat_pad_page_map(uintptr_t page, uint64_t id);
int plat_pad_page_remap(uintptr_t page, uint64_t id);
void plat_pad_pages_unmap(const uintptr_t *pages, size_t count);
/* plat_optimize_soon - call optimize_run() before long, from a thread of the platform's own.
 * Calls that come before that are one.
 * Context: thread; boot, when it is done as soon as there are threads.
 */
void plat_optimize_soon(void);

/* ---- time, place, locks ---- */

/* plat_quiesce - return when no CPU and no preempted thread is inside a handler, a slot or
 * a detour that it entered before the call. Context: thread, may sleep long.
 */
void plat_quiesce(void);

enum plat_context { PLAT_THREAD, PLAT_IRQ, PLAT_TRAP, PLAT_NMI };
/* plat_context - where the caller runs. Context: any. */
enum plat_context plat_context(void);

#define PLAT_CPUS_MAX 64
unsigned plat_cpu_count(void); /* 1..PLAT_CPUS_MAX */
/* plat_probe_cpu - the engine's area of CPU @cpu, 0..plat_cpu_count()-1. Context: any. */
struct probe_cpu *plat_probe_cpu(unsigned cpu);
/* plat_this_cpu - of the executing CPU; NULL before the CPU is ready for probes.
 * Context: any, preemption off.
 */
struct probe_cpu *plat_this_cpu(void);
/* What the executing code may be: as the platform counts it. */
struct plat_depths {
    int preempt;  /* not 0: the thread stays on its CPU */
    unsigned irq; /* interrupts under way */
    unsigned nmi; /* NMIs under way */
} ALIGNED(16);
/* plat_depths - of @cpu: right in front of its area, where a hit finds them soonest. */
static ALWAYS_INLINE struct plat_depths *plat_depths(const struct probe_cpu *cpu)
{
    return (struct plat_depths *)(uintptr_t)cpu - 1;
}
/* What a hit asks of its CPU, by pointers: a call would cost more than the answer. The
 * platform fills it in when it makes the CPU's area.
 */
struct plat_cpu {
    const uintptr_t *stack_base; /* lowest byte of the stack in use, outside NMI */
    uintptr_t nmi_stack_base;    /* and inside */
    uint64_t *counters;          /* plat_counter(this CPU, 0) */
    struct shadow *const
        *shadow;               /* of the stack in use, outside NMI; NULL: it has none */
    struct shadow *nmi_shadow; /* and inside */
};

/* plat_counters_map - let every CPU have the counters 0..@count-1. New ones are 0, and none
 * goes away.  Context: thread.  Locks: PLAT_PROBES held.  Return: 0; -ENOMEM.
 * plat_counter - counter @i of CPU @cpu; they lie one behind the other. Context: any.
 * plat_counter_disp - where counter @i of the executing CPU lies, from GS. Context: any.
 */
int plat_counters_map(size_t count);
uint64_t *plat_counter(unsigned cpu, size_t i);
int32_t plat_counter_disp(size_t i);

/* plat_preempt_enable - undo what the code of a detour, or the trampoline, did before it
 * called the engine.
 * Context: trap.
 */
void plat_preempt_enable(void);
/* plat_flags_as - a handler that a jump has called has returned: what it has done to the
 * flags of the CPU is undone. Interrupts are off or on as in @flags, DF is clear.
 * plat_df_clear - only the latter.
 * plat_flags_of_trap - the same behind a trap: interrupts are off.
 * Context: trap.
 */
void plat_flags_as(unsigned long flags);
static ALWAYS_INLINE void plat_df_clear(void)
{
    __asm__ volatile("cld");
}
static ALWAYS_INLINE void plat_flags_of_trap(void)
{
    if (!__STDC_HOSTED__) /* a process has no interrupts to switch off */
        __asm__ volatile("cli; cld" ::: "memory");
}
unsigned long plat_irq_save(void);
void plat_irq_restore(unsigned long flags);
/* Two sleeping locks, taken in this order. */
enum plat_lock { PLAT_PROBES, PLAT_TEXT };
void plat_lock(enum plat_lock lock);
void plat_unlock(enum plat_lock lock);
bool plat_lock_held(enum plat_lock lock);

/* ---- memory and symbols ---- */

void *plat_alloc(size_t len); /* zeroed; NULL without memory; thread */
void plat_free(void *p);

struct plat_symbol {
    uintptr_t start;
    size_t size;
    const char *name;
};

/* plat_symbol_find - the function called @name; "name#2" is the second one of that name, by
 * address. Return: 0; -ENOENT; -EADDRNOTAVAIL several have this name.
 */
int plat_symbol_find(const char *name, struct plat_symbol *out);
/* plat_symbol_at - the function that contains @addr. Context: any. Return: 0; -ENOENT. */
int plat_symbol_at(uintptr_t addr, struct plat_symbol *out);
/* plat_has_fixup - may the instruction at @addr fault and be continued elsewhere?
 * Context: any.
 */
bool plat_has_fixup(uintptr_t addr);
/* plat_is_entry - does @addr belong to the entry code? Context: any. */
bool plat_is_entry(uintptr_t addr);

/* plat_is_compiled - does a function begin at @addr that a compiler has made, by the calling
 * convention? Context: any.
 */
bool plat_is_compiled(uintptr_t addr);

/* plat_is_engine - does @addr belong to the engine's own code? Context: any. */
bool plat_is_engine(uintptr_t addr);

/* plat_nokprobe - the recorded addresses of functions marked NOKPROBE: @count of them. */
const uintptr_t *plat_nokprobe(size_t *count);

/* Where code is entered, as the build has found: addresses as offsets from @base, sorted;
 * and ranges, sorted, apart from each other, into which anything may jump. count 0: nothing
 * is known.
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
/* plat_targets - Context: any. */
void plat_targets(struct plat_targets *out);

/* ---- handlers, faults, the end ---- */

/* plat_given_up - a handler of @p, called with the stack pointer @sp, is given up. The locks
 * that it holds stay taken, and the platform reports them.
 * Context: trap.
 */
void plat_given_up(const struct kprobe *p, uintptr_t sp);
/* plat_escape - @fault is of a handler that a hit with image @regs has called. Let it, when
 * resumed, give the handler's stack up, call kprobe_resume(@regs), and go on with @regs.
 * Context: trap.
 */
void plat_escape(struct pt_regs *fault, struct pt_regs *regs);
/* plat_jprobe_call - call @fn with the argument registers of @regs, and on its stack, as
 * aligned as that of @regs, a copy of the @words behind the return address there.
 * @save_sp: gets what plat_jprobe_leave() needs to return from here in its stead
 * Context: trap.
 */
void plat_jprobe_call(uintptr_t fn, const struct pt_regs *regs, size_t words,
                      uintptr_t *save_sp);
_Noreturn void plat_jprobe_leave(uintptr_t sp);
/* plat_read - one word of memory that may be bad. Context: any.
 * Return: 0; -EFAULT.
 */
int plat_read(uint64_t *out, uintptr_t addr);
/* plat_seg_base - base of FS or GS (enum insn_seg). Context: any, preemption off. */
uintptr_t plat_seg_base(unsigned seg);
/* plat_raise_fault - the instruction at @regs->ip has failed to access @addr: what the
 * machine does when an instruction faults. Context: trap.
 */
void plat_raise_fault(struct pt_regs *regs, uintptr_t addr);
/* plat_raise_step - the program has TF set, and the instruction before @regs->ip has been
 * done for it: what the machine does after a single step. Context: trap.
 */
void plat_raise_step(struct pt_regs *regs);
/* plat_raise_again - let the fault that @regs is the image of happen again. Context: trap. */
void plat_raise_again(struct pt_regs *regs);

/* ---- stacks and returns ---- */

/* kretprobe_trampoline - where a function returns to whose return address was exchanged.
 * With preemption off it calls kretprobe_return() with an image of the registers behind the
 * return, right above the frame of that function, and then goes on with that image.
 */
extern const char kretprobe_trampoline[];

/* plat_shadow_make - give every thread that exists a shadow, and each that will; those for
 * NMIs too. Once done it costs nothing.
 * @with_data: with room for the data of instances
 * Context: thread.  Locks: PLAT_PROBES held.  Return: 0; -ENOMEM some have none.
 */
int plat_shadow_make(bool with_data);
/* plat_shadow_for_each - call @fn for all of them; their stacks may be in use meanwhile.
 * Context: thread.
 */
void plat_shadow_for_each(void (*fn)(struct shadow *shadow, void *arg), void *arg);
/* plat_shadow_running - of the thread that CPU @cpu runs now, and of its NMI stack.
 * Context: any.  Return: NULL when it has none.
 */
const struct shadow *plat_shadow_running(unsigned cpu, bool nmi);
/* plat_switches_stack - does the function at @addr return on another stack, or as another
 * thread, than it was entered? Context: any.
 */
bool plat_switches_stack(uintptr_t addr);

uint64_t plat_clock_ns(void);                     /* any, NMI-safe */
void plat_log(const char *fmt, ...) PRINTF(1, 2); /* thread */
_Noreturn void plat_bug(const char *what, uintptr_t where);
