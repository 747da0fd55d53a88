"""test_module.py - try any file as an object to load, with libFuzzer.

    tests/run/run_tests.py [--long] fuzz/module

First objects of the kernel's own build are tried, without debug data, then files that the
fuzzer makes from them (fuzzer.py, fuzz_module.c).
"""

import os
import subprocess
import tempfile

import tap
from fuzzer import Fuzzer
from sonde.guest import BUILD

# Small objects. Together they have each kind of section and of relocation.
OBJECTS = (
    "kernel/mm/copy_nofault.asm",
    "kernel/work/work_special.c",
    "kernel/debug/inlines.c",
    "kernel/mm/vmap.c",
    "kernel/sync/spinlock.c",
    "libc/snprintf.c",
)
BYTES_MAX = 8192


def stripped(path, folder):
    copy = os.path.join(folder, "stripped.o")
    words = ["objcopy", "--strip-debug", "--remove-section=.comment", path, copy]
    subprocess.run(words, check=True)
    with open(copy, "rb") as file:
        return file.read()


def samples():
    with tempfile.TemporaryDirectory() as folder:
        return [stripped(os.path.join(BUILD, f"{name}.o"), folder) for name in OBJECTS]


fuzzer = Fuzzer("module", samples(), BYTES_MAX)


def real_objects_pass():
    fuzzer.samples_pass()


def damaged_objects_pass():
    fuzzer.mutants_pass()


tap.run(real_objects_pass, damaged_objects_pass)
