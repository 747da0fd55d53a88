#!/usr/bin/env python3
"""test_same_text.py - tests of same_text.py: which differences of images it reports."""

import os
import sys

sys.dont_write_bytecode = True
import scratch

SAME_TEXT = os.path.join(scratch.ROOT, "tests/tools/same_text.py")
ONE = """
int limit = 7, other = 8;
__attribute__((noinline)) int twice(int x) { return 2 * x; }
__attribute__((noinline)) int thrice(int x) { return 3 * x; }
"""
TWO = """
extern int limit, other;
int twice(int x);
int thrice(int x);
int quadruple(int x) { return 2 * twice(x + limit); }
void _start(void) { quadruple(1); thrice(2); }
"""
PAD = "int pad(int x) { return x + 1; }\n"


class SameText(scratch.Scratch):
    images = 0

    def image(self, *sources, flags=()):
        """Compile @sources, and link them in this order. Return the image."""
        self.images += 1
        objects = []
        for i, text in enumerate(sources):
            source = self.write(f"{self.images}-{i}.c", text)
            objects.append(source[:-1] + "o")
            self.run_ok(
                "gcc",
                "-O1",
                "-fno-pic",
                "-fno-asynchronous-unwind-tables",
                "-c",
                "-o",
                objects[-1],
                source,
            )
        path = self.path(f"{self.images}.elf")
        self.run_ok("ld", "-nostdlib", "--emit-relocs", *flags, "-o", path, *objects)
        return path

    def compare(self, old, new):
        """(exit status, lines of output without the last one)"""
        done = self.run_any(sys.executable, SAME_TEXT, old, new)
        lines = done.stdout.splitlines()
        return done.returncode, lines[:-1]

    def assert_told(self, new, *told):
        self.assertEqual(self.compare(self.image(ONE, TWO), new), (1, list(told)))

    def test_an_image_is_the_same_as_itself(self):
        image = self.image(ONE, TWO)
        self.assertEqual(self.compare(image, image), (0, []))

    def test_a_function_may_move(self):
        moved = self.image(TWO, ONE, flags=("-Ttext=0x800000",))
        self.assertEqual(self.compare(self.image(ONE, TWO), moved), (0, []))

    def test_within_its_file_too(self):
        lines = ONE.splitlines(keepends=True)
        moved = self.image("".join(lines[:2] + lines[:1:-1]), TWO)
        self.assertEqual(self.compare(self.image(ONE, TWO), moved), (0, []))

    def test_a_changed_instruction(self):
        self.assert_told(
            self.image(ONE.replace("3 * x", "5 * x"), TWO), "thrice: different"
        )

    def test_a_changed_constant(self):
        self.assert_told(
            self.image(ONE, TWO.replace("quadruple(1)", "quadruple(9)")),
            "_start: different",
        )

    def test_a_changed_callee(self):
        new = self.image(ONE, TWO.replace("2 * twice(", "2 * thrice("))
        self.assert_told(new, "quadruple: different")

    def test_a_changed_variable(self):
        self.assert_told(
            self.image(ONE, TWO.replace("x + limit", "x + other")), "quadruple: different"
        )

    def test_a_removed_function(self):
        old = self.image(ONE, TWO, PAD)
        self.assertEqual(
            self.compare(old, self.image(ONE, TWO)), (1, ["pad: only in the old image"])
        )

    def test_a_new_function(self):
        self.assert_told(self.image(PAD, ONE, TWO), "pad: only in the new image")

    def test_one_of_two_of_the_same_name(self):
        both = [
            PAD.replace("int pad", "static __attribute__((used)) int pad"),
            PAD.replace("int pad", "static __attribute__((used)) int pad").replace(
                "+ 1", "+ 2"
            ),
        ]
        old = self.image(ONE, TWO, *both)
        self.assertEqual(self.compare(old, self.image(ONE, TWO, *both[::-1])), (0, []))
        self.assertEqual(
            self.compare(old, self.image(ONE, TWO, both[0], both[0])),
            (1, ["pad: different"]),
        )

    def test_an_image_without_relocations_is_an_error(self):
        path = self.path("plain.elf")
        image = self.image(ONE, TWO)
        self.run_ok("objcopy", "--strip-all", image, path)
        done = self.run_any(sys.executable, SAME_TEXT, image, path)
        self.assertEqual(done.returncode, 2)
        self.assert_one_line_error(done, "same_text.py:")


scratch.main()
