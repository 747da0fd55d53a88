/* fixture.h - runs one instruction with chosen registers, flags and memory, and returns
 * all its effects. One instruction at a time, in the calling thread.
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIXTURE_STACK_LEN 16384
#define FIXTURE_STACK_ABOVE                                                              \
    512 /* at least so many bytes are above the stack pointer at the start */
#define FIXTURE_MEMORY_LEN 16384

/* A row of the tables that fixture.inc makes. */
struct fixture {
    const char *text; /* the source line */
    uintptr_t insn;   /* the instruction */
    uintptr_t taken;  /* where the branch leads if it is taken; 0: exit_taken */
    uintptr_t more;   /* not 0: a second instruction follows, and then the exit */
};

/* The general registers, in the order in which enter.asm pops them, flags and sp. */
struct image {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
    unsigned long flags, sp;
};

#define IMAGE_REGS 15

/* The state in which an instruction is run. */
struct setup {
    struct image image;
    uint64_t word;     /* every word of memory and stack; 0: they get a pattern */
    uint64_t top[2];   /* the words at image.sp; 0: as word says */
    size_t memory_len; /* bytes of fixture_memory that are prepared and compared */
    bool vectors;      /* x87 and vector registers are set and compared, too */
    bool processor;    /* so are the registers and tables of processor.h */
    bool interrupt;    /* an interrupt is pending all the time */
    bool steps;        /* the program has TF set, or sets it */
    bool scrambled;    /* begin with other registers; a handler sets those of image */
    bool reserves;     /* the instruction reserves stack that it does not write */
};

enum fixture_exit { EXIT_FALL, EXIT_TAKEN, EXIT_FAULT };

#define OUTCOME_STEPS 4

/* The effects of an instruction. */
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
    struct { /* the pending interrupt: the state in which it has come */
        unsigned count;
        unsigned long sp, flags;
        uint64_t memory;
    } irq;
    uint64_t memory, stack, vectors, processor; /* hashes of their contents */
    uint64_t port, msr; /* the contents of a port and an MSR that only fixtures use */
};

extern uint8_t fixture_stack[FIXTURE_STACK_LEN], fixture_memory[FIXTURE_MEMORY_LEN];
extern const char exit_fall[], exit_taken[], exit_fault[];

/* fixture_run - run @f once. Context: thread on a CPU that it stays on. */
void fixture_run(const struct fixture *f, const struct setup *setup, struct outcome *out);

/* fixture_set_repair - let @repair be called when a fixture faults, before a fix-up is
 * looked for. If it returns true, the instruction is tried again. NULL: call no function.
 */
void fixture_set_repair(bool (*repair)(struct pt_regs *regs));

/* fixture_sp - return stack pointer @i to begin with; they have several alignments. */
unsigned long fixture_sp(unsigned i);
