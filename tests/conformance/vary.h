/* vary.h - families of setups: register images, flags and memory on which instructions
 * are tried.
 *
 * vary_FAMILY(setup, i) fills @setup, which is zeroed, with member @i. During one test
 * the same @i gives the same member; vary_seed() begins a test.
 *
 * Return: false when there is no such member.
 */
#pragma once

#include "tests/conformance/fixture.h"

typedef bool (*vary_fn)(struct setup *setup, unsigned i);

/* ax cx dx r8..r11 are any values; the other registers are addresses in
 * fixture_memory.
 */
bool vary_values(struct setup *setup, unsigned i);
/* As vary_values, but the values are small, for use as an index or a bit offset. */
bool vary_indices(struct setup *setup, unsigned i);
/* Every register is an address in fixture_memory. */
bool vary_places(struct setup *setup, unsigned i);
/* r8 + the base of GS is the address that bx has; every word of memory is exit_taken. */
bool vary_gs(struct setup *setup, unsigned i);
/* Every combination of CF, PF, ZF, SF and OF. */
bool vary_flags(struct setup *setup, unsigned i);
/* cx has edge values of a counter of 64 or 32 bits; ZF is set or clear. */
bool vary_counters(struct setup *setup, unsigned i);
/* si and di are in the middle of the memory; cx is 0, 1, 2 or 100; DF is set or clear;
 * the strings differ or are equal.
 */
bool vary_strings(struct setup *setup, unsigned i);
/* As vary_strings, but cx is 4096. */
bool vary_long_strings(struct setup *setup, unsigned i);
/* Every register, and every word of memory and stack, is exit_taken. */
bool vary_targets(struct setup *setup, unsigned i);
/* Every word of memory and stack is exit_taken; registers are as in vary_indices. */
bool vary_tables(struct setup *setup, unsigned i);
/* Every register is an address that is not mapped or not canonical. */
bool vary_nowhere(struct setup *setup, unsigned i);
/* The word on top of the stack is flags for popf; before it IF is on or off. */
bool vary_popped_flags(struct setup *setup, unsigned i);
/* As vary_popped_flags, but the popped flags have TF: the program begins to step itself.
 */
bool vary_popped_tf(struct setup *setup, unsigned i);
/* rax, rdx and every word of memory have the same value. */
bool vary_equal(struct setup *setup, unsigned i);
/* bp and the word on top of the stack are addresses in the stack. */
bool vary_frames(struct setup *setup, unsigned i);
/* As vary_frames, for instructions that reserve stack: what they reserve is not compared.
 */
bool vary_reserved(struct setup *setup, unsigned i);
/* IF is off and an interrupt is pending. With vary_interrupted_popf the word on top of
 * the stack is flags that have IF.
 */
bool vary_interrupted(struct setup *setup, unsigned i);
bool vary_interrupted_popf(struct setup *setup, unsigned i);
/* The program has TF set. */
bool vary_stepping(struct setup *setup, unsigned i);
/* dx is a port that can be written and read. */
bool vary_port(struct setup *setup, unsigned i);
/* As vary_strings; dx is a port that accepts any byte. */
bool vary_port_strings(struct setup *setup, unsigned i);
/* cx is an MSR that can be read; ax and cx are leaves of CPUID. */
bool vary_system(struct setup *setup, unsigned i);
/* cx is an MSR; ax and dx are a value for it: the value that it has, any other value that
 * it accepts, or a value that it does not accept.
 */
bool vary_written_msr(struct setup *setup, unsigned i);
/* ax and cx are selectors: the null selector, one of code, or one of data. */
bool vary_selectors(struct setup *setup, unsigned i);
/* Registers have values that control and debug registers accept: ax for cr0, cx for cr3,
 * dx for cr4, r8 for cr8, r9 for cr2 and dr0 to dr3, r10 for dr6, r11 for dr7. si and di
 * are the addresses of operands for lgdt and lidt.
 */
bool vary_processor(struct setup *setup, unsigned i);
/* ax and every word of memory are a selector: one of each descriptor, or one without any.
 */
bool vary_loaded_selectors(struct setup *setup, unsigned i);
/* IF is on, so that an interrupt of the timer ends a hlt. */
bool vary_halted(struct setup *setup, unsigned i);
/* x87 and vector registers are loaded. */
bool vary_vectors(struct setup *setup, unsigned i);

/* vary_seed - let the random values depend on @seed from now on. */
void vary_seed(uint64_t seed);
