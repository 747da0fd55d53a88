#!/usr/bin/env python3
"""gen_targets.py - write a table of where CPUs enter code of an image, as NASM source.

    gen_targets.py --finder PROGRAM -o targets.asm IMAGE
    gen_targets.py -o targets.asm --empty

A jump may replace several instructions only if CPUs enter them through the first one
alone. The rules by which such entries are found are in find_targets.h; PROGRAM
(gen_targets.c) applies them. This program reads from the image what they need: the
symbols, and each address of the text that the linker has written. Addresses in the tables
of markers and of code without probes do not count: no CPU goes there because of them. The
image has to be linked with --emit-relocs, which keeps a list of the places where the
linker has written.

probes/region/targets.c reads the table.
"""

import os
import struct
import subprocess
import sys
import tempfile
from collections import namedtuple

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "kernel/debug"))
import elf64
import gen_ksyms
import nasm_table
from nasm_table import head, low, table

TEXT = ".text"
COMPILED = "patchable_start", "patchable_end"
FIXUPS = "extable_start", "extable_end"
# Tables that describe the text. No CPU goes to an address because it is in such a table.
ABOUT = (
    ("marker_insns_start", "marker_insns_end"),
    ("nokprobe_ranges_start", "nokprobe_ranges_end"),
)
R_64, R_PC32, R_PLT32, R_32, R_32S, R_PC64 = 1, 2, 4, 10, 11, 24
ABSOLUTE = {R_64: 8, R_32: 4, R_32S: 4}
RELATIVE = {R_PC32: 4, R_PLT32: 4, R_PC64: 8}
SIZES = {**ABSOLUTE, **RELATIVE}
FIELD_MAX = 16  # from a relative field to the next instruction, where a CPU counts from
FAR_AWAY = b"\x7f" * 8

Found = namedtuple("Found", "targets opaque")  # addresses; (start, end) without overlap


class Text:
    """The code of an image."""

    def __init__(self, elf):
        self.elf = elf
        self.section = elf.section(TEXT)
        if not self.section:
            raise elf64.ElfError(f"no section {TEXT}")
        self.start = self.section.addr
        self.end = self.start + self.section.size
        self.symbols = {s.name: s.value for s in elf.symbols()}

    def contains(self, addr):
        return self.start <= addr < self.end

    def compiled(self):
        """The addresses of the functions that a compiler has made."""
        start, end = (self.symbols.get(name, 0) for name in COMPILED)
        offset = self.elf.file_offset(start, end - start)
        words = self.elf.bytes_at(offset, end - start) if end > start else b""
        return {n for (n,) in struct.iter_unpack("<Q", words)}

    def spans(self):
        """A line for each symbol, as gen_targets.c reads it."""
        compiled = self.compiled()
        data = {s.value for s in self.elf.symbols() if s.type == elf64.STT_OBJECT}
        for e in gen_ksyms.entries_make(self.elf.symbols()):
            kinds = (int(e.start in kind) for kind in (compiled, data))
            if self.contains(e.start):
                yield " ".join(
                    (f"span {e.start:x} {e.start + e.size:x}", *map(str, kinds), e.name)
                )


# ---- the addresses that the linker has written ----


def pointers(text):
    """A line for each address of text that the linker has written into the image.
    Relative addresses in instructions are left out, because the decoder finds them."""
    fixups = range(*(text.symbols.get(name, 0) for name in FIXUPS))
    about = [range(*(text.symbols.get(name, 0) for name in table)) for table in ABOUT]
    for place, kind, section in sorted(text.elf.relocations()):
        if any(place in t for t in about):
            continue
        is_code = section.flags & elf64.SHF_EXEC
        if kind in RELATIVE and is_code:
            continue
        value = value_at(text, place, kind, section)
        if not text.contains(value):
            continue
        what = "code" if is_code else "data"
        if kind in RELATIVE and place not in fixups:
            what = "difference"
        yield f"{what} {place:x} {value:x}"


def value_at(text, place, kind, section):
    size = SIZES.get(kind)
    offset = text.elf.file_offset(place, size or 0)
    if size is None or offset is None:
        raise elf64.ElfError(f"{section.name}: a relocation of type {kind}")
    value = int.from_bytes(text.elf.bytes_at(offset, size), "little", signed=True)
    return (value + (place if kind in RELATIVE else 0)) & (1 << 64) - 1


# ---- what the rules find ----


def steady_content(text):
    """The content of the section, with fixed bytes in place of every address outside of
    the text, because these addresses change when tables grow. The length of an
    instruction does not depend on its address operand. But data in text, and bytes that a
    wrong branch leads to, could otherwise be decoded differently in each link."""
    content = bytearray(text.elf.content(text.section))
    for place, kind, section in text.elf.relocations():
        if section != text.section:
            continue
        value = value_at(text, place, kind, section)
        if not text.start - FIELD_MAX <= value < text.end + FIELD_MAX:
            at, size = place - text.start, SIZES[kind]
            content[at : at + size] = FAR_AWAY[:size]
    return content


def targets_of(path, program):
    text = Text(elf64.load(path))
    facts = [*text.spans(), *pointers(text), f"data 0 {text.elf.entry:x}"]
    with tempfile.NamedTemporaryFile() as file:
        file.write(steady_content(text))
        file.flush()
        done = subprocess.run(
            [program, file.name, f"{text.start:x}"],
            input="\n".join(facts) + "\n",
            text=True,
            capture_output=True,
            check=False,
        )
    if done.returncode:
        raise elf64.ElfError(done.stderr.strip())
    found = Found([], [])
    for line in done.stdout.splitlines():
        word, *numbers = line.split()
        numbers = [int(n, 16) for n in numbers]
        if word == "target":
            found.targets.append(*numbers)
        else:
            found.opaque.append(tuple(numbers))
    return found


# ---- the table ----


def source_lines(found):
    yield from head("Where code is entered", "gen_targets.py", "probes/region/targets.c")
    yield from table("targets_table", [f"dd {low(addr)}" for addr in found.targets])
    yield from table("targets_total", [f"dd {len(found.targets)}"])
    yield from table(
        "targets_opaque_table",
        [f"dd {low(start)}, {low(end)}" for start, end in found.opaque],
    )
    yield from table("targets_opaque_total", [f"dd {len(found.opaque)}"])


def main():
    nasm_table.main(
        "gen_targets",
        "where code is entered",
        targets_of,
        source_lines,
        Found([], []),
        ("--finder", "gen_targets.c, built"),
    )


if __name__ == "__main__":
    main()
