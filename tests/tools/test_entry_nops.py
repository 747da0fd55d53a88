#!/usr/bin/env python3
"""test_entry_nops.py - tests of kernel/debug/entry_nops.py with small programs."""

import os
import shutil
import struct
import sys

sys.dont_write_bytecode = True
import scratch

sys.path.insert(0, os.path.join(scratch.ROOT, "kernel/debug"))
import elf64

TOOL = os.path.join(scratch.ROOT, "kernel/debug/entry_nops.py")
NOP = bytes.fromhex("0f1f440000")
FUNCTIONS = ("alpha", "beta", "gamma", "nothing")
SOURCE = """
int alpha(int x);
static __attribute__((noinline)) int beta(int x) { return alpha(x) * 3; }
int alpha(int x) { return x > 1 ? beta(x - 1) + 1 : 0; }
int gamma(int x) { return beta(x) - 7; }
void nothing(void) { __builtin_unreachable(); }
"""


class EntryNops(scratch.Scratch):
    def build(self, compiler="gcc", *flags):
        if not shutil.which(compiler):
            self.skipTest(f"no {compiler}")
        source = self.write("small.c", SOURCE)
        self.run_ok(
            compiler,
            "-O1",
            "-ffreestanding",
            "-fno-pie",
            "-fcf-protection=none",
            "-fpatchable-function-entry=5",
            *flags,
            "-c",
            source,
            "-o",
            self.path("small.o"),
        )
        return self.link()

    def link(self):
        self.run_ok("ld", "-e", "alpha", self.path("small.o"), "-o", self.path("small"))
        return self.path("small")

    def tool(self):
        return self.run_any(sys.executable, TOOL, self.path("small"))

    def entry(self, function):
        """File offset of a function."""
        elf = elf64.load(self.path("small"))
        value = next(s.value for s in elf.symbols() if s.name == function)
        return elf.file_offset(value, 5)

    def overwrite(self, offset, data):
        with open(self.path("small"), "r+b") as file:
            file.seek(offset)
            file.write(data)

    def check_rewritten(self):
        before = bytearray(self.read("small"))
        done = self.tool()
        self.assertEqual(done.returncode, 0, done.stderr)
        for function in FUNCTIONS:
            at = self.entry(function)
            self.assertNotEqual(before[at : at + 5], NOP)
            before[at : at + 5] = NOP
        self.assertEqual(self.read("small"), bytes(before), "and nothing else changed")
        self.assertEqual(done.stdout, "entry_nops: 4 functions, 4 rewritten\n")

    def test_five_nops_of_gcc_become_one(self):
        self.build("gcc")
        at = self.entry("beta")
        self.assertEqual(self.read("small")[at : at + 5], b"\x90" * 5)
        self.check_rewritten()

    def test_the_nop_of_clang_becomes_the_same_one(self):
        self.build("clang")
        self.check_rewritten()

    def test_functions_in_sections_of_their_own_are_found(self):
        self.build("gcc", "-ffunction-sections")
        self.check_rewritten()

    def test_running_again_changes_nothing(self):
        self.build()
        self.tool()
        once = self.read("small")
        done = self.tool()
        self.assertEqual(done.stdout, "entry_nops: 4 functions, 0 rewritten\n")
        self.assertEqual(self.read("small"), once)

    def test_other_bytes_are_an_error_and_nothing_is_written(self):
        for code in (
            "55 90 90 90 90",
            "90 90 90 90 c3",
            "0f 1f 44 01 00",
            "66 90 90 90 90",
        ):
            self.build()
            self.overwrite(self.entry("beta"), bytes.fromhex(code))
            before = self.read("small")
            self.assert_one_line_error(self.tool(), "beta", code)
            self.assertEqual(self.read("small"), before)

    def test_an_entry_outside_the_file_is_an_error(self):
        self.build()
        elf = elf64.load(self.path("small"))
        places = elf.section("__patchable_function_entries")
        self.overwrite(places.offset + 8, struct.pack("<Q", 0))
        before = self.read("small")
        self.assert_one_line_error(self.tool(), "0x0 is not in the file")
        self.assertEqual(self.read("small"), before)

    def test_an_image_without_reserved_entries_is_an_error(self):
        self.build("gcc", "-fpatchable-function-entry=0")
        self.assert_one_line_error(self.tool(), "no section")

    def test_damaged_files_are_an_error(self):
        self.build()
        whole = self.read("small")
        for end in (0, 4, 63, 64, 200, len(whole) // 2, len(whole) - 1):
            with open(self.path("small"), "wb") as file:
                file.write(whole[:end])
            self.assert_one_line_error(self.tool(), "entry_nops: ")

    def test_files_of_other_machines_are_an_error(self):
        for offset, value in ((0, b"?"), (4, b"\1"), (18, b"\xb7")):
            self.build()
            self.overwrite(offset, value)
            self.assert_one_line_error(self.tool(), "not an ELF file of x86-64")

    def test_a_missing_file_is_an_error(self):
        self.assert_one_line_error(self.tool(), "No such file")


if __name__ == "__main__":
    scratch.main()
