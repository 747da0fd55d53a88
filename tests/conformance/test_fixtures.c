/* test_fixtures.c - tries every table of fixtures on a family of images. */
#include "tests/conformance/tier.h"
#include "tests/kernel/ktest.h"

#define NOTHING .ignored = 0
#define AX BIT(INSN_AX)
#define CX BIT(INSN_CX)
#define DX BIT(INSN_DX)
#define R8 BIT(INSN_R8)

/* CONFORMS - define a test that tries @table on the images of @family. Further arguments
 * set other fields of struct group: registers that differ from run to run, or that no
 * post-handler is allowed.
 */
#define CONFORMS(test, table, family, ...)                                               \
    FIXTURES(table);                                                                     \
    KTEST(conformance, test)                                                             \
    {                                                                                    \
        static const struct group group = GROUP(table, family, __VA_ARGS__);             \
                                                                                         \
        tier_test(&group);                                                               \
    }

CONFORMS(moving, mov, values, NOTHING)
CONFORMS(arithmetic, alu, values, NOTHING)
CONFORMS(shifting, shift, values, NOTHING)
CONFORMS(h17_multiplying_and_dividing, muldiv, values, NOTHING)
CONFORMS(bits, bit, values, NOTHING)
CONFORMS(bit_strings, bit_string, indices, NOTHING)
CONFORMS(atomic, atomic, values, NOTHING)
CONFORMS(atomic_exchanged, exchanged, equal, NOTHING)
CONFORMS(flags, flags, values, NOTHING)
CONFORMS(setcc_and_cmov_under_all_flags, condition, flags, NOTHING)
CONFORMS(h23_h24_nothing, nop, values, NOTHING)
CONFORMS(h18_prefixes, prefix, values, NOTHING)

CONFORMS(addresses_by_base, base, places, NOTHING)
CONFORMS(addresses_by_index, index, indices, NOTHING)
CONFORMS(addresses_only, lea, values, NOTHING)
CONFORMS(h14_rip_relative, rip, values, NOTHING)
CONFORMS(segment_gs, gs, gs, .ignored = R8)
CONFORMS(h16_nowhere, nowhere, nowhere, NOTHING)

CONFORMS(stack, stack, values, NOTHING)
CONFORMS(stack_frames, frame, frames, NOTHING)
CONFORMS(stack_room, reserve, reserved, NOTHING)
CONFORMS(h15_strings, string, strings, NOTHING)
CONFORMS(strings_of_32_bits, string_32, counters, NOTHING)
CONFORMS(strings_of_4_kib, long_string, long_strings, NOTHING)

CONFORMS(h06_jcc_under_all_flags, jcc, flags, NOTHING)
CONFORMS(h07_loop_family, loop, counters, NOTHING)
CONFORMS(jmp, jmp, values, NOTHING)
CONFORMS(h01_call, call, values, NOTHING)
CONFORMS(h02_to_a_register, to_register, targets, NOTHING)
CONFORMS(h03_to_memory, to_memory, tables, NOTHING)
CONFORMS(h04_ret, ret, targets, NOTHING)

CONFORMS(h08_pushf, pushed_flags, values, NOTHING)
CONFORMS(h09_popf, popped_flags, popped_flags, NOTHING)
CONFORMS(h09_popf_of_tf, popped_flags, popped_tf, NOTHING)
CONFORMS(h09_cli_sti, interrupts, values, NOTHING)
CONFORMS(h09_cli_sti_with_an_interrupt_waiting, interrupts, interrupted, NOTHING)
CONFORMS(h09_popf_with_an_interrupt_waiting, popped_flags, interrupted_popf, NOTHING)
CONFORMS(h10_the_shadow_of_sti, shadow, interrupted, NOTHING)
CONFORMS(h12_hlt, halt, halted, NOTHING)
CONFORMS(h13_ud, undefined, values, NOTHING)
CONFORMS(h26_a_program_that_steps_itself, stepping, stepping, NOTHING)

CONFORMS(ports, port, port, NOTHING)
CONFORMS(port_strings, port_string, port_strings, NOTHING)
CONFORMS(control_registers, control, values, NOTHING)
CONFORMS(h20_h21_written_control_registers, written_control, processor, NOTHING)
CONFORMS(h20_loaded_tables, loaded_table, processor, .no_post = true)
CONFORMS(h20_loaded_selectors, loaded_selector, loaded_selectors, NOTHING)
CONFORMS(selectors, selectors, selectors, NOTHING)
CONFORMS(identity, identity, system, NOTHING)
CONFORMS(h20_wrmsr, written_msr, written_msr, NOTHING)
CONFORMS(h17_msr_that_does_not_exist, bad_msr, values, NOTHING)
CONFORMS(clock, clock, values, .ignored = AX | CX | DX)
CONFORMS(random, random, values, .ignored = AX)

CONFORMS(x87, x87, vectors, NOTHING)
CONFORMS(mmx, mmx, vectors, NOTHING)
CONFORMS(sse, sse, vectors, NOTHING)
CONFORMS(avx, avx, vectors, NOTHING)
CONFORMS(avx512, avx512, vectors, NOTHING)
