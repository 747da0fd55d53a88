"""sources.py - what debug data tell about the image and about modules: symbols, and the
line of source of an instruction.
"""

import bisect
import functools
import os
import struct
import subprocess
import sys

from docs.labs.host import labs
from kernel.module import send
from sonde.guest import ELF, ROOT

sys.path.append(os.path.join(ROOT, "kernel", "debug"))
import dwarf
import elf64
import gen_lines

DAMAGED = (OSError, ValueError, IndexError, AttributeError, struct.error, elf64.ElfError)
AROUND = 2  # lines of source before and behind those that were compiled
# Graders and solutions, which the page does not show.
HIDDEN = (labs.GRADERS, "tests/labs")


def read_lines(data):
    """{address: (path, line)} of the first instruction of each statement. @data: of the
    section .debug_line
    """
    found, at = {}, 0
    while at < len(data):
        try:
            for address, path, line in gen_lines.Program(data, at, ROOT).rows():
                found[address] = (path, line)
        except dwarf.DAMAGE:
            pass
        at += 4 + int.from_bytes(data[at : at + 4], "little")
    return found


class Image:
    """Symbols and lines of the image that the guests run. Made once for a build."""

    def __init__(self):
        words = ["nm", "-n", "--defined-only", ELF]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
        table = {name: int(at, 16) for at, _, name in rows}
        self.text = range(table["_text"], table["_etext"])
        self.changes, self.threads = table["console_changes"], table["sched_all"]
        self.symbols = [
            (int(at, 16), name)
            for at, kind, name in rows
            if kind in "tT" and int(at, 16) in self.text and name != "_text"
        ]
        elf = elf64.load(ELF)
        self.lines = read_lines(elf.content(elf.section(".debug_line")))
        self.starts = sorted(self.lines)

    def line_of(self, address, first):
        """The (path, line) of the instruction in the function that begins at @first."""
        i = bisect.bisect_right(self.starts, address) - 1
        if i < 0 or self.starts[i] < first:
            return None
        return self.lines[self.starts[i]]

    def functions(self):
        """[name, path of its file] of each function, in order of names."""
        files = {name: self.lines[at][0] for at, name in self.symbols if at in self.lines}
        return sorted(files.items())


class Object:
    """Lines of the object from which a module was made. Its section number N begins at
    N << 32; the functions lie elsewhere in the guest.
    """

    def __init__(self, path):
        elf = elf64.load(path)
        symbols = list(elf64.SYMBOL.iter_unpack(elf.content(elf.section(".symtab"))))
        self.functions = {
            symbol.name: (
                (elf.sections.index(symbol.section) << 32) + symbol.value,
                symbol.size,
            )
            for symbol in elf.symbols()
            if symbol.section and symbol.type == elf64.STT_FUNC
        }
        data = bytearray(elf.content(elf.section(".debug_line")))
        table = elf.content(elf.section(".rela.debug_line"))
        for place, info, addend in elf64.RELOCATION.iter_unpack(table):
            _, _, _, section, value, _ = symbols[info >> 32]
            struct.pack_into("<Q", data, place, (section << 32) + value + addend)
        self.lines = read_lines(data)
        self.starts = sorted(self.lines)

    line_of = Image.line_of


def lines_of_module(module, function, size):
    """The lines of a module, and where they have the function; (None, 0): there are none, or
    they are of another object than the one that is loaded.
    """
    try:
        lines = object_of(module, os.path.getmtime(send.with_debug_data(module)))
    except DAMAGED:
        return None, 0
    at, known_size = lines.functions.get(function, (0, 0))
    return (lines, at) if known_size == size else (None, 0)


@functools.lru_cache(maxsize=16)
def object_of(module, _when):
    return Object(send.with_debug_data(module))


@functools.lru_cache(maxsize=1)
def image_of(_when):
    return Image()


def image():
    return image_of(os.path.getmtime(ELF))


def source_of(path):
    """The text of a file of the tree, or of a lab's folder; else None: debug data of a
    module could name any file.
    """
    full = os.path.realpath(os.path.join(ROOT, path))
    inside = os.path.relpath(full, os.path.realpath(ROOT))
    of_labs = os.path.realpath(labs.folder("."))
    if inside.startswith(HIDDEN) or not full.endswith((".c", ".h", ".asm")):
        return None
    if inside.startswith("..") and not full.startswith(of_labs + os.sep):
        return None
    try:
        with open(full, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def pieces(rows, own):
    """The lines of source that @rows were compiled from: those of the function's own file
    first, in one piece if @own. [{"path", "first", "lines"}]
    """
    wanted = {}
    for row in rows:
        if "path" in row:
            wanted.setdefault(row["path"], set()).add(row["line"])
    out = []
    for path, lines in wanted.items():
        text = source_of(path)
        if text is None:
            continue
        text = text.split("\n")
        for first, last in runs(sorted(lines), own and not out):
            first, last = max(first - AROUND, 1), min(last + AROUND, len(text))
            out.append({"path": path, "first": first, "lines": text[first - 1 : last]})
    return out


def runs(lines, own):
    """Ranges of lines that are shown together; those of the function itself (@own) are one
    range.
    """
    found = [[lines[0], lines[0]]]
    for line in lines:
        if line > found[-1][1] + 2 * AROUND + 1 and not own:
            found.append([line, line])
        found[-1][1] = line
    return found
