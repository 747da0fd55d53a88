/* vary.h - what an instruction is tried on: families of register images, flags, memory.
 *
 * vary_FAMILY(setup, i) fills @setup (zeroed) with the i-th member. The same i gives the
 * same member during one test: vary_seed() begins a test.
 *
 * Return: false when there is no such member.
 */
#pragma once

#include "tests/conformance/fixture.h"

typedef bool (*vary_fn)(struct setup *setup, unsigned i);

/* Values in ax cx dx r8..r11; places in fixture_memory in the others, bx first. */
bool vary_values(struct setup *setup, unsigned i);
/* The same, with small values, for use as an index or a bit offset. */
bool vary_indices(struct setup *setup, unsigned i);
/* Every register is a place in fixture_memory. */
bool vary_places(struct setup *setup, unsigned i);
/* r8 names bx's place relative to the base of GS; the memory is full of exit_taken. */
bool vary_gs(struct setup *setup, unsigned i);
/* Every combination of CF, PF, ZF, SF and OF. */
bool vary_flags(struct setup *setup, unsigned i);
/* cx at the edges of a counter of 64 and of 32 bits, with ZF and without. */
bool vary_counters(struct setup *setup, unsigned i);
/* si and di in the middle of the memory; cx: 0, 1, 2, 100; DF both ways; equal strings. */
bool vary_strings(struct setup *setup, unsigned i);
/* The same with 4 KiB. */
bool vary_long_strings(struct setup *setup, unsigned i);
/* Every register, and every word of memory and stack, is exit_taken. */
bool vary_targets(struct setup *setup, unsigned i);
/* The memory is full of exit_taken, registers are as in vary_indices. */
bool vary_tables(struct setup *setup, unsigned i);
/* Registers and memory that lead nowhere: not mapped, and not canonical. */
bool vary_nowhere(struct setup *setup, unsigned i);
/* The top of the stack holds flags for popf; IF both ways before. */
bool vary_popped_flags(struct setup *setup, unsigned i);
/* The same, with TF: the program begins to step itself. */
bool vary_popped_tf(struct setup *setup, unsigned i);
/* rax, rdx and every word of the memory are the same. */
bool vary_equal(struct setup *setup, unsigned i);
/* bp and the word on top of the stack are places in the stack. */
bool vary_frames(struct setup *setup, unsigned i);
/* The same; below the stack pointer nothing is compared. */
bool vary_reserved(struct setup *setup, unsigned i);
/* IF is off and an interrupt is waiting. With the second one, popf finds IF on. */
bool vary_interrupted(struct setup *setup, unsigned i);
bool vary_interrupted_popf(struct setup *setup, unsigned i);
/* The program has TF set. */
bool vary_stepping(struct setup *setup, unsigned i);
/* dx is a port that can be written and read. */
bool vary_port(struct setup *setup, unsigned i);
/* As vary_strings; dx is a port that takes anything. */
bool vary_port_strings(struct setup *setup, unsigned i);
/* cx is an MSR that can be read; ax and cx are leaves of CPUID. */
bool vary_system(struct setup *setup, unsigned i);
/* cx is an MSR, ax and dx what it is to hold: what it does, or anything, or it must not. */
bool vary_written_msr(struct setup *setup, unsigned i);
/* ax and cx are selectors: of nothing, of code, of data. */
bool vary_selectors(struct setup *setup, unsigned i);
/* Values that control and debug registers may be given: ax for cr0, cx cr3, dx cr4, r8 cr8,
 * r9 any of dr0 to dr3 and cr2, r10 dr6, r11 dr7; si and di where lgdt and lidt find a table.
 */
bool vary_processor(struct setup *setup, unsigned i);
/* ax, and every word of memory, is a selector: of each sort, and of nothing. */
bool vary_loaded_selectors(struct setup *setup, unsigned i);
/* IF is on: the timer will come. */
bool vary_halted(struct setup *setup, unsigned i);
/* x87 and vector registers are loaded. */
bool vary_vectors(struct setup *setup, unsigned i);

/* vary_seed - the random members are new ones from here on. */
void vary_seed(uint64_t seed);
