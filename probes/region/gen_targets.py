#!/usr/bin/env python3
"""gen_targets.py - writes a table of where code of an image is entered, as NASM source.

    gen_targets.py --branches PROGRAM -o targets.asm IMAGE
    gen_targets.py -o targets.asm --empty

A jump may replace several instructions only if no code enters them but through the first.
Where code enters is known to the link, and only to it:

    direct branches   every one of the text, decoded by PROGRAM (gen_branches.c), those in
                      cold parts of functions and in other functions included
    addresses         wherever the linker has filled one of the text in: jump tables,
                      computed gotos, handlers, entries of functions, fix-ups of faults;
                      not where markers are, which code only passes
                      The image has to be linked with --emit-relocs, which lists the places
    symbols           each, and the image's own entry

One thing is not known by that: an address that code computes from another one. Where a
function jumps indirectly, and an address inside of it is taken by its code (that of its cold
part included), it might; then all of the function is opaque: anything may jump anywhere into
it. So are data between the functions, what does not decode, and what is written as a
difference of two addresses, of which the link knows one.

The table only speaks of code, which does not move when tables behind it grow, so it is made
of the first of the three links; see kernel/debug/gen_ksyms.py. probes/region/targets.c reads
it.
"""

import bisect
import os
import subprocess
import sys
import tempfile
from collections import namedtuple

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "kernel/debug"))
import elf64  # noqa: E402
import gen_ksyms  # noqa: E402
import nasm_table  # noqa: E402
from nasm_table import head, low, table  # noqa: E402

TEXT = ".text"
FIXUPS = "extable_start", "extable_end"
# Tables about the text: no CPU goes where they point.
ABOUT = (("marker_insns_start", "marker_insns_end"),
         ("nokprobe_ranges_start", "nokprobe_ranges_end"))  # fmt: skip
R_64, R_PC32, R_PLT32, R_32, R_32S, R_PC64 = 1, 2, 4, 10, 11, 24
ABSOLUTE = {R_64: 8, R_32: 4, R_32S: 4}
RELATIVE = {R_PC32: 4, R_PLT32: 4, R_PC64: 8}
SIZES = {**ABSOLUTE, **RELATIVE}
FIELD_MAX = 16  # a relative address counts from the next instruction
FAR_AWAY = b"\x7f" * 8

Part = namedtuple("Part", "start end name is_data")
Reference = namedtuple("Reference", "at to")
Found = namedtuple("Found", "targets opaque")  # addresses; (start, end) without overlap


class Text:
    """The code of an image, and whose it is."""

    def __init__(self, elf):
        self.elf = elf
        self.section = elf.section(TEXT)
        if not self.section:
            raise elf64.ElfError(f"no section {TEXT}")
        self.start = self.section.addr
        self.end = self.start + self.section.size
        self.symbols = {s.name: s.value for s in elf.symbols()}
        data = {s.value for s in elf.symbols() if s.type == elf64.STT_OBJECT}
        entries = gen_ksyms.entries_make(elf.symbols())
        self.entries = [e for e in entries if self.contains(e.start)]
        self.parts = [Part(e.start, e.start + e.size, e.name, e.start in data)
                      for e in self.entries if e.size]
        self.starts = [p.start for p in self.parts]

    def contains(self, addr):
        return self.start <= addr < self.end

    def parts_at(self, addr):
        """The innermost part around @addr comes first."""
        i = bisect.bisect_right(self.starts, addr)
        return [p for p in reversed(self.parts[max(0, i - 8) : i]) if addr < p.end]

    def part_at(self, addr):
        return next(iter(self.parts_at(addr)), None)

    def extents(self):
        """(start, end) of what is decoded in one go: each function, and what is between."""
        at = self.start
        for part in self.parts:
            if part.start > at:
                yield at, part.start
            if not part.is_data:
                yield part.start, part.end
            at = max(at, part.end)
        if at < self.end:
            yield at, self.end


# ---- what the linker has filled in ----


def references(text):
    """The addresses of text that are written somewhere in the image: (those in instructions,
    those in data, differences in data). A relative one in an instruction is for the decoder
    to tell."""
    fixups = range(*(text.symbols.get(name, 0) for name in FIXUPS))
    about = [range(*(text.symbols.get(name, 0) for name in table)) for table in ABOUT]
    in_code, in_data, differences = [], [], []
    for place, kind, section in sorted(text.elf.relocations()):
        if not section.flags & elf64.SHF_ALLOC or any(place in t for t in about):
            continue
        is_code = section.flags & elf64.SHF_EXEC
        if kind in RELATIVE and is_code:
            continue
        value = value_at(text, place, kind, section)
        if not text.contains(value):
            continue
        if kind in RELATIVE and place not in fixups:
            differences.append(Reference(place, value))
        else:
            (in_code if is_code else in_data).append(Reference(place, value))
    return in_code, in_data, differences


def value_at(text, place, kind, section):
    size = SIZES.get(kind)
    offset = text.elf.file_offset(place, size or 0)
    if size is None or offset is None:
        raise elf64.ElfError(f"{section.name}: a relocation of type {kind}")
    value = int.from_bytes(text.elf.bytes_at(offset, size), "little", signed=True)
    return (value + (place if kind in RELATIVE else 0)) & (1 << 64) - 1


def difference_ranges(differences):
    """Where what is written as a difference may mean. From the address of the place it
    means @to; from that of a table that the place is in, so much less. A table is a row of
    such places."""
    row = 0
    for i, (place, to) in enumerate(differences):
        if i == 0 or place > differences[i - 1].at + 8:
            row = place
        yield to - (place - row), to + 8


# ---- what the decoder sees ----


def steady_content(text):
    """The section without addresses of what moves when tables grow: what lies outside of the
    text. In instructions only their length counts, but data in text, or whatever a stray
    branch leads to, must not decode now like this and now like that."""
    content = bytearray(text.elf.content(text.section))
    for place, kind, section in text.elf.relocations():
        if section != text.section:
            continue
        value = value_at(text, place, kind, section)
        if not text.start - FIELD_MAX <= value < text.end + FIELD_MAX:
            at, size = place - text.start, SIZES[kind]
            content[at : at + size] = FAR_AWAY[:size]
    return content


def decoded(text, program):
    """{word: rows of addresses}, as gen_branches.c describes them."""
    extents = "".join(f"{start:x} {end:x}\n" for start, end in text.extents())
    with tempfile.NamedTemporaryFile() as file:
        file.write(steady_content(text))
        file.flush()
        done = subprocess.run([program, file.name, f"{text.start:x}"], input=extents,
                              text=True, capture_output=True, check=False)
    if done.returncode:
        raise elf64.ElfError(done.stderr.strip())
    found = {"branch": [], "refer": [], "jump": [], "stuck": []}
    for line in done.stdout.splitlines():
        word, *numbers = line.split()
        found[word].append([int(n, 16) for n in numbers])
    return found


# ---- what must be taken for unknown ----


def family(part):
    """A function and its parts elsewhere have this in common."""
    return part.name.partition(".")[0]


def families_that_compute(text, taken, jumps):
    """Those in which an address might be computed from one of their own."""
    jumping = {family(p) for at in jumps for p in text.parts_at(at)}
    found = set()
    for at, to in taken:
        around, meant = text.part_at(at), text.part_at(to)
        if not meant or (to == meant.start and around != meant):
            continue  # the function as such
        names = {family(meant)} | ({family(around)} if around else set())
        if names & jumping:
            found |= names
    return found


def opaque_parts(text, taken, found):
    computing = families_that_compute(text, taken, [at for at, in found["jump"]])
    for part in text.parts:
        if part.is_data or family(part) in computing:
            yield part.start, part.end
    for at, end in found["stuck"]:
        part = text.part_at(at)
        yield (part.start, max(end, part.end)) if part else (at, end)


def joined(ranges):
    """The same addresses in as few ranges as possible, by address."""
    out = []
    for start, end in sorted(ranges):
        if out and start <= out[-1][1]:
            out[-1] = out[-1][0], max(end, out[-1][1])
        else:
            out.append((start, end))
    return out


def targets_of(path, program):
    elf = elf64.load(path)
    text = Text(elf)
    in_code, in_data, differences = references(text)
    found = decoded(text, program)
    taken = in_code + [Reference(at, to) for at, to in found["refer"]]
    targets = {e.start for e in text.entries} | {elf.entry}
    targets |= {to for _, to in taken + in_data} | {to for _, to in found["branch"]}
    opaque = [*opaque_parts(text, taken, found), *difference_ranges(differences)]
    return Found(sorted(filter(text.contains, targets)), joined(opaque))


# ---- the table ----


def source_lines(found):
    yield from head("Where code is entered", "gen_targets.py", "probes/region/targets.c")
    yield from table("targets_table", [f"dd {low(addr)}" for addr in found.targets])
    yield from table("targets_total", [f"dd {len(found.targets)}"])
    yield from table("targets_opaque_table", [f"dd {low(start)}, {low(end)}"
                                              for start, end in found.opaque])
    yield from table("targets_opaque_total", [f"dd {len(found.opaque)}"])


def main():
    nasm_table.main("gen_targets", "where code is entered", targets_of, source_lines,
                    Found([], []), ("--branches", "gen_branches, built"))


if __name__ == "__main__":
    main()
