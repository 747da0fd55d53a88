#!/usr/bin/env python3
"""test_init_refs.py - tests of kernel/module/init_refs.py with small images: which
references it accepts, and which it refuses, by name.
"""

import os
import sys

sys.dont_write_bytecode = True
import scratch

TOOL = os.path.join(scratch.ROOT, "kernel/module/init_refs.py")
KERNEL = os.path.join(scratch.ROOT, os.environ.get("B", "build"), "sonde.elf")

# A small version of linker.ld.
LAYOUT = """
SECTIONS
{
    . = 0xffffffff80200000;
    .text : {
        *(.text)
        . = ALIGN(4096);
        _init_text = .;
        . += 16;
        *(.init.text)
        . += 16;
        . = ALIGN(4096);
        _init_text_end = .;
    }
    .init.data : { . += 16; *(.init.data) . = ALIGN(4096); _init_end = .; }
    .rodata : {
        *(.rodata .rodata.*)
        init_array_start = .; *(.init_array) init_array_end = .;
        marker_insns_start = .; *(.marker_insns) marker_insns_end = .;
    }
    .data : { *(.data) *(.bss) }
    /DISCARD/ : { *(.comment .note* .eh_frame) }
}
"""
HEAD = """
#define INIT __attribute__((section(".init.text"), noinline))
#define INIT_DATA __attribute__((section(".init.data")))
#define IN(name) __attribute__((used, section(name)))
extern char _init_text[], _init_text_end[], _init_end[];
volatile int world;
int number INIT_DATA = 5;
INIT void helper(void) { world += number; }
void stays(void) { world++; }
INIT void _start(void) { helper(); stays(); }
"""
SWITCH = "INIT " + scratch.WEIGH


class InitRefs(scratch.Scratch):
    def check(self, more=""):
        self.write("layout.ld", LAYOUT)
        source = self.write("image.c", HEAD + more)
        self.run_ok(
            "gcc",
            "-O2",
            "-ffreestanding",
            "-fno-pic",
            "-mcmodel=kernel",
            "-fcf-protection=none",
            "-c",
            source,
            "-o",
            self.path("image.o"),
        )
        self.run_ok(
            "ld",
            "-nostdlib",
            "-no-pie",
            "--emit-relocs",
            "-T",
            self.path("layout.ld"),
            self.path("image.o"),
            "-o",
            self.path("image"),
        )
        return self.run_any(sys.executable, TOOL, self.path("image"))

    def passes(self, more=""):
        done = self.check(more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def refuses(self, more, place, to):
        self.assert_one_line_error(
            self.check(more), f"{place} refers to {to}, which is freed"
        )

    def test_boot_may_use_all(self):
        self.passes()

    def test_its_switch_statements_may_have_tables(self):
        self.passes(SWITCH)

    def test_constructors_may_be_of_boot(self):
        self.passes('void (*const first)(void) IN(".init_array") = helper;')

    def test_its_bounds_may_be_named(self):
        self.passes(
            "char *const bounds[] = { _init_text, _init_text_end, _init_end };"
            "char *at(void) { return _init_text_end; }"
        )

    def test_a_call(self):
        self.refuses("void late(void) { helper(); world--; }", "late+0x1", "helper")

    def test_an_address_in_code(self):
        self.refuses("void *late(void) { return helper; }", "late+0x3", "helper")

    def test_an_address_in_data(self):
        self.refuses("void (*late[2])(void) = { stays, helper };", "late+0x8", "helper")

    def test_an_address_in_read_only_data(self):
        self.refuses("void (*const late)(void) = helper;", "late", "helper")

    def test_a_variable(self):
        self.refuses("int late(void) { return number; }", "late+0x2", "number")

    def test_a_variable_that_is_compared(self):
        """The relative address counts from the end of the instruction, behind the
        immediate. So the address that the tool finds is some bytes too low, and has no
        name."""
        done = self.check('void late(void) { __asm__("cmpl $70000, number(%rip)"); }')
        self.assert_one_line_error(done, "late+0x2 refers to 0x", ", which is freed")

    def test_a_marker(self):
        self.refuses(
            "extern char inside[];"
            'void *const late IN(".marker_insns") = (char *)_start + 4;',
            "late",
            "_start+0x4",
        )

    def test_the_kernel(self):
        done = self.run_any(sys.executable, TOOL, KERNEL)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_missing_file_is_an_error(self):
        self.assert_one_line_error(
            self.run_any(sys.executable, TOOL, "/nosuch"), "/nosuch"
        )


scratch.main()
