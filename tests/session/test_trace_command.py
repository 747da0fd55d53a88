#!/usr/bin/env python3
"""test_trace_command.py - tests ./sonde trace: questions, the forms of its answers, what is
left in a guest that has ended. session/trace_host tests what the command is made of.
"""

import collections
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from recorded import MARKER, ROOT
import image
import tap
from session import sonde

ENDINGS = (".folded", ".html", ".csv")
COUNTED = "vfs_read if count > 32 { count }"


def only_commands_are_counted():
    """The host asks the guest all the time, and the console reads and echoes the commands."""
    asked = "pages_run, shell_run_line, run_stages, line_put_byte { count by func }"
    status, out, _ = sonde(
        "trace", "-w", asked, "shell_sleep_run { count }", "--", "sleep 3", "echo"
    )
    tap.equal(status, 0, "with -w")
    tap.check("pages_run " not in out, "what the host asks does not count")
    tap.check(
        not re.search("^(shell_run_line|run_stages|line_)", out, re.M), "nor typing"
    )
    seen = re.findall(r"^shell_sleep_run +(\d+)", out, re.M)
    tap.check(len(seen) >= 3 and set(seen) == {"1"}, f"the command does: {seen}")


def questions_are_answered():
    status, out, _ = sonde(
        "trace",
        "vfs_read { hist(count) }",
        "count vfs_*",
        "ret vfs_open { count by cpu }",
        "vfs_read { avg(count) by count }",
        "mark vfs_write { sum(count) }",
        "from vfs_read to vfs_read { count by comm }",
        "--",
        "run vfs",
    )
    out, _, between = out.partition("from vfs_read to vfs_read {")
    rows = re.findall(r"^work/\d +(\d+) ", between, re.M)
    tap.equal((len(rows), sum(map(int, rows))), (8, 712), "about intervals")
    tap.check(
        "8 starts had no end; 8 ends had no start\n" in between, "and the unmatched"
    )
    tap.equal(status, 0, "six questions")
    rows = re.findall(r"^<= (\d+) +(\d+)", out, re.M)
    tap.equal(rows, [("16", "39"), ("32", "383"), ("64", "298")], "a histogram")
    tap.check(re.search(r"^vfs_read +720 ", out, re.M), "of the commands' calls alone")
    by_cpu = out.partition("ret vfs_open")[2].partition("avg(")[0]
    by_cpu = re.findall(r"^([01]) +(\d+) ", by_cpu, re.M)
    tap.equal(sum(int(n) for _, n in by_cpu), 72, "by CPU")
    averages, _, marked = out.partition("avg(")[2].partition("mark vfs_write {")
    tap.check(re.search(r"^ *8 +4800 ", marked, re.M), "about a marker")
    rows = re.findall(r"^(\d+) +(\d+) +(\d+) ", averages, re.M)
    means = [int(mean) for _, _, mean in rows]
    tap.check(
        len(rows) > 9
        and all(key == mean for key, _, mean in rows)
        and means == sorted(means, reverse=True),
        "averages",
    )
    tap.check("vfs_read+0x0" not in out, "what is only counted is not printed")
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, "t" + ending) for ending in ENDINGS]
        words = [word for path in paths for word in ("-o", path)]
        sonde(
            "trace",
            *words,
            COUNTED,
            "vfs_close { stack }",
            "time vfs_write",
            "--",
            "run vfs",
        )
        folded, page, table = [open(path, encoding="utf-8").read() for path in paths]
    counts = re.findall(r"^(.*);vfs_read (\d+)$", folded, re.M)
    tap.equal(
        sum(int(n) for _, n in counts), 298, "with -o they are recorded, filtered too"
    )
    rows = list(csv.reader(io.StringIO(table)))
    want = [
        ["question", "answer", "func", "hits"],
        [COUNTED, "count", "vfs_read", "298"],
        [],
    ]
    tap.equal(rows[:3], want, "a table for a spreadsheet")
    tap.check("file_fill;vfs_close 8\n" in folded, "with stacks, the leaf once")
    tap.check(re.search(r"<td>vfs_write</td><td>8</td>", page), "and times of returns")
    lines = ("p:k/reads vfs_read count=%dx:u64", "vfs_read { count by count }")
    for option in ("--json", "--live"):
        _, out, _ = sonde("trace", "--json", option, *lines, "--", "run vfs")
        rows = [json.loads(line) for line in out.splitlines()]
        counts = [row["values"]["count"] for row in rows if row.get("event") == "reads"]
        tap.equal(len(counts), 720, f"{option}: an object for each event")
        if option == "--json":
            table = next(row for row in rows if "table" in row)
            tap.equal(table["columns"], ["count", "hits"], "and for each table")
            want = collections.Counter(str(count) for count in counts)
            tap.equal(dict(table["rows"]), dict(want), "with its rows")
        else:
            again = next(row for row in rows if "table" in row)
            tap.equal(dict(again["rows"]), dict(table["rows"]), "and the same table")
    status, _, err = sonde("trace", "vfs_open { print no_such_name }", "--", "run vfs")
    tap.check(status == 1 and 'No symbol "no_such_name"' in err, "a wrong one is refused")
    status, out, _ = sonde(
        "trace", "trap_* { count by func }", "count", "work_*", "--", "run vfs"
    )
    left_out = "functions of trap_* are not among them"
    tap.check(status == 0 and left_out in out, "functions without a probe are named")
    tap.check(re.search(r"^count work_\*\n", out, re.M), "two words are a question")
    status, out, _ = sonde("trace", "w:j w@jiffies:8", "--", "run vfs")
    tap.check(status == 0 and " j: (sched_tick+" in out, "a watch is a definition")
    status, _, err = sonde("trace", "count no_such_*", "--", "run vfs")
    line, below = err.splitlines()
    tap.equal(below.index("^"), line.index("no_such_*"), "a pattern without a function")
    tap.check(status == 1 and "no function matches no_such_*" in below, "says so")
    status, _, err = sonde("trace", "vfs_read { cuont }", "--", "run vfs")
    line, below = err.splitlines()
    tap.equal(below.index("^"), line.index("cuont"), "the caret stands below the word")


TABLES = (
    "count vfs_*",
    "vfs_read { sum(count) by comm; avg(count) by comm; min(count); max(count) by func }",
    "vfs_read { hist(count) }",
    "ret vfs_read { lhist(retval,0,64,16) by func }",
    "vfs_close { stack top 2 }",
    "from vfs_open to vfs_close by file { count by func }",
)
IN_FILES = (
    "profile 10000 { count by func top 3 percent; stack top 3 }",
    "count trap_ra*",
)
GRAPH = "graph vfs_open if depth == 0 { count }"


def tables_of_json(*words):
    """Return (question, answer, columns, rows of texts) of each table."""
    status, out, _ = sonde("trace", "--json", *words, "--", "run vfs")
    tap.equal(status, 0, f"--json: {' '.join(words)[:60]}")
    rows = [json.loads(line) for line in out.splitlines()]
    return [
        (
            row["table"],
            row["answer"],
            row["columns"],
            [[str(cell) for cell in one] for one in row["rows"]],
        )
        for row in rows
        if "table" in row
    ]


def each_form_has_the_same_tables():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.csv")
        tables = tables_of_json("-o", path, *TABLES, *IN_FILES)
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
    want = []
    for *names, columns, found in tables:
        head = ["question", "answer", *columns]
        want += [head, *([*names, *row] for row in found), []]
    tap.equal(rows, want[:-1], f"{len(tables)} tables: .csv has what --json has")
    tables = tables_of_json(*TABLES, GRAPH)
    answers = [answer for question, answer, _, _ in tables if question == TABLES[1]]
    wanted = [
        "sum(count) by comm",
        "avg(count) by comm",
        "min(count)",
        "max(count) by func",
    ]
    tap.equal(answers, wanted, "one for each answer, with its text")
    status, out, _ = sonde("trace", *TABLES, GRAPH, "--", "run vfs")
    tap.equal(status, 0, "as text")
    for question in dict.fromkeys(name for name, *_ in tables):
        want = [
            row
            for name, _, head, rows in tables
            if name == question
            for row in (head, *rows)
        ]
        lines = out.partition(f"\n{question}\n")[2].splitlines()[: len(want)]
        said = [re.split(r" {2,}", line.strip("█ ")) for line in lines]
        tap.equal(said, want, f"the text of {question}")


TRACING = MARKER.removesuffix("trace_marker")
EVENTS, TRIGGER = TRACING + "kprobe_events", TRACING + "events/kprobes/take/trigger"
COMMANDS = (
    f"echo 'p:gone vfs_mkdir path=+0(%di):string' >> {EVENTS}",
    f"echo 'p:take vfs_rmdir' >> {EVENTS}",
    f"echo snapshot >> {TRIGGER}",
    f"echo 1 > {TRACING}events/kprobes/gone/enable",
    "mkdir /tmp/before",
    "rmdir /tmp/before",
    "mkdir /tmp/behind",
)


def tables_each_second_of_another_image():
    """--image has other symbols than build/sonde.elf, also for C expressions."""
    words = ["--image", image.TESTS, "-w", "--json", "vfs_read if *pos > 60 { count }"]
    status, out, err = sonde("trace", *words, "--", "run vfs", "sleep 2", "run vfs")
    rows = [json.loads(line) for line in out.splitlines()]
    counts = [row["rows"][0][-1] for row in rows if row.get("table") and row["rows"]]
    tap.equal(
        (status, 577 in counts, counts[-1]), (0, True, 2 * 577), "the calls of each"
    )
    tap.check(len(counts) > 1, "as JSON")
    tap.note(err)


def left_in_the_guest():
    """The host reads a snapshot, and the formats of events that commands have defined,
    also after these events were deleted and after a panic.
    """
    deleting = (
        f"echo 0 > {TRACING}events/enable",
        f"echo '!snapshot' >> {TRIGGER}",
        f"echo -n '' > {EVENTS}",
    )
    for name, last, wanted in (("deleted", deleting, 0), ("panic", ("panic now",), 3)):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.html")
            status, _, err = sonde(
                "trace", "--smp", "1", "-o", path, "--", *COMMANDS, *last
            )
            with open(path, encoding="utf-8") as file:
                page = file.read()
        tap.equal(status, wanted, f"{name}: the status")
        tap.check(
            "2 events and 0 lost" in err, f"{name}: what the snapshot took is there"
        )
        tap.check("<td>gone</td><td>2</td>" in page, f"{name}: the event has its name")
        if "<td>gone</td><td>2</td>" not in page:
            tap.note(err + re.sub(r"<style.*?</style>", "", page, flags=re.S)[:2000])


def tables_of_a_panic():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.html")
        words = (
            "vfs_read { sum(count) by comm }",
            "ret vfs_read { hist(retval) }",
            "vfs_read { count }",  # by a program
        )
        status, _, err = sonde(
            "trace", "-o", path, *words, "--", "run vfs", "panic ended"
        )
        with open(path, encoding="utf-8") as file:
            page = file.read()
    tap.equal(status, 3, "the status is that of a panic")
    tap.check(
        "<td>work/7</td>" in page and "<td>3196</td>" in page, "sums are on the page"
    )
    tap.check("&lt;= 64" in page and ">240<" in page, "and a distribution")
    tap.check("<td>720</td>" in page, "and what programs have counted")
    if ">240<" not in page:
        tap.note(err + re.sub(r"<style.*?</style>", "", page, flags=re.S)[:3000])


def a_command_without_an_end():
    """A command runs into the time limit. The host stops the guest, and still reads
    what was recorded.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.dat")
        status, _, err = sonde(
            "trace",
            "-o",
            path,
            "--timeout",
            "5",
            "--",
            f"echo one >> {MARKER}",
            "sleep 1000",
        )
        tap.equal(status, 124, "the status is that of a time limit")
        tap.check(
            "(a command had no end): its rings are" in err, "the guest is not asked"
        )
        tap.check(
            "1 events and 0 lost" in err and os.path.getsize(path), "nothing is lost"
        )


def a_reader_that_goes_ends_it():
    """The guest is well: nothing is said about it, at most that its command was interrupted.
    A reader may be missed before `sleep` begins.
    """
    for option, question in (("--watch", "{ count }"), ("--live", "{ print count }")):
        read, write = os.pipe()
        os.close(read)
        words = [
            option,
            f"vfs_read {question}",
            "--",
            "run vfs > /tmp/said",
            "sleep 1000",
        ]
        done = subprocess.run(
            [os.path.join(ROOT, "sonde"), "trace", *words],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        os.close(write)
        said = done.stderr.splitlines()
        tap.equal(done.returncode, 141, option)
        tap.equal(
            [line for line in said if not line.endswith(" failed: 4 EINTR")],
            [],
            f"{option}: no complaint",
        )


tap.run(
    only_commands_are_counted,
    questions_are_answered,
    each_form_has_the_same_tables,
    tables_each_second_of_another_image,
    left_in_the_guest,
    tables_of_a_panic,
    a_command_without_an_end,
    a_reader_that_goes_ends_it,
)
