#!/usr/bin/env python3
"""nokprobe - prove that the blacklist is closed and minimal.

The tool walks the call graph of the linked image from the roots of nokprobe.tsv, and
compares the functions that it reaches with the marked functions. A probe on a function
that is reached and not marked could hit itself without end. A function that is marked and
not reached could carry probes. The tool prints the path to each.

A disassembly does not show where a call through a pointer goes. So nokprobe.tsv names each
function of the source that has such calls, with their number, and says where they go. A jump
by a table of addresses in the same function is recognised. A range with a reason of
its own must consist of whole instructions of one function, and that function must not be
marked.

A second walk, from the rows `record`, must stay in the text where a program asks whether
its hit is the tracer's own work; or in marked functions.
"""

import bisect
import collections
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "kernel/debug"), os.path.join(ROOT, "tests/run")]

import elf64
import tap

INSN = re.compile(r"^\s*([0-9a-f]+):\s")
POINTER = re.compile(r"^\s*([0-9a-f]+):\s+(?:bnd |notrack )?(?:call|jmp)\s+\*(.*)$")
TABLE = re.compile(r"(-?0x[0-9a-f]+)\(,%\w+,8\)")
BRANCH = re.compile(r"^\s*([0-9a-f]+):\s+(?:bnd )?(?:call|j\w+)\s+([0-9a-f]+) <")


class Image:
    """Functions of the linked image: extents, marks, and calls."""

    def __init__(self, path):
        self.elf = elf64.load(path)
        functions = {
            s.value: s
            for s in self.elf.symbols()
            if s.type == elf64.STT_FUNC and s.section and s.size
        }
        self.functions = [functions[addr] for addr in sorted(functions)]
        self.starts = [f.value for f in self.functions]
        self.values = {s.name: s.value for s in self.elf.symbols()}
        self.marked = self._marked()
        self.ranges = list(struct.iter_unpack("<3Q", self._table("nokprobe_ranges")))
        self.insns = set()
        self.pointers = []  # addresses of calls through pointers
        self.calls = self._calls(path)
        self.sources = self._sources(path)

    def at(self, addr):
        """The name of the function that contains @addr; None: no function does."""
        i = bisect.bisect_right(self.starts, addr) - 1
        if i < 0 or addr >= self.starts[i] + self.functions[i].size:
            return None
        return self.functions[i].name

    def _table(self, name):
        start = self.values[name + "_start"]
        size = self.values[name + "_end"] - start
        return self.elf.bytes_at(self.elf.file_offset(start, size), size) if size else b""

    def _marked(self):
        words = struct.iter_unpack("<Q", self._table("nokprobe"))
        return {self.at(addr) for (addr,) in words}

    def _calls(self, path):
        text = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", path],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        calls = collections.defaultdict(set)
        for line in text.splitlines():
            insn = INSN.match(line)
            if insn:
                self.insns.add(int(insn[1], 16))
            pointer = POINTER.match(line)
            if pointer and not self._is_switch(int(pointer[1], 16), pointer[2]):
                self.pointers.append(int(pointer[1], 16))
            branch = BRANCH.match(line)
            if not branch:
                continue
            caller = self.at(int(branch.group(1), 16))
            callee = self.at(int(branch.group(2), 16))
            if caller and callee and caller != callee:
                calls[caller].add(callee)
        return calls

    def _is_switch(self, addr, operand):
        """Does this jump take its target from a table of places in its own function?"""
        table = TABLE.match(operand)
        if not table:
            return False
        offset = self.elf.file_offset(int(table[1], 16) % 2**64, 8)
        word = self.elf.bytes_at(offset, 8) if offset else b""
        return self.at(int.from_bytes(word, "little")) == self.at(addr) is not None

    def _sources(self, path):
        """{function: {(function of the source, line) of each call through a pointer}}"""
        text = subprocess.run(
            ["addr2line", "-a", "-f", "-i", "-e", path, *map(hex, self.pointers)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        found = collections.defaultdict(set)
        for addr, name, line in re.findall(r"^0x(\w+)\n(.*)\n(.*)$", text, re.M):
            name = name.partition(".")[0]  # NASM's own labels
            found[self.at(int(addr, 16))].add((name, line))
        return found


def read_table(path):
    rows = collections.defaultdict(list)
    for line in open(path):
        if line.strip() and not line.startswith("#"):
            kind, *fields = line.rstrip("\n").split("\t")
            rows[kind].append(fields)
    return rows


def walk(calls, roots, gates):
    """{function: the path of calls to it from a root}"""
    paths = {root: [root] for root in roots}
    queue = collections.deque(roots)
    while queue:
        function = queue.popleft()
        for callee in sorted(calls[function]):
            if callee not in paths and callee not in gates:
                paths[callee] = paths[function] + [callee]
                queue.append(callee)
    return paths


def complaints(image, rows):
    """One line for each disagreement between the image, its marks and the table."""
    gates = {row[0] for row in rows["gate"]}
    keep = {row[0] for row in rows["keep"]}
    roots = [row[0] for row in rows["root"]]
    names = {f.name for f in image.functions}
    for caller, callee in rows["call"]:
        image.calls[caller].add(callee)
    reached = walk(image.calls, roots + sorted(keep & names), gates)
    named = gates | keep | set(roots) | {name for row in rows["call"] for name in row}
    for name in sorted(named - names):
        yield f"nokprobe.tsv names {name}, which is no function of the image"
    for name in sorted(set(reached) - image.marked):
        yield f"{name} is not marked: " + " -> ".join(reached[name])
    for name in sorted(image.marked - set(reached)):
        yield f"{name} is marked, but nothing reaches it before a hit is entered"
    yield from pointer_complaints(image, reached, rows["pointer"])
    yield from range_complaints(image)


def pointer_complaints(image, reached, rows):
    sites = set().union(*(image.sources[name] for name in reached))
    counts = collections.Counter(name for name, _ in sites)
    named = {name: int(count) for name, count, *_ in rows}
    for name in sorted(counts.keys() | named.keys()):
        if counts[name] != named.get(name, 0):
            yield (
                f"{name} has {counts[name]} calls through pointers before a hit is "
                f"entered; nokprobe.tsv names {named.get(name, 0)}"
            )


def range_complaints(image):
    behind = 0
    for start, end, _ in sorted(image.ranges):
        function = image.at(start)
        where = f"a range of {function} at {start:#x}"
        if function is None or image.at(end - 1) != function:
            yield f"{where} is not inside of one function"
        elif function in image.marked:
            yield f"{where}: all of this function is marked"
        if start not in image.insns or (
            end not in image.insns and image.at(end) == function
        ):
            yield f"{where} is not made of whole instructions"
        if not behind <= start < end:
            yield f"{where} overlaps another one, or is empty"
        behind = end


def reach_complaints(image, rows):
    """What recording or printing a hit reaches lies where the tracer's programs ask
    whether a hit is its own work.
    """
    start, end = image.values["tracer_text_start"], image.values["tracer_text_end"]
    names = {f.name for f in image.functions}
    roots = [row[0] for row in rows["record"]]
    yield from (
        f"nokprobe.tsv names {name}, which is no function of the image"
        for name in sorted(set(roots) - names)
    )
    gates = {row[0] for row in rows["gate"]} | image.marked
    for name, path in walk(image.calls, sorted(names & set(roots)), gates).items():
        if not start <= image.values[name] < end:
            yield f"{name} is not in the tracer's text: " + " -> ".join(path)


def record_complaints(image, rows):
    """Nothing that records is on the way of a trap, #DB included, to its hit."""
    gates = {row[0] for row in rows["gate"]}
    recorders = {row[0] for row in rows["record"]}
    paths = walk(image.calls, [row[0] for row in rows["root"]], gates)
    for name in sorted(recorders & set(paths)):
        yield f"{name} records in front of a hit: " + " -> ".join(paths[name])


def share(image):
    """The bytes of marked functions and ranges, in per cent of the bytes of all
    functions."""
    marked = sum(f.size for f in image.functions if f.name in image.marked)
    marked += sum(end - start for start, end, _ in image.ranges)
    return 100 * marked / sum(f.size for f in image.functions)


def main():
    image = Image(
        sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/sonde.elf")
    )
    rows = read_table(os.path.join(HERE, "nokprobe.tsv"))
    lines = list(complaints(image, rows))
    beyond = list(reach_complaints(image, rows))
    recorders = list(record_complaints(image, rows))
    for line in lines + beyond + recorders:
        tap.note(line)
    tap.note(
        f"{len(image.marked)} functions are marked, {share(image):.2f} % of the text"
    )
    tap.check(not lines, "the blacklist is closed and minimal")
    tap.check(not beyond, "recording and printing stay in the tracer's text")
    tap.check(not recorders, "nothing that records is on the way of a trap")
    tap.finish()


if __name__ == "__main__":
    main()
