"""test_gdb.py - `./sonde gdb`: stopped at the first instruction, helpers that see through."""

import re

import tap
from session import sonde


def gdb(*commands):
    words = []
    for command in commands:
        words += ["-ex", command]
    return sonde("gdb", "--", "-batch", *words)


def break_at_kmain():
    status, out, err = gdb("info registers rip", "break kmain", "continue", "bt")
    tap.equal(status, 0, "gdb ran its commands")
    tap.check(re.search(r"rip\s+0xfff0\b", out), "stopped at the first instruction")
    tap.check(re.search(r"Breakpoint 1, kmain \(", out), "break kmain works")
    tap.check("No symbol" not in out + err and "Error" not in err, "nothing to complain")
    if status or "kmain" not in out:
        tap.note(out + err)


def helpers_know_the_kernel():
    _, out, err = gdb(
        "break shell_start", "continue", "cpus", "threads", "probes", "trapframe $sp",
        "original vfs_open")  # fmt: skip
    tap.check(re.search(r"^CPU 0:", out, re.M), "cpus")
    tap.check(re.search(r"^ +\d+ \S+ +running +CPU \d", out, re.M), "threads")
    tap.check("0 probed addresses" in out, "probes, without any")
    tap.check("Dump of assembler code for function vfs_open" in out, "original")
    tap.note(err)


tap.run(break_at_kmain, helpers_know_the_kernel)
