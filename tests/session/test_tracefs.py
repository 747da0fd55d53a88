#!/usr/bin/env python3
"""test_tracefs.py - tests the files of the tracer that work without event definitions."""

import os
import re
import struct
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../kernel/host"))
import tap
from sonde.guest import Guest, Setup
from sonde.machine import quote

ROOT = "/sys/kernel/tracing/"
CPUS = 2
EBADF, EINVAL = 9, 22

LINE = re.compile(
    r" *shell/COM3-(\d+) +\[(\d{3})\] \.{5} +(\d+\.\d{6}): tracing_mark_write: (.*)"
)


class Files:
    """Reads and writes the files of a guest's tracer."""

    def __init__(self, guest):
        self.machine = guest.machine

    def read(self, name):
        return self.machine.request("cat " + ROOT + name, 60, may_fail=True)

    def text(self, name):
        return self.read(name).text

    def write(self, name, text):
        command = f"echo -ne {quote(text)} >> {ROOT}{name}"
        return self.machine.request(command, may_fail=True).errno

    def clear(self, name="trace"):
        return self.machine.request(f"echo -n '' > {ROOT}{name}", 60, may_fail=True).errno

    def mark(self, *texts):
        for text in texts:
            self.write("trace_marker", text)

    def marks(self, name="trace"):
        """Return the texts of the markers in a listing."""
        return [
            LINE.fullmatch(line).group(4)
            for line in self.text(name).splitlines()
            if not line.startswith(("#", "CPU:"))
        ]


def two_names(files):
    request = files.machine.request
    here = request("ls " + ROOT, 10).text
    tap.equal(
        request("ls /sys/kernel/debug/tracing", 10).text, here, "both names are of one"
    )
    for cpu in range(CPUS):
        tap.equal(
            request(f"ls {ROOT}per_cpu/cpu{cpu}", 10).lines,
            ["buffer_size_kb", "stats", "trace", "trace_pipe", "trace_pipe_raw"],
            f"what CPU {cpu} has",
        )


def sizes(files):
    tap.equal(
        files.text("buffer_size_kb"), "7 (expanded: 1408)\n", "small until it is used"
    )
    tap.equal(files.text("buffer_total_size_kb"), "14 (expanded: 2816)\n", "all together")
    tap.equal(files.write("buffer_size_kb", "0"), EINVAL, "no buffer is refused")
    tap.equal(files.write("buffer_size_kb", "x"), EINVAL, "so is what is no number")
    tap.equal(files.write("per_cpu/cpu1/buffer_size_kb", "100\n"), 0, "that of one CPU")
    tap.equal(files.text("buffer_size_kb"), "X\n", "they differ")
    tap.equal(
        files.text("per_cpu/cpu1/buffer_size_kb"), "103\n", "as many pages as hold it"
    )
    tap.equal(files.write("buffer_size_kb", "64"), 0, "those of all")
    tap.equal(files.text("buffer_total_size_kb"), "134\n", "all together again")


def markers(files):
    files.mark("one", "two\n", "a\nb")
    listing = files.text("trace")
    tap.check(
        "entries-in-buffer/entries-written: 3/3   #P:2\n" in listing, "three are there"
    )
    tap.check(listing.startswith("# tracer: nop\n#\n"), "with a header")
    lines = [line for line in listing.splitlines() if not line.startswith("#")]
    times = [float(LINE.fullmatch(line).group(3)) for line in lines if line != "b"]
    tap.equal(
        [LINE.fullmatch(line).group(4) for line in lines if line != "b"],
        ["one", "two", "a"],
        "as they were written",
    )
    tap.check(times == sorted(times) and times[0] > 0, "by time")
    tap.equal(files.text("trace"), listing, "reading them leaves them")
    thread = LINE.fullmatch(lines[0]).group(1)
    tap.check(
        f"{thread} shell/COM3\n" in files.text("saved_cmdlines"), "the name is kept"
    )
    tap.equal(files.text("trace_pipe").splitlines(), lines, "the pipe has the same")
    tap.equal(files.text("trace_pipe"), "", "once")
    files.mark("small")
    files.write("buffer_size_kb", "80")
    files.mark("large")
    tap.equal(files.marks(), ["small", "large"], "a larger buffer has what was there")
    tap.equal(files.marks("trace_pipe"), ["small", "large"], "the pipe too")
    tap.equal(files.marks(), [], "once")
    files.mark("again")
    tap.equal(files.clear(), 0, "trace is emptied")
    tap.equal(files.marks(), [], "by opening it for writing")
    files.mark("x" * 1500)
    tap.equal(files.marks(), ["x" * 1024, "x" * 476], "a long text is two writes")
    files.clear()


def switched_off(files):
    tap.equal(files.write("tracing_on", "0"), 0, "tracing_on")
    tap.equal(files.write("trace_marker", "x"), EBADF, "nothing is recorded")
    tap.equal(files.write("tracing_on", "01"), 0, "any number that is not 0")
    tap.equal(files.text("tracing_on"), "1\n", "reads as 1")
    tap.equal(files.write("tracing_on", "on"), EINVAL, "a word is none")


def one_way_only(files):
    """As on Linux, root may open any file. If a file cannot be written or read, the write
    or the read is refused.
    """
    for name in (
        "events/header_page",
        "per_cpu/cpu0/stats",
        "README",
        "trace_pipe",
        "kprobe_profile",
        "available_events",
    ):
        tap.equal(files.write(name, "x"), EINVAL, f"{name} takes no write")
        reply = files.machine.request(f"echo -n '' > {ROOT}{name}", 10, may_fail=True)
        tap.equal(reply.errno, 0, f"{name} may be opened for one")
    tap.equal(files.read("trace_marker").errno, EINVAL, "trace_marker is not read")


def choices(files):
    tap.equal(files.text("current_tracer"), "nop\n", "a tracer")
    tap.equal(files.write("current_tracer", "nop\n"), 0, "may be chosen")
    tap.equal(files.write("current_tracer", "function"), EINVAL, "another one not")
    tap.equal(
        files.text("trace_clock"),
        "[local] global counter uptime perf mono mono_raw boot tai x86-tsc\n",
        "clocks",
    )
    files.write("kprobe_events", "p:early vfs_open")
    files.write("snapshot", "1")
    tap.equal(files.write("trace_clock", "counter"), 0, "another clock")
    tap.check(
        "* Snapshot is allocated *" in files.text("snapshot"), "empties the snapshot"
    )
    files.mark("x", "y")
    counts = [int(n) for n in re.findall(r" (\d+): tracing", files.text("trace"))]
    tap.check(0 < counts[0] < counts[1] < 10, "counts, from 1 on")
    files.write("events/kprobes/early/enable", "1")
    tap.check("early: (vfs_open" in files.text("trace"), "an earlier event is known")
    files.write("events/kprobes/early/enable", "0")
    files.write("kprobe_events", "-:early")
    tap.equal(files.write("trace_clock", "sundial"), EINVAL, "one that is unknown")
    files.write("trace_clock", "local")
    tap.equal(files.marks(), [], "a new clock empties the buffer")


def options(files):
    files.mark("m")
    tap.equal(files.write("trace_options", "noirq-info\n"), 0, "an option is taken away")
    tap.equal(files.text("options/irq-info"), "0\n", "its file says so")
    tap.check("] ....." not in files.text("trace"), "its columns are gone")
    tap.equal(files.write("options/irq-info", "1"), 0, "and comes back by its file")
    tap.check("irq-info\n" in files.text("trace_options"), "the list says so")
    tap.equal(files.write("options/irq-info", "2"), EINVAL, "neither yes nor no")
    tap.equal(files.write("trace_options", "nonsense"), EINVAL, "an unknown one")
    files.write("options/sym-offset", "1")
    tap.check(
        re.search(r"tracing_mark_write\+0x\w+/0x\w+: m", files.text("trace")),
        "names with their offsets",
    )
    files.write("trace_options", "sym-addr")
    tap.check(
        re.search(r"\+0x\S+ <ffffffff[0-9a-f]{8}>: m", files.text("trace")),
        "and addresses",
    )
    files.write("trace_options", "nosym-addr")
    files.write("options/sym-offset", "0")
    files.write("options/markers", "0")
    tap.equal(files.write("trace_marker", "x"), EINVAL, "markers are off")
    files.write("options/markers", "1")


def losses(files):
    files.clear()
    files.write("buffer_size_kb", "8")
    text = "x" * 1000
    for _ in range(40):
        files.mark(text)
    cpus = [stats_of(files, cpu) for cpu in range(CPUS)]
    tap.equal(sum(s["entries"] + s["overrun"] for s in cpus), 40, "each is there or lost")
    told = re.findall(r"CPU:\d \[LOST (\d+) EVENTS\]", files.text("trace"))
    tap.equal(sum(map(int, told)), sum(s["overrun"] for s in cpus), "the listing says so")
    files.write("snapshot", "1")
    files.write("options/overwrite", "0")
    files.write("snapshot", "1")
    files.clear()
    for number in range(40):
        files.write("trace_marker", f"{number} " + text)
    cpus = [stats_of(files, cpu) for cpu in range(CPUS)]
    tap.check(sum(s["dropped events"] for s in cpus) > 0, "else the new are lost")
    tap.equal(sum(s["entries"] + s["dropped events"] for s in cpus), 40, "and counted")
    files.write("options/overwrite", "1")
    files.write("snapshot", "0")
    files.write("buffer_size_kb", "64")


def stats_of(files, cpu):
    lines = files.text(f"per_cpu/cpu{cpu}/stats").splitlines()
    return {
        name: float(value) if "." in value else int(value)
        for name, value in (line.split(": ") for line in lines)
    }


def raw_pages(files):
    files.clear()
    files.mark("first\n", "second\n")
    found = []
    for cpu in range(CPUS):
        raw = files.read(f"per_cpu/cpu{cpu}/trace_pipe_raw").output
        tap.equal(len(raw) % 4096, 0, f"whole pages of CPU {cpu}")
        for at in range(0, len(raw), 4096):
            found += texts(raw[at : at + 4096])
    tap.equal(sorted(found), ["first\n", "second\n"], "with both records")
    tap.equal(files.marks(), [], "which are gone from the buffer")


def texts(page):
    """Yield the texts of the records in a page, read as the page's format says."""
    _, commit = struct.unpack_from("<QQ", page)
    at = 16
    while at < 16 + commit:
        (header,) = struct.unpack_from("<I", page, at)
        length = (header & 31) * 4
        number, _, _, _, _ = struct.unpack_from("<HBBiQ", page, at + 4)
        tap.equal(number, 5, "a record of the event print")
        yield page[at + 20 : at + 4 + length].split(b"\0")[0].decode()
        at += 4 + length


def descriptions(files):
    tap.check(
        "type_len    :    5 bits" in files.text("events/header_event"), "header_event"
    )
    tap.check(
        "char data;\toffset:16;\tsize:4080;" in files.text("events/header_page"),
        "header_page",
    )
    for line in ("p:ftrace/own vfs_read", "-:ftrace/own"):
        files.write("kprobe_events", line)
    tap.check("ID: 5\n" in files.text("events/ftrace/print/format"), "a format")
    tap.check("trace_pipe" in files.text("README"), "README")


def the_files_do_what_they_do_on_linux():
    with Guest(Setup(smp=CPUS)) as guest:
        guest.wait_prompt(120)
        files = Files(guest)
        for facts in (
            two_names,
            sizes,
            markers,
            switched_off,
            one_way_only,
            choices,
            options,
            losses,
            raw_pages,
            descriptions,
        ):
            facts(files)


tap.run(the_files_do_what_they_do_on_linux)
