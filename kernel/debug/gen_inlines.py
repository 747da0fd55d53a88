#!/usr/bin/env python3
"""gen_inlines.py - writes a table of inlined functions of an image as NASM source.

    gen_inlines.py -o inlines.asm IMAGE
    gen_inlines.py -o inlines.asm --empty

A function that was inlined everywhere has no symbol. A function that was inlined at some
places has fewer calls than its source shows. Debug data has these places, and this table
lists them by name.

This program reads units of DWARF 4, as the kernel's own units are (dwarf.py), and skips
other units. kernel/debug/inlines.c describes the layout of the table.
"""

import struct
import sys
from collections import defaultdict

sys.dont_write_bytecode = True
import dwarf
import elf64
import nasm_table
from nasm_table import head, low, string, table


def name_of(unit, values):
    for _ in range(8):  # an origin may have an origin
        if dwarf.AT_NAME in values:
            return values[dwarf.AT_NAME]
        offset = values.get(dwarf.AT_ORIGIN, values.get(dwarf.AT_SPECIFICATION))
        tag, values = unit.entries.get(offset, (0, {}))
        if tag != dwarf.TAG_FUNCTION:
            return None
    return None


def address_of(unit, values):
    if dwarf.AT_RANGES in values:
        ranges = unit.debug.ranges
        first, end = struct.unpack_from("<QQ", ranges, values[dwarf.AT_RANGES])
        if first < end:
            return values.get(dwarf.AT_ENTRY_PC, unit.base + first)
    return values.get(dwarf.AT_ENTRY_PC, values.get(dwarf.AT_LOW_PC))


def places(unit):
    """(name, address) of each inlined function of a unit."""
    for values in unit.of(dwarf.TAG_INLINED):
        name, address = name_of(unit, values), address_of(unit, values)
        if name and address:
            yield name, address


def places_of(elf):
    """{name: sorted addresses}; units that cannot be read are left out."""
    found = defaultdict(set)
    code = [s for s in elf.sections if s.flags & elf64.SHF_EXEC]
    for unit in dwarf.units(elf):
        try:
            inlined = list(places(unit)) if unit.version == 4 else []
        except dwarf.DAMAGE:
            continue
        for name, address in inlined:
            if any(s.addr <= address < s.addr + s.size for s in code):
                found[name].add(address)
    return {name: sorted(found[name]) for name in sorted(found)}


def source_lines(found):
    yield from head("Inlined functions", "gen_inlines.py", "kernel/debug/inlines.c")
    rows, offset, first = [], 0, 0
    for name, addresses in found.items():
        rows.append(f"dd {offset}, {first}, {len(addresses)}")
        offset += len(name.encode()) + 1
        first += len(addresses)
    yield from table("inlines_table", rows)
    yield from table("inlines_total", [f"dd {len(rows)}"])
    yield from table(
        "inlines_places",
        [f"dd {low(address)}" for addresses in found.values() for address in addresses],
    )
    yield from table("inlines_names", [string(name) for name in found])


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
