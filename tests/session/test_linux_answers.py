#!/usr/bin/env python3
"""test_linux_answers.py - writes lines to the files of sonde's tracer, and compares the
answers with those of Linux. Each row of linux_answers/*.tsv is a fact.

`A || B` in a column of answers means that Linux 6.1 answers A, and Linux 6.12 answers B;
`|| C` that Linux 6.14 answers C. sonde's whole answer must be one of these. A word in
braces stands for a place in the image that is tested: {sym_off:F:boundary},
{sym_off:F:mid}, {sym_next:F}, {addr:F}, {blacklist}.

The rows of own_*.tsv were written for this project. Their answers are those of
Debian's Linux 6.1.192, 6.12.95 and 6.12.117: the same lines were written to their
files under QEMU. Rows with "read in the source" in their notes were not tried there.
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../kernel/host"))
import tap
from sonde.guest import ELF, Guest, Setup
from sonde.machine import quote

ROOT = "/sys/kernel/tracing/"
EVENT = "events/kprobes/ev/"
ERRNO = {"ENOENT": 2, "ENOMEM": 12, "EACCES": 13, "EBUSY": 16, "EEXIST": 17, "EINVAL": 22,
         "ERANGE": 34, "E2BIG": 7, "EILSEQ": 84, "EADDRNOTAVAIL": 99, "EPERM": 1,
         "ESRCH": 3, "EOVERFLOW": 75}  # fmt: skip
NO_ENTRY = "error without error_log entry"


class Image:
    """Finds the places in the image that stand for the words in braces."""

    def __init__(self, machine):
        lines = machine.read("/proc/kallsyms").splitlines()
        self.symbols = [
            (int(a, 16), t, n) for a, t, n in (line.split() for line in lines)
        ]
        self.text = sorted({a for a, t, _ in self.symbols if t in "Tt"})

    def address(self, name):
        return next(a for a, _, n in self.symbols if n == name)

    def next(self, name):
        address = self.address(name)
        return next(a for a in self.text if a > address) - address

    def boundaries(self, name):
        words = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", ELF]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        found = [int(a, 16) for a in re.findall(r"^\s*([0-9a-f]+):\t", done.stdout, re.M)]
        return [a - self.address(name) for a in found]

    def fill(self, text):
        return re.sub(r"\{([a-z_]+)(?::([^:}]+))?(?::([a-z]+))?\}", self.place, text)

    def place(self, match):
        kind, name, which = match.groups()
        if kind == "sym_off":
            offsets = self.boundaries(name)
            there = [
                o + 1 if which == "mid" else o
                for o, after in zip(offsets, offsets[1:])
                if o >= 8 and after - o > 2
            ]
            return f"{name}+{there[0]}"
        return {
            "sym_next": lambda: f"{name}+{self.next(name)}",
            "addr": lambda: f"{self.address(name):#x}",
            "blacklist": lambda: "exc_int3",
        }[kind]()


def raw(text):
    """Return the bytes of a column: %%XX stands for the byte XX."""
    return re.sub(
        rb"%%([0-9A-Fa-f]{2})", lambda m: bytes([int(m.group(1), 16)]), text.encode()
    )


class Tracer:
    def __init__(self, machine):
        self.machine = machine

    def text(self, name):
        reply = self.machine.request("cat " + ROOT + name, 60, may_fail=True)
        return reply.output.decode("utf-8", "replace")

    def put(self, name, data, how=">>"):
        """Write @data in one write, as the echo of a shell does. Return the errno."""
        command = f"echo -ne {quote(data)} {how} {ROOT}{name}"
        return self.machine.request(command, may_fail=True).errno

    def line(self, name, text, how=">>"):
        return self.put(name, raw(text) + b"\n", how)

    def reset(self):
        """Bring the files of the tracer into the state that they have at boot."""
        if self.text("kprobe_events"):
            for group, name in re.findall(r":(\S+?)/(\S+) ", self.text("kprobe_events")):
                self.untrigger(f"events/{group}/{name}/trigger")
            self.put("events/enable", b"0\n")
            self.machine.truncate(ROOT + "kprobe_events", 60)
        self.machine.truncate(ROOT + "error_log", 60)
        self.machine.truncate(ROOT + "trace", 60)
        self.put("tracing_on", b"1\n")

    def untrigger(self, name):
        for line in self.text(name).splitlines():
            if not line.startswith("#"):
                self.put(name, b"!" + line.split(" [")[0].encode() + b"\n")

    def set_up(self, steps):
        for step in filter(None, (s.strip() for s in steps.split(";;"))):
            value, _, name = step[1:].partition(">") if step[0] == "!" else (step, "", "")
            errno = self.line(name or "kprobe_events", value)
            if errno:
                tap.note(f"set up: {step}: {errno}")

    def error(self):
        """Return (subsystem, text, column of the caret) of the last entry in error_log;
        three empty strings: there is no entry.
        """
        found = re.findall(
            r"\[ *\d+\.\d+\] (.*?): error: (.*)\n  Command: .*\n( *)\^",
            self.text("error_log"),
        )
        if not found:
            return "", "", ""
        subsystem, text, blanks = found[-1]
        return subsystem, text, str(len(blanks) - len("  Command: "))


def rows(name):
    with open(os.path.join(HERE, "linux_answers", name), encoding="utf-8") as file:
        titles, *lines = [line.rstrip("\n").split("\t") for line in file]
    return [dict(zip(titles, cells + [""] * len(titles))) for cells in lines]


def answers(row, *columns):
    """Return the answers of Linux 6.1 and of 6.12, each as a list of @columns; one list:
    both answer the same. If the text of the row has an ||, it is an operator of a filter,
    and the row has one answer.
    """
    cells = [
        [row[c]]
        if "||" in row.get("text", "")
        else [a.strip(" ") for a in row[c].split("||")]
        for c in columns
    ]
    return [[c[min(i, len(c) - 1)] for c in cells] for i in range(max(map(len, cells)))]


def check(row, got, wanted, normal=lambda answer: answer):
    what = f"{row['id']}: {row.get('definition', row.get('text'))[:80]}"
    if not tap.check(got in [normal(w) for w in wanted], what):
        tap.note(f"got  {tap.shortened(got)}")
        for answer in wanted:
            tap.note(f"want {tap.shortened(normal(answer))}")


# ---- definitions ----


def define(tracer, image, row):
    tracer.reset()
    tracer.set_up(image.fill(row["setup"]))
    text = image.fill(row["definition"])
    errno = tracer.line("kprobe_events", text, row["op"])
    _, error, caret = tracer.error()
    listing = tracer.text("kprobe_events").splitlines()

    def normal(answer):
        expected, want_caret, name, lines = answer
        if expected == "ok":
            expected = ""
        elif expected == NO_ENTRY:
            expected, want_caret = "", ""
        lines = [line.strip() for line in lines.split(";;") if line.strip()]
        if "{sym_next" in row["definition"]:
            lines = [
                re.sub(r"\+\d+$", f"+{image.next('vfs_read')}", line) for line in lines
            ]
        return [
            expected,
            want_caret,
            ERRNO.get(name, 0),
            [image.fill(li) for li in lines],
        ]

    check(
        row,
        [error, caret, errno, listing],
        answers(row, "expected", "caret", "errno", "readback"),
        normal,
    )


# ---- files ----


def text_of(column):
    return raw(column.replace("\\n", "\n").replace("\\\\", "\\")).decode()


def written(tracer, row):
    """Write the row's text. Return (errno, entry of the log, caret, text of the file)."""
    name = re.fullmatch(r"echo > (\S+)", row["operation"]).group(1)
    errno = tracer.line(name, row["text"], ">")
    subsystem, text, caret = tracer.error()
    log = f"{subsystem}: error: {text}" if text else ""
    shown = re.search(r"content of (\S+)", row["note"])
    return errno, log, caret, tracer.text(shown.group(1) if shown else name)


def write_row(tracer, row):
    errno, log, caret, shown = written(tracer, row)
    if row["kind"] == "trigger" and errno:
        shown = ""

    def normal(answer):
        status, error, want_caret, result = answer
        return [ERRNO.get(status, 0), error, want_caret, text_of(result).strip("\n")]

    check(
        row,
        [errno, log, caret, shown.strip("\n")],
        answers(row, "status", "error_text", "caret", "result"),
        normal,
    )


def render_row(tracer, row):
    tracer.line(EVENT + "enable", "1")
    tracer.machine.read("/proc/version", 60)
    found = re.findall(r"(\S+)-\d+ +\[.* ev: \([^)]*\)(.*)", tracer.text("trace"))
    name, shown = found[0] if found else ("", "no line")
    # The thread that reads the file is called "init" in the answers of Linux.
    shown = shown.replace(f'"{name}"', '"init"')
    check(
        row, [shown.strip()], answers(row, "result"), lambda answer: [text_of(answer[0])]
    )


def format_row(tracer, row):
    shown = re.sub(r"^ID: \d+$", "ID: N", tracer.text(EVENT + "format"), flags=re.M)
    check(
        row,
        [shown.strip("\n")],
        answers(row, "result"),
        lambda answer: [text_of(answer[0]).strip("\n")],
    )


KINDS = {
    "filter": write_row,
    "trigger": write_row,
    "control": write_row,
    "render": render_row,
    "format": format_row,
}


def the_same_as_linux():
    with Guest(Setup(smp=2)) as guest:
        guest.wait_prompt(120)
        tracer, image = Tracer(guest.machine), Image(guest.machine)
        for row in rows("definitions.tsv") + rows("own_definitions.tsv"):
            define(tracer, image, row)
        for row in rows("files.tsv") + rows("own_files.tsv"):
            tracer.reset()
            tracer.set_up(image.fill(row["setup"]))
            KINDS[row["kind"]](tracer, row)


tap.run(the_same_as_linux)
