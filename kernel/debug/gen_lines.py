#!/usr/bin/env python3
"""gen_lines.py - writes where the lines of source files have their code, as NASM source.

    gen_lines.py -o lines.asm IMAGE
    gen_lines.py -o lines.asm --empty

A line of source may be compiled to many instructions at several places. It may also be
compiled several times, if its function was inlined. For each time that a line was
compiled, the table has one address: the first of the line, where a debugger would stop.

This program reads debug data of DWARF 2 to 4, as the kernel's own data is, and skips
other units. kernel/debug/lines.c describes the layout of the table.
"""

import bisect
import os
import struct
import sys
from collections import defaultdict

sys.dont_write_bytecode = True
import elf64
import gen_inlines
import nasm_table
from gen_inlines import Damaged, leb, number, text
from nasm_table import head, string, table

TAG_UNIT, TAG_INLINED, TAG_FUNCTION = 0x11, 0x1D, 0x2E
AT_LINES, AT_LOW_PC, AT_HIGH_PC, AT_FOLDER, AT_RANGES = 0x10, 0x11, 0x12, 0x1B, 0x55
WANTED = {AT_LINES, AT_LOW_PC, AT_HIGH_PC, AT_FOLDER, AT_RANGES}
FORM_ADDR = 0x01

# Opcodes of line programs: first standard opcodes, which are below the header's first
# special opcode; then extended opcodes, which follow a 0.
COPY, ADVANCE_PC, ADVANCE_LINE, SET_FILE, SET_COLUMN, NEGATE = range(1, 7)
ADD_PC, FIXED_PC = 8, 9
END, SET_ADDRESS = 1, 2

DAMAGE = (IndexError, KeyError, TypeError, ValueError, struct.error, Damaged)


def signed_leb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value - (1 << shift if byte & 0x40 else 0), at


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
            path = os.path.join(self.folder, folders[folder], name)
            files.append(os.path.relpath(path, self.folder or "."))
        return files

    def rows(self):
        data, at = self.data, self.start
        address, file, line, statement = 0, 1, 1, bool(self.is_statement)
        while at < self.end:
            op = data[at]
            at += 1
            if op >= self.first_special:
                op -= self.first_special
                address += op // self.line_range * self.least
                line += self.line_base + op % self.line_range
                if statement:
                    yield address, self.files[file], line
            elif op == 0:
                size, at = leb(data, at)
                if data[at] == END:
                    address, file, line, statement = 0, 1, 1, bool(self.is_statement)
                elif data[at] == SET_ADDRESS:
                    address = number(data, at + 1, 8)
                at += size
            elif op == COPY:
                if statement:
                    yield address, self.files[file], line
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


class Unit(gen_inlines.Unit):
    """A unit: its line program and its functions tell where a line was compiled."""

    def read(self):
        info = self.debug.info
        abbreviations = self.debug.abbreviations(number(info, self.start + 6, 4))
        self.program, self.folder, self.functions = None, "", []
        at, first = self.start + 11, True
        before, gen_inlines.WANTED = gen_inlines.WANTED, WANTED
        try:
            while at < self.end:
                code, at = leb(info, at)
                if not code:
                    continue
                tag, pairs = abbreviations[code]
                values, at = self.attributes(
                    pairs, at, first or tag in (TAG_INLINED, TAG_FUNCTION)
                )
                if first:
                    self.base, first = values.get(AT_LOW_PC, 0), False
                    self.program = values.get(AT_LINES)
                    self.folder = values.get(AT_FOLDER, "")
                elif tag in (TAG_INLINED, TAG_FUNCTION):
                    self.functions.append(list(self.ranges(values, dict(pairs))))
        finally:
            gen_inlines.WANTED = before

    def ranges(self, values, forms):
        if AT_RANGES in values:
            at = values[AT_RANGES]
            while True:
                first, end = struct.unpack_from("<QQ", self.debug.ranges, at)
                at += 16
                if not first and not end:
                    return
                if first == 2**64 - 1:
                    raise Damaged("ranges with a base of their own")
                yield self.base + first, self.base + end
        elif AT_LOW_PC in values and AT_HIGH_PC in values:
            first, end = values[AT_LOW_PC], values[AT_HIGH_PC]
            yield first, end if forms[AT_HIGH_PC] == FORM_ADDR else first + end

    def places(self, lines):
        """(path, line, address) for each time that a line was compiled."""
        self.read()
        if self.program is None:
            return
        rows = sorted(set(Program(lines, self.program, self.folder).rows()))
        addresses = [address for address, _, _ in rows]
        owner = [(0, 0)] * len(rows)  # the function, and which part of it
        for who, ranges in enumerate(self.functions, 1):
            for part, (first, end) in enumerate(ranges):
                for i in range(
                    bisect.bisect_left(addresses, first),
                    bisect.bisect_left(addresses, end),
                ):
                    owner[i] = who, part
        found = {}
        for (address, path, line), (who, part) in zip(rows, owner):
            key = path, line, who
            if key not in found or (part, address) < found[key]:
                found[key] = part, address
        for (path, line, _), (_, address) in found.items():
            yield path, line, address


class Debug(gen_inlines.Debug):
    def units(self):
        at = 0
        while at + 11 <= len(self.info):
            end = at + 4 + number(self.info, at, 4)
            if 2 <= number(self.info, at + 4, 2) <= 4:
                yield Unit(self, at, min(end, len(self.info)))
            at = end


def lines_of(elf):
    """{path: sorted (line, address)} of the code in the image."""
    section = elf.section(".debug_line")
    lines = elf.content(section) if section else b""
    code = [s for s in elf.sections if s.flags & elf64.SHF_EXEC]
    found = defaultdict(set)
    for unit in Debug(elf).units():
        try:
            places = list(unit.places(lines))
        except DAMAGE:
            continue
        for path, line, address in places:
            if line and any(s.addr <= address < s.addr + s.size for s in code):
                found[path].add((line, address))
    return {path: sorted(found[path]) for path in sorted(found)}


def packed(value):
    """A number in pieces of seven bits, the lowest first."""
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
    rows, names, content = [], 0, b""
    for path, places in files.items():
        rows.append(f"dd {names}, {len(content)}, {len(places)}")
        names += len(path.encode()) + 1
        content += packed_lines(places)
    yield from table("lines_files", rows)
    yield from table("lines_total", [f"dd {len(rows)}"])
    yield from table("lines_names", [string(path) for path in files])
    yield from table(
        "lines_places",
        [
            "db " + ", ".join(map(str, content[i : i + 32]))
            for i in range(0, len(content), 32)
        ],
    )


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
