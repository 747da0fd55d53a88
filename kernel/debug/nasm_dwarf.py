#!/usr/bin/env python3
"""nasm_dwarf.py - corrects the debug data of NASM's objects.

    kernel/debug/nasm_dwarf.py OBJECT      changes it in place

NASM 2.16 writes one entry for all the code of a file: a DW_TAG_subprogram with an address
and a location list, which is 4 bytes of 0 and leads to no list. Behind the end of the
unit's entries, NASM writes another 4 bytes of 0, which objdump and readelf complain
about. This program makes the last attribute, the location list, a line number of 8 bytes:
DW_AT_decl_line, in which 0 means "unknown". It covers the superfluous bytes but the last,
which ends the entries. An object that does not look like this, such as an object of a
later NASM, stays as it is.

NASM says that the unit begins where one section begins, and is as long as all sections.
With more than one section of code this is wrong, and gdb complains at each address
outside. Such a source has `code_sections` at its end (kernel/base/proc.inc), which makes
a .debug_ranges. This program makes the end of the unit a reference to .debug_ranges.

Source: DWARF Debugging Information Format, version 3, "Declaration Coordinates",
"Non-Contiguous Address Ranges", "Attribute Encodings".
"""

import struct
import sys

import elf64

SUBPROGRAM = bytes.fromhex("02 2e 00 11 01")  # entry kind 2: a subprogram with a low_pc
FRAME_BASE, DECL_LINE = bytes.fromhex("40 06"), bytes.fromhex("3b 07")  # data4, data8
HIGH_PC, RANGES = bytes.fromhex("12 01"), bytes.fromhex("55 07")  # an address; data8
HIGH_PC_PLACE = 11 + 1 + 8  # in the unit: behind its header, its kind and its low_pc
END = bytes(3)  # of the attributes, and of the kinds
# Bytes of the entry (kind, low_pc, frame_base), of the end of all entries, and too many.
ENTRY_LEN, END_LEN, SUPERFLUOUS_LEN = 1 + 8 + 4, 1, 4


def place_of_attribute(elf):
    """The file offset of the attribute to change; None: the object looks different."""
    info, kinds = elf.section(".debug_info"), elf.section(".debug_abbrev")
    if not info or not kinds or info.size < 4:
        return None
    unit, table = elf.content(info), elf.content(kinds)
    tail = unit[-(ENTRY_LEN + END_LEN + SUPERFLUOUS_LEN) :]
    if struct.unpack_from("<I", unit)[0] != len(unit) - 4:
        return None
    if tail[:1] != b"\x02" or any(tail[1:]):
        return None
    if not table.endswith(SUBPROGRAM + FRAME_BASE + END):
        return None
    return kinds.offset + len(table) - len(FRAME_BASE + END)


def section_symbol(elf, name):
    """The number of the symbol that stands for a section."""
    table = next(s for s in elf.sections if s.type == elf64.SHT_SYMTAB)
    index = [s.name for s in elf.sections].index(name)
    for i, entry in enumerate(elf64.SYMBOL.iter_unpack(elf.content(table))):
        if entry[1] & 15 == elf64.STT_SECTION and entry[3] == index:
            return i
    raise elf64.ElfError(f"no symbol for {name}")


def changes_of_ranges(elf):
    """[(file offset, bytes)]: the changes that make the unit refer to its ranges."""
    kinds, relocations = elf.section(".debug_abbrev"), elf.section(".rela.debug_info")
    if not elf.section(".debug_ranges") or not kinds or not relocations:
        return []
    at = elf.content(kinds).find(HIGH_PC)
    rows = elf.content(relocations)
    for row, (place, info, _) in enumerate(elf64.RELOCATION.iter_unpack(rows)):
        if place == HIGH_PC_PLACE and at >= 0:
            symbol = section_symbol(elf, ".debug_ranges")
            moved = elf64.RELOCATION.pack(place, symbol << 32 | info & 0xFFFFFFFF, 0)
            return [
                (kinds.offset + at, RANGES),
                (relocations.offset + row * elf64.RELOCATION.size, moved),
            ]
    raise elf64.ElfError("a unit with .debug_ranges that is not as NASM makes it")


def main():
    path = sys.argv[1]
    elf = elf64.load(path)
    changes = changes_of_ranges(elf)
    place = place_of_attribute(elf)
    if place is not None:
        changes.append((place, DECL_LINE))
    with open(path, "r+b") as file:
        for offset, data in changes:
            file.seek(offset)
            file.write(data)


if __name__ == "__main__":
    try:
        main()
    except (OSError, elf64.ElfError) as error:
        sys.exit(f"nasm_dwarf.py: {error}")
