#!/usr/bin/env python3
"""test_nokprobe.py - tests of the proof of the blacklist, on the built image: the proof
fails if a mark is missing, if a mark is too many, and if code before a hit calls a new
function.
"""

import os
import re
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import scratch

sys.path.insert(0, os.path.join(scratch.ROOT, "tests/lint"))
import nokprobe

ELF = os.path.join(scratch.ROOT, os.environ.get("B", "build"), "sonde.elf")
TOOL = os.path.join(scratch.ROOT, "tests/lint/nokprobe.py")
TABLE = os.path.join(scratch.ROOT, "tests/lint/nokprobe.tsv")

INLINE = r"^NOKPROBE_INLINE [^(;]*?(\w+)\("
STATIC = r"^static [^(;]*?(\w+)\("
LOCAL = "..@"  # a label of a macro, inside of a function
VECTOR = re.compile(
    r"%(?:[xyz]mm|mm|st|k|tmm)\d?\b|\b(?:fx?save|fx?rstor|emms|ldmxcsr)\b"
)


class Nokprobe(scratch.Scratch):
    image = None

    def setUp(self):
        super().setUp()
        cls = type(self)
        if not cls.image:
            cls.image = nokprobe.Image(ELF)
            cls.marked = frozenset(cls.image.marked)
        cls.image.marked = set(cls.marked)
        self.rows = nokprobe.read_table(TABLE)

    def complaints(self):
        return list(nokprobe.complaints(self.image, self.rows))

    def test_the_image_is_closed_and_minimal(self):
        self.assertEqual(self.complaints(), [])
        self.assertGreater(len(self.marked), 10)

    def test_no_mark_can_be_left_out(self):
        for name in sorted(self.marked):
            self.image.marked = set(self.marked) - {name}
            lines = self.complaints()
            self.assertEqual(len(lines), 1, f"without {name}: {lines}")
            self.assertRegex(lines[0], rf"^{re.escape(name)} is not marked: ")

    def test_no_mark_is_too_many(self):
        self.image.marked = set(self.marked) | {"vfs_read"}
        self.assertEqual(
            self.complaints(),
            ["vfs_read is marked, but nothing reaches it before a hit is entered"],
        )

    def test_a_new_helper_in_the_trap_path_is_found_with_its_path(self):
        self.image.calls["kprobe_int3_handler"].add("strlcpy")
        self.addCleanup(self.image.calls["kprobe_int3_handler"].discard, "strlcpy")
        lines = self.complaints()
        self.assertIn("strlcpy is not marked: kprobe_int3_handler -> strlcpy", lines)

    def test_so_is_one_that_code_between_a_jump_and_c_calls(self):
        self.image.calls["detour_specialized_rare"].add("strlcpy")
        self.addCleanup(self.image.calls["detour_specialized_rare"].discard, "strlcpy")
        lines = self.complaints()
        self.assertIn("strlcpy is not marked: detour_specialized_rare -> strlcpy", lines)

    def test_each_call_through_a_pointer_is_named(self):
        site = ("arrive", "hit.c:1")
        self.image.sources["kprobe_int3_handler"].add(site)
        self.addCleanup(self.image.sources["kprobe_int3_handler"].discard, site)
        self.assertEqual(
            self.complaints(),
            [
                "arrive has 1 calls through pointers before a hit is entered; nokprobe.tsv "
                "names 0"
            ],
        )

    def test_nothing_that_records_is_on_the_way_of_a_trap(self):
        def complaints():
            return list(nokprobe.record_complaints(self.image, self.rows))

        self.assertEqual(complaints(), [])
        self.image.calls["kprobe_debug_handler"].add("program_commit")
        self.addCleanup(
            self.image.calls["kprobe_debug_handler"].discard, "program_commit"
        )
        self.assertEqual(
            complaints(),
            [
                "program_commit records in front of a hit: kprobe_debug_handler -> "
                "program_commit"
            ],
        )

    def test_no_helper_that_is_inlined_has_a_copy(self):
        names, others = set(), set()
        for folder, _, files in os.walk(os.path.join(scratch.ROOT, "probes")):
            for name in files:
                if name.endswith((".c", ".h")):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        text = file.read()
                    names |= set(re.findall(INLINE, text, re.M))
                    others |= set(re.findall(STATIC, text, re.M))
        self.assertGreater(len(names), 50)
        end = self.image.values["probes_text_end"]
        engine = {f.name for f in self.image.functions if f.value < end}
        self.assertEqual((names - others) & engine, set())

    def test_a_name_in_the_table_must_exist(self):
        self.rows["gate"].append(["no_such_function"])
        self.assertEqual(
            self.complaints(),
            ["nokprobe.tsv names no_such_function, which is no function of the image"],
        )

    def test_the_tool_fails_on_an_image_without_one_mark(self):
        """Run the tool on a file with the recorded address of one mark overwritten."""
        copy = self.path("sonde.elf")
        shutil.copy(ELF, copy)
        elf = self.image.elf
        symbols = {s.name: s.value for s in elf.symbols()}
        start = symbols["nokprobe_start"]
        offset = elf.file_offset(start, symbols["nokprobe_end"] - start)
        with open(copy, "r+b") as file:
            file.seek(offset)
            first, second = struct.unpack("<2Q", file.read(16))
            file.seek(offset)
            file.write(struct.pack("<2Q", second, second))
        done = subprocess.run(
            [sys.executable, TOOL, copy], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(f"# {self.image.at(first)} is not marked: ", done.stdout)
        self.assertIn("not ok 1 ", done.stdout)


class Registers(scratch.Scratch):
    """Handlers run between two instructions of the program. So the kernel must not use
    registers that entry code does not save, except in the fixtures of conformance
    tests."""

    def test_no_code_uses_vector_or_float_registers(self):
        text = self.run_ok("objdump", "-d", "--no-show-raw-insn", ELF)
        function, found = "", []
        for line in text.splitlines():
            if line.endswith(">:"):
                name = line.split("<")[1][:-2]
                function = function if name.startswith(LOCAL) else name
            elif VECTOR.search(line) and not function.startswith("fixture_code_"):
                found.append(f"{function}: {line}")
        self.assertEqual(found, [])
        self.assertGreater(text.count("\n"), 10000)


if __name__ == "__main__":
    scratch.main()
