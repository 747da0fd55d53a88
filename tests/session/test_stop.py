"""test_stop.py - checks that Ctrl-C stops long commands, and that they say correctly what
is left after that.

No test here measures time. If a command has to be in a certain stage, the test waits for
the command's progress on the terminal. Otherwise it sends Ctrl-C right after the command.
"""

import re

import tap
from sonde.guest import PROMPT
from sonde.machine import Late
from session import CSI, ask, at_prompt, run_on, stat

STOP = "\x03"
LONG = 300  # seconds: all instructions, on a busy host


def stopped(guest, command):
    """Send a request and right behind it the byte that stops it. Return the Reply."""
    try:
        return guest.machine.request(command, timeout=0.001, may_fail=True)
    except Late:
        return guest.machine.interrupt(LONG)


def stopped_at(guest, command, progress):
    """Type a command, and Ctrl-C at a certain progress. Return what it prints then."""
    guest.console.send(command + "\r")
    if guest.console.expect(re.compile(progress), LONG) is None:
        raise AssertionError(f"{command}: no {progress!r}")
    guest.console.send(STOP)
    text = guest.console.expect(b"\n" + PROMPT, LONG)
    return CSI.sub(b"", text or b"").decode("utf-8", "replace").replace("\r", "")


def nothing_is_left(guest, what):
    numbers = stat(guest)
    got = [numbers[name] for name in ("probes", "sites", "armed")]
    tap.equal(got, [0, 0, 0], f"{what}: no probe is left")


def every_long_command_stops(guest):
    for command, says in (
        ("probe all", "probe: all *: stopped; none of its probes is left"),
        ("bench", "bench: stopped in hit; none of its probes is left"),
        ("bench scale", "bench: stopped in scale; none of its probes is left"),
        ("bench cache", "bench: stopped in cache; none of its probes is left"),
        ("bench counted", "bench: stopped in counted; none of its probes is left"),
        ("run all | wc -l", "run: all: Interrupted system call"),
        ("sleep 100000", ""),
    ):
        reply = stopped(guest, command)
        tap.equal(reply.name, "EINTR", f"{command}: stopped")
        tap.check(says in reply.lines + [""], f"{command}: says what is left")
        tap.note(reply.text)
        nothing_is_left(guest, command)
    tap.equal(
        ask(guest, "cat /proc/sys/debug/kprobes-jump"), "pun\n", "jumps are as before"
    )


def probe_all_leaves_nothing(guest):
    for stage in (rb"\d+ functions, ", rb"\d+ of \d+ probes", rb"probes are being armed"):
        text = stopped_at(guest, "probe all [a-c]*", stage)
        tap.check("stopped; none of its probes is left" in text, f"stopped at {stage}")
        nothing_is_left(guest, "probe all")
    tap.equal(ask(guest, "probe list").count("\n"), 1, "nor a line of the list")


def a_set(guest):
    """Make a set of thousands of probes, and one probe behind it in the list. Return the
    number of probes in the set.
    """
    ask(guest, "probe del all")
    ask(guest, "probe all [a-e]*")
    ask(guest, "probe add vfs_read last")
    return stat(guest)["probes"] - 1


def switching_off_can_be_stopped(guest):
    every = a_set(guest)
    text = stopped_at(guest, "probe off all", rb"[1-9]\d* of \d+ probes are off")
    off = re.search(r"stopped at p\d+: (\d+) of its (\d+) probes are off", text)
    tap.check(off and int(off[2]) == every and 0 < int(off[1]) < every, f"off: {off}")
    disabled = stat(guest)["probes.disabled"]
    tap.equal(off and int(off[1]), disabled, "so many are off")
    listed = ask(guest, "probe list")
    tap.check(f"[{disabled} DISABLED]" in listed, "the list says so")
    follows = re.search(r"^last .* vfs_read\+0x0$", listed, re.M)
    tap.check(follows, "what follows is untouched")
    ask(guest, "probe on all")
    tap.equal(stat(guest)["probes.disabled"], 0, "all can be switched on again")


def taking_away_can_be_stopped(guest):
    every = a_set(guest)
    text = stopped_at(guest, "probe del all", rb"[1-9]\d* of \d+ probes are off")
    left = re.search(r"stopped at p\d+: (\d+) of its (\d+) probes are off", text)
    tap.check(left and int(left[2]) == every and int(left[1]) > 0, f"none is out: {left}")
    text = stopped_at(guest, "probe del all", rb"[1-9]\d* probes are left")
    left = re.search(r"stopped at p\d+: (\d+) of its (\d+) probes are off", text)
    tap.check(
        left and left[1] == left[2] and 0 < int(left[2]) < every, f"some are: {left}"
    )
    tap.equal(stat(guest)["probes"], int(left[2]) + 1, "as many are left")
    ask(guest, "probe del all")
    nothing_is_left(guest, "del")
    tap.check("calls 720" in ask(guest, "run vfs"), "and all is well")


def main():
    with at_prompt() as guest:
        tests = (
            every_long_command_stops,
            probe_all_leaves_nothing,
            switching_off_can_be_stopped,
            taking_away_can_be_stopped,
        )
        run_on(guest, *tests)


main()
