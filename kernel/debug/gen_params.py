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
import sys

sys.dont_write_bytecode = True
import dwarf
import elf64
import nasm_table
from nasm_table import head, low, string, table

SIGNED, SIGNED_CHAR = 0x05, 0x06
REGISTERS = 6


class Functions:
    """The functions of a unit of debug data."""

    def __init__(self, unit):
        self.unit, self.entries = unit, unit.entries

    def whole(self, values):
        """@values, and the attributes of the entries that it refers to as its origin."""
        found = dict(values)
        for _ in range(8):
            offset = values.get(dwarf.AT_ORIGIN, values.get(dwarf.AT_SPECIFICATION))
            if offset is None or offset not in self.entries:
                return found
            values = self.entries[offset][1]
            found = {**values, **found}
            if not found.get("parameters") and values.get("parameters"):
                found["parameters"] = values["parameters"]
        return found

    def type_of(self, values):
        """The word for the type in @values; None if one register cannot hold it."""
        offset = values.get(dwarf.AT_TYPE)
        for _ in range(16):
            if offset is None:
                return "void"
            tag, type_values = self.entries.get(offset, (0, {}))
            if tag == dwarf.TAG_POINTER:
                return "string" if self.is_char(type_values.get(dwarf.AT_TYPE)) else "x64"
            if tag == dwarf.TAG_ENUM:
                return "s32"
            if tag == dwarf.TAG_BASE:
                size, encoding = (
                    type_values[dwarf.AT_SIZE],
                    type_values[dwarf.AT_ENCODING],
                )
                sign = "s" if encoding in (SIGNED, SIGNED_CHAR) else "u"
                return f"{sign}{8 * size}" if size in (1, 2, 4, 8) else None
            if tag not in dwarf.THROUGH:
                return None
            offset = type_values.get(dwarf.AT_TYPE)
        return None

    def is_char(self, offset):
        for _ in range(4):
            tag, values = self.entries.get(offset, (0, {}))
            if tag == dwarf.TAG_BASE:
                return values.get(dwarf.AT_NAME) == "char"
            if tag not in dwarf.THROUGH:
                return False
            offset = values.get(dwarf.AT_TYPE)
        return False

    def lines(self):
        for values in self.unit.of(dwarf.TAG_FUNCTION):
            if dwarf.AT_LOW_PC not in values:
                continue
            whole = self.whole(values)
            words = [self.type_of(whole) or "void"]
            for parameter in whole.get("parameters", [])[:REGISTERS]:
                known = self.whole(parameter)
                kind = self.type_of(known)
                if kind in (None, "void") or dwarf.AT_NAME not in known:
                    break
                words.append(f"{known[dwarf.AT_NAME]}:{kind}")
            yield values[dwarf.AT_LOW_PC], " ".join(words)


def params_of(elf):
    """{address: line}; units that cannot be read are left out."""
    symbols = sorted((s.value, s.name) for s in elf.symbols() if s.value)
    starts = [value for value, _ in symbols]
    clones = {value for value, name in symbols if "." in name}
    found = {}
    for unit in dwarf.units(elf):
        try:
            lines = list(Functions(unit).lines()) if unit.version == 4 else []
        except dwarf.DAMAGE:
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
