"""test_document.py - checks the gdb sessions in docs/debugging.md against a real gdb.

A session is a block of the language `gdb`. Its first line is `$ ./sonde gdb ...`. The
test types the commands of the session one after the other. gdb must print the lines below
each command, in this order. `...` within a line stands for any text, and `...` alone on a
line stands for any lines.
"""

import os
import re
import shlex

from under import ROOT, Gdb

import tap

DOCUMENT = "docs/debugging.md"


def sessions():
    with open(os.path.join(ROOT, DOCUMENT), encoding="utf-8") as file:
        return re.findall(r"^```gdb\n(.*?)^```", file.read(), re.M | re.S)


def pattern_of(lines):
    """Make a pattern of the lines that the document shows."""
    out = ""
    for line in lines:
        if line == "...":
            out += r"(?:.*\n)*?"
        else:
            out += re.escape(line).replace(re.escape("..."), ".*?") + r" *\n"
    return out


def parts_of(session):
    """Return [(command, lines)]; the first command is that of the line with `$`."""
    parts = []
    for line in session.splitlines():
        match = re.match(r"(\$|\(gdb\)) (.*)", line)
        if match:
            parts.append((match[2], []))
        else:
            parts[-1][1].append(line)
    return parts


def run(session):
    (start, greeting), *parts = parts_of(session)
    with Gdb(shlex.split(start)) as gdb:
        tap.check(re.search(pattern_of(greeting), gdb.greeting), start)
        for command, lines in parts:
            said = (
                "\n".join(line for line in gdb.ask(command).splitlines() if line) + "\n"
            )
            shown = re.search("(?m)^" + pattern_of(lines), said)
            if not tap.check(shown, f"(gdb) {command}"):
                tap.note(said)


def each_session():
    found = sessions()
    tap.check(found, f"{DOCUMENT} has sessions")
    for session in found:
        run(session)


tap.run(each_session)
