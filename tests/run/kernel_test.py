#!/usr/bin/env python3
"""kernel_test.py - run the kernel's own tests in one boot, and print TAP.

    tests/run/kernel_test.py SELECTION SMP [long] [stepped] [KEY=VALUE]
                                                    e.g. all 4, or frame 2, or frame.NAME 1

long: tests repeat their work more often, which takes a while. stepped: QEMU translates
one instruction at a time, so that an interrupt may come between any two instructions, and
the timer runs at its highest rate. KEY=VALUE is one more boot argument. A run prints its
seed; SEED=N in the environment repeats that run. LIMIT=N ends the run after N seconds. The
output of the guest is kept in build/kernel-SELECTION-SMP.log.

A run on one CPU that fails is repeated, and recorded. If it fails again, the recording is
kept in build/failed, and the command that replays it is printed.
"""

import os
import shutil
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../kernel/host"))
import image
import tap
from ktap import Flat
from sonde.guest import (
    BUILD,
    EXIT_POWEROFF,
    EXIT_TESTS_FAILED,
    Guest,
    GuestError,
    Setup,
)
from sonde.timeline import pack, record

MEMORY_ALONE = "256M"  # on one CPU a test takes all of it
LIMIT = 900  # seconds, of a busy host
LIMIT_MANY_CPUS = 1200
LIMIT_LONG = 2400


class Lines:
    """Divides the pieces that come from the console into lines."""

    def __init__(self, take):
        self.take = take
        self.partial = b""

    def __call__(self, data):
        *lines, self.partial = (self.partial + data).split(b"\n")
        for line in lines:
            self.take(line.decode("utf-8", "replace"))


def record_again(words, name, limit):
    """Repeat a failed run, and record it. Return a note about the result."""
    if not shutil.which("qemu-img"):
        return "not run again under record: that takes qemu-img (qemu-utils)"
    with tempfile.TemporaryDirectory() as folder:
        line, status, said = record(folder, [], words, Setup.memory, limit, image.TESTS)
        if status == EXIT_POWEROFF:
            return "run again under record it passes"
        if status is None or not os.path.exists(line.path("log")) or said:
            return f"run again under record it has no end within {limit:g} s {said}"
        kept = os.path.join(BUILD, "failed", f"kernel-{name}")
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        pack(line, kept)
    where = os.path.relpath(kept)
    return f"run again under record it fails, too; replay: ./sonde replay {where}"


def main():
    selection, smp = sys.argv[1], int(sys.argv[2])
    is_long = "long" in sys.argv[3:]
    is_stepped = "stepped" in sys.argv[3:]
    limit = LIMIT_LONG if is_long else LIMIT if smp <= 8 else LIMIT_MANY_CPUS
    limit = float(os.environ.get("LIMIT", limit))
    words = f"tests={selection} kprobes-jump=off" + " long" * is_long
    words += " hz=1000" * is_stepped
    if os.environ.get("SEED"):
        words += " seed=" + os.environ["SEED"]
    option = next((word for word in sys.argv[3:] if "=" in word), "")
    words += " " * bool(option) + option
    lock = threading.Lock()

    def print_line(line):
        with lock:
            print(line, flush=True)

    flat = Flat(print_line, f"{smp} CPUs, " if smp > 1 else "1 CPU, ")
    name = "stepped" if is_stepped else "all" if "," in selection else selection
    name = option.replace("=", "-") or name
    log = os.path.join(BUILD, f"kernel-{name}-{smp}.log")
    setup = Setup(
        smp=smp,
        memory=MEMORY_ALONE if smp == 1 else Setup.memory,
        elf=image.TESTS,
        append=words,
        log=log,
        qemu="-singlestep" * is_stepped,
    )
    with Guest(setup, Lines(flat.take)) as guest:
        status = guest.wait_end(limit)
        guest.console.wait_closed(5)
        if status not in (EXIT_POWEROFF, EXIT_TESTS_FAILED):
            error = guest.failure("during its tests", limit)
            flat.result("not ok", str(error))
            for line in error.lines:
                print_line("# | " + line)
    flat.finish()
    if smp == 1 and status != EXIT_POWEROFF:
        print_line("# " + record_again(words, name, limit))
    return 0


if __name__ == "__main__":
    tap.quiet_interrupts()
    try:
        sys.exit(main())
    except GuestError as error:
        print(f"Bail out! {error}")
        sys.exit(1)
