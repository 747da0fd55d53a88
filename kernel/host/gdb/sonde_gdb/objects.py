"""objects.py - makes ELF files in memory, and gives them to gdb as files of symbols."""

import os
import struct
from dataclasses import dataclass

import elf64
import gdb

SHT_PROGBITS, SHT_STRTAB = 1, 3


@dataclass
class Section:
    name: str
    kind: int = SHT_PROGBITS
    flags: int = 0
    addr: int = 0
    data: bytes = b""
    size: int = 0  # without data
    link: int = 0
    info: int = 0
    entry: int = 0


def code(name, start, end):
    """Return a section for addresses of which gdb has the bytes from the guest."""
    flags = elf64.SHF_ALLOC | elf64.SHF_EXEC
    return Section(name, elf64.SHT_NOBITS, flags, start, b"", end - start)


def symbol_sections(symbols, after):
    """Return the sections for @symbols, [(name, start, size, type)], all of which are in
    section 1. @after: so many sections stand before these two, without the nameless one
    """
    names, table = b"\0", bytes(24)
    for name, start, size, kind in symbols:
        info = elf64.STB_GLOBAL << 4 | kind
        table += struct.pack("<IBBHQQ", len(names), info, 0, 1, start, size)
        names += name.encode() + b"\0"
    return [
        Section(".symtab", elf64.SHT_SYMTAB, 0, 0, table, 0, after + 2, 1, 24),
        Section(".strtab", SHT_STRTAB, 0, 0, names),
    ]


def elf_file(sections):
    """Return an executable of these Sections."""
    names = b"".join(b"\0" + section.name.encode() for section in sections)
    names += b"\0.shstrtab\0"
    data, table = b"", bytes(elf64.SECTION_HEADER.size)
    for section in [*sections, Section(".shstrtab", SHT_STRTAB, 0, 0, names)]:
        table += elf64.SECTION_HEADER.pack(
            names.index(b"\0" + section.name.encode() + b"\0") + 1,
            section.kind,
            section.flags,
            section.addr,
            elf64.FILE_HEADER.size + len(data),
            len(section.data) or section.size,
            section.link,
            section.info,
            1,
            section.entry,
        )
        data += section.data
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    at, count = elf64.FILE_HEADER.size + len(data), len(sections) + 2
    sizes = elf64.FILE_HEADER.size, 0, 0, elf64.SECTION_HEADER.size
    head = (ident, 2, 62, 1, 0, 0, at, 0, *sizes, count, count - 1)
    return elf64.FILE_HEADER.pack(*head) + data + table


def add(content):
    """Give gdb the file @content. Return its name in gdb."""
    file = os.memfd_create("sonde")
    os.write(file, content)
    path = f"/proc/self/fd/{file}"
    quietly(f"add-symbol-file {path}")
    return path


def remove(path):
    quietly(f"remove-symbol-file {path}")
    os.close(int(path.rpartition("/")[2]))


def quietly(command):
    confirm = gdb.parameter("confirm")
    gdb.execute("set confirm off")
    try:
        gdb.execute(command, to_string=True)
    finally:
        gdb.execute(f"set confirm {'on' if confirm else 'off'}")
