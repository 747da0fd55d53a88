#!/usr/bin/env python3
"""test_trace_host.py - what the host makes of the tracer's pages is what the guest says."""

import dataclasses
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests/run"), ROOT]
import tap  # noqa: E402
from guest import ELF, Guest, Setup  # noqa: E402
from host.trace import dead, text  # noqa: E402
from host.trace.capture import Capture  # noqa: E402
from host.trace.memory import Memory  # noqa: E402
from host.trace.symbols import Symbols  # noqa: E402
from machine import quote  # noqa: E402
from session import sonde  # noqa: E402

CPUS = 2
MARKER = "/sys/kernel/tracing/trace_marker"


def without_comments(listing):
    return [line for line in listing.splitlines() if not line.startswith("#")]


def told_lost(lines):
    return sum(int(n) for n in re.findall(r"LOST (\d+) EVENTS", "\n".join(lines)))


class Recorded:
    """A guest with a Capture. Use with `with`."""

    def __enter__(self):
        self.guest = Guest(Setup(smp=CPUS))
        self.guest.wait_prompt(120)
        self.memory = Memory(self.guest.qmp)
        self.begin()
        return self

    def __exit__(self, *exc):
        self.guest.stop()
        self.memory.__exit__()

    def begin(self, *lines, **more):
        symbols = Symbols(ELF)
        self.capture = Capture(self.guest.machine, self.memory, symbols, CPUS, lines)
        self.capture.set_up(**more)
        self.files = self.capture.files

    def mark(self, *texts):
        """Write to trace_marker; what is dropped there has EBADF for an answer."""
        for one in texts:
            self.guest.machine.request(f"echo -ne {quote(one)} >> {MARKER}", 60)

    def of_the_dead(self):
        """What a host makes of the memory alone."""
        grave = dead.Dead(self.memory, self.capture.result.symbols)
        rings = list(grave.rings())
        return lines_of(dataclasses.replace(
            self.capture.result,
            pages=[found for _, found, _ in rings],
            lost=[lost for _, _, lost in rings],
            cmdlines="".join(grave.cmdlines()),
        ))


def lines_of(result):
    return [line for one in text.lines(result) for line in one.split("\n")]


def same_lines(recorded):
    recorded.mark("one", "two\n", "a\nb", "x" * 1000)
    said = without_comments(recorded.files.read("trace"))
    tap.equal(recorded.of_the_dead(), said, "the guest's memory has what its `trace` shows")
    tap.equal(lines_of(recorded.capture.finish()), said, "so have the pages that were taken")
    tap.equal(without_comments(recorded.files.read("trace")), [], "which are gone from it")


def taken_in_pieces(recorded):
    recorded.begin()
    for number in range(40):
        recorded.mark(f"{number} " + "x" * 500)
        if number % 10 == 9:
            recorded.capture.take()
    recorded.capture.keep(recorded.capture.taker.take(everything=True).pages)
    recorded.mark("last")
    lines = lines_of(recorded.capture.finish())
    numbers = re.findall(r"tracing_mark_write: (\w+)", "\n".join(lines))
    tap.equal(numbers, [str(n) for n in range(40)] + ["last"], "each record came once")


def losses(recorded):
    recorded.begin(buffer_kb=8)
    for number in range(40):
        recorded.mark(f"{number} " + "x" * 1000)
    said = without_comments(recorded.files.read("trace"))
    tap.check(told_lost(said) > 0, "the guest says that it lost some")
    tap.equal(recorded.of_the_dead(), said, "its memory says the same")
    recorded.files.write("options/overwrite", "0")
    recorded.mark(*(f"{number} " + "x" * 1000 for number in range(9)))
    result = recorded.capture.finish()
    lines = lines_of(result)
    count = len(lines) - sum("LOST" in line for line in lines)
    tap.equal(count + told_lost(lines), 49, "what was recorded and what was lost is all")
    tap.check(sum(map(result.lost_behind, range(CPUS))) > 0, "also what came behind the last")
    recorded.files.write("options/overwrite", "1")


def another_host(recorded):
    recorded.begin()
    recorded.mark("mine")
    first = recorded.capture
    first.keep(first.taker.take(everything=True).pages)
    recorded.begin()
    said = first.machine.request(f"trace-pages {first.taker.number + 1}", 10)
    tap.equal(said.errno, 22, "a host that was taken over from is refused")
    recorded.capture.finish()


def pages_are_read_where_the_guest_has_them():
    with Recorded() as recorded:
        for facts in (same_lines, taken_in_pieces, losses, another_host):
            facts(recorded)


def a_page_that_was_read_in_part():
    with Recorded() as recorded:
        recorded.mark("one", "two")
        tap.check("two" in recorded.files.read("trace_pipe"), "two events are read")
        recorded.mark("three", "four")
        said = without_comments(recorded.files.read("trace"))
        tap.equal(len(said), 2, "two are left")
        tap.equal(recorded.of_the_dead(), said, "the memory has these")


def the_command_records():
    status, out, err = sonde("trace", "--", f"echo one >> {MARKER}", f"echo two >> {MARKER}")
    tap.equal((status, re.findall("write: (.*)", out)), (0, ["one", "two"]), "as text")
    tap.equal(err, "", "and nothing else")
    status, out, _ = sonde("trace", "--live", "--", f"echo one >> {MARKER}", "sleep 1",
                           "echo between", f"echo two >> {MARKER}")  # fmt: skip
    tap.equal((status, re.findall(": (one|two)|^(between)$", out, re.M)),
              (0, [("one", ""), ("", "between"), ("two", "")]), "live, as they come")


def a_panic_is_read_out():
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, "t" + ending) for ending in (".folded", ".html")]
        words = [word for path in paths for word in ("-o", path)]
        status, _, err = sonde("trace", *words, "--", f"echo one >> {MARKER}",
                               f"echo two >> {MARKER}", "panic ended")  # fmt: skip
        tap.equal(status, 3, "the status is that of a panic")
        tap.check("panic: ended" in err and "2 events and 0 lost" in err, "both are told")
        with open(paths[0], encoding="utf-8") as file:
            tap.equal(file.read(), "shell/COM1;print 2\n", "the events are there")
        with open(paths[1], encoding="utf-8") as file:
            tap.check("did not answer any more" in file.read(), "the page says how they came")


tap.run(
    pages_are_read_where_the_guest_has_them,
    a_page_that_was_read_in_part,
    the_command_records,
    a_panic_is_read_out,
)
