/* port_fake.h - a platform over arrays (platform.h), for unit tests of the engine.
 *
 * The text is real memory, but the engine can change it by plat_text_write() only. The
 * executable memory lies behind the text. No CPU ever executes code in either: a test
 * calls the trap handlers itself and looks at the register image that comes back.
 *
 * A test begins with fake_start() and ends with fake_end(). The test fails there if a
 * site, a block or a page is left. If the engine breaks the contract of a platform
 * function, the running test fails at once.
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/core/life.h"
#include "probes/explain/totals.h"
#include "probes/jump/platform_jump.h"
#include "probes/kprobe.h"
#include "tests/unit/unit.h"

#include <setjmp.h>

#define FAKE_CPUS 4
#define FAKE_COUNTERS 8192

/* The state of the machine. A test may change the first fields: the comment of each
 * begins with the value that fake_start() gives it.
 */
struct fake_machine {
    unsigned cpus;      /* 1; at most FAKE_CPUS */
    unsigned this_cpu;  /* 0 */
    bool early;         /* false; true: this CPU has no struct probe_cpu yet */
    bool fetches_words; /* false; of plat_fetches_words() */
    bool detours_far;   /* false; true: cells cannot reach plat_detour() */
    const struct plat_pattern *specialized; /* NULL; of plat_detour_specialized() */
    size_t stack_left;                      /* 16384; bytes of free stack at each trap */
    enum plat_context context;              /* PLAT_THREAD; the context outside of hits */
    uintptr_t fs_base, gs_base;
    unsigned deaf;       /* 0: none; CPUs from this number on are never synchronised */
    unsigned halted_cpu; /* 0: none; this CPU is halted at each synchronisation */
    uintptr_t stops_at;  /* 0; of plat_stops_at() */
    uint64_t ns;         /* 0; the clock. CPU n is synchronised n nanoseconds later */
    uintptr_t stopped_ip[FAKE_CPUS]; /* 0; of each CPU, while the machine is stopped */

    /* The machine writes these fields, and the test reads them. */
    unsigned syncs, quiesces, stops; /* calls */
    unsigned kicks;  /* calls of plat_optimize_soon(); the test calls optimize_run() */
    bool is_stopped; /* inside plat_stop_machine() */
    const struct kprobe *given_up; /* of the last plat_given_up() */
    uintptr_t given_up_sp;
    unsigned irq_saves;     /* calls of plat_irq_save() */
    unsigned irqs_off;      /* how deep plat_irq_save() is nested */
    unsigned long flags_as; /* of the last plat_flags_as() */
    uintptr_t stack_base;   /* the lowest address of the stack, as stack_left says */
    unsigned raised;        /* calls of plat_raise_fault() */
    uintptr_t raised_at, raised_ip;
    bool raised_by_stack;
    unsigned raised_steps; /* calls of plat_raise_step() */
    unsigned raised_again; /* calls of plat_raise_again() */
    unsigned preempt_enables;
    char logged[256];    /* the last line of plat_log() */
    size_t jprobe_words; /* of the last plat_jprobe_call() */
    size_t blocks;       /* of plat_alloc(), not freed yet */
    size_t exec_bytes;   /* of plat_exec_alloc(), not freed yet */
    size_t pad_pages;    /* of plat_pad_page_show(), not unmapped yet */
    size_t pad_frames;   /* of plat_pad_frame_new(), not freed yet */

    /* Functions of the test, or NULL. The machine calls on_quiesce() inside the next
     * plat_quiesce() only, on_alloc() inside each plat_alloc(). */
    void (*on_quiesce)(void);
    void (*on_alloc)(void);
    /* It calls on_stop() when it has stopped, before the engine's function runs, and
     * on_sync() inside each plat_sync_cores(). on_write() comes after each write of text. */
    void (*on_write)(uintptr_t addr, size_t len);
    void (*on_stop)(void);
    void (*on_sync)(void);
};

extern struct fake_machine fake;

/* Handlers that do nothing. */
static inline int no_pre(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

static inline void no_post(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                           unsigned long flags UNUSED)
{
}

/* fake_start - start a machine without functions and probes.
 * fake_end - check that the engine has given back all that it took: sites, memory, locks,
 * and the text.
 */
void fake_start(void);
void fake_end(void);

/* fake_function - put a function into the text. @hex: its bytes, as "55 c3".
 * Return: the address of its first byte.
 */
uintptr_t fake_function(const char *name, const char *hex);
/* fake_text_poke - change a byte of text without telling the engine.
 * fake_text_put - change several, to the bytes of @hex.
 */
void fake_text_poke(uintptr_t addr, uint8_t byte);
void fake_text_put(uintptr_t addr, const char *hex);
/* fake_bytes_at - put bytes into the text, without a symbol.
 * Return: the address of the first byte.
 */
uintptr_t fake_bytes_at(const char *hex);
/* fake_text_is_original - is each byte of the text as the test has put it there? */
bool fake_text_is_original(void);
/* fake_text_end - return the address behind the last byte of text. */
uintptr_t fake_text_end(void);
/* fake_exec_start - return the address at which executable memory begins. */
uintptr_t fake_exec_start(void);

/* Tell the engine facts about text:
 * fake_entry - [start, end) is entry code.
 * fake_engine - [start, end) is the engine's own text.
 * fake_fixup - the instruction at @addr has a fix-up.
 */
void fake_entry(uintptr_t start, uintptr_t end);
void fake_engine(uintptr_t start, uintptr_t end);
void fake_fixup(uintptr_t addr);
/* fake_compiled - a compiler has made the function that begins at @start. */
void fake_compiled(uintptr_t start);
/* fake_nokprobe - the function at @addr is marked NOKPROBE.
 * fake_nokprobe_range - [start, end) is marked as code without probes, because of @why.
 * The engine gets both marks by the next fake_take_marks().
 */
void fake_nokprobe(uintptr_t addr);
void fake_nokprobe_range(uintptr_t start, uintptr_t end, const char *why);
/* fake_take_marks - give the marks since the last call to the engine. */
void fake_take_marks(void);

/* Set the facts that a build finds (plat_targets()):
 * fake_target - @addr is a target.
 * fake_opaque - [start, end) is opaque: CPUs may enter it at any address.
 * fake_no_targets - the build has left no table of targets.
 */
void fake_target(uintptr_t addr);
void fake_opaque(uintptr_t start, uintptr_t end);
void fake_no_targets(void);

/* fake_boot - run @init as at boot: its allocations stay for all tests and are not
 * counted.
 * Return: as @init.
 */
int fake_boot(int (*init)(void));

/* fake_bad - let plat_read() and plat_text_read() of [start, start + len) fault. */
void fake_bad(uintptr_t start, size_t len);

/* fake_fail_at - let the @n-th allocation from now fail. Blocks, executable memory,
 * counters, frames and pages of pads all count.
 * @n: 1 and up; 0: none fails
 * fake_failed - has the allocation failed since?
 */
void fake_fail_at(unsigned n);
bool fake_failed(void);

/* fake_pad_foreign - let another part of the kernel use the landing page @page, or let it
 * stop.
 * fake_pad_frame - return the frame that @page shows, 0 for none.
 */
void fake_pad_foreign(uintptr_t page, bool is_foreign);
uint64_t fake_pad_frame(uintptr_t page);

/* The struct plat_depths of the executing CPU: all 0 at first. */
#define FAKE_DEPTHS (*plat_depths(plat_this_cpu()))

/* fake_log_start - begin a new log of what happens to the text. It has these words:
 *
 *   int3, original       a byte of text became an int3, or another byte
 *   header, cell, clear  a page of cells was begun, a cell was filled, a cell was given
 *   back sync, quiesce        plat_sync_cores(), plat_quiesce()
 *   stop, go             plat_stop_machine() begins, and ends
 *   found, lost          from now on a hit at @watch finds a site, or finds none
 *   free                 that site was freed
 *
 * fake_log - return the words so far.
 */
void fake_log_start(uintptr_t watch);
const char *fake_log(void);

/* fake_stack - return the middle of the stack that register images point to. */
uint64_t *fake_stack(void);
/* fake_stack_area - find a stack. @which: 0 the stack; 1 the stack of NMIs
 * @top: receives the address behind its last byte   Return: its length in bytes.
 */
size_t fake_stack_area(unsigned which, uintptr_t *top);
/* fake_switches_stack - let plat_switches_stack() be true for the function at @addr
 * only.
 */
void fake_switches_stack(uintptr_t addr);
/* fake_shadow_end - private to the port. */
void fake_shadow_end(void);
struct text_phase;
/* fake_watch_phases - call text_phases_watch() for @fn, with the lock that it needs. */
void fake_watch_phases(void (*fn)(const struct text_phase *p));
/* fake_return - let a function return, by the return address at @regs->sp. If that is the
 * trampoline or a return point, the return probes are run.
 * Return: whether they were.
 */
bool fake_return(struct pt_regs *regs);
/* fake_regs - return an image with sp in fake_stack() and a different value in each
 * register.
 */
struct pt_regs fake_regs(void);
/* fake_totals - return the result of account_totals(). */
struct probe_totals fake_totals(void);

/* fake_int3 - let the CPU execute the int3 at @addr.
 * fake_fault - let the CPU fault with @vector at @ip.
 * If a probe handler calls one of these functions, and the engine ends that handler, the
 * function does not return.
 * Return: true: the engine has dealt with the trap, and the program goes on with @regs.
 */
bool fake_int3(struct pt_regs *regs, uintptr_t addr);
bool fake_fault(struct pt_regs *regs, unsigned vector, uintptr_t ip);

/* FAKE_BUG - does @statement end in plat_bug()? */
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
