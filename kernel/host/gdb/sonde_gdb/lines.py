"""lines.py - makes `next`, `step` and `until` lead through the code of jumps.

A probe that is a jump sends the CPU through code that the engine has made. gdb ends a step
where no line of source is. But if a step comes into the middle of a line, gdb steps on,
until the CPU is at the first instruction of another line. So here gdb gets a file of symbols
in which all addresses where the engine may put its code are one line. No instruction is at
the first address of that line.

Source: DWARF Debugging Information Format, version 4, "Line Number Information".
"""

import struct

from sonde_gdb import fields, kernel, objects

NAME = "the code of a probe"
END = 2**64 - fields.PAGE_LEN

# A compilation unit with a name, an address, ranges and lines, and without children.
ABBREVIATIONS = bytes.fromhex("01 11 00 0308 1101 5517 1017 0000 00")
LENGTHS = bytes.fromhex("00 01 01 01 01 00 00 00 01 00 00 01")  # of standard opcodes


def ranges():
    """Return the ranges in which pads and cells may be (kernel/memmap.h)."""
    window = kernel.address("_end") + fields.LARGE_PAGE_LEN - 1 & -fields.LARGE_PAGE_LEN
    return [
        (fields.REACH_START, kernel.address("_text")),
        (window + fields.MODULE_WINDOW_LEN, END),
    ]


def counted(body):
    return struct.pack("<I", len(body)) + body


def line_section(places):
    text = NAME.encode() + b"\0"
    head = struct.pack("<BBBbBB", 1, 1, 1, -5, 14, 13) + LENGTHS
    head += b"\0" + text + b"\0\0\0" + b"\0"
    program = b""
    for start, end in places:
        program += b"\0\x09\x02" + struct.pack("<Q", start) + b"\x01"
        program += b"\0\x09\x02" + struct.pack("<Q", end) + b"\0\x01\x01"
    return counted(struct.pack("<H", 4) + counted(head) + program)


def info_section():
    unit = b"\x01" + NAME.encode() + b"\0" + struct.pack("<QII", 0, 0, 0)
    return counted(struct.pack("<HIB", 4, 0, 8) + unit)


def sections_of(places):
    """Return the Sections of a file with @places, which have no bytes, and their lines."""
    pairs = b"".join(struct.pack("<QQ", *place) for place in places) + bytes(16)
    return [
        *(objects.code(".code", *place) for place in places),
        objects.Section(".debug_abbrev", data=ABBREVIATIONS),
        objects.Section(".debug_info", data=info_section()),
        objects.Section(".debug_line", data=line_section(places)),
        objects.Section(".debug_ranges", data=pairs),
    ]


def start():
    objects.add(objects.elf_file(sections_of(ranges())))
