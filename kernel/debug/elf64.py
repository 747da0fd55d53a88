"""elf64.py - reads ELF files of x86-64: sections, symbols, where an address is in the file.

Shared by the build's tools. Nothing in a file is trusted: a damaged file raises ElfError.
"""

import struct
from collections import namedtuple

SHT_SYMTAB, SHT_RELA, SHT_NOBITS = 2, 4, 8
SHF_WRITE, SHF_ALLOC, SHF_EXEC = 1, 2, 4
SHN_UNDEF, SHN_RESERVED = 0, 0xFF00
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION, STT_FILE, STT_TLS = 0, 1, 2, 3, 4, 6

FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")

Section = namedtuple("Section", "name type flags addr offset size link info")
Symbol = namedtuple("Symbol", "name value size bind type section")  # section: or None
Relocation = namedtuple("Relocation", "place type section")  # of the place


class ElfError(Exception):
    pass


class Elf:
    def __init__(self, data):
        self.data = bytes(data)
        try:
            self.entry = FILE_HEADER.unpack_from(self.data)[4]
            self.sections = self._read_sections()
        except struct.error:
            raise ElfError("the file ends early") from None

    def bytes_at(self, offset, size):
        if offset + size > len(self.data):
            raise ElfError("the file ends early")
        return self.data[offset : offset + size]

    def section(self, name):
        """The section of this name, None if there is none."""
        return next((s for s in self.sections if s.name == name), None)

    def content(self, section):
        if section.type == SHT_NOBITS:
            return b""
        return self.bytes_at(section.offset, section.size)

    def file_offset(self, addr, size):
        """Where the file keeps [addr, addr + size), None if it does not."""
        for s in self.sections:
            if not s.flags & SHF_ALLOC or s.type == SHT_NOBITS:
                continue
            if s.addr <= addr and addr + size <= s.addr + s.size:
                return s.offset + addr - s.addr
        return None

    def symbols(self):
        """Every entry of the symbol table that has a name."""
        for table in self.sections:
            if table.type != SHT_SYMTAB:
                continue
            if table.link >= len(self.sections):
                raise ElfError("the symbol table has no names")
            names = self.content(self.sections[table.link])
            content = self.content(table)
            for entry in SYMBOL.iter_unpack(content[: len(content) // 24 * 24]):
                name, info, _, index, value, size = entry
                if name:
                    yield Symbol(
                        _string(names, name),
                        value,
                        size,
                        info >> 4,
                        info & 15,
                        self._section_of(index),
                    )

    def relocations(self):
        """Every place of what is loaded that the linker has filled in, if it was told to
        keep a list."""
        for table in self.sections:
            if table.type != SHT_RELA or table.info >= len(self.sections):
                continue
            if not self.sections[table.info].flags & SHF_ALLOC:
                continue
            content = self.content(table)
            for place, info, _ in RELOCATION.iter_unpack(
                content[: len(content) // 24 * 24]
            ):
                yield Relocation(place, info & 0xFFFFFFFF, self.sections[table.info])

    def symbol_at(self, addr):
        """ "name+0x12" for an address; only the address if no symbol is below it."""
        below = [
            s
            for s in self.symbols()
            if s.section
            and s.value <= addr
            and s.type in (STT_NOTYPE, STT_FUNC, STT_OBJECT)
        ]
        if not below:
            return hex(addr)
        best = max(below, key=lambda s: (s.value, s.type == STT_FUNC, s.bind))
        return best.name if best.value == addr else f"{best.name}+{addr - best.value:#x}"

    def _section_of(self, index):
        if index == SHN_UNDEF or index >= SHN_RESERVED or index >= len(self.sections):
            return None
        return self.sections[index]

    def _read_sections(self):
        header = FILE_HEADER.unpack_from(self.data)
        ident, machine, table, entry_size, count, names_index = (
            header[0],
            header[2],
            header[6],
            header[11],
            header[12],
            header[13],
        )
        if ident[:6] != b"\x7fELF\x02\x01" or machine != 62:
            raise ElfError("not an ELF file of x86-64")
        if count and entry_size != SECTION_HEADER.size:
            raise ElfError("section headers of an unknown size")
        rows = [
            SECTION_HEADER.unpack_from(self.data, table + i * entry_size)
            for i in range(count)
        ]
        if names_index >= count:
            raise ElfError("the sections have no names")
        names = self.bytes_at(rows[names_index][4], rows[names_index][5])
        return [Section(_string(names, r[0]), *r[1:8]) for r in rows]


def _string(table, offset):
    end = table.find(b"\0", offset)
    if end < 0:
        raise ElfError("a name ends early")
    return table[offset:end].decode("utf-8", "backslashreplace")


def load(path):
    with open(path, "rb") as file:
        return Elf(file.read())
