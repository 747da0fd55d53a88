#!/usr/bin/env python3
"""test_decoder.py - compare probes/insn with Zydis and objdump.

    tests/insn/test_decoder.py [--long]

It compares the kernel itself and 200,000 windows of random bytes. --long: also many
programs and a distribution's kernel, every opcode with every modrm byte, and 10
million windows. A run prints its seed; SEED=N repeats that run.
"""

import glob
import os
import subprocess
import sys
import tempfile

from sonde.guest import BUILD

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKER = os.path.join(BUILD, "insn", "check_zydis")

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
FILES_LONG = [
    os.path.realpath("/usr/bin/python3"),
    "/usr/bin/git",
    "/usr/bin/gdb",
    f"{LIBRARIES}/libc.so.6",
    f"{LIBRARIES}/libcrypto.so.3",
    f"{LIBRARIES}/libclang-*.so.*.*",
]


def vmlinux(directory):
    """A list with the path of the newest distribution kernel, unpacked; empty if there is
    none."""
    images = sorted(glob.glob("/boot/vmlinuz-*"))
    if not images:
        return []
    path = os.path.join(directory, "vmlinux")
    extract = os.path.join(HERE, "extract_vmlinux.py")
    subprocess.run([sys.executable, extract, images[-1], path], check=True)
    return [path]


def main():
    is_long = "--long" in sys.argv[1:]
    seed = ["-s", os.environ["SEED"]] if "SEED" in os.environ else []
    with tempfile.TemporaryDirectory() as directory:
        files = [os.path.join(BUILD, "sonde.elf")]
        words = [CHECKER, *seed]
        if is_long:
            files += [f for pattern in FILES_LONG for f in glob.glob(pattern)]
            files += vmlinux(directory)
            words += ["-x", "-n", "10000000"]
        return subprocess.run(words + files).returncode


sys.exit(main())
