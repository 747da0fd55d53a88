"""recorded.py - lets a test use the tracer of a guest as ./sonde trace does."""

import dataclasses
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "kernel/host"), ROOT]
from sonde.guest import ELF, Guest, Setup
from probes.trace.host import dead, text
from probes.trace.host.capture import Capture
from probes.trace.host.memory import Memory
from probes.trace.host.symbols import Symbols
from sonde.machine import quote

CPUS = 2
MARKER = "/sys/kernel/tracing/trace_marker"
OUTERMOST = ("thread_entry", "ap_main", "kernel_main")  # functions of a stack


def without_comments(listing):
    return [line for line in listing.splitlines() if not line.startswith("#")]


class Recorded:
    """A guest that is traced by a Capture. Use with `with`."""

    def __init__(self, cpus=CPUS):
        self.cpus = cpus

    def __enter__(self):
        self.guest = Guest(Setup(smp=self.cpus))
        self.guest.wait_prompt(120)
        self.memory = Memory(self.guest.qmp)
        self.begin()
        return self

    def __exit__(self, *exc):
        self.guest.stop()
        self.memory.__exit__()

    def begin(self, *lines, **more):
        symbols = Symbols(ELF)
        self.capture = Capture(self.guest.machine, self.memory, symbols, self.cpus, lines)
        self.capture.set_up(**more)
        self.files = self.capture.files

    def mark(self, *texts):
        """Write texts to trace_marker. A text may be dropped: the answer is EBADF then."""
        for one in texts:
            command = f"echo -ne {quote(one)} >> {MARKER}"
            self.guest.machine.request(command, may_fail=True)

    def of_the_dead(self):
        """Return the lines that a host reads from the guest's memory alone."""
        grave = dead.Dead(self.memory, self.capture.result.symbols)
        rings = list(grave.rings())
        return lines_of(
            dataclasses.replace(
                self.capture.result,
                pages=[found for _, found, _ in rings],
                lost=[lost for _, _, lost in rings],
                cmdlines="".join(grave.cmdlines()),
            )
        )


def lines_of(result):
    return [line for one in text.lines(result) for line in one.split("\n")]
