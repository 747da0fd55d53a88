"""test_console.py - types on the console as a user does: Ctrl-C, and `help`."""

import tap
from sonde.guest import PROMPT
from session import LIMIT, at_prompt, run_on, typed

CTRL_C = "\x03"


def help_helps(guest):
    text = "\n".join(typed(guest, "help"))
    for name in ("cat", "echo", "ps", "cpus", "mem", "dmesg", "sym", "run", "probe"):
        tap.check(name in text, f"help names {name}")
    users, _, developers = text.partition("For work on the kernel itself:")
    apart = "\ntrace-pages " in developers and "\ntrace-pages " not in users
    tap.check(apart, "commands for tools stand apart")
    tap.check(len(typed(guest, "help probe")) > 1, "help probe says more")


def interrupts_stop_commands(guest):
    guest.console.send("run all\r")
    guest.console.expect(b"\n", LIMIT)
    guest.console.send(CTRL_C)
    text = guest.console.expect(b"\n" + PROMPT, LIMIT)
    tap.check(text is not None and b"^C" in text, "Ctrl-C stops a command")
    guest.console.send("half a line" + CTRL_C)
    text = guest.console.expect(b"\n" + PROMPT, LIMIT)
    tap.check(text is not None and b"^C" in text, "Ctrl-C gives a line up")
    tap.equal(typed(guest, "echo fine")[-1], "fine", "and the next one is its own")


if __name__ == "__main__":
    with at_prompt() as shared:
        run_on(shared, help_helps, interrupts_stop_commands)
