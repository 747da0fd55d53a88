"""test_document.py - the gdb sessions of docs/debugging.md show what gdb shows.

A block whose language is `gdb` begins with a `$ ./sonde gdb ...`. Its commands are typed one
after the other; the lines below each one are what it prints, in this order. `...` stands for
anything within a line, and alone on a line for any lines.
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
    """What is shown, as a pattern."""
    out = ""
    for line in lines:
        if line == "...":
            out += r"(?:.*\n)*?"
        else:
            out += re.escape(line).replace(re.escape("..."), ".*?") + r" *\n"
    return out


def parts_of(session):
    """[(command, lines)]; the first one is the `$ ./sonde gdb`."""
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
            said = "\n".join(line for line in gdb.ask(command).splitlines() if line) + "\n"
            shown = re.search("(?m)^" + pattern_of(lines), said)
            if not tap.check(shown, f"(gdb) {command}"):
                tap.note(said)


def each_session():
    found = sessions()
    tap.check(found, f"{DOCUMENT} has sessions")
    for session in found:
        run(session)


tap.run(each_session)
