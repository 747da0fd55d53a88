#!/usr/bin/env python3
"""test_trace_host.py - checks that the host reads from the tracer's pages what the
guest's own files show.
"""

import dataclasses
import os
import re
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from recorded import CPUS, MARKER, ROOT, Recorded, lines_of, without_comments
import tap
from kernel.console.web.answer import Standing
from kernel.module import send as modules
from probes.trace.host import dead, dead_hist, write_folded
from probes.trace.host.capture import Files
from probes.trace.host.console_line import ConsoleLine
from probes.trace.host.take import TraceError
from sonde.guest import Guest, Setup
from sonde.machine import Machine
from session import sonde


def told_lost(lines):
    return sum(int(n) for n in re.findall(r"LOST (\d+) EVENTS", "\n".join(lines)))


def same_lines(recorded):
    recorded.mark("one", "two\n", "a\nb", "x" * 1000)
    said = without_comments(recorded.files.read("trace"))
    tap.equal(
        recorded.of_the_dead(), said, "the guest's memory has what its `trace` shows"
    )
    tap.equal(
        lines_of(recorded.capture.finish()), said, "so have the pages that were taken"
    )
    tap.equal(
        without_comments(recorded.files.read("trace")), [], "which are gone from it"
    )


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
    tap.check(
        sum(map(result.lost_behind, range(CPUS))) > 0, "also what came behind the last"
    )
    recorded.files.write("options/overwrite", "1")


def another_clock(recorded):
    recorded.files.write("trace_clock", "counter")
    recorded.begin()
    recorded.mark("one", "two")
    said = without_comments(recorded.files.read("trace"))
    tap.equal(lines_of(recorded.capture.finish()), said, "a clock that only counts")
    recorded.files.write("trace_clock", "local")


def another_host(recorded):
    recorded.begin()
    recorded.mark("mine")
    first = recorded.capture
    first.keep(first.taker.take(everything=True).pages)
    recorded.begin()
    said = first.machine.request(
        f"trace-pages {first.taker.number + 1}", 10, may_fail=True
    )
    tap.equal(said.errno, 22, "a host that was taken over from is refused")
    recorded.capture.finish()


def pages_are_read_where_the_guest_has_them():
    with Recorded() as recorded:
        for facts in (same_lines, taken_in_pieces, losses, another_clock, another_host):
            facts(recorded)


def a_page_that_was_read_in_part():
    with Recorded() as recorded:
        recorded.mark("one", "two")
        tap.check("two" in recorded.files.read("trace_pipe"), "two events are read")
        recorded.mark("three", "four")
        said = without_comments(recorded.files.read("trace"))
        tap.equal(len(said), 2, "two are left")
        tap.equal(recorded.of_the_dead(), said, "the memory has these")


def hits(recorded):
    """Return {event: hits} as the tracer itself has counted them."""
    rows = re.findall(r"^ +(\w+) +(\d+) ", recorded.files.read("kprobe_profile"), re.M)
    return {name: int(count) for name, count in rows}


TWIN = """
static __attribute__((noipa, used)) int twin(int n) { return n + 1; }
__attribute__((constructor)) static void come(void) { twin(1); }
"""


def refusal(recorded, line):
    """Why a line is refused; "": it is accepted."""
    try:
        recorded.begin(line)
    except TraceError as error:
        return str(error)
    recorded.capture.finish()
    return ""


def an_ambiguous_name_has_candidates():
    """Each name that the host offers is accepted, in questions and in definitions."""
    with Recorded() as recorded, tempfile.TemporaryDirectory() as folder:
        for module in ("one", "two"):
            path = os.path.join(folder, module + ".c")
            with open(path, "w", encoding="ascii") as file:
                file.write(TWIN)
            modules.load(recorded.guest.machine, path, 60)
        for line in (
            "NAME { count }",
            "ret NAME { count }",
            "p:k/p NAME+0",
            "r:k/r NAME",
        ):
            said = refusal(recorded, line.replace("NAME", "twin"))
            names = re.findall(r"^  (\S+) is 0x\w+$", said, re.M)
            tap.equal(names, ["one:twin", "two:twin"], f"{line}: the candidates")
            wrong = [refusal(recorded, line.replace("NAME", name)) for name in names]
            tap.equal(wrong, ["", ""], f"{line}: both are accepted")
        tap.equal(refusal(recorded, "twin#2 { count }"), "", "and so is twin#2")


def functions_of_modules():
    with Recorded() as recorded:
        modules.load(
            recorded.guest.machine, os.path.join(ROOT, "docs/samples/reads.c"), 60
        )
        recorded.begin("p:k/reads reads_run")
        recorded.guest.machine.request("run reads", 60)
        said = without_comments(recorded.files.read("trace"))
        lines = lines_of(recorded.capture.finish())
        tap.equal(lines, said, "host and guest know the size of a module's function")
        tap.equal(len(lines), 1, "a module's function is recorded")
        tap.check(
            re.search(r"reads: \(reads_run\+0x0/0x\w+ \[reads\]\)$", lines[0]),
            f"by its name: {lines[0]}",
        )
    status, out, err = sonde(
        "trace",
        "--append",
        "modules=reads",
        "reads_run { print w }",
        "--",
        "run reads",
    )
    tap.check(
        status == 0
        and re.search(r"\(reads_run\+0x0/0x\w+ \[reads\]\) w=0x\w{16}$", out, re.M),
        f"and its parameters: {out} {err}",
    )


def pages_of_a_smaller_ring():
    with Recorded() as recorded:
        recorded.begin(buffer_kb=8)
        recorded.mark("small")
        recorded.files.write("buffer_size_kb", "80")
        recorded.mark("large")
        said = without_comments(recorded.files.read("trace"))
        tap.equal(len(said), 2, "a larger buffer has what was there")
        tap.equal(recorded.of_the_dead(), said, "the memory has both rings")
        tap.equal(lines_of(recorded.capture.finish()), said, "both rings come in order")

    with Recorded() as recorded:
        recorded.begin()
        recorded.mark("one", "two")
        recorded.files.write("buffer_size_kb", "8")
        for what in ("nothing", "an event"):
            said = without_comments(recorded.files.read("trace"))
            tap.equal(
                told_lost(said), 2, f"a smaller buffer with {what} tells what it lost"
            )
            tap.equal(recorded.of_the_dead(), said, "and so does the memory")
            recorded.mark("behind")


HISTS = (
    "keys=count.hex,common_pid.execname,__probe_ip.sym:vals=count:sort=count.descending",
    "keys=count.log2,common_cpu:vals=count.min,count.max:sort=hitcount,count",
    "keys=count.buckets=10:vals=left.hex,left.min,left.max:sort=left.descending",
    "keys=name,__probe_ip.sym-offset:size=256",
    "keys=left:vals=right:sort=right.descending",
    "keys=left:sort=left",
    "keys=count:vals=hitcount.percent,left.graph",
    "keys=stacktrace:vals=count:sort=count.descending,stacktrace",
)


def tables_are_read_out_of_the_memory():
    """The host reads histograms with each kind of key and value from memory, and makes
    the same text as the guest.
    """
    with Recorded() as recorded:
        recorded.begin(
            "p:k/reads vfs_read count=%dx:u64 left=+0(%cx):s8 right=+0(%cx):s8 "
            "name=+0(%si):string"
        )
        for spec in HISTS:
            recorded.files.write("events/k/reads/trigger", "hist:" + spec)
        exits = recorded.files
        exits.write(
            "kprobe_events", "p:k/exits do_exit"
        )  # its caller does nothing behind
        exits.write("events/k/exits/trigger", "hist:keys=stacktrace")
        recorded.guest.machine.request("run vfs", 60)
        for spec in HISTS:
            recorded.files.write("events/k/reads/trigger", f"hist:{spec}:pause")
        said = recorded.files.read("events/k/reads/hist")
        said = re.sub(r"^#\n# trigger info: .*\n", "", said, flags=re.M)
        found = dict(
            dead_hist.Histograms(recorded.memory, recorded.capture.result.symbols).texts(
                {"k/reads", "k/exits", "k/others"}
            )
        )
        tap.equal(sorted(found), ["k/exits", "k/reads"], "events with histograms")
        stack = recorded.files.read("events/k/exits/hist")
        stack = re.findall(r"^ {9}(thread_start\+.*)$", stack, re.M)
        tap.check(stack and stack[0] in found["k/exits"], f"a caller's end: {stack}")
        tap.equal(
            len(said.split("# event histogram\n")) - 1, len(HISTS), "the guest has all"
        )
        for one, other in zip(
            found["k/reads"].split("# event histogram\n"),
            said.split("# event histogram\n"),
        ):
            tap.check(one == other, other[-60:].strip().replace("\n", ","))
            if one != other:
                tap.note(one + other)


def four_writers_and_a_host():
    with Recorded(cpus=4) as recorded:
        recorded.begin(
            "p:k/next work_next",
            "p:k/hash work_hash",
            "p:k/read vfs_read",
            buffer_kb=16,
        )
        line = Machine(ConsoleLine(recorded.guest.console))
        work = threading.Thread(
            target=lambda: [
                line.request(f"run write {seed}", 120) for seed in range(1, 5)
            ]
        )
        work.start()
        begun = time.monotonic()
        while work.is_alive():
            recorded.capture.take()
        seconds = time.monotonic() - begun
        recorded.capture.taker.switch(False)
        want = sum(hits(recorded).values())
        result = recorded.capture.finish()
        count = sum(map(len, result.pages))
        tap.note(f"{count} pages in {seconds:.1f} s")
        tap.check(min(map(len, result.pages)) > 0, "pages of each CPU")
        for cpu in range(4):
            times = [event.time for event in result.of_cpu(cpu)]
            tap.check(times == sorted(times), f"CPU {cpu}: in order")
        tap.equal(
            len(result.all_events) + result.lost_in_all(),
            want,
            f"{len(result.all_events)} came, {result.lost_in_all()} are lost: all hits",
        )
        tap.check(
            {event.name for event in result.all_events} >= {"next", "hash", "read"},
            "of each event",
        )


def a_guest_may_stop_anywhere():
    """QEMU stops the guest while its CPUs are writing records. The memory then has only
    complete records, in the right order."""
    with Recorded(cpus=4) as recorded:
        recorded.begin(
            "p:k/next work_next a=%di b=%di",
            "p:k/hash work_hash a=%si b=%si",
            buffer_kb=64,
        )
        recorded.guest.console.send("run all 1\r")
        while not re.search(r"^\s*\S+-\d+", recorded.files.read("trace"), re.M):
            pass
        for moment in range(8):
            time.sleep(0.05)
            recorded.guest.qmp.execute("stop")
            grave = dead.Dead(recorded.memory, recorded.capture.result.symbols)
            result = dataclasses.replace(
                recorded.capture.result, pages=[found for _, found, _ in grave.rings()]
            )
            events = result.all_events
            torn = [event for event in events if event.values["a"] != event.values["b"]]
            times = [[event.time for event in result.of_cpu(cpu)] for cpu in range(4)]
            tap.check(events and not torn, f"{len(events)} records, and all are whole")
            tap.check(
                all(one == sorted(one) for one in times), f"in order, at stop {moment}"
            )
            recorded.guest.qmp.execute("cont")


def many_pages_at_once():
    with Recorded(cpus=4) as recorded:
        recorded.begin("p:k/next work_next", "p:k/hash work_hash", buffer_kb=4096)
        for seed in range(1, 5):
            recorded.guest.machine.request(f"run write {seed}", 120)
        begun = time.monotonic()
        recorded.capture.take()
        seconds = time.monotonic() - begun
        count = sum(map(len, recorded.capture.result.pages))
        tap.note(f"{count * 4096 / seconds / 1e6:.0f} MB of pages in a second")
        tap.check(count > 200, f"{count} pages in one request")
        tap.equal(recorded.capture.finish().lost_in_all(), 0, "none is lost")


def stacks():
    with Recorded() as recorded:
        recorded.begin("p:k/reads vfs_read")
        recorded.files.write("events/k/reads/trigger", "stacktrace")
        recorded.guest.machine.request("run vfs", 120)
        recorded.capture.taker.switch(False)
        said = without_comments(recorded.files.read("trace"))
        result = recorded.capture.finish()
        tap.equal(lines_of(result), said, "stacks are printed as the guest prints them")
        counts = write_folded.stacks(result)
        frames = max(counts, key=counts.get)
        tap.equal(
            (counts[frames], frames[0], frames[-3:]),
            (720, "thread_entry", ("file_get", "vfs_read", "reads")),
            "each call is under its callers",
        )


def the_command_records():
    status, out, err = sonde(
        "trace", "--", f"echo one >> {MARKER}", f"echo two >> {MARKER}"
    )
    tap.equal((status, re.findall("write: (.*)", out)), (0, ["one", "two"]), "as text")
    tap.equal(err, "", "and nothing else")
    status, out, _ = sonde(
        "trace",
        "--live",
        "--",
        f"echo one >> {MARKER}",
        "sleep 1",
        "echo between",
        f"echo two >> {MARKER}",
    )
    tap.equal(
        (status, re.findall(": (one|two)|^(between)$", out, re.M)),
        (0, [("one", ""), ("", "between"), ("two", "")]),
        "live, as they come",
    )


def a_page_leaves_the_tracer_as_it_was():
    """A question of ./sonde web is withdrawn. The user's own event and histogram go on."""
    with Guest(Setup(smp=1)) as guest:
        guest.wait_prompt()
        files = Files(guest.machine)
        files.write("kprobe_events", "p:k/reads vfs_read")
        files.write("events/k/reads/enable", "1")
        files.write("events/k/reads/trigger", "hist:keys=common_cpu")
        for on in "01":
            files.write("tracing_on", on)
            Standing(guest.machine, guest, "profile 500 { count }").withdraw()
            tap.equal(files.read("tracing_on"), f"{on}\n", "tracing_on is as it was")
            tap.equal(files.read("profile_hz"), "0\n", "no samples come any more")
            guest.request("run vfs")
        recorded = without_comments(files.read("trace"))
        tap.check(len(recorded) >= 720, "hits are recorded")
        counted = re.search(r"Hits: (\d+)", files.read("events/k/reads/hist"))
        tap.check(counted and int(counted[1]) >= 1440, "and counted")


def a_panic_is_read_out():
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, "t" + ending) for ending in (".folded", ".html")]
        words = [word for path in paths for word in ("-o", path)]
        status, _, err = sonde(
            "trace",
            *words,
            "--",
            f"echo one >> {MARKER}",
            f"echo two >> {MARKER}",
            "panic ended",
        )
        tap.equal(status, 3, "the status is that of a panic")
        tap.check("panic: ended" in err and "2 events and 0 lost" in err, "both are told")
        with open(paths[0], encoding="utf-8") as file:
            tap.equal(file.read(), "shell/COM1;print 2\n", "the events are there")
        with open(paths[1], encoding="utf-8") as file:
            tap.check(
                "did not answer any more" in file.read(), "the page says how they came"
            )


tap.run(
    pages_are_read_where_the_guest_has_them,
    a_page_that_was_read_in_part,
    functions_of_modules,
    an_ambiguous_name_has_candidates,
    pages_of_a_smaller_ring,
    tables_are_read_out_of_the_memory,
    four_writers_and_a_host,
    a_guest_may_stop_anywhere,
    many_pages_at_once,
    stacks,
    the_command_records,
    a_page_leaves_the_tracer_as_it_was,
    a_panic_is_read_out,
)
