#!/usr/bin/env python3
"""test_gen_params.py - tests of gen_params.py with a small program and the kernel."""

import os
import sys

sys.dont_write_bytecode = True
import scratch

sys.path.insert(0, os.path.join(scratch.ROOT, "kernel/debug"))
import elf64
import gen_params

TOOL = os.path.join(scratch.ROOT, "kernel/debug/gen_params.py")
KERNEL = os.path.join(scratch.ROOT, os.environ.get("B", "build"), "link/1.elf")

SOURCE = """
typedef unsigned char bool8;
typedef const char *text;
struct big { long a, b, c; };
enum kind { ONE, TWO };
int many(signed char a, unsigned short b, long c, const void *d, text e, bool8 f, int g)
{ return a + b + (int)c + (d != e) + f + g; }
enum kind some(enum kind k, struct big by_value, int behind)
{ return k + by_value.a + behind; }
void none(void) { }
void _start(void) { none(); }
"""


class GenParams(scratch.Scratch):
    def lines(self, image):
        elf = elf64.load(image)
        names = {s.value: s.name for s in elf.symbols()}
        return {names[at]: line for at, line in gen_params.params_of(elf).items()}

    def image(self):
        return self.small_image(SOURCE, "-O1")

    def test_types_are_words(self):
        lines = self.lines(self.image())
        self.assertEqual(lines["many"], "s32 a:s8 b:u16 c:s64 d:x64 e:string f:u8")
        self.assertEqual(lines["none"], "void")

    def test_a_line_ends_with_what_is_in_no_register(self):
        self.assertEqual(self.lines(self.image())["some"], "s32 k:s32")

    def test_the_kernel(self):
        lines = self.lines(KERNEL)
        self.assertEqual(lines["vfs_read"], "s64 file:x64 buf:string count:u64 pos:x64")
        self.assertEqual(lines["kfree"], "void p:x64")
        self.assertFalse(any("." in name for name in lines))

    def test_no_debug_data_no_lines(self):
        image = self.image()
        self.run_ok("strip", "--strip-debug", image)
        self.run_ok(sys.executable, TOOL, "-o", self.path("out"), image)
        with open(self.path("out"), encoding="ascii") as file:
            self.assertIn("dd 0", file.read())


if __name__ == "__main__":
    scratch.main()
