#!/usr/bin/env python3
"""gen_lines.py - writes where the lines of source files have their code, as NASM source.

    gen_lines.py -o lines.asm IMAGE
    gen_lines.py -o lines.asm --empty

A line of source may be compiled to many instructions at several places. It may also be
compiled several times, if its function was inlined. For each time that a line was
compiled, the table has one address: the first of the line, where a debugger would stop.

This program reads debug data of DWARF 2 to 4 (dwarf.py). kernel/debug/lines.c describes
the layout of the table.
"""

import bisect
import functools
import os
import struct
import sys
from collections import defaultdict

sys.dont_write_bytecode = True
import dwarf
import elf64
import nasm_table
from dwarf import Damaged, leb, number, text
from nasm_table import head, string, table

# Opcodes of line programs: first standard opcodes, which are below the header's first
# special opcode; then extended opcodes, which follow a 0.
COPY, ADVANCE_PC, ADVANCE_LINE, SET_FILE, SET_COLUMN, NEGATE = range(1, 7)
ADD_PC, FIXED_PC = 8, 9
END, SET_ADDRESS = 1, 2


def signed_leb(data, at):
    value, end = leb(data, at)
    is_negative = data[end - 1] & 0x40
    return value - (1 << 7 * (end - at) if is_negative else 0), end


@functools.lru_cache(None)
def path_of(unit, folder, name):
    """The path of a file, relative to the folder @unit."""
    return os.path.relpath(os.path.join(unit, folder, name), unit or ".")


class Program:
    """A line program. rows() has (address, path, line) of each statement."""

    def __init__(self, data, at, folder):
        self.data, self.folder = data, folder
        self.end = at + 4 + number(data, at, 4)
        self.version = number(data, at + 4, 2)
        if not 2 <= self.version <= 4:
            raise Damaged(f"line program of version {self.version}")
        self.start = at + 10 + number(data, at + 6, 4)
        at += 10
        self.least = data[at]
        at += 2 if self.version == 4 else 1
        self.is_statement, self.line_base = (
            data[at],
            struct.unpack_from("b", data, at + 1)[0],
        )
        self.line_range, self.first_special = data[at + 2], data[at + 3]
        self.lengths = data[at + 4 : at + 3 + self.first_special]
        self.files = self.names(at + 3 + self.first_special)

    def names(self, at):
        """The paths of files, by number from 1, relative to the folder of the unit."""
        folders, files = [""], [None]
        while self.data[at]:
            folders.append(text(self.data, at))
            at = self.data.index(b"\0", at) + 1
        at += 1
        while self.data[at]:
            name = text(self.data, at)
            folder, at = leb(self.data, self.data.index(b"\0", at) + 1)
            _, at = leb(self.data, at)
            _, at = leb(self.data, at)
            files.append(path_of(self.folder, folders[folder], name))
        return files

    def rows(self):
        data, at, files = self.data, self.start, self.files
        special = [  # address, line
            (op // self.line_range * self.least, self.line_base + op % self.line_range)
            for op in range(256 - self.first_special)
        ]
        address, file, line, statement = 0, 1, 1, bool(self.is_statement)
        while at < self.end:
            op = data[at]
            at += 1
            if op >= self.first_special:
                forward, down = special[op - self.first_special]
                address += forward
                line += down
                if statement:
                    yield address, files[file], line
            elif op == 0:
                size, at = leb(data, at)
                if data[at] == END:
                    address, file, line, statement = 0, 1, 1, bool(self.is_statement)
                elif data[at] == SET_ADDRESS:
                    address = number(data, at + 1, 8)
                at += size
            elif op == COPY:
                if statement:
                    yield address, files[file], line
            elif op == ADVANCE_PC:
                delta, at = leb(data, at)
                address += delta * self.least
            elif op == ADVANCE_LINE:
                delta, at = signed_leb(data, at)
                line += delta
            elif op == SET_FILE:
                file, at = leb(data, at)
            elif op == NEGATE:
                statement = not statement
            elif op == ADD_PC:
                address += (255 - self.first_special) // self.line_range * self.least
            elif op == FIXED_PC:
                address += number(data, at, 2)
                at += 2
            else:
                for _ in range(self.lengths[op - 1]):
                    _, at = leb(data, at)


def ranges_of(unit, values):
    """(first, end) of each part of a function."""
    if dwarf.AT_RANGES in values:
        at = values[dwarf.AT_RANGES]
        while True:
            first, end = struct.unpack_from("<QQ", unit.debug.ranges, at)
            at += 16
            if not first and not end:
                return
            if first == 2**64 - 1:
                raise Damaged("ranges with a base of their own")
            yield unit.base + first, unit.base + end
    elif dwarf.AT_LOW_PC in values and dwarf.AT_HIGH_PC in values:
        yield values[dwarf.AT_LOW_PC], values[dwarf.AT_HIGH_PC]


def places(unit, lines):
    """(path, line, address) for each time that a line of a unit was compiled, by its
    functions. @lines: of the section .debug_line
    """
    program = unit.root.get(dwarf.AT_LINES)
    if program is None:
        return
    folder = unit.root.get(dwarf.AT_FOLDER, "")
    rows = sorted(set(Program(lines, program, folder).rows()))
    addresses = [address for address, _, _ in rows]
    owner = [(0, 0)] * len(rows)  # the function, and which part of it
    functions = unit.of(dwarf.TAG_INLINED, dwarf.TAG_FUNCTION)
    for who, values in enumerate(functions, 1):
        for part, (first, end) in enumerate(ranges_of(unit, values)):
            begin = bisect.bisect_left(addresses, first)
            count = bisect.bisect_left(addresses, end, begin) - begin
            owner[begin : begin + count] = [(who, part)] * count
    found = {}
    for (address, path, line), (who, part) in zip(rows, owner):
        key = path, line, who
        if key not in found or (part, address) < found[key]:
            found[key] = part, address
    for (path, line, _), (_, address) in found.items():
        yield path, line, address


def lines_of(elf):
    """{path: sorted (line, address)} of the code in the image."""
    code = sorted(
        bound
        for s in elf.sections
        if s.flags & elf64.SHF_EXEC
        for bound in (s.addr, s.addr + s.size)
    )
    found = defaultdict(set)
    for unit in dwarf.units(elf):
        try:
            compiled = list(places(unit, unit.debug.lines))
        except dwarf.DAMAGE:
            continue
        for path, line, address in compiled:
            if line and bisect.bisect_right(code, address) % 2:
                found[path].add((line, address))
    return {path: sorted(found[path]) for path in sorted(found)}


SINGLE = [bytes([value]) for value in range(0x80)]


def packed(value):
    """A number in pieces of seven bits, the lowest first."""
    if value < 0x80:
        return SINGLE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def packed_signed(value):
    return packed(value << 1 if value >= 0 else ~value << 1 | 1)


def packed_lines(places):
    """For each place: its line and its address, minus those of the place before it."""
    out, line, address = bytearray(), 0, 0x80000000
    for next_line, full in places:
        next_address = full & 0xFFFFFFFF
        out += packed(next_line - line) + packed_signed(next_address - address)
        line, address = next_line, next_address
    return bytes(out)


def source_lines(files):
    yield from head("Lines of source files", "gen_lines.py", "kernel/debug/lines.c")
    rows, names, content = [], 0, bytearray()
    for path, places in files.items():
        rows.append(f"dd {names}, {len(content)}, {len(places)}")
        names += len(path.encode()) + 1
        content += packed_lines(places)
    yield from table("lines_files", rows)
    yield from table("lines_total", [f"dd {len(rows)}"])
    yield from table("lines_names", map(string, files))
    yield from table("lines_places", nasm_table.content(content))


def main():
    nasm_table.main(
        "gen_lines",
        "lines of source files",
        lambda image: lines_of(elf64.load(image)),
        source_lines,
        {},
    )


if __name__ == "__main__":
    main()
