#!/usr/bin/env python3
"""profile.py - prints how many instructions of a hit are executed in which function.

    probes/bench/host/profile.py [KIND...]        names as in `bench hit`

Runs `bench hit.KIND` on a machine whose clock counts instructions, and lets QEMU log the
executed instructions for a moment. Then it prints a typical hit: how many instructions
are executed in which function, and each place where QEMU has to look up the next piece of
code, because the jump there is indirect, leaves its page, or is a trap. A look-up uses a
cache with hashed addresses. Places that share a slot of the cache are marked, since each
of them removes the others from it.

Code that the engine has made lies outside of the image: (pad) is a pad, (cell) is a cell
with a copy or a detour.
"""

import collections
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../kernel/host"))

from sonde.errors import SondeError
from sonde.guest import ELF, Guest, Setup
from sonde.hang import Symbols

KINDS = ("int3_boostable", "int3_emulated", "int3_unboostable", "int3_tf",
         "opt", "opt_pad", "opt_count", "opt_light", "kret_opt")  # fmt: skip
LIMIT = 120
ATTEMPTS = 50
TRAP, CELL, PAD = "exc_int3+0x0", "(cell)", "(pad)"
ARENA_LEN, LARGE_PAGE, MODULES_LEN = 32 << 20, 2 << 20, 64 << 20  # kernel/memmap.h
KERNEL_VMA = 0xFFFFFFFF80000000
TARGET = re.compile(r"bench_[a-z]+_\d+\+0x0$")
LOG_MAX = 8 << 20  # bytes; some hundred hits
TRACE = re.compile(rb"^Trace \d+: 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/", re.M)
STATE = ("popf", "iret", "sti", "cli", "mov    %rax,%dr", "mov    %rax,%cr")


def capture(guest, path):
    """Log executed blocks of one instruction each for a moment. Return their addresses."""
    qmp = guest.qmp
    open(path, "wb").close()
    qmp.monitor(f"logfile {path}")
    qmp.monitor("singlestep on")
    qmp.monitor("log exec,nochain")
    while os.path.getsize(path) < LOG_MAX:
        if guest.ended():
            raise guest.failure("while its hits were logged", LIMIT)
        time.sleep(0.01)
    qmp.monitor("log none")
    with open(path, "rb") as log:
        return [int(pc, 16) for pc in TRACE.findall(log.read())]


def is_hit(called, by_jump, functions):
    """Was this call of the target a hit, by a jump or by a trap as @by_jump says?"""
    names = {functions.at(pc) for pc in called}
    if by_jump:
        return CELL in names and TRAP not in names
    return TRAP in names


def typical_hit(trace, by_jump, functions):
    """A hit of the most common length, from one call of the target to the next, and the
    number of hits; None, 0 if there is no hit.
    """
    starts = [i for i, pc in enumerate(trace) if TARGET.match(functions.at(pc))]
    hits = [trace[a:b] for a, b in zip(starts, starts[1:])]
    hits = [hit for hit in hits if is_hit(hit, by_jump, functions)]
    if not hits:
        return None, 0
    length = collections.Counter(map(len, hits)).most_common(1)[0][0]
    return next(hit for hit in hits if len(hit) == length), len(hits)


def record(kind, functions):
    """A typical hit of @kind, as addresses of instructions, and how many hits were
    logged.
    """
    setup = Setup(smp=1, icount=True, qemu="-icount shift=0,sleep=off")
    with Guest(setup) as guest, tempfile.NamedTemporaryFile() as log:
        guest.wait_prompt(LIMIT)
        words = f" hit.{kind}" * 100  # so many that it runs until the guest is ended
        guest.machine.sock.recv(4096)  # the greeting; the guest may wait until it is read
        guest.machine.sock.sendall(f"@1 bench{words}\n".encode())
        for _ in range(ATTEMPTS):  # several, since the loop also runs without a probe
            time.sleep(0.3)
            hit, count = typical_hit(capture(guest, log.name), "opt" in kind, functions)
            if hit:
                return hit, count
    sys.exit(f"profile: no hit of {kind} was logged")


def disassemble():
    """Instruction text by address."""
    done = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", ELF],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (
        re.match(r"\s*([0-9a-f]+):\s+(.*)", line) for line in done.stdout.splitlines()
    )
    return {int(row[1], 16): row[2] for row in rows if row}


def arenas():
    """The address ranges of cells, as in kernel/memmap.h."""
    done = subprocess.run(["nm", ELF], capture_output=True, text=True, check=True)
    end = int(re.search(r"^(\w+) \w _end$", done.stdout, re.M)[1], 16)
    high = -(-end // LARGE_PAGE) * LARGE_PAGE + MODULES_LEN
    return [range(at, at + ARENA_LEN) for at in (KERNEL_VMA - ARENA_LEN, high)]


class Functions(Symbols):
    """The symbols of kernel text without labels inside of functions, and names for code
    outside of it.
    """

    def __init__(self):
        super().__init__(ELF)
        rows = list(zip(self.starts, self.names))
        bounds = {name: start for start, name in rows}
        self.end = bounds["_etext"]
        rows = [
            r
            for r in rows
            if bounds["_text"] <= r[0] < self.end
            and "." not in r[1]
            and not r[1].endswith("_text_start")
        ]  # marks
        self.starts, self.names = [start for start, _ in rows], [name for _, name in rows]
        self.arenas = arenas()

    def at(self, pc):
        if self.starts[0] <= pc < self.end:
            return super().at(pc)
        return CELL if any(pc in arena for arena in self.arenas) else PAD

    def function(self, pc):
        return self.at(pc).partition("+")[0]


def cache_slot(pc):
    """QEMU's tb_jmp_cache_hash_func()."""
    mixed = pc ^ (pc >> 6)
    return (mixed >> 6 & 0xFC0) | (mixed & 0x3F)


def why_looked_up(last, pc, text):
    """Why QEMU must look up the code at @pc after the instruction at @last; None: it need
    not.
    """
    insn = text.get(last, "")
    if insn.startswith("ret") or re.match(r"(call|jmp)\s+\*", insn):
        return "indirect"
    if insn.startswith(STATE):
        return "state"
    if last >> 12 != pc >> 12:
        return "page"
    return None


def look_ups(hit, functions, text):
    """(address, why) of each piece of code that QEMU must look up."""
    for last, pc in zip([hit[-1]] + hit, hit):
        trap = functions.at(pc).startswith("entry_stubs")
        why = "trap" if trap and pc % 16 == 0 else why_looked_up(last, pc, text)
        if why:
            yield pc, why


def report(kind, functions, text):
    hit, count = record(kind, functions)
    print(f"# {kind}: {len(hit)} instructions from call to call, of {count} hits logged")
    sums = collections.Counter(map(functions.function, hit))
    for name, instructions in sums.most_common():
        print(f"sonde.profile.{kind}.{name} {instructions} instructions/hit")
    places = list(look_ups(hit, functions, text))
    slots = collections.Counter(cache_slot(pc) for pc in {pc for pc, _ in places})
    print(f"sonde.profile.{kind}.look_ups {len(places)} look-ups/hit")
    for pc, why in places:
        slot = cache_slot(pc)
        shared = "  SHARED" if slots[slot] > 1 else ""
        print(f"#   {why:8} {pc:#x} slot {slot:#05x} {functions.at(pc)}{shared}")


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a pipe into head
    functions, text = Functions(), disassemble()
    for kind in sys.argv[1:] or KINDS:
        try:
            report(kind, functions, text)
        except SondeError as error:
            sys.exit(f"profile: {kind}: {error}")


if __name__ == "__main__":
    main()
