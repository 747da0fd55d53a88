#!/usr/bin/env python3
"""test_params.py - tests of kernel/module/params.py, with a small object."""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
import scratch

TOOL = os.path.join(scratch.ROOT, "kernel/module/params.py")
sys.path.insert(0, os.path.dirname(TOOL))
import params

SOURCE = """
int outside(void);
static __attribute__((noinline)) long inner(const char *name, unsigned char n)
{ return name[n] + outside(); }
long second(long *p) { return *p; }
long (*const table[])(long *) = { second };
long first(const char *name) { return inner(name, 3); }
"""


class Params(scratch.Scratch):
    def object(self, *words):
        self.run_ok(
            "gcc",
            "-O1",
            "-gdwarf-4",
            "-ffreestanding",
            "-fno-pie",
            "-mcmodel=kernel",
            "-fno-ipa-sra",
            *words,
            "-c",
            self.write("one.c", SOURCE),
            "-o",
            self.path("one.o"),
        )
        return self.path("one.o")

    def noted(self, path):
        self.run_ok(sys.executable, TOOL, path)
        elf = params.elf64.load(path)
        section = elf.section(params.SECTION)
        return elf, section and elf.content(section)

    def test_each_function_has_its_line(self):
        elf, noted = self.noted(self.object())
        self.assertEqual(
            sorted(noted.decode().split("\0")),
            [
                "",
                "first s64 name:string",
                "inner s64 name:string n:u8",
                "second s64 p:x64",
            ],
        )
        self.assertIsNone(elf.section(".debug_info"), "debug data is gone")

    def test_without_debug_data_nothing_changes(self):
        path = self.object("-g0")
        with open(path, "rb") as file:
            before = file.read()
        self.assertIsNone(self.noted(path)[1])
        with open(path, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_a_second_time_it_is_the_same(self):
        path = self.object()
        first = self.noted(path)[1]
        self.assertEqual(self.noted(path)[1], first)

    def test_two_functions_with_one_name_have_no_line(self):
        one = self.object()
        other = self.path("other.o")
        subprocess.run(["objcopy", "--prefix-symbols=x_", one, other], check=True)
        subprocess.run(["objcopy", "--redefine-sym", "x_inner=inner", other], check=True)
        both = self.path("both.o")
        subprocess.run(["ld", "-r", one, other, "-o", both], check=True)
        lines = self.noted(both)[1].decode().split("\0")
        self.assertFalse([line for line in lines if line.startswith("inner ")])
        self.assertIn("x_second s64 p:x64", lines)


if __name__ == "__main__":
    scratch.main()
