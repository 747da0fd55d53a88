#!/usr/bin/env python3
"""nasm_dwarf.py - make the debug data of NASM's objects end where it says.

    kernel/debug/nasm_dwarf.py OBJECT      changes it in place

NASM 2.16 writes one entry for all the code of a file, DW_TAG_subprogram with an address and
a location list that is not there, 4 bytes of 0; and behind the end of the unit's entries
another 4 bytes of 0, which objdump and readelf complain about. Here the last attribute
becomes a line number of 8 bytes, DW_AT_decl_line, whose value 0 means "unknown": it covers
the superfluous bytes, and the next byte ends the entries. An object that does not look like
this, say a later NASM's, stays as it is.

Source: DWARF Debugging Information Format, version 3, "Declaration Coordinates",
"Attribute Encodings".
"""

import struct
import sys

import elf64

SUBPROGRAM = bytes.fromhex("02 2e 00 11 01")  # entry kind 2: a subprogram with a low_pc
FRAME_BASE, DECL_LINE = bytes.fromhex("40 06"), bytes.fromhex("3b 07")  # data4, data8
END = bytes(3)  # of the attributes, and of the kinds
# The entry: its kind, low_pc, frame_base; the end of the unit's entries; what is too much.
ENTRY_LEN, END_LEN, SUPERFLUOUS_LEN = 1 + 8 + 4, 1, 4


def place_of_attribute(elf):
    """The offset in the file of what is to be changed; None: the object is another one's."""
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


def main():
    path = sys.argv[1]
    place = place_of_attribute(elf64.load(path))
    if place is None:
        return
    with open(path, "r+b") as file:
        file.seek(place)
        file.write(DECL_LINE)


if __name__ == "__main__":
    try:
        main()
    except (OSError, elf64.ElfError) as error:
        sys.exit(f"nasm_dwarf.py: {error}")
