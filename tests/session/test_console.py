"""test_console.py - types on the console as a user does."""

import tap
from sonde.guest import PROMPT
from session import LIMIT, at_prompt, run_on, typed

LEFT, RIGHT, UP, DOWN = "\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B"
HOME, END, DELETE = "\x1b[H", "\x1b[F", "\x1b[3~"
CTRL = {letter: chr(ord(letter) - 64) for letter in "ACDEKLRUW"}

# (keys, the line that `echo` prints then, what is tested)
EDITED = (
    ("echo abd" + LEFT + "c", "abcd", "left arrow"),
    ("echo ac" + LEFT + LEFT + RIGHT + "b", "abc", "right arrow"),
    ("bc" + HOME + "echo a", "abc", "home"),
    ("cho x" + HOME + "e" + END + "y", "xy", "end"),
    ("bc" + CTRL["A"] + "echo a", "abc", "Ctrl-A"),
    ("cho x" + CTRL["A"] + "e" + CTRL["E"] + "y", "xy", "Ctrl-E"),
    ("rubbish" + CTRL["U"] + "echo clean", "clean", "Ctrl-U"),
    ("echo one two" + CTRL["W"] + "three", "one three", "Ctrl-W"),
    ("echo abX" + "\x7f" + "c", "abc", "backspace"),
    ("echo aXb" + LEFT + LEFT + DELETE + END + "c", "abc", "delete"),
    ("echo kept" + CTRL["L"], "kept", "Ctrl-L"),
    ("echo drawn" + CTRL["R"] + " again", "drawn again", "Ctrl-R"),
)


def lines_can_be_edited(guest):
    for keys, want, what in EDITED:
        lines = typed(guest, keys)
        tap.equal(lines[-1], want, what)


def lines_come_back(guest):
    typed(guest, "echo first")
    typed(guest, "echo second")
    tap.equal(typed(guest, UP)[-1], "second", "up arrow: the last line again")
    tap.equal(typed(guest, UP + UP)[-1], "first", "and the one before it")
    tap.equal(typed(guest, UP + UP + DOWN + "!")[-1], "first!", "down arrow: back again")


def tab_completes(guest):
    tap.check(any("sonde" in line for line in typed(guest, "cat /proc/vers\t")), "a path")
    tap.check("kernel_clone" in typed(guest, "sym kernel_cl\t")[-1], "a symbol")
    lines = typed(guest, "hel\t")
    tap.check(any("poweroff" in line for line in lines), "a command")
    lines = typed(guest, "cat /proc/\t\t" + CTRL["U"])
    tap.check(
        any("version" in line and "kallsyms" in line for line in lines)
        or all(any(name in line for line in lines) for name in ("version", "kallsyms")),
        "a second tab lists what is possible",
    )


def help_helps(guest):
    text = "\n".join(typed(guest, "help"))
    for name in ("cat", "echo", "ps", "cpus", "mem", "dmesg", "sym", "run", "probe"):
        tap.check(name in text, f"help names {name}")
    users, _, developers = text.partition("For work on the kernel itself:")
    apart = "\ntrace-pages " in developers and "\ntrace-pages " not in users
    tap.check(apart, "commands for tools stand apart")
    tap.check(len(typed(guest, "help probe")) > 1, "help probe says more")


def commands_can_be_piped(guest):
    tap.equal(typed(guest, "echo b a | wc")[-1].split()[1], "2", "wc")
    count = int(typed(guest, "cat /proc/kallsyms | grep vfs_ | wc")[-1].split()[0])
    lines = typed(guest, "cat /proc/kallsyms | grep vfs_ | sort | head -n 3")
    tap.check(count > 3 and len(lines) == 4, "grep, sort and head")
    tap.check(all("vfs_" in line for line in lines), "only what grep let through")
    lines = typed(guest, "cat /proc/kallsyms | tail -n 2")
    tap.equal(len(lines), 3, "tail")


def both_kinds_of_enter_count(guest):
    tap.equal(typed(guest, "echo cr", "\r")[-1], "cr", "CR")
    tap.equal(typed(guest, "echo lf", "\n")[-1], "lf", "LF")
    guest.console.send("echo crlf\r\n")
    text = guest.console.expect(b"\n" + PROMPT, LIMIT)
    tap.check(b"\ncrlf" in text, "CR LF")
    lines = typed(guest, "echo once")
    tap.equal(lines[-1], "once", "CR LF is one end of line, not two")


def interrupts_stop_commands(guest):
    guest.console.send("run all\r")
    guest.console.expect(b"\n", LIMIT)
    guest.console.send(CTRL["C"])
    text = guest.console.expect(b"\n" + PROMPT, LIMIT)
    tap.check(text is not None and b"^C" in text, "Ctrl-C stops a command")
    guest.console.send("half a line" + CTRL["C"])
    text = guest.console.expect(b"\n" + PROMPT, LIMIT)
    tap.check(text is not None and b"^C" in text, "Ctrl-C gives a line up")
    tap.equal(typed(guest, "echo fine")[-1], "fine", "and the next one is its own")


def nonsense_is_answered(guest):
    lines = typed(guest, "xyzzy")
    tap.check("xyzzy" in lines[-1] and "unknown command" in lines[-1], "unknown command")
    lines = typed(guest, "cat /no/such/file")
    tap.check("/no/such/file" in lines[-1] and len(lines) == 2, "unknown path")
    tap.equal(typed(guest, "echo " + "y" * 8000)[-1], "y" * 8000, "8000 bytes are a line")
    lines = typed(guest, "echo " + "z" * 20000)
    tap.check("20005" in lines[-1], "20000 are too many, and it says how many")
    tap.equal(typed(guest, "echo after")[-1], "after", "nothing of it is left")


if __name__ == "__main__":
    with at_prompt() as shared:
        run_on(
            shared,
            lines_can_be_edited,
            lines_come_back,
            tab_completes,
            help_helps,
            commands_can_be_piped,
            both_kinds_of_enter_count,
            interrupts_stop_commands,
            nonsense_is_answered,
        )
