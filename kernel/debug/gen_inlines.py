#!/usr/bin/env python3
"""gen_inlines.py - writes a table of inlined functions of an image as NASM source.

    gen_inlines.py -o inlines.asm IMAGE
    gen_inlines.py -o inlines.asm --empty

A function that was inlined everywhere has no symbol. A function that was inlined at some
places has fewer calls than its source shows. Debug data has these places, and this table
lists them by name. It contains only addresses of code, and code does not move when the
tables behind it grow. So the table is made from the first of the three links; see
gen_ksyms.py.

This program reads units of DWARF 4, as the kernel's own units are, and skips other units.
kernel/debug/inlines.c describes the layout of the table.
"""

import struct
import sys
from collections import defaultdict

sys.dont_write_bytecode = True
import elf64
import nasm_table
from nasm_table import head, low, string, table

TAG_INLINED, TAG_FUNCTION = 0x1D, 0x2E
AT_NAME, AT_LOW_PC, AT_ORIGIN, AT_SPECIFICATION = 0x03, 0x11, 0x31, 0x47
AT_ENTRY_PC, AT_RANGES = 0x52, 0x55
WANTED = {AT_NAME, AT_LOW_PC, AT_ORIGIN, AT_SPECIFICATION, AT_ENTRY_PC, AT_RANGES}

FORM_STRING, FORM_STRP, FORM_REF_ADDR = 0x08, 0x0E, 0x10
# Forms of a fixed size, and forms that begin with their size.
FIXED = {0x01: 8, 0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x0C: 1, FORM_STRP: 4,
         FORM_REF_ADDR: 4, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x17: 4, 0x19: 0,
         0x20: 8}  # fmt: skip
COUNTED = {0x0A: 1, 0x03: 2, 0x04: 4}
LEB, LEB_COUNTED = {0x0D, 0x0F, 0x15}, {0x09, 0x18}
RELATIVE = {0x11, 0x12, 0x13, 0x14, 0x15}  # references within the unit


class Damaged(Exception):
    pass


def leb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def number(data, at, size):
    return int.from_bytes(data[at : at + size], "little")


def text(data, at):
    return data[at : data.index(b"\0", at)].decode("utf-8", "backslashreplace")


def abbreviations(data, at):
    """{code: (tag, [(attribute, form)])} of the table at @at."""
    table = {}
    while True:
        code, at = leb(data, at)
        if not code:
            return table
        tag, at = leb(data, at)
        at += 1  # has children
        pairs = []
        while True:
            attribute, at = leb(data, at)
            form, at = leb(data, at)
            if not attribute and not form:
                break
            pairs.append((attribute, form))
        table[code] = tag, pairs


class Unit:
    def __init__(self, debug, start, end):
        self.debug = debug
        self.start, self.end = start, end
        self.base = 0  # the address from which its ranges count
        self.entries = {}  # offset: attributes of a function
        self.inlined = []  # attributes of each inlined function

    def read(self):
        info = self.debug.info
        table = self.debug.abbreviations(number(info, self.start + 6, 4))
        at, first = self.start + 11, True
        while at < self.end:
            offset = at
            code, at = leb(info, at)
            if not code:
                continue
            tag, pairs = table[code]
            keep = first or tag in (TAG_INLINED, TAG_FUNCTION)
            values, at = self.attributes(pairs, at, keep)
            if first:
                self.base, first = values.get(AT_LOW_PC, 0), False
            elif tag == TAG_FUNCTION:
                self.entries[offset] = values
            elif tag == TAG_INLINED:
                self.inlined.append(values)

    def attributes(self, pairs, at, keep):
        values = {}
        info = self.debug.info
        for attribute, form in pairs:
            if keep and attribute in WANTED:
                values[attribute] = self.value(form, at)
            size = FIXED.get(form)
            if size is not None:
                at += size
            elif form == FORM_STRING:
                at = info.index(b"\0", at) + 1
            elif form in LEB:
                at = leb(info, at)[1]
            elif form in LEB_COUNTED:
                size, at = leb(info, at)
                at += size
            elif form in COUNTED:
                at += COUNTED[form] + number(info, at, COUNTED[form])
            else:
                raise Damaged(f"form {form:#x}")
        return values, at

    def value(self, form, at):
        info = self.debug.info
        if form == FORM_STRP:
            return text(self.debug.strings, number(info, at, 4))
        if form == FORM_STRING:
            return text(info, at)
        value = leb(info, at)[0] if form in LEB else number(info, at, FIXED.get(form, 0))
        return value + self.start if form in RELATIVE else value

    def name(self, values):
        for _ in range(8):  # an origin may have an origin
            if AT_NAME in values:
                return values[AT_NAME]
            offset = values.get(AT_ORIGIN, values.get(AT_SPECIFICATION))
            values = self.entries.get(offset, {})
        return None

    def address(self, values):
        if AT_RANGES in values:
            ranges = self.debug.ranges
            first, end = struct.unpack_from("<QQ", ranges, values[AT_RANGES])
            if first < end:
                return values.get(AT_ENTRY_PC, self.base + first)
        return values.get(AT_ENTRY_PC, values.get(AT_LOW_PC))

    def places(self):
        self.read()
        for values in self.inlined:
            name, address = self.name(values), self.address(values)
            if name and address:
                yield name, address


class Debug:
    def __init__(self, elf):
        def content(name):
            section = elf.section(name)
            return elf.content(section) if section else b""

        self.info, self.abbrev = content(".debug_info"), content(".debug_abbrev")
        self.strings, self.ranges = content(".debug_str"), content(".debug_ranges")
        self.tables = {}

    def abbreviations(self, at):
        if at not in self.tables:
            self.tables[at] = abbreviations(self.abbrev, at)
        return self.tables[at]

    def units(self):
        at = 0
        while at + 11 <= len(self.info):
            end = at + 4 + number(self.info, at, 4)
            if number(self.info, at + 4, 2) == 4:
                yield Unit(self, at, min(end, len(self.info)))
            at = end


def places_of(elf):
    """{name: sorted addresses}; units that cannot be read are left out."""
    found = defaultdict(set)
    code = [s for s in elf.sections if s.flags & elf64.SHF_EXEC]
    for unit in Debug(elf).units():
        try:
            places = list(unit.places())
        except (IndexError, KeyError, ValueError, struct.error, Damaged):
            continue
        for name, address in places:
            if any(s.addr <= address < s.addr + s.size for s in code):
                found[name].add(address)
    return {name: sorted(found[name]) for name in sorted(found)}


def source_lines(places):
    yield from head("Inlined functions", "gen_inlines.py", "kernel/debug/inlines.c")
    rows, offset, first = [], 0, 0
    for name, addresses in places.items():
        rows.append(f"dd {offset}, {first}, {len(addresses)}")
        offset += len(name.encode()) + 1
        first += len(addresses)
    yield from table("inlines_table", rows)
    yield from table("inlines_total", [f"dd {len(rows)}"])
    yield from table(
        "inlines_places",
        [f"dd {low(address)}" for addresses in places.values() for address in addresses],
    )
    yield from table("inlines_names", [string(name) for name in places])


def main():
    nasm_table.main(
        "gen_inlines",
        "inlined functions",
        lambda image: places_of(elf64.load(image)),
        source_lines,
        {},
    )


if __name__ == "__main__":
    main()
