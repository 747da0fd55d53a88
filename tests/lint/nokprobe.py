#!/usr/bin/env python3
"""nokprobe - the blacklist proves itself.

Walks the call graph of the linked image from the roots of nokprobe.tsv and compares what
it reaches with what is marked: a function that is reached and not marked could hit itself
for ever; a function that is marked and not reached could carry probes. Prints the path for
each.
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

import elf64  # noqa: E402
import tap  # noqa: E402

BRANCH = re.compile(r"^\s*([0-9a-f]+):\s+(?:bnd )?(?:call|j\w+)\s+([0-9a-f]+) <")


class Image:
    """Functions of the linked image: extents, marks, and calls."""

    def __init__(self, path):
        self.elf = elf64.load(path)
        functions = {s.value: s for s in self.elf.symbols()
                     if s.type == elf64.STT_FUNC and s.section and s.size}
        self.functions = [functions[addr] for addr in sorted(functions)]
        self.starts = [f.value for f in self.functions]
        self.marked = self._marked()
        self.calls = self._calls(path)

    def at(self, addr):
        """The name of the function around @addr, None outside of all."""
        i = bisect.bisect_right(self.starts, addr) - 1
        if i < 0 or addr >= self.starts[i] + self.functions[i].size:
            return None
        return self.functions[i].name

    def _marked(self):
        bounds = {s.name: s.value for s in self.elf.symbols()
                  if s.name in ("nokprobe_start", "nokprobe_end")}
        size = bounds["nokprobe_end"] - bounds["nokprobe_start"]
        words = self.elf.bytes_at(self.elf.file_offset(bounds["nokprobe_start"], size), size)
        return {self.at(addr) for (addr,) in struct.iter_unpack("<Q", words)}

    def _calls(self, path):
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True,
                              capture_output=True, text=True).stdout
        calls = collections.defaultdict(set)
        for line in text.splitlines():
            branch = BRANCH.match(line)
            if not branch:
                continue
            caller = self.at(int(branch.group(1), 16))
            callee = self.at(int(branch.group(2), 16))
            if caller and callee and caller != callee:
                calls[caller].add(callee)
        return calls


def read_table(path):
    rows = collections.defaultdict(list)
    for line in open(path):
        if line.strip() and not line.startswith("#"):
            kind, *fields = line.rstrip("\n").split("\t")
            rows[kind].append(fields)
    return rows


def walk(calls, roots, gates):
    """function -> how it is reached"""
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
    reached = walk(image.calls, roots, gates)
    named = gates | keep | set(roots) | {name for row in rows["call"] for name in row}
    for name in sorted(named - names):
        yield f"nokprobe.tsv names {name}, which is no function of the image"
    for name in sorted(set(reached) - image.marked):
        yield f"{name} is not marked: " + " -> ".join(reached[name])
    for name in sorted(keep - image.marked - set(reached)):
        yield f"{name} is not marked: nokprobe.tsv says why it should be"
    for name in sorted(image.marked - set(reached) - keep):
        yield f"{name} is marked, but nothing reaches it before a hit is entered"


def share(image):
    """The marked functions' part of all function bytes, in per cent."""
    marked = sum(f.size for f in image.functions if f.name in image.marked)
    return 100 * marked / sum(f.size for f in image.functions)


def main():
    image = Image(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/sonde.elf"))
    lines = list(complaints(image, read_table(os.path.join(HERE, "nokprobe.tsv"))))
    for line in lines:
        tap.note(line)
    tap.note(f"{len(image.marked)} functions are marked, {share(image):.2f} % of the text")
    tap.check(not lines, "the blacklist is closed and minimal")
    tap.finish()


if __name__ == "__main__":
    main()
