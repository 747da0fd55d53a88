/* fixture.h - one instruction run with every register, flag and byte chosen, and all that
 * came of it. One at a time, on the calling thread.
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIXTURE_STACK_LEN 16384
#define FIXTURE_STACK_ABOVE                                                              \
    512 /* bytes above the stack pointer, as it begins, at least */
#define FIXTURE_MEMORY_LEN 16384

/* A row of the tables that fixture.inc makes. */
struct fixture {
    const char *text; /* the source line */
    uintptr_t insn;   /* the instruction */
    uintptr_t taken;  /* where it goes if it is taken; 0: exit_taken */
    uintptr_t more;   /* not 0: a second instruction follows, and then the exit */
};

/* In the order in which enter.asm pops it. */
struct image {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
    unsigned long flags, sp;
};

#define IMAGE_REGS 15

/* What an instruction finds. */
struct setup {
    struct image image;
    uint64_t word;   /* every word of memory and stack, unless it is 0: then a pattern */
    uint64_t top[2]; /* the words at image.sp, where not 0 */
    size_t memory_len; /* bytes of fixture_memory that are prepared and compared */
    bool vectors;      /* x87 and vector registers are a part of it */
    bool processor;    /* so is what processor.h is about */
    bool interrupt;    /* an interrupt is pending all the time */
    bool steps;        /* the program has TF set, or sets it */
    bool scrambled; /* begin with all registers other than that, for a handler to set */
    bool reserves;  /* stack that is made room of is not written */
};

enum fixture_exit { EXIT_FALL, EXIT_TAKEN, EXIT_FAULT };

#define OUTCOME_STEPS 4

/* What came of it. */
struct outcome {
    struct image image;
    unsigned exit; /* enum fixture_exit */
    struct {       /* the exceptions that were raised, and the last one */
        unsigned count, vector, error;
        unsigned long ip, sp, flags, cr2;
    } fault;
    struct { /* the single-step traps, while the program has TF set */
        unsigned count;
        unsigned long ip[OUTCOME_STEPS];
    } steps;
    struct { /* the pending interrupt: how far the program had come */
        unsigned count;
        unsigned long sp, flags;
        uint64_t memory;
    } irq;
    uint64_t memory, stack, vectors, processor; /* sums of what they hold */
    uint64_t port, msr; /* what a port and an MSR, which wait for it, hold */
};

extern uint8_t fixture_stack[FIXTURE_STACK_LEN], fixture_memory[FIXTURE_MEMORY_LEN];
extern const char exit_fall[], exit_taken[], exit_fault[];

/* fixture_run - run @f once. Context: thread on a CPU that it stays on. */
void fixture_run(const struct fixture *f, const struct setup *setup, struct outcome *out);

/* fixture_set_repair - called when a fixture faults, before any fix-up is looked for; may
 * answer true to let it try again. NULL: no function.
 */
void fixture_set_repair(bool (*repair)(struct pt_regs *regs));

/* fixture_sp - the stack pointer to begin with: the @i-th, of several alignments. */
unsigned long fixture_sp(unsigned i);
