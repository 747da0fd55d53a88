"""test_console.py - type anything: the kernel must answer the next line.

    tests/run/run_tests.py [--long] fuzz/console

Lines of random words, damaged lines and random bytes are sent as requests on COM3, while
such lines are typed on COM1, too. There are 120 requests, always the same. --long: other
requests, for half a minute. A run prints its seed; SEED=N repeats that run.

A command that does not end by itself gets a Ctrl-C, and has to end then.
"""

import os
import random
import re
import threading
import time

import tap
from sonde.guest import Guest, Setup
from sonde.machine import Gone, one_line

LIMIT = 120  # seconds for one answer; generous, since the host may be busy
PATIENCE = 3  # seconds before Ctrl-C
LINES = 120
SECONDS = 30

CTRL_C = b"\x03"
CTRL_D = b"\x04"

# Without the commands that stop the kernel, and those that take minutes.
COMMANDS = (
    "cat", "cpus", "dmesg", "echo", "grep", "head", "help", "ls", "mem", "mkdir",
    "probe", "ps", "rm", "rmdir", "run", "sleep", "sort", "stat", "sym", "tail", "wc",
)  # fmt: skip
LEFT_OUT = (b"poweroff", b"reboot", b"panic", b"bench")
PROBE = ("add", "all", "list", "stat", "del", "on", "off", "explain", "blacklist")
NAMES = (
    "vfs_read", "memcpy", "schedule", "vfs_*", "kmain", "kprobe_int3_handler",
    "no_such", "exc_int3", "special_weigh#2", "p1", "p2", "all", "x", "*", "[a-z]*", "?",
)  # fmt: skip
PATHS = (
    "/", "/proc", "/proc/version", "/proc/kallsyms", "/proc/meminfo", "/tmp", "/tmp/a",
    "/tmp/a/b", "/tmp/c", "//tmp/../tmp/./a", "/sys/kernel/debug/kprobes/list",
    "/sys/kernel/debug/kprobes/enabled", "/proc/sys/debug/kprobes-step", "a", "",
)  # fmt: skip
NUMBERS = (
    "0", "1", "-1", "2", "10", "0x0", "0xffffffff80200000", "4294967296", "1e9",
    "9223372036854775807", "18446744073709551615", "99999999999999999999", "0x",
)  # fmt: skip
OPTIONS = ("-n", "-v", "-i", "-c", "-ne", "-e", "-nru", "--post", "--entries", "--", "-")
WORKLOADS = ("list", "vfs", "format", "numbers", "switch", "fork", "hash", "special",
             "all")  # fmt: skip
PUNCTUATION = (
    "|", "||", ">", ">>", "'", '"', "''", "#", "\\", "\\x41", "\\xzz", "@1", "+", "$",
)  # fmt: skip
KEYS = (
    b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D", b"\x1b[3~", b"\x1b[H", b"\x1b[",
    b"\x1b", b"\t", b"\t\t", b"\x7f", b"\x01", b"\x05", b"\x0b", b"\x15", b"\x17",
    b"\x0c", CTRL_C,
)  # fmt: skip


# ---- lines ----


def word(rnd):
    kind = rnd.choice(
        (NAMES, PATHS, NUMBERS, OPTIONS, WORKLOADS, PROBE, PUNCTUATION, None)
    )
    if kind:
        return rnd.choice(kind)
    if rnd.random() < 0.1:
        return rnd.choice("az0'|\\") * rnd.choice((63, 64, 255, 4096, 16384, 20000))
    return f"{rnd.choice(NAMES)}+{rnd.choice(NUMBERS)}"


def command(rnd):
    name = rnd.choice(COMMANDS)
    words = [name]
    if name == "probe" and rnd.random() < 0.9:
        words.append(rnd.choice(PROBE))
    if name == "run" and rnd.random() < 0.9:
        words.append(rnd.choice(WORKLOADS))
    words += [word(rnd) for _ in range(rnd.choice((0, 1, 1, 1, 2, 2, 3, 8)))]
    return " ".join(words)


def sensible(rnd):
    line = " | ".join(command(rnd) for _ in range(rnd.choice((1, 1, 1, 2, 3))))
    if rnd.random() < 0.2:
        line += rnd.choice((" > ", " >> ", ">")) + rnd.choice(PATHS)
    return line.encode()


def damaged(rnd):
    line = bytearray(sensible(rnd))
    for _ in range(rnd.randrange(1, 5)):
        at = rnd.randrange(len(line) + 1)
        line[at : at + rnd.randrange(3)] = rnd.randbytes(rnd.randrange(3))
    return bytes(line)


def rubbish(rnd):
    return rnd.randbytes(rnd.choice((1, 7, 40, 300, 3000)))


def any_line(rnd):
    make = rnd.choices((sensible, damaged, rubbish), (6, 3, 1))[0]
    return make(rnd).translate(None, CTRL_C + CTRL_D + b"\0\r\n")


def any_keys(rnd):
    """A line with keys in it that a user may hit while typing it."""
    line = any_line(rnd)
    for _ in range(rnd.randrange(4)):
        at = rnd.randrange(len(line) + 1)
        line = line[:at] + rnd.choice(KEYS) + line[at:]
    return completing_nothing_left_out(line) + rnd.choice((b"\r", b"\n", b"\r\n"))


EDITED = re.compile(rb"[^\t -~].*\t", re.S)


def completing_nothing_left_out(line):
    """@line without each Tab that might complete a word to one of LEFT_OUT. The word in
    front of a Tab is not known if a key that is no character comes before the Tab.
    """
    if EDITED.search(line) and any(name[:1] in line for name in LEFT_OUT):
        return line.replace(b"\t", b"")

    def keep(match):
        begins = any(name.startswith(match[1]) for name in LEFT_OUT)
        return match[1] if begins else match[0]

    return re.sub(rb"(\w+)\t", keep, line)


# ---- asking ----


def request(machine, line):
    """The reply to a line. A command that takes longer than PATIENCE gets a Ctrl-C."""
    hurry = threading.Timer(PATIENCE, machine.sock.send, (CTRL_C,))
    hurry.start()
    try:
        return machine.request(line, LIMIT, may_fail=True)
    finally:
        hurry.cancel()
        hurry.join()


def sync(machine):
    """Does the machine interface answer? A Ctrl-C that came too late may drop a request,
    so ask several times."""
    machine.sock.sendall(CTRL_C + b"\n")
    for _ in range(10):
        try:
            return machine.request("echo alive", 10).text == "alive\n"
        except TimeoutError:
            continue
    return False


class Typist(threading.Thread):
    """Types on COM1 until told to stop."""

    def __init__(self, console, rnd):
        super().__init__(daemon=True)
        self.console, self.rnd = console, rnd
        self.done = threading.Event()
        self.lines = 0

    def run(self):
        while not self.done.is_set():
            try:
                self.console.send(any_keys(self.rnd), LIMIT)
            except OSError:
                return
            self.lines += 1
            if self.rnd.random() < 0.2:
                time.sleep(0.01)  # lets lines be read: a Ctrl-C drops all that wait

    def stop(self):
        self.done.set()
        self.join()


def still_answers(guest):
    """Does COM1 answer? Its line may be in any state."""
    guest.console.send(CTRL_C + b"\r" + CTRL_C)
    for _ in range(LIMIT // 5):
        guest.console.send("echo a'live'\r")
        if guest.console.expect(b"\nalive", 5) is not None:
            return True
        guest.console.send(CTRL_C)
    return False


# ---- the test ----


def ask_many(guest, rnd, last):
    """Make requests. Return how many were answered. @last: receives the current
    request."""
    count, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end if tap.LONG else count < LINES:
        last[:] = [any_line(rnd)]
        request(guest.machine, one_line(last[0]))
        count += 1
    return count


def nothing_typed_is_fatal():
    seed = int(os.environ.get("SEED", random.randrange(1 << 32) if tap.LONG else 1))
    tap.note(f"seed {seed}")
    last = []
    with Guest(Setup(smp=2, console="pair")) as guest:
        guest.wait_prompt(LIMIT)
        sums = guest.machine.request("run special", LIMIT).text
        typist = Typist(guest.console, random.Random(seed + 1))
        typist.start()
        try:
            count = ask_many(guest, random.Random(seed), last)
        except (Gone, OSError, TimeoutError) as error:
            tap.note(f"{type(error).__name__} after {last[0][:2000]!r}")
            raise guest.failure("fuzzed", LIMIT) from None
        typist.stop()
        tap.check(
            count, f"{count} requests answered, {typist.lines} lines typed meanwhile"
        )
        tap.check(still_answers(guest), "COM1 takes the next line")
        tap.check(sync(guest.machine), "COM3 takes the next request")
        after(guest, sums)


def after(guest, sums):
    """Undo what the lines may have set, and check that the kernel is as before."""
    guest.machine.request("echo 1 > /sys/kernel/debug/kprobes/enabled", LIMIT)
    guest.machine.request("probe del all", LIMIT, may_fail=True)
    stat = guest.machine.request("probe stat", LIMIT).text
    tap.check(
        "\nsites 0\n" in stat and "\nhandler_faults 0\n" in stat, "no probe is left"
    )
    again = guest.machine.request("run special", LIMIT).text
    tap.equal(again, sums, "checksums are the same")


if __name__ == "__main__":
    tap.run(nothing_typed_is_fatal)
