"""test_core.py - builds a kernel with only the core of the engine, and runs tests in it.

This kernel has none of the rooms that use the core. It is built in build/core, and runs
the tests `alone` (of tests/alone) and `kprobe`.
"""

import os
import subprocess
import sys

from sonde import building
from sonde.guest import BUILD, ROOT

CPUS = "2"


def main():
    folder = building.spelled(os.path.join(BUILD, "core"))
    words = ["make", "-s", "-j2", "WITH=core", f"B={folder}", f"{folder}/tests/sonde.elf"]
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=building.make_environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        print(done.stdout + "Bail out! the core alone cannot be built")
        return 1
    program = os.path.join(ROOT, "tests", "run", "kernel_test.py")
    os.environ["B"] = folder
    os.execv(sys.executable, [sys.executable, program, "alone,kprobe", CPUS])


if __name__ == "__main__":
    sys.exit(main())
