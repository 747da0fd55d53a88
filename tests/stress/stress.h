/* stress.h - the stress program: threads, interrupts and NMIs run into probes whose
 * handlers do what handlers may not, in rounds; after each one everything is taken out
 * and compared.
 *
 *   targets.asm, targets.c   what is probed, and how often each of its instructions runs
 *   misbehave.c              what handlers do
 *   slots.c                  the probes of a round: made, put in, taken out, judged
 *   crowd.c                  the threads, interrupts and NMIs that run into them
 *   stress.c                 rounds, and what must be as it was after each
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

/* stress_mix - of @x, another number without any order. Context: any. */
static inline uint64_t stress_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* stress_next - the next number of a stream, of which *@state is all. */
static inline uint64_t stress_next(uint64_t *state)
{
    return stress_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

static inline void stress_count(uint64_t *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* ---- differences ---- */

/* stress_differs - @what is not as it should be: @got and not @wanted. The first ones of
 * a round are printed at its end. Context: any.
 */
void stress_differs(const char *what, const char *where, uint64_t got, uint64_t wanted);

/* ---- targets.c ---- */

#define STRESS_INPUTS 4 /* x is 0 .. 3 */

/* A target is called with its good argument, or with one of the bad ones, where it
 * faults.
 */
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
    TARGET_LOAD, /* those from here on can fault */
    TARGET_DIVIDE,
    TARGET_OUTER,
    TARGET_STRINGS_BAD,
    TARGET_STI, /* only in threads, with interrupts on */
    TARGETS,
};

#define TARGETS_ANYWHERE TARGET_LOAD /* these can be called everywhere, and return */

/* stress_targets_init - find the instructions that can carry probes, and how often each
 * runs in each call: by single steps, without any probe. Context: thread, alone.
 */
void stress_targets_init(void);
/* stress_call - call one, and look whether it returns what it should and leaves the CPU
 * as it found it. Context: any
 * that the target can be called in.
 * stress_call_bad - call a target that can fault with a bad argument. It does not come back.
 */
void stress_call(enum stress_target target, uint64_t x);
void stress_call_bad(uint64_t chance);
/* stress_calls_reset, stress_calls - calls since then. Context: thread. */
void stress_calls_reset(void);
uint64_t stress_calls(void);
uint64_t stress_diverted(void); /* whose program was sent elsewhere */

struct stress_insn {
    uintptr_t addr;
    bool is_entry;
    bool is_fault;    /* it can fault, so what is behind it may not follow */
    bool is_image;    /* handlers may change flags here */
    bool is_redirect; /* handlers may send the program elsewhere */
    uint16_t runs[TARGETS][STRESS_INPUTS][STRESS_MODES]; /* in a call */
};

#define STRESS_INSNS_MAX 256
extern struct stress_insn stress_insns[STRESS_INSNS_MAX];
extern size_t stress_insn_count, stress_entry_count;

/* stress_entry - the @n-th of those that begin a target. */
const struct stress_insn *stress_entry(size_t n);
/* stress_executed - how often @insn was since the reset. Context: thread, when all calls have
 * ended.
 */
uint64_t stress_executed(const struct stress_insn *insn);

extern const uint8_t stress_idle[]; /* 64 instructions of 5 bytes, never run */
#define STRESS_IDLE_COUNT 64
#define STRESS_IDLE_LEN 5
extern const uint8_t stress_elsewhere[];

/* stress_step - let the program of @regs step itself over one instruction.
 * Context: a handler at a stress_insn that is_image.  Return: false where it may not: it is
 * no thread, or steps itself already.
 * stress_steps_check - have all steps come that were asked for, and no others?
 */
bool stress_step(struct pt_regs *regs);
void stress_steps_check(void);

/* ---- misbehave.c ---- */

enum stress_class {
    STRESS_FAULT,         /* at some depth of calls */
    STRESS_FAULT_CALLED,  /* in a function that may be probed */
    STRESS_FAULT_PREEMPT, /* with preempt_disable() */
    STRESS_FAULT_LOCK,    /* holding a spinlock */
    STRESS_FAULT_IRQLOCK, /* taken with interrupts off */
    STRESS_FAULT_IRQS,    /* with interrupts as they were not */
    STRESS_FAULT_FLAGS,   /* with DF or AC set */
    STRESS_SLEEP,
    STRESS_LOOP,
    STRESS_STI,      /* save, enable interrupts, work, restore */
    STRESS_CALL,     /* what may be probed */
    STRESS_REGISTER, /* what is refused in handlers */
    STRESS_REDIRECT,
    STRESS_IMAGE, /* flags of the program */
    STRESS_LEFT,  /* preemption, interrupts, flags are not as they were found */
    STRESS_NMI,   /* an NMI on top */
    STRESS_RESCHED,
    STRESS_CLASSES,
};

/* After these a handler is given up. */
#define STRESS_FAULTS ((uint32_t)BIT(STRESS_SLEEP + 1) - 1)
/* Those that a fault handler can deal with: the handler goes on, and its probe stays on.
 */
#define STRESS_DEALABLE                                                                  \
    ((uint32_t)(BIT(STRESS_FAULT) | BIT(STRESS_FAULT_PREEMPT) | BIT(STRESS_FAULT_LOCK) | \
                BIT(STRESS_FAULT_IRQLOCK) | BIT(STRESS_FAULT_IRQS) |                     \
                BIT(STRESS_FAULT_FLAGS)))

/* stress_classes_of - @list, separated by commas, as a mask; 0: one of them is none. */
uint32_t stress_classes_of(const char *list);
const char *stress_class_name(enum stress_class class);

/* stress_misbehave - one of @classes, as @chance has it and the context allows.
 * Context: a handler.
 */
void stress_misbehave(uint32_t classes, uint64_t chance);
/* stress_misbehave_reset - before a round. */
void stress_misbehave_reset(void);
/* Faults that were begun, and those that a fault handler has dealt with. */
extern struct stress_faults {
    uint64_t begun, dealt;
    uint64_t locks; /* that were left held */
} stress_faults;
/* stress_locks_check - are the locks held that were left, and no others? */
void stress_locks_check(void);

/* stress_fault - one of STRESS_FAULT_KINDS faults, with these flags set besides; goes on
 * at stress_fault_done.
 */
#define STRESS_FAULT_KINDS 4
void stress_fault(unsigned kind, uint64_t flags);
extern const uint8_t stress_fault_done[];

/* ---- slots.c ---- */

/* stress_slots_make - the probes of a round. @state: of its stream   @classes: allowed
 * stress_slots_change - something happens to those that may come and go.
 * stress_slots_out - all of them.
 * stress_slots_judge - those that have stayed, when all are out.
 * stress_slots_print - print all of them, to find the reason of a difference.
 * Context: thread.
 */
void stress_slots_make(uint64_t *state, uint32_t classes);
void stress_slots_change(uint64_t *state);
void stress_slots_out(void);
void stress_slots_judge(void);
void stress_slots_print(void);
struct stress_sums {
    uint64_t hits, missed, returns;
    unsigned jumps, probes;
};
void stress_slots_sums(struct stress_sums *sums);

/* ---- crowd.c ---- */

/* stress_crowd_init - once, before the first round.
 * stress_crowd_start - make threads on each CPU that call targets. @seed: which
 * stress_crowd_disturb - call some, also by interrupts and NMIs. @state: of the round
 * stress_crowd_end - let the threads end, and wait for them.
 * Context: thread.
 */
void stress_crowd_init(void);
void stress_crowd_start(uint64_t seed);
void stress_crowd_disturb(uint64_t *state);
void stress_crowd_end(void);
