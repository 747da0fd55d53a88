#!/usr/bin/env python3
"""gen_params.py - writes the names and types of functions' parameters as NASM source.

    gen_params.py -o params.asm IMAGE
    gen_params.py -o params.asm --empty

Each function that debug data knows has a line of words: what it returns, then NAME:TYPE for
each parameter that is in a register, in order.

    void file:x64 buf:x64 count:u64 pos:x64

TYPE is u8..u64, s8..s64, x64 for a pointer, string for a pointer to characters. The line
ends before the first parameter that is not in a register. Clones of a function (.isra.0
and so on) may have lost parameters, and have no line. kernel/debug/params.c describes the
layout of the table.
"""

import bisect
import struct
import sys

sys.dont_write_bytecode = True
import elf64
import gen_inlines
import nasm_table
from gen_inlines import number
from nasm_table import head, low, string, table

TAG_PARAMETER, TAG_FUNCTION = 0x05, 0x2E
TAG_POINTER, TAG_BASE, TAG_ENUM = 0x0F, 0x24, 0x04
THROUGH = {0x16, 0x26, 0x35, 0x37}  # typedef, const, volatile, restrict
AT_NAME, AT_SIZE, AT_ENCODING, AT_TYPE = 0x03, 0x0B, 0x3E, 0x49
AT_LOW_PC, AT_ORIGIN, AT_SPECIFICATION = 0x11, 0x31, 0x47
WANTED = {AT_NAME, AT_SIZE, AT_ENCODING, AT_TYPE, AT_LOW_PC, AT_ORIGIN, AT_SPECIFICATION}
SIGNED, SIGNED_CHAR = 0x05, 0x06
REGISTERS = 6


class Unit(gen_inlines.Unit):
    """A unit: (tag, attributes) of functions, parameters and types, by their offsets."""

    def read(self):
        info = self.debug.info
        table = self.debug.abbreviations(number(info, self.start + 6, 4))
        keep = {TAG_PARAMETER, TAG_FUNCTION, TAG_POINTER, TAG_BASE, TAG_ENUM, *THROUGH}
        self.functions = []  # (attributes, attributes of parameters)
        at, function = self.start + 11, None
        while at < self.end:
            offset = at
            code, at = gen_inlines.leb(info, at)
            if not code:
                continue
            tag, pairs = table[code]
            values, at = self.attributes(pairs, at, tag in keep)
            if tag in keep:
                self.entries[offset] = tag, values
            if tag == TAG_FUNCTION:
                function = values, []
                self.functions.append(function)
                values["parameters"] = function[1]
            elif tag == TAG_PARAMETER and function:
                function[1].append(values)
            else:
                function = None  # the parameters are the first entries in a function

    def attributes(self, pairs, at, keep):
        gen_inlines.WANTED, before = WANTED, gen_inlines.WANTED
        try:
            return super().attributes(pairs, at, keep)
        finally:
            gen_inlines.WANTED = before

    def whole(self, values):
        """@values, and the attributes of the entries that it refers to as its origin."""
        found = dict(values)
        for _ in range(8):
            offset = values.get(AT_ORIGIN, values.get(AT_SPECIFICATION))
            if offset is None or offset not in self.entries:
                return found
            values = self.entries[offset][1]
            found = {**values, **found}
            if not found.get("parameters") and values.get("parameters"):
                found["parameters"] = values["parameters"]
        return found

    def type_of(self, values):
        """The word for the type in @values; None if one register cannot hold it."""
        offset = values.get(AT_TYPE)
        for _ in range(16):
            if offset is None:
                return "void"
            tag, type_values = self.entries.get(offset, (0, {}))
            if tag == TAG_POINTER:
                return "string" if self.is_char(type_values.get(AT_TYPE)) else "x64"
            if tag == TAG_ENUM:
                return "s32"
            if tag == TAG_BASE:
                size, encoding = type_values[AT_SIZE], type_values[AT_ENCODING]
                sign = "s" if encoding in (SIGNED, SIGNED_CHAR) else "u"
                return f"{sign}{8 * size}" if size in (1, 2, 4, 8) else None
            if tag not in THROUGH:
                return None
            offset = type_values.get(AT_TYPE)
        return None

    def is_char(self, offset):
        for _ in range(4):
            tag, values = self.entries.get(offset, (0, {}))
            if tag == TAG_BASE:
                return values.get(AT_NAME) == "char"
            if tag not in THROUGH:
                return False
            offset = values.get(AT_TYPE)
        return False

    def lines(self):
        self.read()
        for values, _ in self.functions:
            if AT_LOW_PC not in values:
                continue
            whole = self.whole(values)
            words = [self.type_of(whole) or "void"]
            for parameter in whole.get("parameters", [])[:REGISTERS]:
                known = self.whole(parameter)
                kind = self.type_of(known)
                if kind in (None, "void") or AT_NAME not in known:
                    break
                words.append(f"{known[AT_NAME]}:{kind}")
            yield values[AT_LOW_PC], " ".join(words)


def params_of(elf):
    """{address: line}; units that cannot be read are left out."""
    symbols = sorted((s.value, s.name) for s in elf.symbols() if s.value)
    starts = [value for value, _ in symbols]
    clones = {value for value, name in symbols if "." in name}
    found = {}
    for unit in gen_inlines.Debug(elf).units():
        unit.__class__ = Unit
        try:
            lines = list(unit.lines())
        except (IndexError, KeyError, ValueError, struct.error, gen_inlines.Damaged):
            continue
        for address, line in lines:
            at = bisect.bisect_left(starts, address)
            is_symbol = at < len(starts) and starts[at] == address
            if is_symbol and address not in clones:
                found[address] = line
    return dict(sorted(found.items()))


def source_lines(params):
    yield from head("Parameters of functions", "gen_params.py", "kernel/debug/params.c")
    offsets, size = {}, 0
    for line in params.values():
        if line not in offsets:
            offsets[line] = size
            size += len(line.encode()) + 1
    yield from table(
        "params_table",
        [f"dd {low(address)}, {offsets[line]}" for address, line in params.items()],
    )
    yield from table("params_total", [f"dd {len(params)}"])
    yield from table("params_lines", [string(line) for line in offsets])


def main():
    nasm_table.main(
        "gen_params",
        "parameters of functions",
        lambda image: params_of(elf64.load(image)),
        source_lines,
        {},
    )


if __name__ == "__main__":
    main()
