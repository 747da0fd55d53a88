"""test_stub.py - tests gdb on the kernel's own stub, with the command line that is in
docs/debugging.md. One test watches the stub at work: a second gdb uses QEMU's stub.
"""

import os
import re
import shlex
import subprocess
import tempfile

from under import ROOT, Under  # this import makes the next ones possible

from probes.gdb.host import rsp
import tap

LIMIT = 300


def documented():
    """Return the words of the document's line that starts gdb on the stub."""
    with open(os.path.join(ROOT, "docs", "debugging.md"), encoding="utf-8") as file:
        line = next(line for line in file if line.startswith("    ./sonde gdb --stub "))
    return shlex.split(line)


def a_condition_runs_in_the_kernel():
    done = subprocess.run(
        documented(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        stdin=subprocess.DEVNULL,
    )
    text = done.stdout
    tap.equal(done.returncode, 0, "gdb ends well")
    tap.check("calls 720 of vfs_read" in text, "false conditions stop nothing")
    stop = r"hit Breakpoint 1, vfs_read \(.*count=(count@entry=)?4096"
    tap.check(re.search(stop, text), "a true one stops")
    tap.check("thread_entry ()" in text, "the backtrace leads to the thread's beginning")
    tap.check(re.search(r"node = 0x", text), "gdb prints *file")
    if tap.failed:
        tap.note(text[-2000:])


def a_batch_ends_with_its_commands():
    """The condition is never true, so gdb goes on to `quit 7` when the guest has ended."""
    for stub in ([], ["--stub"]):
        words = [
            documented()[0],
            "gdb",
            *stub,
            "run vfs",
            "--",
            "-batch",
            "-ex",
            "break vfs_read if count == 4097",
            "-ex",
            "continue",
            "-ex",
            "quit 7",
        ]
        done = subprocess.run(
            words,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            stdin=subprocess.DEVNULL,
        )
        where = f"./sonde {' '.join(words[1:3])}"
        tap.equal(
            done.returncode, 7, f"{where}: gdb goes on when the guest is switched off"
        )
        tap.check("calls 720 of vfs_read" in done.stdout, f"{where}: behind its command")
    tap.check("exited normally" in done.stdout, "the stub says that the kernel has ended")


def batch(*commands, stub=("--stub",), console=("run vfs",)):
    """Run gdb's commands in `./sonde gdb`. Return what it prints, with its errors."""
    words = [os.path.join(ROOT, "sonde"), "gdb", *stub, *console, "--", "-batch"]
    for command in ("set pagination off", "set width 0", *commands):
        words += ["-ex", command]
    return subprocess.run(
        words,
        cwd="/tmp",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        stdin=subprocess.DEVNULL,
        check=False,
    ).stdout


def most_registers_of_a_sleeper_are_unknown():
    text = batch("break vfs_read", "continue", "thread apply all bt")
    tap.check("Python Exception" not in text, "no exception of Python")
    sleepers = re.findall(r"^Thread .*waiting\)\):\n((?:#.*\n)*)", text, re.M)
    whole = [stack for stack in sleepers if "thread_entry" in stack.splitlines()[-1]]
    tap.check(len(whole) == len(sleepers) > 3, "each sleeping thread has its whole stack")
    if tap.failed:
        tap.note(text[-4000:])


def an_agent_prints_what_was_typed():
    text = batch(
        "set dprintf-style agent",
        r'dprintf vfs_open,"open\t<%s>\n\"", path',
        "continue",
        console=("cat /proc/version",),
    )
    text = re.sub(r"sonde version .*\n", "", text)  # the console may print in the middle
    if not tap.check('open\t</proc/version>\n"' in text, "escapes in a format"):
        tap.note(text[-2000:])


def memory_is_compared_and_not_saved():
    text = batch("compare-sections .notes", "gcore core", "monitor nosuch", "pwd", "list")
    tap.check("0x" in text and ": matched." in text, "compare-sections: the notes")
    tap.check("only QEMU can save the machine" in text, "gcore says why it cannot")
    here = "directory /tmp." in text and re.search(r"^\d+\t.", text, re.M)
    tap.check(here, "gdb is where the user is, and knows the sources")
    tap.check(
        "unknown command nosuch" in text and "Protocol error" not in text,
        "monitor nosuch: there is none, in one sentence",
    )
    if tap.failed:
        tap.note(text[-2000:])


def another_cpu_does_not_disturb_next():
    """Hits on the other CPU, which gdb finds not wanted, come at any moment of `next`. Where
    gdb then finds the thread, it sets a breakpoint.
    """
    text = batch(
        "break read_task",
        "continue",
        "delete",
        "python B = type('B', (gdb.Breakpoint,), {'stop': lambda self: False})",
        "python B('vfs_read')",
        "python for i in range(24): gdb.execute('next')",
        "bt 1",
        stub=("--stub", "--smp", "2"),
    )
    tap.check("Cannot insert" not in text, "gdb can set a breakpoint at each stop")
    tap.check(re.search(r"^#0 +read_task \(", text, re.M), "24 times `next` in read_task")
    if tap.failed:
        tap.note(text[-2000:])


def a_stop_takes_few_round_trips():
    """At a stop whose commands let the kernel go on: a round trip more costs as much as all
    of the kernel's work, and a page of memory costs twenty times as much.
    """
    text = batch(
        "break vfs_read",
        "python gdb.breakpoints()[0].commands = 'silent\\ncontinue'",
        "set debug remote 1",
        "continue",
        console=("cat /proc/version", "cat /proc/version"),
    )
    _, *parts = re.split(r"Packet received: T05\S+swbreak:", text)
    asked = [re.findall(r"Sending packet: \$(\w+(?:,4#)?)", part) for part in parts]
    asked = [[re.sub(r"^m\w+", "m", packet) for packet in packets] for packets in asked]
    tap.equal(
        [sorted(packets) for packets in asked[1:-1]],
        [["Z0", "m,4#", "qXfer", "vCont", "vCont", "z0"]] * 2,
        "gdb asks for threads and changes of modules, and steps over its breakpoint",
    )
    if tap.failed:
        tap.note(text[-4000:])


STOP = "'probes/gdb/gdb_stop.c'::"


def the_clock_is_moved_before_a_cpu_goes():
    """If a CPU ran before the clock is moved, this CPU would see time run backwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, rsp.SOCKET)
        with Under(smp=2, com2=path) as u:
            u.gdb.ask("break clock_skip", "ignore 1 1")  # the first packet moves it, too
            u.gdb.tell("continue")
            client = rsp.Client(path)
            client.greet()
            client.resume()
            tap.check("clock_skip" in u.gdb.wait(), "the debugger lets all CPUs go")
            asked = [
                f"p {STOP}cpus[{cpu}].{field}"
                for cpu in (0, 1)
                for field in ("regs != 0", "go")
            ]
            said = u.gdb.ask(*asked, f"p {STOP}stopping")
            tap.equal(
                re.findall(r"^\$\d+ = (\w+)", said, re.M),
                ["1", "false", "1", "false", "true"],
                "when the clock is moved all stand, and none of them may go",
            )
            client.close()


tap.run(
    a_condition_runs_in_the_kernel,
    a_batch_ends_with_its_commands,
    most_registers_of_a_sleeper_are_unknown,
    an_agent_prints_what_was_typed,
    memory_is_compared_and_not_saved,
    another_cpu_does_not_disturb_next,
    a_stop_takes_few_round_trips,
    the_clock_is_moved_before_a_cpu_goes,
)
