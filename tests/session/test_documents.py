"""test_documents.py - compares the lists in the documents with what the guest has."""

import os
import re

import tap
from sonde.guest import ROOT
from session import LIMIT, ask, at_prompt
from sonde.transcript import fenced_blocks, row_agrees

FOLDERS = ("/sys/kernel/debug/kprobes", "/proc/sys/debug")


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def requests(text):
    """Yield (request, lines of the reply) of each block with a request of a host."""
    for _, _, block in fenced_blocks(text.split("\n")):
        if block[0].startswith("host "):
            host, *guest = block
            yield host.split(None, 1)[1], [row.split(None, 1)[1] for row in guest]


def requests_are_answered():
    found = list(requests(read("docs/console.md")))
    for request, lines in found:
        with at_prompt() as guest:
            guest.console.send(request + "\n")
            guest.console.expect(re.compile(rb"^#\d+=.*\n", re.M), LIMIT)
            got = guest.console.text[: guest.console.seen].decode().splitlines()
        got = got[-len(lines) :]
        tap.check(all(map(row_agrees, lines, got)), f"docs/console.md: {request}")
        tap.note("\n".join(got))
    tap.check(found, f"{len(found)} requests")


def names_are_explained():
    """The documents explain every name that `probe stat` and `ls /proc` print; `help`
    explains each command.
    """
    with at_prompt() as guest:
        stat, commands, files = (
            ask(guest, what) for what in ("probe stat", "help", "ls /proc")
        )
    text = read("docs/probe-command.md")
    names = [line.split()[0] for line in stat.splitlines()]
    lost = [
        name
        for name in names
        if f"`{name}`" not in text
        and f"`.{name.partition('.')[2]}`" not in text
        and not name.startswith("refused.")
    ]
    tap.equal(lost, [], f"docs/probe-command.md: {len(names)} names of probe stat")
    text = read("docs/console.md")
    names = re.findall(r"^(\w+) +\S", commands.partition("\n\n")[0], re.M)
    with at_prompt() as guest:
        said = {name: ask(guest, f"help {name}") for name in names}
    lost = [name for name in names if len(said[name].split()) < 3]
    tap.equal(lost, [], f"`help` explains {len(names)} commands")
    lost = [name for name in files.split() if f"`/proc/{name.rstrip('/')}" not in text]
    tap.equal(lost, [], "docs/console.md: the files of /proc")


def files_are_listed():
    """The table in the document has exactly the files of the engine, with their modes."""
    rows = re.findall(r"^\| `(/\S+)` \| (\d{4}) \|", read("docs/probe-command.md"), re.M)
    with at_prompt() as guest:
        there = [
            f"{folder}/{name}"
            for folder in FOLDERS
            for name in ask(guest, f"ls {folder}").split()
        ]
        modes = {path: ask(guest, f"stat {path}").split()[1] for path in there}
    tap.equal(
        dict(rows), modes, f"docs/probe-command.md: {len(rows)} files and their modes"
    )


tap.run(requests_are_answered, names_are_explained, files_are_listed)
