"""counted.py - runs a guest whose executed instructions QEMU counts, and reads both
QEMU's counts and those of the probes.

The plugin (exec_count.c) writes its counts to a file. The guest's command `truth` leaves
the counts of its probes in memory. Both counts are for the same window of time and the
same addresses, so they can be compared.
"""

import functools
import os
import re
import struct
import subprocess
import tempfile

from image import TRUTH
from sonde.guest import BUILD, ELF, Guest, Setup
from sonde.hang import Symbols
from sonde.machine import Gone
from sonde.memory import Memory

PLUGIN = os.path.join(BUILD, "truth", "exec_count.so")
TOLD = ("truth_opened", "truth_unlinked", "truth_closed")  # addresses that are orders
RECORD = struct.Struct("<7Q")  # struct truth_record
LIMIT = 120  # seconds to the prompt
MODULES = 0x200000, 0x100000  # the module window: alignment; how much of it is counted
CELLS = -0x82000000, -0x70000000  # kernel/memmap.h: both arenas, and all between them

THREADS_MAX = 16

CAUSES = ("recursion", "nested", "stack", "early", "own")  # enum probe_miss, and own


def symbol_table(path=ELF):
    """Name -> (address, size) of the image's symbols; the size is 0 if it is unknown."""
    words = ["nm", "-S", "--defined-only", path]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    table = {}
    for line in done.stdout.splitlines():
        columns = line.split()
        size = int(columns[1], 16) if len(columns) == 4 else 0
        table[columns[-1]] = (int(columns[0], 16), size)
    return table


@functools.lru_cache
def module_symbols():
    """Name -> address of the symbols of truth. It is the first module that is loaded, so
    it gets the same addresses in each guest.
    """
    with Guest(Setup(append="modules=truth", modules=(TRUTH,))) as guest:
        guest.wait_prompt(LIMIT)
        asked = "cat /proc/kallsyms | grep truth"
        text = guest.request(asked, LIMIT, may_fail=True).text
    lines = (line.split() for line in text.splitlines())
    return {name: int(address, 16) for address, _, name, _ in lines}


INSN = re.compile(r" *([0-9a-f]+):\t(\S+)")
ENDS = re.compile("call|j|ret|loop|iret|hlt|ud2|int")  # they end a straight line


def straight_pairs(path=ELF, base=0, section=".text"):
    """Addresses (A, B) of instructions where B is behind A and A is no branch, so that a
    CPU that executes A then executes B. A label of assembler code also ends a straight
    line.
    """
    words = ["objdump", "-d", "--no-show-raw-insn", f"--section={section}", path]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    pairs, before = [], None
    for line in done.stdout.splitlines():
        match = INSN.match(line)
        address = base + int(match[1], 16) if match else None
        if match and before is not None:
            pairs.append((before, address))
        before = address if match and not ENDS.match(match[2]) else None
    return pairs


def checksums(text):
    """The checksums that workloads have printed: a set of (name, number)."""
    return set(re.findall(r"^(\w+): checksum (0x[0-9a-f]+)", text, re.M))


class Outcome:
    """One run of the guest's `truth`.

    rows: address -> (executions, hits, misses by cause)     output: what it printed
    """

    def __init__(self, output, records, executions):
        self.output = output
        self.records = records
        self.executions = executions
        summary = dict(re.findall(r"(\w+) (\d+)", output[output.rindex("truth: ") :]))
        self.armed, self.refused = int(summary["armed"]), int(summary["refused"])
        self.nmis = int(summary["nmis"])
        self.left = int(summary["left"])  # pages of executable memory

    def mismatches(self):
        """(address, executions, hits, misses) where hits + misses are not the executions."""
        for address in sorted(self.records.keys() | self.executions.keys()):
            executed = self.executions.get(address)
            hits, *missed = self.records.get(address, (0,))
            if executed != hits + sum(missed):
                yield address, executed, hits, missed

    def torn(self, pairs):
        """The (A, B) of @pairs where B was executed less often than A. The counts may
        differ by a few, because threads may be between A and B when the window ends.
        """
        count = self.executions
        for a, b in pairs:
            if a in count and b in count and count[a] > count[b] + THREADS_MAX:
                yield a, b

    def total(self):
        return sum(self.executions.values())

    def reached(self):
        return sum(count > 0 for count in self.executions.values())

    def misses(self):
        """The misses of all addresses together, by cause."""
        sums = [sum(column) for column in zip(*self.records.values())][1:]
        return dict(zip(CAUSES, sums))

    def checksums(self):
        return checksums(self.output)


class Counted:
    """A guest with the plugin, at its prompt. Use it in a `with` statement.

    only: count in one function only, which takes less time; None: in all of the text
    """

    def __init__(self, only=None, qemu="", append="", modules=(), **options):
        self.table = table = symbol_table()
        self.text = table["_text"][0], table["_etext"][0]
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "counts")
        self.symbols = Symbols(ELF)
        known = module_symbols()
        tell, size = known["truth_tell"], symbol_table(TRUTH)["truth_tell"][1]
        start, length = table.get(only, (self.text[0], self.text[1] - self.text[0]))
        window = -(-table["_end"][0] // MODULES[0]) * MODULES[0]
        words = {
            "text": f"{start:x}:{start + length:x}",
            "modules": f"{window:x}:{window + MODULES[1]:x}",
            "cells": "%x:%x" % tuple(address + (1 << 64) for address in CELLS),
            "tell": "%x:%x" % (tell, tell + size),
            **{word.removeprefix("truth_"): "%x" % known[word] for word in TOLD},
            "out": path,
        }
        plugin = ",".join([PLUGIN] + [f"{key}={words[key]}" for key in words])
        qmp = os.path.join(self.folder.name, "qmp")
        self.guest = Guest(
            Setup(
                qemu=f"-plugin {plugin} {qemu}",
                qmp=qmp,
                append=f"{append} modules=truth",
                modules=(TRUTH, *modules),
                **options,
            )
        )
        self._connect(path, qmp)

    def _connect(self, path, qmp):
        try:
            self.guest.wait_prompt(LIMIT)
            self.counts = open(path)
            self.memory = Memory(qmp)
        except BaseException:
            self.guest.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.guest.stop()
        self.counts.close()
        self.memory.__exit__()
        self.folder.cleanup()

    def read_memory(self, address, size):
        """@size bytes at the virtual address @address of the kernel."""
        return self.memory.read(address, size)

    def ask(self, command, limit):
        """Run a command, which must succeed. Return its output."""
        try:
            reply = self.guest.machine.request(command, limit)
        except (Gone, OSError):
            raise self.guest.failure(f"in {command}", limit) from None
        return reply.text

    def run(self, words, limit, command="truth"):
        """Run `truth` with @words. Return the Outcome."""
        output = self.ask(f"{command} {words}", limit)
        place = re.search(r"records 0x([0-9a-f]+) (\d+)", output)
        memory = self.read_memory(int(place[1], 16), int(place[2]) * RECORD.size)
        records = {row[0]: row[1:] for row in RECORD.iter_unpack(memory) if row[0]}
        executions = {}
        for line in self.counts:
            address, count = line.split()
            if address != "=":
                executions[int(address, 16)] = int(count)
        return Outcome(output, records, executions)
