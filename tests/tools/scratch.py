"""scratch.py - runs unittest classes that build small programs; each test is a fact.

Arguments are names of tests without "test_"; without arguments, all tests run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PREFIX = "test_"
sys.path[:0] = [os.path.join(ROOT, "tests/run"), os.path.join(ROOT, "kernel/host")]
import tap


# A function that compilers translate with a jump table.
WEIGH = """
int weigh(int x)
{
    switch (x) {
    case 0: world += 11; break;
    case 1: world ^= 5; break;
    case 2: world = 77; break;
    case 3: return x * 9;
    case 4: world <<= 3; break;
    case 5: world -= x; return 5;
    case 6: world = ~world; break;
    default: return -1;
    }
    return world;
}
"""


WITH_LINES = ("-g", "-F", "dwarf")  # for nasm


class Scratch(unittest.TestCase):
    """A test with a directory of its own, in which it builds small programs."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sonde-test-")
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def run_ok(self, *command):
        """Run @command in the project's root. It must succeed. Return its output."""
        done = self.run_any(*command)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
        return done.stdout

    def run_any(self, *command):
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False
        )

    def assemble(self, source, name, *flags):
        """Assemble the file @source. Return the path of the object @name."""
        self.run_ok("nasm", "-f", "elf64", *flags, source, "-o", self.path(name))
        return self.path(name)

    def small_image(self, source, *flags, compiler="gcc"):
        """The path of a program that is linked from @source alone."""
        self.run_ok(
            compiler,
            "-g",
            "-gdwarf-4",
            *("-ffreestanding", "-fno-pic", "-fno-pie", "-c"),
            *flags,
            self.write("one.c", source),
            "-o",
            self.path("one.o"),
        )
        self.run_ok("ld", self.path("one.o"), "-o", self.path("image"))
        return self.path("image")

    def assert_one_line_error(self, done, *words):
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class Facts(unittest.TestResult):
    """Reports each test as a fact."""

    def tell(self, holds, test, detail=""):
        tap.check(holds, test.id().rsplit(".", 1)[-1].removeprefix(PREFIX))
        tap.note(detail)

    def addSkip(self, test, reason):
        tap.skip(test.id(), reason)

    def addSubTest(self, test, subtest, err):
        if err:
            self.addFailure(subtest, err)

    def addSuccess(self, test):
        self.tell(True, test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell(False, test, self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.tell(False, test, self.errors[-1][1])


def main():
    loader = unittest.TestLoader()
    module = sys.modules["__main__"]
    # --long is no name
    names = [word for word in sys.argv[1:] if not word.startswith("--")]
    if names:
        wanted = {PREFIX + name for name in names}
        tests = [
            t
            for case in loader.loadTestsFromModule(module)
            for t in case
            if t.id().rsplit(".", 1)[-1] in wanted
        ]
    else:
        tests = [loader.loadTestsFromModule(module)]
    unittest.TestSuite(tests).run(Facts())
    tap.finish()
