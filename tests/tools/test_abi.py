"""test_abi.py - tests of kernel/module/abi.py, which makes a number from all headers."""

import os
import subprocess
import sys

import scratch

sys.path.insert(0, scratch.ROOT)
from kernel.module import abi


class Abi(scratch.Scratch):
    def header(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        self.write(name, text)
        return abi.value(self.dir)

    def test_it_changes_with_any_header_and_nothing_else(self):
        first = self.header("kernel/a/a.h", "struct a { int x; };")
        self.assertEqual(self.header("kernel/a/a.c", "int x;"), first)
        seen = [
            first,
            self.header("kernel/a/a.h", "struct a { long x; };"),
            self.header("probes/b.h", ""),
            self.header("libc/include/c.h", ""),
            self.header("drivers/d.h", ""),
        ]
        self.assertEqual(len(set(seen)), len(seen))
        os.rename(self.path("probes/b.h"), self.path("probes/e.h"))
        self.assertNotEqual(abi.value(self.dir), seen[-1])
        self.assertEqual(self.header("kernel/f.c", ""), abi.value(self.dir))

    def test_an_object_says_it(self):
        self.write("m.c", "int x;")
        words = ["gcc", "-c", "-o", self.path("m.o"), *abi.words(), self.path("m.c")]
        subprocess.run(words, cwd=scratch.ROOT, check=True)
        words = [
            "objcopy",
            "-O",
            "binary",
            "--only-section=.sonde_abi",
            self.path("m.o"),
            self.path("m.bin"),
        ]
        subprocess.run(words, check=True)
        with open(self.path("m.bin"), "rb") as file:
            self.assertEqual(file.read(), abi.value().to_bytes(8, "little"))


if __name__ == "__main__":
    scratch.main()
