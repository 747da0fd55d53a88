/* stress.h - the stress program: in rounds, threads, interrupts and NMIs run into probes
 * whose handlers do what a handler must not do. After each round all probes are
 * unregistered, and the counters and the state of the kernel are compared.
 *
 *   targets.asm, targets.c   the probed functions, and how often each instruction runs
 *   misbehave.c              what handlers do
 *   slots.c                  makes, registers and unregisters probes, and judges them
 *   crowd.c                  the threads, interrupts and NMIs that run into the probes
 *   stress.c                 the rounds, and the state that each round must restore
 *
 * docs/testing.md says what is compared with what.
 */
#pragma once

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/base/regs.h"
#include "probes/kprobe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- chance ---- */

/* stress_mix - return a number that depends on @x and looks random. Context: any. */
static inline uint64_t stress_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* stress_next - return the next random number of a stream; *@state is the
 * state of the stream.
 */
static inline uint64_t stress_next(uint64_t *state)
{
    return stress_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

static inline void stress_count(uint64_t *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* ---- differences ---- */

/* stress_differs - note a difference: @what is @got, and should be @wanted. The first
 * differences of a round are printed at its end. Context: any.
 */
void stress_differs(const char *what, const char *where, uint64_t got, uint64_t wanted);

/* ---- targets.c ---- */

#define STRESS_INPUTS 4 /* x is 0 .. 3 */

/* A target is called with its good argument, or with a bad one, with which it faults. */
enum stress_mode { STRESS_GOOD, STRESS_BAD, STRESS_MODES };

enum stress_target {
    TARGET_PLAIN,
    TARGET_FLAGS,
    TARGET_STRINGS,
    TARGET_BRANCHES,
    TARGET_RECURSE,
    TARGET_TAIL,
    TARGET_CIRCLE,
    TARGET_REDIRECT,
    TARGET_IMAGE,
    TARGET_LOAD, /* this one and the next three can fault */
    TARGET_DIVIDE,
    TARGET_OUTER,
    TARGET_STRINGS_BAD,
    TARGET_STI, /* only in threads, with interrupts on */
    TARGETS,
};

#define TARGETS_ANYWHERE TARGET_LOAD /* these can be called everywhere, and return */

/* stress_targets_init - find the instructions that can carry probes, and count how often
 * each of them runs in each call, by single steps and without any probe. Context: thread,
 * alone.
 */
void stress_targets_init(void);
/* stress_call - call @target, and check that it returns the right value and leaves the
 * CPU as it was. Context: any that the target can be called in.
 * stress_call_bad - call a target that can fault with a bad argument. It does not return.
 */
void stress_call(enum stress_target target, uint64_t x);
void stress_call_bad(uint64_t chance);
/* stress_calls_reset - set the counters of calls to 0.
 * stress_calls - return the calls since then.
 * Context: thread.
 */
void stress_calls_reset(void);
uint64_t stress_calls(void);
uint64_t stress_diverted(void); /* those in which the program was sent elsewhere */

struct stress_insn {
    uintptr_t addr;
    bool is_entry;
    bool is_fault;    /* it can fault; then the next instruction is not executed */
    bool is_image;    /* handlers may change flags here */
    bool is_redirect; /* handlers may send the program elsewhere */
    uint16_t runs[TARGETS][STRESS_INPUTS][STRESS_MODES]; /* how often in a call */
};

#define STRESS_INSNS_MAX 256
extern struct stress_insn stress_insns[STRESS_INSNS_MAX];
extern size_t stress_insn_count, stress_entry_count;

/* stress_entry - return instruction @n of those that begin a target. */
const struct stress_insn *stress_entry(size_t n);
/* stress_executed - return how often @insn was executed since stress_calls_reset().
 * Context: thread, when all calls have ended.
 */
uint64_t stress_executed(const struct stress_insn *insn);

extern const uint8_t stress_idle[]; /* 64 instructions of 5 bytes, never run */
#define STRESS_IDLE_COUNT 64
#define STRESS_IDLE_LEN 5
extern const uint8_t stress_elsewhere[];

/* stress_step - let the program of @regs step itself over one instruction.
 * Context: a handler at a stress_insn with is_image.  Return: false: the program is no
 * thread, or steps itself already.
 * stress_steps_check - check that exactly the steps have come that
 * stress_step() asked for.
 */
bool stress_step(struct pt_regs *regs);
void stress_steps_check(void);

/* ---- misbehave.c ---- */

enum stress_class {
    STRESS_FAULT,         /* fault, some calls deep */
    STRESS_FAULT_CALLED,  /* fault in a called function that may have probes */
    STRESS_FAULT_PREEMPT, /* fault with preemption off */
    STRESS_FAULT_LOCK,    /* fault while holding a spinlock */
    STRESS_FAULT_IRQLOCK, /* fault while holding a spinlock, interrupts off */
    STRESS_FAULT_IRQS,    /* switch interrupts off or on, and fault */
    STRESS_FAULT_FLAGS,   /* fault with DF or AC set */
    STRESS_SLEEP,
    STRESS_LOOP,     /* take long */
    STRESS_STI,      /* enable interrupts, take long, restore */
    STRESS_CALL,     /* call a function that may have probes */
    STRESS_REGISTER, /* call functions that are refused in handlers */
    STRESS_REDIRECT, /* send the program elsewhere */
    STRESS_IMAGE,    /* change flags of the program, or let it step itself */
    STRESS_LEFT,     /* change preemption, interrupts or flags, and leave them so */
    STRESS_NMI,      /* send an NMI to the own CPU */
    STRESS_RESCHED,  /* ask the own CPU to switch threads */
    STRESS_CLASSES,
};

/* A handler that does one of these is given up. */
#define STRESS_FAULTS ((uint32_t)BIT(STRESS_SLEEP + 1) - 1)
/* Faults that a fault handler can deal with: then the handler goes on, and its probe
 * stays enabled.
 */
#define STRESS_DEALABLE                                                                  \
    ((uint32_t)(BIT(STRESS_FAULT) | BIT(STRESS_FAULT_PREEMPT) | BIT(STRESS_FAULT_LOCK) | \
                BIT(STRESS_FAULT_IRQLOCK) | BIT(STRESS_FAULT_IRQS) |                     \
                BIT(STRESS_FAULT_FLAGS)))

/* stress_classes_of - return the mask of the classes in @list, which are separated by
 * commas; 0: one of the names is unknown.
 */
uint32_t stress_classes_of(const char *list);
const char *stress_class_name(enum stress_class class);

/* stress_misbehave - do one of @classes, chosen by @chance, if the context allows it.
 * Context: a handler.
 */
void stress_misbehave(uint32_t classes, uint64_t chance);
/* stress_misbehave_reset - set counters and locks back, before a round. */
void stress_misbehave_reset(void);
/* Faults that were begun, and those that a fault handler has dealt with. */
extern struct stress_faults {
    uint64_t begun, dealt;
    uint64_t locks; /* locks that were left held */
} stress_faults;
/* stress_locks_check - check that exactly the locks are held that
 * handlers have left held.
 */
void stress_locks_check(void);

/* stress_fault - set @flags in addition to those that are set, and cause a fault of
 * @kind, below STRESS_FAULT_KINDS. A fault handler that deals with it lets it go on at
 * stress_fault_done.
 */
#define STRESS_FAULT_KINDS 4
void stress_fault(unsigned kind, uint64_t flags);
extern const uint8_t stress_fault_done[];

/* ---- slots.c ---- */

/* stress_slots_make - make the probes of a round, and register those that stay.
 * @state: of the random stream of the round   @classes: what handlers may do
 * stress_slots_change - make one random change to the probes that are not steady, or to
 * what else changes text: films, a module, the engine for text, the optimizer, steps.
 * stress_others_first - make a film, and load a module, for the first time: what this leaves
 * in memory stays.
 * stress_others_end - end the film, unload the module, and choose the first engine for text.
 * stress_slots_out - unregister all probes.
 * stress_slots_judge - check the counters of the probes that have stayed, after
 * stress_slots_out().
 * stress_slots_print - print all probes, to help to find the reason of a difference.
 * Context: thread.
 */
void stress_slots_make(uint64_t *state, uint32_t classes);
void stress_slots_change(uint64_t *state);
void stress_others_first(void);
void stress_others_end(void);
void stress_slots_out(void);
void stress_slots_judge(void);
void stress_slots_print(void);
struct stress_sums {
    uint64_t hits, missed, returns;
    unsigned jumps, probes;
};
void stress_slots_sums(struct stress_sums *sums);

/* ---- crowd.c ---- */

/* stress_crowd_init - set the handlers of interrupts and NMIs. Called once,
 * before all rounds.
 * stress_crowd_start - make threads on each CPU that call targets, chosen by @seed.
 * stress_crowd_disturb - call targets from this thread, from interrupts and from NMIs.
 * @state: of the random stream of the round
 * stress_crowd_end - let the threads end, and wait for their ends.
 * Context: thread.
 */
void stress_crowd_init(void);
void stress_crowd_start(uint64_t seed);
void stress_crowd_disturb(uint64_t *state);
void stress_crowd_end(void);
