"""lines.py - makes `next`, `step` and `until` lead through the code of jumps.

A probe that is a jump sends the CPU through code that the engine has made. gdb ends a step
where no line of source is. But if a step comes into the middle of a line, gdb steps on,
until the CPU is at the first instruction of another line. So here gdb gets a file of symbols
in which all addresses where the engine may put its code are one line. No instruction is at
the first address of that line.

Source: DWARF Debugging Information Format, version 4, "Line Number Information".
"""

import os
import struct

import elf64
import gdb

from sonde_gdb import fields, kernel

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


def elf_file(places):
    """Return an ELF file with the sections @places, which have no bytes, and their lines."""
    pairs = b"".join(struct.pack("<QQ", *place) for place in places) + bytes(16)
    sections = [("", 0, 0, 0, b"", 0)]
    for start, end in places:
        flags = elf64.SHF_ALLOC | elf64.SHF_EXEC
        sections.append((".code", elf64.SHT_NOBITS, flags, start, b"", end - start))
    for name, data in (
        (".debug_abbrev", ABBREVIATIONS),
        (".debug_info", info_section()),
        (".debug_line", line_section(places)),
        (".debug_ranges", pairs),
    ):
        sections.append((name, 1, 0, 0, data, len(data)))
    names = b"".join(name.encode() + b"\0" for name, *_ in sections) + b".shstrtab\0"
    sections.append((".shstrtab", 3, 0, 0, names, len(names)))
    data, table = b"", b""
    for name, kind, flags, addr, content, size in sections:
        place = names.index(name.encode() + b"\0")
        offset = elf64.FILE_HEADER.size + len(data)
        row = (place, kind, flags, addr, offset, size, 0, 0, 1, 0)
        table += elf64.SECTION_HEADER.pack(*row)
        data += content
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    at, count = elf64.FILE_HEADER.size + len(data), len(sections)
    numbers = (
        2,
        62,
        1,
        0,
        0,
        at,
        0,
        64,
        0,
        0,
        elf64.SECTION_HEADER.size,
        count,
        count - 1,
    )
    return elf64.FILE_HEADER.pack(ident, *numbers) + data + table


def start():
    file = os.memfd_create("sonde")
    os.write(file, elf_file(ranges()))
    confirm = gdb.parameter("confirm")
    gdb.execute("set confirm off")
    gdb.execute(f"add-symbol-file /proc/self/fd/{file}", to_string=True)
    gdb.execute(f"set confirm {'on' if confirm else 'off'}")
