"""test_output.py - checks what the kernel prints: under probes, and to a slow host."""

import os
import re
import tempfile
import time

import tap
from sonde.guest import PROMPT, Guest, Setup
from session import LIMIT, ask, at_prompt, stat, typed

# All functions on the way from a command to the serial line. Each instruction
# gets a probe.
PATTERNS = (
    "serial_*", "owner_send", "port_receive", "held_*", "console_*", "log_*", "*v*printf",
    "seq_*", "shell_*", "mutex_*", "wait_*", "irq_*",
)  # fmt: skip
COMMANDS = (
    "echo one two three",
    "cat /proc/version",
    "cat /proc/kallsyms | head -40",
    "help",
    "sym vfs_read",
    "echo " + "long " * 200,
)


def printed(guest):
    """Return what the commands print: typed at the console, and sent as requests."""
    lines = [line for command in COMMANDS for line in typed(guest, command)[1:]]
    return lines, [ask(guest, command) for command in COMMANDS]


def text_is_the_same_under_probes():
    for smp in (1, 4) if tap.LONG else (2,):
        with at_prompt(smp=smp) as guest:
            without = printed(guest)
            for pattern in PATTERNS:
                ask(guest, f"probe all {pattern}")
            ask(guest, "probe add --post serial_write")
            ask(guest, "probe add --post owner_send")
            probed = printed(guest)
            now = stat(guest)
            ask(guest, "probe del all")
            tap.equal(probed[0], without[0], f"{smp} CPUs: the console prints the same")
            tap.equal(probed[1], without[1], f"{smp} CPUs: so does the machine interface")
            tap.check(
                now["armed"] > 3000 and now["hits"] > 100000,
                f"{now['armed']} probes, {now['hits']} hits",
            )
            tap.equal(now["handler_faults"], 0, "no handler was given up")


def a_log_line_comes_once():
    with at_prompt(smp=2) as guest:
        for pattern in PATTERNS:
            ask(guest, f"probe all {pattern}")
        ask(guest, "echo 0 > /sys/kernel/debug/kprobes/enabled")
        ask(guest, "echo 1 > /sys/kernel/debug/kprobes/enabled")
        typed(guest, "echo that was all")
        text = guest.console.text.decode("utf-8", "replace")
        for word in ("disabled", "enabled"):
            line = rf"^(?:sonde> )?\[ *[0-9.]+\] C\d: kprobes globally {word}\r$"
            lines = re.findall(line, text, re.M)
            tap.equal(len(lines), 1, f"'globally {word}' is printed once, whole")
            count = ask(guest, "dmesg").count(f"kprobes globally {word}")
            tap.equal(count, 1, "and is in the log once")


def after_a_pause(**setup):
    """Start a guest whose console the host does not read for some seconds. Then QEMU takes
    some hundred bytes only, less than the log of a boot.
    """
    guest = Guest(Setup(smp=2, **setup))
    with guest.console.news:  # the thread that reads takes this lock for each piece
        time.sleep(4)
    return guest


def a_terminal_that_is_not_read_stops_no_tool():
    """A command that waits for its terminal owns no mutex that others need."""
    with at_prompt(smp=2) as guest:
        ask(guest, "probe all vfs_*")
        for line, other in (
            ("probe list p1", "probe hot"),
            (
                "trace 'kmalloc { print }' -- run heap",
                "cat /sys/kernel/tracing/buffer_size_kb",
            ),
            ("marker list", "marker list"),
        ):
            with guest.console.news:  # as in after_a_pause()
                guest.console.sock.send(line.encode() + b"\r")
                time.sleep(2)
                guest.machine.request(other, 20)
            said = guest.console.expect(b"\n" + PROMPT, LIMIT) or b""
            tap.check(said.count(b"\n") > 5, f"{other}; later the rest of {line}")


def a_slow_host_gets_each_line():
    """The owner of the line, or the tick, sends what the host has not taken at first."""
    with after_a_pause() as guest:
        guest.wait_prompt(LIMIT)
        log = ask(guest, "dmesg").splitlines()
        text = guest.console.text.decode("utf-8", "replace")
        tap.check(len(log) > 4, f"the log of a boot has {len(log)} lines")
        tap.equal(
            [line for line in log if text.count(line + "\r\n") != 1],
            [],
            "a prompt comes behind them: each line came once, whole",
        )
    with tempfile.TemporaryDirectory() as folder:
        com2 = os.path.join(folder, "com2")
        with after_a_pause(append="gdbwait", com2=com2) as guest:
            tap.check(
                guest.console.expect(b"gdb: waiting for a debugger on COM2\r\n", 30)
                is not None,
                "no prompt comes: so does the last line",
            )


tap.run(
    text_is_the_same_under_probes,
    a_log_line_comes_once,
    a_terminal_that_is_not_read_stops_no_tool,
    a_slow_host_gets_each_line,
)
