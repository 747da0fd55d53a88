#!/usr/bin/env python3
"""test_gen_frames.py - tests of asm_frames.py and gen_frames.py with small routines."""

import os
import re
import sys

sys.dont_write_bytecode = True
import scratch

TOOL = os.path.join(scratch.ROOT, "kernel/debug/gen_frames.py")
HEAD = '%include "kernel/base/proc.inc"\nsection .text\n'


class GenFrames(scratch.Scratch):
    def rows(self, routine, name="first"):
        """The rows that readelf prints for a routine, each as {column: value}."""
        source = self.write("a.asm", HEAD + f"proc {name}\n{routine}\nendproc {name}\n")
        include = f"-I{scratch.ROOT}/"
        self.assemble(source, "a.o", include)
        self.run_ok(
            "ld",
            "-Ttext=0xffffffff80200000",
            "-e",
            name,
            "-o",
            self.path("raw"),
            self.path("a.o"),
        )
        self.run_ok(sys.executable, TOOL, "-o", self.path("frames.asm"), self.path("raw"))
        self.assemble(self.path("frames.asm"), "f.o")
        self.run_ok(
            "ld",
            "-Ttext=0xffffffff80200000",
            "-e",
            name,
            "-o",
            self.path("done"),
            self.path("a.o"),
            self.path("f.o"),
        )
        text = self.run_ok("readelf", "--debug-dump=frames-interp", self.path("done"))
        part = text[text.index("pc=ffffffff80200000") :].partition("\n\n")[0]
        lines = part.splitlines()[1:]
        columns = lines[0].split()
        return [dict(zip(columns, line.split())) for line in lines[1:]]

    def places(self, routine):
        """{offset: (CFA, return address)}"""
        return {
            int(row["LOC"], 16) & 0xFFFF: (row["CFA"], row["ra"])
            for row in self.rows(routine)
        }

    def test_a_routine_that_is_called(self):
        found = self.places("push rbx\nsub rsp, 8\nadd rsp, 8\npop rbx\nret")
        self.assertEqual(
            found,
            {
                0: ("rsp+8", "c-8"),
                1: ("rsp+16", "c-8"),
                5: ("rsp+24", "c-8"),
                9: ("rsp+16", "c-8"),
                10: ("rsp+8", "c-8"),
            },
        )

    def test_registers_are_where_they_were_stored_until_they_are_loaded(self):
        rows = self.rows(
            "push rbx\nlea rsp, [rsp - 16]\nmov [rsp + 8], r12\n"
            "mov r12, [rsp + 8]\nlea rsp, [rsp + 16]\npop rbx\nret"
        )
        self.assertEqual([row["rbx"] for row in rows][:2], ["u", "c-16"])
        self.assertIn("c-24", [row["r12"] for row in rows])
        self.assertEqual((rows[-1]["rbx"], rows[-1]["r12"]), ("s", "s"))

    def test_both_ways_of_a_branch(self):
        found = self.places(
            "push rax\ntest eax, eax\njz .out\npush rdx\nadd rsp, 8\n.out:\n"
            "pop rax\nret"
        )
        self.assertEqual(
            [row[0] for row in found.values()],
            ["rsp+8", "rsp+16", "rsp+24", "rsp+16", "rsp+8"],
        )

    def test_a_frame_pointer_serves_where_the_stack_pointer_is_unknown(self):
        code = "push rbp\nmov rbp, rsp\nand rsp, -16\nlea rsp, [rbp]\npop rbp\nret"
        found = self.places(code)
        self.assertEqual(
            [row[0] for row in found.values()],
            ["rsp+8", "rsp+16", "rbp+16", "rsp+16", "rsp+8"],
        )

    def test_what_is_not_known_is_said_to_be_unknown(self):
        found = self.places("mov rsp, rdi\nnop\nret")
        self.assertEqual(list(found.values())[1][1], "u")
        out = self.run_ok(sys.executable, TOOL, "--unknown", self.path("raw"))
        self.assertEqual(re.findall(r"\+0x(\w+)", out), ["3", "4"])

    def test_a_trap(self):
        rows = self.rows("frame trap_error\npush 0\npush rdi\niretq")
        self.assertEqual([row["CFA"] for row in rows], ["rsp+48", "rsp+56", "rsp+64"])
        self.assertEqual({(row["ra"], row["rsp"]) for row in rows}, {("c-40", "c-16")})
        self.assertEqual(rows[-1]["rdi"], "c-64")

    def test_each_kind_has_the_same_number_in_both_files(self):
        sys.path.insert(0, os.path.dirname(TOOL))
        import asm_frames

        path = os.path.join(scratch.ROOT, "kernel/base/proc.inc")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        words = re.search(r"^FRAME_KINDS ((?:.*\\\n)*.*)", text, re.M)[1]
        self.assertEqual(re.findall(r"\w+", words), asm_frames.KINDS)

    def test_gdb_numbers_registers_as_the_table_does(self):
        sys.path.insert(0, os.path.dirname(TOOL))
        import asm_frames

        path = os.path.join(scratch.ROOT, "kernel/host/gdb/sonde_gdb/cfi.py")
        with open(path, encoding="utf-8") as file:
            names = re.search(r"^NAMES = \((.*?)\)", file.read(), re.M | re.S)[1]
        numbers = {name: i for i, name in enumerate(re.findall(r"\w+", names))}
        self.assertEqual(numbers, {**asm_frames.REGISTERS, "rip": asm_frames.RETURN})


if __name__ == "__main__":
    scratch.main()
