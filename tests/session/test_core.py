"""test_core.py - the core of the engine without the rooms above it, as a kernel of its own.

It is built in build/core; the tests in tests/alone and those of kernel/kprobe run in it.
"""

import os
import subprocess
import sys

import building
from guest import BUILD, ROOT

CPUS = "2"


def main():
    folder = building.spelled(os.path.join(BUILD, "core"))
    words = ["make", "-s", "-j2", "WITH=core", f"B={folder}", f"{folder}/sonde.elf"]
    done = subprocess.run(words, cwd=ROOT, env=building.make_environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        print(done.stdout + "Bail out! the core alone cannot be built")
        return 1
    program = os.path.join(ROOT, "tests", "run", "kernel_test.py")
    os.environ["B"] = folder
    os.execv(sys.executable, [sys.executable, program, "alone,kprobe", CPUS])


if __name__ == "__main__":
    sys.exit(main())
