"""test_probe.py - places where a probe is set: refusals with their reasons, and lines."""

import os
import re

from recorded import ROOT
import tap
from kernel.module import send as modules
from session import ask, at_prompt


def refusals_say_why():
    with at_prompt() as guest:
        for place, name in (
            ("no_such_symbol", "ENOENT"),
            ("exc_int3", "EPERM"),
            ("vfs_read+1", "EILSEQ"),
            ("vfs_read+100000", "ENOENT"),
        ):
            reply = guest.machine.request(f"probe add {place}", 30, may_fail=True)
            tap.equal(reply.name, name, f"probe add {place}")
            tap.check(reply.text.strip(), "and it says why")
            tap.note(reply.text)
        starts = (
            "vfs_read+0x1: not an instruction boundary "
            "(instruction starts at vfs_read+0x0)"
        )
        for command in (
            "probe add vfs_read+1",
            "trace 'vfs_read+1 { count }' -- run vfs",
        ):
            reply = guest.machine.request(command, 30, may_fail=True)
            tap.equal(
                (reply.name, reply.text.partition(starts)[1:]),
                ("EILSEQ", (starts, "\n")),
                command,
            )
        tap.equal(ask(guest, "probe list").count("vfs_read"), 0, "nothing was added")


def line_of(path, text):
    """Return the number of the only line of @path that contains @text."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        (number,) = [n for n, line in enumerate(file, 1) if text in line]
    return number


def lines_are_places():
    line = line_of("kernel/fs/vfs.c", "size_t left = *pos < file->text.len")
    with at_prompt() as guest:
        for place in (f"vfs.c:{line}", f"fs/vfs.c:{line}#1", f"kernel/fs/vfs.c:{line}"):
            tap.check(
                "at vfs_read+0x" in ask(guest, f"probe add {place}"), f"add {place}"
            )
        ask(guest, "run vfs")
        rows = re.findall(r"(\d+) +0 +vfs_read\+0x", ask(guest, "probe list"))
        tap.equal(rows, ["720"] * 3, "each of them counts the executions of its line")
        tap.check("vfs_read+0x0" not in ask(guest, "probe list"), "behind the entry")
        for place, name, text in (
            ("vfs.c:3", "ENOENT", "has no code; the next line that has some is "),
            ("vfs.c:99999", "ENOENT", "has no code, nor has a line behind it"),
            (f"vfs.c:{line}#2", "ENOENT", "is compiled to fewer than 2 places"),
            ("no.c:1", "ENOENT", "no file no.c has code in the image"),
            ("list.h:26", "EADDRNOTAVAIL", "list.h:26#2 is "),
            ("commands.c:60", "EADDRNOTAVAIL", "kernel/module/commands.c"),
        ):
            for command in ("probe add", "probe explain"):
                reply = guest.machine.request(f"{command} {place}", 30, may_fail=True)
                tap.check(
                    reply.name == name and text in reply.text,
                    f"{command} {place}: {text}",
                )


def lines_of_modules_are_refused_by_name():
    with at_prompt() as guest:
        path = "docs/samples/reads.c"
        modules.load(guest.machine, os.path.join(ROOT, path), 60)
        for place in ("reads.c:10", f"{path}:10"):
            reply = guest.machine.request(f"probe add {place}", 30, may_fail=True)
            tap.check(
                reply.name == "ENOENT" and "the lines of the module" in reply.text,
                f"{place}: {reply.text.strip()}",
            )


def a_question_takes_all_places_of_a_line():
    line = line_of("kernel/base/list.h", "return head->next == head;")
    with at_prompt() as guest:
        text = ask(guest, f"trace 'list.h:{line} {{ count by func }}' -- run vfs")
        functions = re.findall(r"^ +\d+  (\w+)$", text, re.M)
        tap.check(len(functions) > 2, "functions that it is inlined into are counted")
        tap.note(text)


tap.run(
    refusals_say_why,
    lines_are_places,
    lines_of_modules_are_refused_by_name,
    a_question_takes_all_places_of_a_line,
)
