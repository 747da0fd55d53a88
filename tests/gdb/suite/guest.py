"""guest.py - starts a kernel with a program of gdb's test-suite in it.

    guest.py PROGRAM SOCKET [CPUS]

The program waits for a debugger on SOCKET when `ready` is printed. The guest ends with this
process, which ends with its standard input.
"""

import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../kernel/host"))

from sonde.guest import Guest, GuestError, Setup, comma

LIMIT = 60  # seconds to the program's start
KINDS = ("main", "constant", "variable", "zero")
PLACES = re.compile(
    "program: " + " ".join(f"{kind} (0x[0-9a-f]+)" for kind in KINDS) + "\n"
)


def places_in(path):
    """Return the addresses that the program's file has for the symbols of KINDS."""
    done = subprocess.run(["nm", path], capture_output=True, text=True, check=True)
    lines = map(str.split, done.stdout.splitlines())
    found = {name: int(value, 16) for value, _, name in lines}
    return [found[name] for name in KINDS]


def setup(program, path, cpus):
    name = f"name=opt/sonde/module/program.o,file={comma(program + '.module')}"
    return Setup(
        smp=cpus,
        memory="256M",
        com2=path,
        append="console=plain modules=program",
        qemu=f"-fw_cfg '{name}'",
    )


def said(guest):
    """Find the line that the program has written to QEMU's debug port. A console is not
    used for this line: a stop of the kernel could cut the line off there.
    """
    guest.early.seek(0)
    return PLACES.search(guest.early.read().decode("utf-8", "replace"))


def wait_for_program(guest, program):
    end = time.monotonic() + LIMIT
    while not (match := said(guest)):
        if guest.ended() or time.monotonic() > end:
            raise guest.failure("before its program", LIMIT)
        time.sleep(0.02)
    if [int(at, 16) for at in match.groups()] != places_in(program):
        raise SystemExit(f"{program} is not where its file says: {match[0]}")


def main(program, path, cpus="2"):
    if os.path.exists(path):
        os.unlink(path)
    with Guest(setup(program, path, int(cpus))) as guest:
        try:
            wait_for_program(guest, program)
        except GuestError as error:
            raise SystemExit("\n".join([*error.lines, str(error)])) from None
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
