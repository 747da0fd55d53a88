"""test_lldb.py - LLDB at the kernel's own stub, with the commands of docs/debugging.md."""

import os
import re
import shlex
import socket
import subprocess
import threading

from under import ROOT
from session import LIMIT

import tap
from sonde.guest import Guest

STEP = "thread step-over -m all-threads"
SHOWS = (
    "bt 1",
    "frame variable count",
    "disassemble -c 1",
    "breakpoint disable",
    STEP,
    "detach",
)


def read():
    with open(os.path.join(ROOT, "docs/debugging.md"), encoding="utf-8") as file:
        return file.read()


def recipe(port):
    """The document's two commands, as words, with another port."""
    lines = re.search(r"^    (\./sonde run .*)\n    (lldb .*)$", read(), re.M)
    return [shlex.split(line.replace("1235", str(port))) for line in lines.groups()]


def it_stops_and_steps():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    launch, lldb = recipe(port)
    options = dict(zip(launch[2::2], launch[3::2]))
    smp, append, qemu = (options[name] for name in ("--smp", "--append", "--qemu"))
    with Guest(smp=int(smp), append=append, qemu=qemu) as guest:
        replies = []
        ask = threading.Thread(
            target=lambda: replies.append(guest.request("run vfs", LIMIT))
        )
        ask.start()
        for command in SHOWS:
            lldb += ["-o", command]
        done = subprocess.run(
            [*lldb, "--batch", "--no-lldbinit"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        said = done.stdout
        tap.check(STEP in read(), "the document has the command for a step")
        tap.check("stop reason = breakpoint 1.1" in said, "it stops at a function")
        tap.check(
            re.search(r"frame #0: .*`vfs_read\(file=0x", said), "with its arguments"
        )
        tap.check("(size_t) count = " in said, "a variable")
        tap.check(re.search(r"<\+0>: nop", said), "the program's own instruction")
        tap.check("stop reason = step over" in said, "a step")
        ask.join(LIMIT)
        tap.check("calls 720 of vfs_read" in str(replies), "then the kernel goes on")


tap.run(it_stops_and_steps)
