"""test_terminal.py - tests `./sonde run` on a terminal: which keys the guest gets, and
how the guest or the user ends it.
"""

import contextlib
import os
import signal
import socket
import termios

import tap
from sonde import debugged
from session import Terminal


def control_c_goes_to_the_guest():
    terminal = Terminal("run", "--boot", "pvh")
    tap.check(terminal.expect(b"Ctrl-] x") is not None, "the banner tells how to leave")
    tap.check(terminal.expect(b"sonde> ") is not None, "the prompt")
    terminal.send(b"half a line\x03")
    tap.check(terminal.expect(b"^C") is not None, "Ctrl-C reached the guest")
    terminal.send(b"echo ali''ve\r")
    tap.check(terminal.expect(b"\nalive") is not None, "which goes on")
    terminal.send(b"\x1dx")
    tap.equal(terminal.end(), 0, "Ctrl-] x leaves, status 0")


def the_guest_may_end_it():
    terminal = Terminal("run", "--boot", "pvh")
    before = termios.tcgetattr(terminal.fd)
    terminal.expect(b"sonde> ")
    terminal.send(b"exit\r")
    tap.equal(terminal.end(), 0, "exit: status 0")
    terminal = Terminal("run", "--boot", "pvh")
    terminal.expect(b"sonde> ")
    terminal.send(b"reboot\r")
    terminal.expect(b"reboot")
    tap.check(terminal.expect(b"\nsonde> ") is not None, "reboot: a second prompt")
    terminal.send(b"panic\r")
    told = terminal.expect(b"the kernel panicked")
    tap.check(told is not None, "a panic is told")
    tap.equal((told or b"").count(b"which panicked:"), 1, "and shown once")
    after = termios.tcgetattr(terminal.fd)
    tap.equal(terminal.end(), 3, "and has its status")
    tap.equal(after[3], before[3], "the terminal is as it was")


def a_trace_is_watched():
    """-w draws the tables again and again until Ctrl-C."""
    terminal = Terminal("trace", "-w", "vfs_read { count by comm }")
    before = termios.tcgetattr(terminal.fd)
    tap.check(terminal.expect(b"Ctrl-C ends it") is not None, "it tells how it ends")
    for _ in range(2):
        drawn = terminal.expect(b"\x1b[H\x1b[J") is not None
        shown = terminal.expect(b"vfs_read { count by comm }") is not None
        tap.check(drawn and shown, "the tables are drawn")
    terminal.send(b"\x03")
    tap.check(terminal.expect(b"vfs_read { count by comm }"), "Ctrl-C: the last tables")
    after = termios.tcgetattr(terminal.fd)
    tap.equal((terminal.end(), after), (0, before), "the terminal is as it was")


def a_closed_terminal_ends_it():
    """Of the words that would be printed, none can be seen; the exit status can."""
    os.environ.pop("PYTHONUNBUFFERED", None)  # with it no output is left for the end
    place = debugged.Place(debugged.MOST)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(place.console)
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(place.console)
        line.listen()
        for words, shown in (
            (["film", "play", "hit"], b"q: leave"),
            (["attach", str(place.number)], b"x leaves"),
            (["run", "--boot", "pvh"], b"sonde> "),
        ):
            terminal = Terminal(*words)
            tap.check(terminal.expect(shown) is not None, f"{words[0]} has begun")
            if words[0] == "attach":
                guest = line.accept()
            tap.equal(terminal.close(), 128 + signal.SIGHUP, "the terminal is closed")
    guest[0].close()
    os.unlink(place.console)


tap.run(
    a_closed_terminal_ends_it,
    a_trace_is_watched,
    control_c_goes_to_the_guest,
    the_guest_may_end_it,
)
