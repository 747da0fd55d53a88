#!/usr/bin/env python3
"""stress.py - `make stress`: boots a guest each minute, whose handlers misbehave.

    tests/stress/stress.py [--minutes 60] [--seed 1] [--cpus 1,2,4,8] [--seconds 60]
                           [--round 0] [--classes LIST] [--stepped 0 or 1]
                           [--debugger 0 or 1]

Minute N boots a guest with seed SEED + N - 1. The guests get the numbers of CPUs in turn.
In every second turn the guests are stepped: QEMU translates one instruction at a time
(-singlestep), so that an interrupt can come between any two instructions, and the timer
runs at its highest rate. --stepped decides this for all minutes. In every third minute a
debugger comes and goes at the kernel's own stub (debugger.py); --debugger decides this
for all minutes. A line is printed for each minute. The first difference, panic or hang
ends the program with status 1. Before that it prints what differs, and the command that
repeats the round, as far as QEMU repeats itself.
"""

import argparse
import contextlib
import os
import re
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../kernel/host"), os.path.join(HERE, "../run")]
import image
from debugger import Debugger
from sonde.guest import BUILD, EXIT_POWEROFF, EXIT_TESTS_FAILED, Guest, Setup

SUMS = ("rounds", "calls", "hits", "missed", "returns", "faults", "locks")
HEADER = ("minute", "CPUs", "stepped", "stub", "seed") + SUMS
ROUND = re.compile(
    r"# round (\d+): .*calls (\d+) hits (\d+) missed (\d+) returns (\d+) "
    r"faults (\d+) locks (\d+): (same|differs)$"
)
FAILED = re.compile(r"# differs|# p\d+: |#     |Bail out")


class Minute:
    """What one guest has printed."""

    def __init__(self):
        self.sums = dict.fromkeys(SUMS, 0)
        self.stub = ""  # what a debugger has done
        self.round = None  # the number of the latest
        self.differences = []
        self.has_ended = True  # False: the guest has panicked, or hangs
        self.partial = b""
        self.begun = threading.Event()  # the first note of the test
        self.heard = time.monotonic()  # when the latest round ended

    def take(self, data):
        """Take @data, the next bytes of the console."""
        *lines, self.partial = (self.partial + data).split(b"\n")
        for line in lines:
            self._line(line.decode("utf-8", "replace").strip())

    def _line(self, line):
        if line.startswith("# "):
            self.begun.set()
        match = ROUND.match(line)
        if match:
            number, *counts, verdict = match.groups()
            self.heard = time.monotonic()
            self.round = int(number)
            self.sums["rounds"] += 1
            for name, count in zip(SUMS[1:], counts):
                self.sums[name] += int(count)
        if FAILED.match(line) or match and verdict == "differs":
            self.differences.append(line.removeprefix("# "))

    def failed_round(self, first):
        """The number of the round that differs, or that has not ended."""
        if self.round is None:
            return first
        return self.round if self.has_ended else self.round + 1


def row(minute, cpus, stepped, stub, seed, sums):
    words = [str(minute), str(cpus), *("yes" if on else "no" for on in (stepped, stub))]
    words.append(str(seed))
    words += [f"{sums[name]:,}" for name in SUMS]
    return "  ".join(word.rjust(width(n)) for n, word in enumerate(words))


def width(column):
    return (6, 4, 7, 4, 6, 6, 11, 11, 9, 10, 6, 5)[column]


def wait_for(guest, minute, patience):
    """The exit status of QEMU; None if no round has ended for @patience seconds."""
    while time.monotonic() - minute.heard < patience and not guest.panicked:
        status = guest.wait_end(1)
        if status is not None:
            guest.console.wait_closed(5)
            return status
    return None


def words(options, stepped, seed):
    classes = f" classes={options.classes}" if options.classes else ""
    return (
        f"tests=stress.rounds quiet kprobes-jump=off seed={seed} "
        f"seconds={options.seconds} round={options.round}{classes}" + " hz=1000" * stepped
    )


@contextlib.contextmanager
def debugged(stub, seed, begun):
    """Give (the path of COM2, a debugger that comes there after @begun), or two Nones."""
    if not stub:
        yield None, None
        return
    with tempfile.TemporaryDirectory(prefix="sonde-") as folder:
        path = os.path.join(folder, "com2.sock")
        with Debugger(path, image.TESTS, seed, begun) as debugger:
            yield path, debugger


def run_minute(options, cpus, stepped, seed, stub=False):
    """Run one guest. Return (what it has printed, lines that say why it has failed)."""
    minute = Minute()
    with debugged(stub, seed, minute.begun) as (com2, debugger):
        failure = run_guest(minute, options, cpus, stepped, seed, com2)
        if debugger:
            counts = (f"{count} {what}" for what, count in debugger.counts.items())
            minute.stub = "  the stub: " + ", ".join(counts)
            failure += [debugger.failure] if debugger.failure else []
    return minute, failure


def run_guest(minute, options, cpus, stepped, seed, com2):
    log = os.path.join(BUILD, f"stress-{cpus}.log")
    setup = Setup(
        smp=cpus,
        elf=image.TESTS,
        append=words(options, stepped, seed),
        log=log,
        qemu="-singlestep" * stepped,
        com2=com2,
    )
    with Guest(setup, minute.take) as guest:
        status = wait_for(guest, minute, options.patience)
        if status == EXIT_POWEROFF and minute.sums["rounds"] and not minute.differences:
            return []
        if status in (EXIT_POWEROFF, EXIT_TESTS_FAILED):
            return minute.differences or ["no round ended"]
        error = guest.failure("in its rounds", options.patience)
        minute.has_ended = False
        return [str(error), *error.lines]


def repeat(options, cpus, stepped, stub, seed, number):
    line = f"make stress MINUTES=1 CPUS={cpus} SEED={seed} ROUND={number}"
    line += f" STEPPED={int(stepped)} DEBUGGER={int(stub)}"
    return line + (f" CLASSES={options.classes}" if options.classes else "")


def is_stepped(options, number):
    """Is the guest of minute @number stepped? The first minute is 0."""
    if options.stepped is None:
        return number // len(options.cpus) % 2 == 1
    return options.stepped == 1


def is_debugged(options, number):
    if options.debugger is None:
        return number % 3 == 2
    return options.debugger == 1


def stress(options):
    """Run all minutes. Return whether no round differs."""
    print("  ".join(name.rjust(width(n)) for n, name in enumerate(HEADER)), flush=True)
    for number in range(options.minutes):
        cpus = options.cpus[number % len(options.cpus)]
        seed, stepped = options.seed + number, is_stepped(options, number)
        stub = is_debugged(options, number)
        minute, failure = run_minute(options, cpus, stepped, seed, stub)
        verdict = "differs" if failure else "same"
        line = row(number + 1, cpus, stepped, stub, seed, minute.sums)
        print(line + "  " + verdict + minute.stub, flush=True)
        if failure:
            for line in failure:
                print("  " + line)
            print("log:    " + os.path.join(BUILD, f"stress-{cpus}.log"))
            failed = minute.failed_round(options.round)
            print(
                "repeat: " + repeat(options, cpus, stepped, stub, seed, failed),
                flush=True,
            )
            return False
    return True


def cpu_list(text):
    cpus = [int(word) for word in text.split(",")]
    if not all(1 <= n <= 64 for n in cpus):
        raise ValueError(text)
    return cpus


def parse(arguments):
    parser = argparse.ArgumentParser(prog="stress.py", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpus", type=cpu_list, default=[1, 2, 4, 8])
    parser.add_argument("--seconds", type=int, default=60, help="of a guest")
    parser.add_argument("--round", type=int, default=0, help="the first")
    parser.add_argument("--patience", type=int, default=300, help="for a round; seconds")
    parser.add_argument("--stepped", type=int, choices=(0, 1), help="for all minutes")
    parser.add_argument("--debugger", type=int, choices=(0, 1), help="for all minutes")
    parser.add_argument("--classes", default="", help="see docs/testing.md")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        sys.exit(0 if stress(parse(sys.argv[1:])) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
