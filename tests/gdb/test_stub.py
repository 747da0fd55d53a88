"""test_stub.py - gdb at the kernel's own stub: the command line of docs/debugging.md."""

import os
import re
import shlex
import subprocess

import tap
from guest import ROOT

LIMIT = 300


def documented():
    """The words of the line in the document that calls the stub."""
    with open(os.path.join(ROOT, "docs", "debugging.md"), encoding="utf-8") as file:
        line = next(line for line in file if line.startswith("    ./sonde gdb --stub "))
    return shlex.split(line)


def a_condition_runs_in_the_kernel():
    done = subprocess.run(documented(), cwd=ROOT, capture_output=True, text=True,
                          timeout=LIMIT, stdin=subprocess.DEVNULL)  # fmt: skip
    text = done.stdout
    tap.equal(done.returncode, 0, "gdb ends well")
    tap.check("calls 720 of vfs_read" in text, "false conditions stop nothing")
    stop = r"hit Breakpoint 1, vfs_read \(.*count=(count@entry=)?4096"
    tap.check(re.search(stop, text), "a true one stops")
    tap.check("thread_entry ()" in text, "the backtrace leads to the thread's beginning")
    tap.check(re.search(r"node = 0x", text), "gdb prints *file")
    if tap.failed:
        tap.note(text[-2000:])


tap.run(a_condition_runs_in_the_kernel)
