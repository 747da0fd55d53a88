/* port_fake.h - platform.h over arrays, for unit tests of the engine.
 *
 * Text is real memory that only plat_text_write() can change, executable memory lies
 * behind it, and nothing in either is ever executed: a test calls the trap handlers itself
 * and looks at the register image that comes back.
 *
 * A test begins with fake_start() and ends with fake_end(), which fails it when anything
 * is left behind. Breaches of a platform function's contract fail the running test at once.
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/explain/totals.h"
#include "probes/jump/platform_jump.h"
#include "tests/unit/unit.h"

#include <setjmp.h>

#define FAKE_CPUS 4
#define FAKE_COUNTERS 8192

/* The machine, as the test wants it; fake_start() sets what is behind each field. */
struct fake_machine {
    unsigned cpus;     /* 1; at most FAKE_CPUS */
    unsigned this_cpu; /* 0 */
    bool early;        /* false: this CPU has its area */
    bool detours_far;  /* false: plat_detour() is in reach of cells */
    const struct plat_pattern *specialized; /* NULL: what plat_detour_specialized() has */
    size_t stack_left;                      /* 16 KiB */
    enum plat_context context;              /* PLAT_THREAD, while no hit is active */
    uintptr_t fs_base, gs_base;
    unsigned deaf;       /* 0; a CPU of this number and above is never synchronised */
    unsigned halted_cpu; /* 0; this CPU answers each synchronisation by being halted */
    uint64_t ns;         /* 0; the clock; CPU n answers synchronisations n later */
    uintptr_t stopped_ip[FAKE_CPUS]; /* 0: where a stopped CPU is */

    /* Counted by the machine. */
    unsigned syncs, quiesces, stops;
    unsigned kicks;  /* plat_optimize_soon(); the test calls optimize_run() */
    bool is_stopped; /* inside plat_stop_machine() */
    const struct kprobe *given_up; /* of the last plat_given_up() */
    uintptr_t given_up_sp;
    unsigned irqs_off;      /* nested plat_irq_save() */
    unsigned long flags_as; /* of the last plat_flags_as() */
    uintptr_t stack_base;   /* for stack_left, at each trap */
    unsigned raised;        /* plat_raise_fault() */
    uintptr_t raised_at, raised_ip;
    unsigned raised_steps; /* plat_raise_step() */
    unsigned raised_again; /* plat_raise_again() */
    unsigned preempt_enables;
    size_t jprobe_words; /* of the last plat_jprobe_call() */
    size_t blocks;       /* of plat_alloc(), not freed */
    size_t exec_bytes;   /* of plat_exec_alloc(), not freed */
    size_t pad_pages;    /* of plat_pad_page_show(), not unmapped */
    size_t pad_frames;   /* of plat_pad_frame_new(), not freed */

    /* When set: run inside the next plat_quiesce(), inside each plat_alloc(). */
    void (*on_quiesce)(void);
    void (*on_alloc)(void);
    /* Run with the machine stopped, before the engine's function, and inside each
     * plat_sync_cores(). */
    void (*on_stop)(void);
    void (*on_sync)(void);
};

extern struct fake_machine fake;

/* fake_start - a machine with nothing on it. fake_end - everything was given back. */
void fake_start(void);
void fake_end(void);

/* fake_function - put a function into the text. @hex: its bytes, as "55 c3".
 * Return: where it begins.
 */
uintptr_t fake_function(const char *name, const char *hex);
/* fake_text_poke - change a byte of text behind the engine's back. */
void fake_text_poke(uintptr_t addr, uint8_t byte);
/* fake_bytes_at - put bytes into the text that no symbol tells of. */
uintptr_t fake_bytes_at(const char *hex);
/* fake_text_is_original - no byte of text differs from what was put there. */
bool fake_text_is_original(void);
/* fake_text_end - the address behind the last byte of text. */
uintptr_t fake_text_end(void);
/* fake_exec_start - where the first page of executable memory will lie. */
uintptr_t fake_exec_start(void);

/* fake_entry - [start, end) is entry code. fake_engine - it is the engine's own text.
 * fake_fixup - the instruction at @addr has a fix-up. fake_nokprobe - @addr is marked.
 */
void fake_entry(uintptr_t start, uintptr_t end);
void fake_engine(uintptr_t start, uintptr_t end);
void fake_fixup(uintptr_t addr);
/* fake_compiled - the function that begins at @start is a compiler's. */
void fake_compiled(uintptr_t start);
void fake_nokprobe(uintptr_t addr);
void fake_nokprobe_range(uintptr_t start, uintptr_t end, const char *why);
/* fake_take_marks - the engine hears of what was marked since the last time. */
void fake_take_marks(void);

/* fake_target - code is entered at @addr, as the build knows. fake_opaque - anything may jump
 * into [start, end). fake_no_targets - the build knows nothing.
 */
void fake_target(uintptr_t addr);
void fake_opaque(uintptr_t start, uintptr_t end);
void fake_no_targets(void);

/* fake_boot - run @init as at boot: what it allocates is kept and not counted. */
int fake_boot(int (*init)(void));

/* fake_bad - accesses to [start, start + len) fault. */
void fake_bad(uintptr_t start, size_t len);

/* fake_fail_at - let the @n-th allocation from now fail, memory or executable memory.
 * @n: 1 and up; 0 none
 * fake_failed - has it failed yet?
 */
void fake_fail_at(unsigned n);
bool fake_failed(void);

/* fake_pad_foreign - somebody else has, or no longer has, the landing page @page.
 * fake_pad_frame - the frame that it shows, 0 for none.
 */
void fake_pad_foreign(uintptr_t page, bool is_foreign);
uint64_t fake_pad_frame(uintptr_t page);

/* What the executing CPU may be; 0 at first. */
#define FAKE_DEPTHS (*plat_depths(plat_this_cpu()))

/* fake_log_start - note from now on what happens to the text, in words:
 *
 *   int3, original   the first byte of an instruction was written
 *   header, cell, clear  a page of cells begun, a cell filled, a cell given back
 *   sync, quiesce    plat_sync_cores(), plat_quiesce()
 *   stop, go         plat_stop_machine()
 *   found, lost      a hit at @watch has begun, or ceased, to find its site
 *   free             that site was freed
 *
 * fake_log - the words so far.
 */
void fake_log_start(uintptr_t watch);
const char *fake_log(void);

/* fake_stack - the middle of a stack for register images. */
uint64_t *fake_stack(void);
/* fake_stack_area - a stack's top and length; @which: 0, or 1 for that of NMIs. */
size_t fake_stack_area(unsigned which, uintptr_t *top);
/* fake_switches_stack - the function at @addr is one that does. */
void fake_switches_stack(uintptr_t addr);
/* fake_shadow_end - private to the port. */
void fake_shadow_end(void);
struct text_phase;
/* fake_watch_phases - let @fn be called as by text_phases_watch(). */
void fake_watch_phases(void (*fn)(const struct text_phase *p));
/* fake_return - the function whose return address is at @regs->sp returns: to where that
 * says, or through the trampoline. Return: whether it was the latter.
 */
bool fake_return(struct pt_regs *regs);
/* fake_regs - an image with sp in fake_stack() and a value of its own in each register. */
struct pt_regs fake_regs(void);
/* fake_totals - as account_totals(). */
struct probe_totals fake_totals(void);

/* fake_int3 - run into the int3 at @addr. fake_fault - fault with @vector at @ip. Called
 * from a probe handler, neither returns when the engine ends that handler.
 * Return: the engine took it, and @regs is where to go on.
 */
bool fake_int3(struct pt_regs *regs, uintptr_t addr);
bool fake_fault(struct pt_regs *regs, unsigned vector, uintptr_t ip);

/* FAKE_BUG - does @statement end in plat_bug()? fake_bug - what that said. */
#define FAKE_BUG(statement)                                                              \
    __extension__({                                                                      \
        bool fake_hit = setjmp(fake_bug_exit) != 0;                                      \
                                                                                         \
        if (!fake_hit) {                                                                 \
            fake_bug_expected = true;                                                    \
            statement;                                                                   \
        }                                                                                \
        fake_bug_expected = false;                                                       \
        fake_hit;                                                                        \
    })
extern jmp_buf fake_bug_exit;
extern bool fake_bug_expected;
