"""test_readme.py - what README.md and docs/ show is what happens.

A fenced block of the kind `console` is a transcript: each line `$ ./sonde exec ...` is run,
and what follows is its output. So are the lines behind the prompt `sonde> ` in any block,
and the requests behind `host` with their replies behind `guest`. Numbers may differ, and a
line of three dots stands for any lines.
"""

import glob
import os
import re
import shlex

import tap
from guest import ROOT
from session import LIMIT, at_prompt, sonde

FENCE = re.compile(r"^```console\n(.*?)^```", re.M | re.S)
BLOCK = re.compile(r"^```\w*\n(.*?)^```|((?:^ {4}[^\n]*\n)+)", re.M | re.S)
PROMPT = "sonde> "


def transcripts(text):
    """(command line, shown output) of all examples in a document."""
    for block in FENCE.findall(text):
        parts = re.split(r"^\$ (\./sonde exec .*)\n", block, flags=re.M)
        yield from zip(parts[1::2], parts[2::2])


def conversations(text):
    """[(command, shown output)...] of each block in which somebody types at the prompt."""
    for fenced, indented in BLOCK.findall(text):
        block = fenced or re.sub(r"^ {4}", "", indented, flags=re.M)
        parts = re.split(r"^sonde> ?(.*)\n?", block, flags=re.M)
        if len(parts) > 1 and not parts[0]:
            yield [(c, shown) for c, shown in zip(parts[1::2], parts[2::2]) if c]


def requests(text):
    """(request, lines of the reply) of each block in which a host asks a guest."""
    for fenced, _ in BLOCK.findall(text):
        if fenced.startswith("host "):
            host, *guest = fenced.splitlines()
            yield host.split(None, 1)[1], [line.split(None, 1)[1] for line in guest]


def general(line):
    """A line without what may differ from run to run: numbers, and the width they take."""
    line = re.sub(r"\b(0x)?[0-9a-f]*[0-9][0-9a-f]*\b", "N", line)
    return re.sub(r"\s+", " ", line).strip()


def as_pattern(shown):
    rows = [general(line) for line in shown.rstrip("\n").split("\n")]
    return "\n".join(
        r"(?:.*\n)*?.*" if row == "..." else re.escape(row) for row in rows
    )


def documents():
    """(path, text) of every document."""
    patterns = ("*.md", "docs/**/*.md", "probes/*.md", "tests/*.md")
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True)):
            with open(path, encoding="utf-8") as file:
                yield path, file.read()


def same(shown, got):
    lines = "\n".join(general(line) for line in got.rstrip("\n").split("\n"))
    return re.fullmatch(as_pattern(shown), lines) is not None


def transcripts_are_true():
    count = 0
    for path, text in documents():
        for command, shown in transcripts(text):
            count += 1
            status, out, err = sonde(*shlex.split(command)[1:])
            name = os.path.relpath(path, ROOT)
            if not tap.check(status == 0 and same(shown, out), f"{name}: {command}"):
                tap.note(f"status {status}\n{out}{err}")
    tap.check(count > 0, f"{count} transcripts")


def conversations_are_true():
    count = 0
    for path, text in documents():
        for conversation in conversations(text):
            count += 1
            with at_prompt() as guest:
                for command, shown in conversation:
                    got = guest.machine.request(command, LIMIT).text
                    name = os.path.relpath(path, ROOT)
                    if not tap.check(same(shown, got), f"{name}: {PROMPT}{command}"):
                        tap.note(got)
    tap.check(count > 0, f"{count} conversations")


def requests_are_answered():
    count = 0
    for path, text in documents():
        for request, lines in requests(text):
            count += 1
            with at_prompt() as guest:
                guest.console.send(request + "\n")
                answer = guest.console.expect(re.compile(rb"^#\d+=.*\n", re.M), LIMIT)
                got = guest.console.text[: guest.console.seen].decode().splitlines()
            tap.check(answer is not None, f"{os.path.relpath(path, ROOT)}: {request}")
            tap.equal(got[-len(lines) :], lines, "is answered like this")
    tap.check(count > 0, f"{count} requests")


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def names_are_explained():
    """What prints a name for tools has it in its document."""
    with at_prompt() as guest:
        stat = guest.machine.request("probe stat", LIMIT).text
        commands = guest.machine.request("help", LIMIT).text
        files = guest.machine.request("ls /proc", LIMIT).text
    text = read("docs/probe-command.md")
    names = [line.split()[0] for line in stat.splitlines()]
    lost = [name for name in names
            if f"`{name}`" not in text and f"`.{name.partition('.')[2]}`" not in text
            and not name.startswith("refused.")]  # fmt: skip
    tap.equal(lost, [], f"docs/probe-command.md: {len(names)} names of probe stat")
    text = read("docs/console.md")
    names = re.findall(r"^(\w+) +\S", commands.partition("\n\n")[0], re.M)
    lost = [name for name in names if not re.search(rf"`{name}[ `]", text)]
    tap.equal(lost, [], f"docs/console.md: {len(names)} commands")
    lost = [name for name in files.split() if f"`/proc/{name.rstrip('/')}" not in text]
    tap.equal(lost, [], "docs/console.md: the files of /proc")


tap.run(transcripts_are_true, conversations_are_true, requests_are_answered,
        names_are_explained)
