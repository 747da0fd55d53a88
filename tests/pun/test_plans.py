#!/usr/bin/env python3
"""test_plans.py - plan a jump at every instruction of real programs.

    tests/pun/test_plans.py [--long]

The program is the kernel itself: each 64th instruction alone, all instructions at once,
and probes that are set and removed in portions. --long: each instruction alone, and also
a distribution's kernel and programs.
"""

import glob
import os
import subprocess
import sys
import tempfile

from sonde.guest import BUILD, ROOT

CHECKER = os.path.join(BUILD, "pun", "check_pun")
EXTRACT = os.path.join(ROOT, "tests", "insn", "extract_vmlinux.py")

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
PROGRAMS = [
    "/bin/bash",
    os.path.realpath("/usr/bin/python3"),
    "/usr/bin/git",
    f"{LIBRARIES}/libc.so.6",
    f"{LIBRARIES}/libcrypto.so.3",
]


def vmlinux(directory):
    """A list with the path of the newest distribution kernel, unpacked; empty if there is
    none."""
    images = sorted(glob.glob("/boot/vmlinuz-*"))
    if not images:
        return []
    path = os.path.join(directory, "vmlinux")
    subprocess.run([sys.executable, EXTRACT, images[-1], path], check=True)
    return [path]


def main():
    is_long = "--long" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        files = [os.path.join(BUILD, "sonde.elf")]
        if is_long:
            files += [path for path in PROGRAMS if os.path.exists(path)]
            files += vmlinux(directory)
        words = [CHECKER, *([] if is_long else ["-q"]), *files]
        return subprocess.run(words).returncode


sys.exit(main())
