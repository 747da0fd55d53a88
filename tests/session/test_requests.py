"""test_requests.py - tests that the machine interface transfers every byte correctly,
also under load and after garbage.
"""

import os
import random
import re
import select
import threading
import time

import tap
from sonde.machine import Gone, quote
from session import LIMIT, ask, at_prompt, run_on, typed

SEED = int(os.environ.get("SEED", time.time()))
GARBAGE = (1 << 20) if tap.LONG else 1 << 16
BYTES = f"{GARBAGE >> 10} KB of random bytes"
REPLIES, LISTS = (100, 5) if tap.LONG else (20, 1)


def errors_have_numbers(guest):
    for command, errno, name in (
        ("xyzzy", 2, "ENOENT"),
        ("cat /no/such/file", 2, "ENOENT"),
        ("cat /proc", 21, "EISDIR"),
        ("cat /proc/version/x", 20, "ENOTDIR"),
        ("echo x > /proc/version", 13, "EACCES"),
        ("stat /no/such/file", 2, "ENOENT"),
    ):
        reply = guest.machine.request(command, LIMIT, may_fail=True)
        tap.equal((reply.errno, reply.name), (errno, name), command)
    reply = guest.machine.request("echo " + "z" * 20000, LIMIT, may_fail=True)
    tap.equal(reply.name, "E2BIG", "a line of 20000 bytes")


def files_can_be_looked_at(guest):
    tap.check("version" in ask(guest, "ls /proc").split(), "ls names files")
    tap.check("proc/" in ask(guest, "ls /").split(), "and directories with a slash")
    tap.check(
        re.match(r"f 0?[0-7]{3}\n$", ask(guest, "stat /proc/version")), "stat: file"
    )
    tap.check(re.match(r"d 0?[0-7]{3}\n$", ask(guest, "stat /proc")), "stat: directory")


def every_byte_comes_back(guest):
    data = bytes(range(256)) * 4
    reply = guest.machine.request(f"echo -ne {quote(data)}", LIMIT, may_fail=True)
    tap.equal(reply.output, data, "all bytes, quoted by the host, echoed by the guest")
    line = "x" * 8000
    tap.equal(ask(guest, f"echo {line}"), line + "\n", "a request of 8000 bytes")
    special = '$HOME " # > >> ! * ; | & ` ~'
    tap.equal(ask(guest, f"echo -n '{special}'"), special, "nothing else is special")


def symbols_are_sorted_and_complete(guest):
    lines = ask(guest, "cat /proc/kallsyms").splitlines()
    rows = [re.fullmatch(r"([0-9a-f]{16}) ([a-zA-Z]) (\S+)", line) for line in lines]
    tap.check(all(rows), "every line is ADDRESS TYPE NAME")
    addresses = [int(row.group(1), 16) for row in rows if row]
    tap.equal(addresses, sorted(addresses), "sorted by address")
    names = {row.group(3) for row in rows if row}
    for name in (
        "kernel_clone",
        "do_exit",
        "vfs_open",
        "vfs_read",
        "vfs_write",
        "kmalloc",
        "kfree",
        "linux_proc_banner",
        "_sdata",
        "jiffies",
    ):
        tap.check(name in names, f"{name} is there")
    tap.check(len(rows) > 500, "hundreds of symbols")


def com1_takes_requests_too(guest):
    guest.console.send("@7 echo -n 'tools may ask here'\n")
    text = guest.console.expect(b"#7=0 OK", LIMIT)
    tap.check(text and b"#7~tools may ask here" in text, "a request on COM1")
    guest.console.send("@8 nonsense\n")
    text = guest.console.expect(b"#8=2 ENOENT", LIMIT)
    tap.check(text is not None, "and its errno")


def answers_are_exact_under_load(guest):
    """A command on COM1 keeps all CPUs busy while the test sends requests to COM3."""
    chance = random.Random(SEED)
    symbols = ask(guest, "cat /proc/kallsyms")
    stop = threading.Event()

    def load():
        while not stop.is_set():
            typed(guest, "run all")

    loader = threading.Thread(target=load)
    loader.start()
    wrong = 0
    try:
        for _ in range(REPLIES):
            data = chance.randbytes(chance.randrange(1, 2000))
            reply = guest.machine.request(f"echo -ne {quote(data)}", LIMIT, may_fail=True)
            wrong += reply.output != data or reply.errno != 0
        for _ in range(LISTS):
            wrong += ask(guest, "cat /proc/kallsyms") != symbols
    finally:
        stop.set()
        loader.join(LIMIT)
    tap.equal(wrong, 0, f"{REPLIES + LISTS} replies under load, none with a wrong byte")


def send_and_drop(sock, data):
    """Send all of @data, and throw away the answers that come meanwhile."""
    sock.setblocking(False)
    while data:
        readable, writable, _ = select.select([sock], [sock], [], LIMIT)
        if readable and not sock.recv(65536):
            raise Gone()
        if writable:
            data = data[sock.send(data[:4096]) :]
        if not readable and not writable:
            raise TimeoutError("the guest does not read")


def garbage_does_no_harm(guest):
    chance = random.Random(SEED)
    garbage = chance.randbytes(GARBAGE)
    send_and_drop(guest.machine.sock, garbage + b"\n")
    tap.equal(ask(guest, "echo -n still"), "still", f"{BYTES} on COM3")
    # Ctrl-D at the start of a line would switch the guest off, and so would a command that
    # a Tab completes, such as `exit`. So both keys are replaced.
    garbage = garbage.translate(bytes.maketrans(b"\x04\t", b"\x05\x05"))
    guest.console.send(garbage + b"\x03", LIMIT)
    guest.console.send("\r")
    deadline = time.monotonic() + LIMIT
    answered = False
    while not answered and time.monotonic() < deadline:
        guest.console.send("\x03echo sti''ll\r")
        answered = guest.console.expect(b"\nstill", 5) is not None
    tap.check(answered, f"{BYTES} on COM1")


if __name__ == "__main__":
    tap.note(f"seed {SEED}")
    with at_prompt(smp=4) as shared:
        run_on(
            shared,
            errors_have_numbers,
            files_can_be_looked_at,
            every_byte_comes_back,
            symbols_are_sorted_and_complete,
            com1_takes_requests_too,
            answers_are_exact_under_load,
            garbage_does_no_harm,
        )
