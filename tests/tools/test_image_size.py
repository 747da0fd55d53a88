"""test_image_size.py - tests of kernel/debug/image_size.py and tests/lint/check_size, which
`make size` runs, perhaps in front of `head`.
"""

import os
import subprocess
import sys

import scratch


class Size(scratch.Scratch):
    def test_a_reader_that_has_gone_is_no_bug(self):
        self.write("m.c", "const int x = 1; int f(void) { return x; }")
        self.write("stat.txt", "jumps 1 of 2 (50.00 %)\n")
        object_ = self.path("m.o")
        subprocess.run(["gcc", "-c", "-o", object_, self.path("m.c")], check=True)
        for words in (
            ["kernel/debug/image_size.py", object_, self.path("stat.txt")],
            ["tests/lint/check_size", "--rooms"],
        ):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run(
                [sys.executable, *words],
                cwd=scratch.ROOT,
                stdout=writer,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
            os.close(writer)
            self.assertEqual(done.stderr, "", words)


if __name__ == "__main__":
    scratch.main()
