#!/usr/bin/env python3
"""gen_targets.py - write a table of where CPUs enter code of an image, as NASM source.

    gen_targets.py --branches PROGRAM -o targets.asm IMAGE
    gen_targets.py -o targets.asm --empty

A jump may replace several instructions only if CPUs enter them through the first one
alone. Only the linked image tells all addresses at which CPUs enter code:

    direct branches   the targets of all direct branches of the text. PROGRAM
                      (gen_branches.c) decodes them, also those in cold parts of functions
    addresses         each address of the text that the linker has written into the image:
                      jump tables, computed gotos, handlers, entries of functions, fix-ups
                      of faults. Addresses in the tables of markers and of code without
                      probes do not count: no CPU goes there because of them.
                      The image has to be linked with --emit-relocs, which keeps a list of
                      the places where the linker has written
    symbols           each of them, and the entry point of the image

An address that code computes from another address is not among these. A function may
compute addresses if it jumps indirectly, and if its code, or that of its cold part, takes
an address inside of the function. Then the whole function is opaque: CPUs may enter it
anywhere. These are opaque, too: data between functions, bytes that do not decode, and the
targets of a difference of two addresses, of which the linker knows only one.

The table contains addresses of code only, and code does not move when the tables behind
it grow. So the table is made from the first of the three links; see
kernel/debug/gen_ksyms.py. probes/region/targets.c reads it.
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
import elf64
import gen_ksyms
import nasm_table
from nasm_table import head, low, table

TEXT = ".text"
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

Part = namedtuple("Part", "start end name is_data")
Reference = namedtuple("Reference", "at to")
Found = namedtuple("Found", "targets opaque")  # addresses; (start, end) without overlap


class Text:
    """The code of an image, and the functions and data that its bytes belong to."""

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
        self.parts = [
            Part(e.start, e.start + e.size, e.name, e.start in data)
            for e in self.entries
            if e.size
        ]
        self.starts = [p.start for p in self.parts]

    def contains(self, addr):
        return self.start <= addr < self.end

    def parts_at(self, addr):
        """The parts that contain @addr, the innermost one first."""
        i = bisect.bisect_right(self.starts, addr)
        return [p for p in reversed(self.parts[max(0, i - 8) : i]) if addr < p.end]

    def part_at(self, addr):
        return next(iter(self.parts_at(addr)), None)

    def extents(self):
        """(start, end) of each range that is decoded from its start: the functions, and
        the bytes between them."""
        at = self.start
        for part in self.parts:
            if part.start > at:
                yield at, part.start
            if not part.is_data:
                yield part.start, part.end
            at = max(at, part.end)
        if at < self.end:
            yield at, self.end


# ---- the addresses that the linker has written ----


def references(text):
    """The addresses of text that the linker has written into the image: (addresses in
    instructions, addresses in data, differences in data). Relative addresses in
    instructions are left out, because the decoder finds them."""
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
    """For each difference, the range of addresses that it may stand for. Code adds the
    difference to the address of its place, which gives @to, or to the start of the table
    that contains the place, which gives a lower address. Places that are at most 8 bytes
    apart count as one table."""
    row = 0
    for i, (place, to) in enumerate(differences):
        if i == 0 or place > differences[i - 1].at + 8:
            row = place
        yield to - (place - row), to + 8


# ---- the facts that the decoder finds ----


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


def decoded(text, program):
    """The output of gen_branches.c: {word of a line: [numbers of each such line]}."""
    extents = "".join(f"{start:x} {end:x}\n" for start, end in text.extents())
    with tempfile.NamedTemporaryFile() as file:
        file.write(steady_content(text))
        file.flush()
        done = subprocess.run(
            [program, file.name, f"{text.start:x}"],
            input=extents,
            text=True,
            capture_output=True,
            check=False,
        )
    if done.returncode:
        raise elf64.ElfError(done.stderr.strip())
    found = {"branch": [], "refer": [], "jump": [], "stuck": []}
    for line in done.stdout.splitlines():
        word, *numbers = line.split()
        found[word].append([int(n, 16) for n in numbers])
    return found


# ---- opaque code ----


def family(part):
    """The part of the name that a function has in common with its cold part."""
    return part.name.partition(".")[0]


def families_that_compute(text, taken, jumps):
    """The families in which code may jump to a computed address. If code takes an address
    inside of a function, and if the family of the code or that of the function jumps
    indirectly, both families count."""
    jumping = {family(p) for at in jumps for p in text.parts_at(at)}
    found = set()
    for at, to in taken:
        around, meant = text.part_at(at), text.part_at(to)
        if not meant or (to == meant.start and around != meant):
            continue  # the entry of another function
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
    """@ranges sorted by address; ranges that overlap or touch are one."""
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
        ("--branches", "gen_branches, built"),
    )


if __name__ == "__main__":
    main()
