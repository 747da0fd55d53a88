#!/usr/bin/env python3
"""test_programs.py - tests C expressions in questions: gdb compiles an expression on the
host, and the guest verifies the program and runs it. If the guest can answer a question
itself, the answer with gdb's program must be the same.
"""

import json
import os
import re
import shlex
import sys

sys.dont_write_bytecode = True
from recorded import ROOT, Recorded, lines_of
import tap
from probes.trace.host import hist, question
from probes.trace.host.take import TraceError
from session import ask, at_prompt, sonde
from sonde.transcript import fenced_blocks

TRACING = "/sys/kernel/tracing/"


def line_of(path, text):
    """Return the number of the only line of @path that contains @text."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        (number,) = [n for n, line in enumerate(file, 1) if text in line]
    return number


def one_liners():
    """Yield (question, command) of each question about a function in docs/trace.md, if
    the question is asked until a command ends.
    """
    with open(os.path.join(ROOT, "docs/trace.md"), encoding="utf-8") as file:
        text = file.read()
    for _, _, block in fenced_blocks(text.split("\n")):
        for line in block:
            if not line.startswith("sonde> trace ") or " -- " not in line:
                continue
            asked, command = line.removeprefix("sonde> trace ").split(" -- ", 1)
            asked = " ".join(shlex.split(asked))
            # A marker has fields, samples differ each time, a tree is no table, and C
            # expressions differ between several places.
            several = asked.startswith("from ") or "," in asked.partition("{")[0]
            if not asked.startswith(("mark ", "profile ", "graph ")) and not several:
                yield asked, command


LONG_FORMS = {
    "count": "%s { count by func }",
    "args": "%s { print * }",
    "time": "ret %s { hist(ns) }",
    "callers": "%s { count by caller }",
}


def long_form(asked):
    first, _, place = asked.partition(" ")
    return LONG_FORMS[first] % place if first in LONG_FORMS else asked


def rows_of(tables):
    """Return {keys: values} of histograms."""
    rows = {}
    for table in tables:
        for row in table.rows:
            keys = tuple(hist.shown_key(name, text) for name, text in row.keys.items())
            rows[keys] = tuple(row.values.values())
    return rows


def forced(recorded, asked):
    """Return the question with each parameter compiled by gdb."""
    parts = question.Question(recorded.capture.lines_of("-p", [asked]).lines)
    symbols = recorded.capture.result.symbols
    return question.resolve(asked, parts, symbols, force=True)


def values_printed(lines, event):
    """Return the values, without their names, of each record of @event."""
    found = [re.search(rf": {event}: \(.*?\)(.*)", line) for line in lines]
    return [re.findall(r'=("[^"]*"|\S+)', match[1]) for match in found if match]


def forget(recorded):
    """Delete the events of the questions."""
    for event in list(recorded.capture.events):
        recorded.files.truncate(f"events/{event}/trigger")
        recorded.files.write("kprobe_events", f"-:{event}")


def on_the_console(recorded, text, command):
    """Ask the question on the console. Return {key: number} of the table."""
    said = ask(recorded.guest, f"trace '{text}' -- {command}")
    return {key: int(n) for n, key in re.findall(r"^ +(\d+)  (.+)$", said, re.M)}


def same_tables(text, result, rows):
    tables = [rows_of(found) for _, found in result.tables]
    host = {keys[0].partition("/0x")[0]: values[-1] for keys, values in tables[0].items()}
    tap.check(host, f"{text}: something was counted")
    if " count by " in text or " sum(" in text:
        tap.equal(rows, host, f"{text}: the console has the same table")
    if "(ns)" in text:  # the two return probes measure different times
        tables = [sum(values[0] for values in table.values()) for table in tables]
    tap.equal(tables[1], tables[0], f"{text}: compiled by gdb it counts the same")


def same_records(text, result):
    lines = lines_of(result)
    first, second = (values_printed(lines, event) for event in ("q1", "q2"))
    tap.check(first, f"{text}: something was recorded")
    shown = [values[: len(first[0])] for values in second]  # without the condition
    tap.equal(shown, first, f"{text}: compiled by gdb it records the same")


def all_ways_give_one_table():
    """A question gives the same table in three ways: on the console, with the names of
    the guest, and with each name compiled by gdb.
    """
    asked = list(one_liners())
    tap.check(len(asked) >= 7, f"docs/trace.md has {len(asked)} questions with a command")
    compiled = 0
    with Recorded() as recorded:
        for text, command in asked:
            text = long_form(text)
            rows = {} if "print" in text else on_the_console(recorded, text, command)
            other = forced(recorded, text)
            compiled += other != text
            recorded.begin(text, other)
            ask(recorded.guest, command)
            result = recorded.capture.finish()
            if result.tables:
                same_tables(text, result, rows)
            else:
                same_records(text, result)
            forget(recorded)
    tap.check(
        compiled >= 3, f"{compiled} of them have parameters, which gdb has compiled"
    )


def locals_and_members():
    line = line_of("kernel/fs/vfs.c", "if (count > left)")
    status, out, err = sonde(
        "trace",
        f"vfs.c:{line} if count > 16 {{ hist(left) by cpu }}",
        f"vfs.c:{line} if count > left {{ count by file->node->name }}",
        f"vfs.c:{line} {{ sum(count > left ? left : count) }}",
        "--",
        "run vfs",
    )
    tap.equal((status, err), (0, ""), "expressions over locals and members")
    tables = out.split("vfs.c:")
    tap.equal(len(tables), 4, "three tables")
    by_cpu = re.findall(r"^\d+ +<= \d+ +(\d+)", tables[1], re.M)
    tap.check(by_cpu and sum(map(int, by_cpu)) <= 720, "reads of more than 16 bytes")
    tap.check(
        re.search(r"^work\.\d +\d", tables[2], re.M), "a member of a member is a text"
    )
    total = re.search(r"^ *\d+ +(\d+)  ", tables[3], re.M)
    status, out, err = sonde("trace", "ret vfs_read { sum(retval) }", "--", "run vfs")
    real = re.search(r"^ *720 +(\d+)", out, re.M)
    tap.equal(
        total and total[1],
        real and real[1],
        "what is left or asked for, in C, is what the function returns",
    )
    tap.equal((status, err), (0, ""), "which is summed up in another run")


def expressions_of_a_return():
    """retval may be NULL, and so may be what it points to."""
    status, out, err = sonde(
        "trace",
        "ret vfs_read { sum(retval) }",
        "ret vfs_read { sum(retval * -2) }",
        "ret vfs_node_child if retval == 0 { count }",
        "ret vfs_node_child { count by retval->name }",
        "ret vfs_node_child { count by retval->file->name }",
        "ret vfs_node_child if retval->parent == vfs_node_tmp { count }",
        "ret vfs_node_child { max(retval->parent->parent->parent->is_dir) }",
        "--",
        "run vfs",
    )
    tap.equal((status, err), (0, ""), "expressions over what a function returns")
    rows = [
        re.findall(r"^(.*?) +(-?\d+)(?:  █*)?$", table, re.M)
        for table in re.split("^ret ", out, flags=re.M)[1:]
    ]
    total, twice, nothing, names, files, below, deep = map(dict, rows)
    tap.equal(int(*twice.values()), -2 * int(*total.values()), "arithmetic")
    tap.equal([names[""]], [*nothing.values()], "a member of NULL is empty")
    tap.equal(set(files), {"", "version"}, "so is one of a member that is NULL")
    of_work = sum(int(n) for name, n in names.items() if name.startswith("work."))
    tap.equal([str(of_work)], [*below.values()], "a global may be in it")
    tap.equal([*deep.values()], ["1"], "four members deep")


def conditions_keep_their_order():
    """&& binds before ||, also if the guest can test a part of the condition itself."""
    conditions = (
        "*pos > 100 || count > 40 && count > 30",
        "count > 30 && (*pos > 100 || count > 40)",
        'count > 30 && *pos > 100 && comm != "none"',
    )
    tables = ("*pos > 100", "*pos > 100 || count > 40")
    status, out, err = sonde(
        "trace",
        *(f"vfs_read if {one} {{ count }}" for one in conditions),
        *(f"vfs_read if count > 30 {{ count by {one} }}" for one in tables),
        f"vfs_read if count >= 0 {{ count by {tables[1]} }}",
        "--",
        "run vfs",
    )
    tap.equal((status, err), (0, ""), "conditions with && and ||")
    first, second, third, late, either, of_all = out.split("vfs_read if ")[1:]
    tap.check(late.split("\n", 1)[1] != either.split("\n", 1)[1], "|| makes a difference")
    for text, table in ((first, of_all), (second, either), (third, late)):
        hits = re.findall(r"^1 +(\d+)", table, re.M)
        tap.check(hits and re.findall(r"(\d+)  █", text) == hits, text.partition(" {")[0])


def what_is_refused_says_why():
    last = line_of("kernel/fs/vfs.c", "MARK(vfs_read")
    with Recorded() as recorded:
        for asked, text in (
            (f"vfs.c:{last} {{ hist(left) }}", "left has no value there; vfs.c:"),
            ("vfs_read { hist(left) }", "left has no value there; vfs.c:"),
            (
                "vfs_read { hist(lft) }",
                '^ No symbol "lft" in current context. There are: '
                "buf, count, file, left, pos",
            ),
            ("vfs_read { hist(file->text) }", "is a struct seq: name a part of it"),
            ("vfs_read { hist(count +) }", "syntax error"),
            ("vfs_read { count by 1.5 * count }", "is a double"),
            (
                "ret vfs_read { hist(*pos) }",
                "in a ret an expression has only retval and globals",
            ),
            ("ret kfree { count by retval + 1 }", "kfree returns nothing"),
            ("list.h:26 { count by l->next }", "choose list.h:26#1"),
            ("vfs.c:99999 { count by *pos }", "has no code"),
        ):
            said = "it is accepted"
            try:
                recorded.capture.question(asked)
            except TraceError as error:
                said = str(error)
            tap.check(text in said, f"{asked}: {text}")
            if text not in said:
                tap.note(said)
        tap.equal(recorded.files.read("kprobe_events"), "", "nothing is left")
    for asked, word in (
        ("vfs_read { hist(left) }", "left"),
        ("vfs_read if count > 1 && lft > *pos { count }", "lft"),
        ("vfs_read if count + { count }", "count"),
        ("ret vfs_read { hist(*pos) }", "*pos"),
        ("list.h:26 { count by l->next }", "l->next"),
        ('vfs_read if count > "a" { count }', 'a"'),
        ('vfs_read if count > "a" { print count }', 'a"'),
        ('vfs_read if file->node && count > "a" { count }', 'a"'),
        ('from vfs_open to vfs_close if ns > "a" { hist(ns) }', 'a"'),
        ("mark vfs_open if path > 3 { count }", " { c"),
        ("mark vfs_open { hist(x) }", "x) "),
    ):
        status, out, err = sonde("trace", "--json", asked, "--", "run vfs")
        line, caret = err.splitlines()
        tap.equal((status, caret.index("^")), (1, line.index(word)), f"{asked}: a caret")
        tap.equal(json.loads(out)["exit"], 1, "the last object of --json")


def names_for_expressions():
    """Test the word `with` of questions, on the console."""
    with at_prompt() as guest:
        said = ask(
            guest,
            "trace 'vfs_read with n=agent(26000327):u64,m=%dx:u64 if n > 40 "
            "{ count by n,m }' -- run vfs",
        )
        rows = re.findall(r"^ +(\d+)  (\d+) +(\d+)$", said, re.M)
        tap.check(
            rows and all(n == m and int(n) > 40 for _, n, m in rows),
            "a program and a register have the same values",
        )
        plain = ask(guest, "trace 'vfs_read if count > 40 { count by count }' -- run vfs")
        tap.equal(
            sorted((hits, n) for hits, n, _ in rows),
            sorted(re.findall(r"^ +(\d+)  (\d+)$", plain, re.M)),
            "those of the parameter",
        )
        for asked, caret, text in (
            ("vfs_read with { count }", 14, "NAME=EXPRESSION is missing"),
            ("vfs_read with n { count }", 14, "NAME=EXPRESSION is missing"),
            ("vfs_read with n=%di,n=%si { count }", 20, "this name has an expression"),
            ("vfs_read with n= { count }", 14, "NAME=EXPRESSION is missing"),
        ):
            reply = guest.machine.request(
                f"trace '{asked}' -- run vfs", 30, may_fail=True
            )
            tap.check(reply.name == "EINVAL" and text in reply.text, f"{asked}: {text}")
            tap.equal(reply.lines[1].index("^"), len("trace: ") + caret, "at its place")


HOSTILE = (
    "", "27", "2201", "ff27", "22012000002701", "220120000427", "21000027",
    "022702", "26002027", "2201220102020227", "2201" * 33 + "27",
    "2201160027", "1b27", "22002200340000012527", "2c000127", "0c27", "220132ff27",
)  # fmt: skip


def programs_that_are_wrong_are_refused():
    with at_prompt() as guest:
        for code in HOSTILE:
            command = f"echo 'p:bad vfs_read a=agent({code})' >> {TRACING}kprobe_events"
            reply = guest.machine.request(command, 30, may_fail=True)
            tap.equal(reply.name, "EINVAL", f"{code[:40]} is refused")
        tap.check(
            "Invalid program of gdb" in ask(guest, f"cat {TRACING}error_log"),
            "and the log says why",
        )
        tap.equal(ask(guest, f"cat {TRACING}kprobe_events"), "", "nothing is left")


def programs_that_fail_are_counted():
    """Three programs fail: at NULL, at an invalid address, and by a division by zero.
    Each fails at all 720 hits, and the kernel goes on.
    """
    with at_prompt(smp=4) as guest:
        ask(
            guest,
            f"echo 'p:bad vfs_read a=agent(22001a27) b=agent(257fffffffffffffff1a27"
            f") c=agent(220122000527) d=agent(26000327):u64' >> {TRACING}"
            "kprobe_events",
        )
        ask(guest, f"echo 1 > {TRACING}events/kprobes/bad/enable")
        tap.check("calls 720" in ask(guest, "run vfs"), "the work is done")
        ask(guest, f"echo 0 > {TRACING}events/kprobes/bad/enable")
        records = re.findall(
            r"bad: \(.*?\) a=0x0 b=0x0 c=0x0 d=\d+", ask(guest, f"cat {TRACING}trace")
        )
        tap.equal(len(records), 720, "a value that cannot be computed is 0")
        tap.check(
            re.search(r"fault=2160", ask(guest, f"cat {TRACING}kprobe_profile")),
            "and each is counted",
        )


tap.run(
    all_ways_give_one_table,
    locals_and_members,
    expressions_of_a_return,
    conditions_keep_their_order,
    what_is_refused_says_why,
    programs_that_are_wrong_are_refused,
    programs_that_fail_are_counted,
    names_for_expressions,
)
