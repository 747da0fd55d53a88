#!/usr/bin/env python3
"""test_gdb.py - the hosted engine under gdb: traps are its own, breakpoints are gdb's."""

import os
import re
import subprocess

import tap
from sonde.guest import BUILD, ROOT

PROGRAM = os.path.join(BUILD, "hosted", "gcc", "test_live")
LIMIT = 300  # seconds; each trap goes through gdb
TESTS = (
    "a_handler_sees_the_arguments",
    "probed_code_may_be_called_from_a_handler",
    "a_handler_that_faults_is_switched_off_and_the_program_goes_on",
)


def gdb(*commands):
    """What a session of @commands on some tests of PROGRAM prints."""
    words = ["gdb", "-nx", "-batch", "-x", "kernel/host/gdb/pass_traps.py"]
    for command in commands:
        words += ["-ex", command]
    done = subprocess.run(
        words + ["--args", PROGRAM, *TESTS],
        cwd=ROOT,
        check=False,
        capture_output=True,
        timeout=LIMIT,
    )
    return done.stdout.decode(errors="replace")


def it_runs_to_its_end():
    out = gdb("through run")
    tap.check("exited normally" in out and f"1..{len(TESTS)}" in out, "all tests pass")
    if "exited normally" not in out:
        tap.note(out[-2000:])


def a_breakpoint_in_a_handler():
    out = gdb("break see_arguments", "through run", "bt", "delete", "through continue")
    frames = re.findall(r"^#\d+ .*", out, re.M)
    tap.check("Breakpoint 1, see_arguments" in out, "stops in the handler")
    tap.check(any("kprobe_int3_handler" in f for f in frames), "which the engine called")
    tap.check(any("<signal handler called>" in f for f in frames), "on a trap")
    tap.check(
        any(" in target (a=5" in f or "target (a=a@entry=5" in f for f in frames),
        "of the probed function, whose arguments are shown",
    )
    tap.check("exited normally" in out, "and the program goes on")


subprocess.run(["make", "-s", "-C", ROOT, os.path.relpath(PROGRAM, ROOT)], check=True)
tap.run(it_runs_to_its_end, a_breakpoint_in_a_handler)
