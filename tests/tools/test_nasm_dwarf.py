#!/usr/bin/env python3
"""test_nasm_dwarf.py - tests of kernel/debug/nasm_dwarf.py: small objects, the image."""

import os
import sys

sys.dont_write_bytecode = True
import scratch

TOOL = os.path.join(scratch.ROOT, "kernel/debug/nasm_dwarf.py")
IMAGE = os.path.join(scratch.ROOT, os.environ.get("B", "build"), "sonde.elf")
ONE_SECTION = "section .text\nfirst: nop\n ret\n"
TWO_SECTIONS = ONE_SECTION + "section .more exec\nsecond: nop\n ret\n"


class NasmDwarf(scratch.Scratch):
    def object_of(self, source):
        return self.assemble(self.write("a.asm", source), "a.o", *scratch.WITH_LINES)

    def complaints(self, *command):
        done = self.run_any(*command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_the_entries_end_where_the_unit_does(self):
        for source in (ONE_SECTION, TWO_SECTIONS):
            path = self.object_of(source)
            self.run_ok(sys.executable, TOOL, path)
            text = self.run_ok("readelf", "--debug-dump=info", path).rstrip()
            self.assertIn("DW_AT_decl_line   : 0", text)
            self.assertRegex(
                text.splitlines()[-1], r"^ <1><[0-9a-f]+>: Abbrev Number: 0$"
            )
            self.assertEqual(
                self.run_ok("addr2line", "-e", path, "1").strip(),
                self.path("a.asm") + ":3",
            )

    def test_linked_objects_are_read_without_complaint(self):
        objects = []
        for name, source in (
            ("one", ONE_SECTION),
            ("two", "global _start\n_start: nop\n"),
        ):
            path = self.path(name + ".o")
            os.rename(self.object_of(source), path)
            objects.append(path)
        self.run_ok("ld", "-o", self.path("raw"), *objects)
        read = ("readelf", "--debug-dump=info")
        self.assertIn("Bogus", self.complaints(*read, self.path("raw")))
        for path in objects:
            self.run_ok(sys.executable, TOOL, path)
        self.run_ok("ld", "-o", self.path("done"), *objects)
        self.assertEqual(self.complaints(*read, self.path("done")), "")

    def test_what_is_right_stays(self):
        path = self.object_of(ONE_SECTION)
        self.run_ok(sys.executable, TOOL, path)
        before = self.read("a.o")
        self.run_ok(sys.executable, TOOL, path)
        self.assertEqual(self.read("a.o"), before, "a second time")
        self.run_ok(
            "gcc", "-g", "-c", self.write("b.c", "int x;"), "-o", self.path("b.o")
        )
        before = self.read("b.o")
        self.run_ok(sys.executable, TOOL, self.path("b.o"))
        self.assertEqual(self.read("b.o"), before, "a compiler's")
        self.assemble(self.path("a.asm"), "c.o")
        before = self.read("c.o")
        self.run_ok(sys.executable, TOOL, self.path("c.o"))
        self.assertEqual(self.read("c.o"), before, "one without debug data")

    def test_the_image_is_read_without_complaint(self):
        self.assertEqual(self.complaints("readelf", "--debug-dump=info", IMAGE), "")
        for function in ("vfs_read", "entry_bp"):
            done = self.run_any("objdump", "-S", f"--disassemble={function}", IMAGE)
            self.assertEqual(done.stderr, "", function)


if __name__ == "__main__":
    scratch.main()
