#!/usr/bin/env python3
"""gen_ksyms.py - writes the symbol table of an image as NASM source, to be linked into it.

    gen_ksyms.py -o ksyms.asm IMAGE
    gen_ksyms.py -o ksyms.asm --empty

The table is a part of the image that it describes, so the image is linked twice: with an
empty table, and with the table of that image. The tables come last in the image, so nothing
moves; their own symbols, which do, are left out.

kernel/debug/ksyms_table.h describes the layout. The table leaves out symbols of sections
and files, of the tables themselves, symbols of sections that are not loaded, absolute
symbols (they are numbers, not addresses), names that begin with a dot, and local labels of
NASM, with names like parent.label.
"""

import sys
from collections import namedtuple

sys.dont_write_bytecode = True
import elf64
import nasm_table
from nasm_table import head, string, table

NONE = 0xFFFFFFFF

Entry = namedtuple("Entry", "start size name type outer")


def is_wanted(symbol):
    if not symbol.section or not symbol.section.flags & elf64.SHF_ALLOC:
        return False
    if symbol.section.name == nasm_table.SECTION:
        return False
    if symbol.type in (elf64.STT_SECTION, elf64.STT_FILE, elf64.STT_TLS):
        return False
    if is_label(symbol) and "." in symbol.name:
        return False
    return not symbol.name.startswith(".")


def is_label(symbol):
    """Is @symbol a label of an assembler? Its type does not tell: with -g, NASM says that
    a label in front of padding is an object."""
    if symbol.bind != elf64.STB_LOCAL or symbol.type == elf64.STT_FUNC:
        return False
    return symbol.type == elf64.STT_NOTYPE or symbol.section.flags & elf64.SHF_EXEC


def type_letter(symbol):
    """The letter that nm prints. A weak symbol counts as a global symbol, and data
    between functions as data."""
    section = symbol.section
    if section.flags & elf64.SHF_EXEC and symbol.type != elf64.STT_OBJECT:
        letter = "t"
    elif section.type == elf64.SHT_NOBITS:
        letter = "b"
    elif section.flags & elf64.SHF_WRITE:
        letter = "d"
    else:
        letter = "r"
    return letter if symbol.bind == elf64.STB_LOCAL else letter.upper()


def sort_key(symbol):
    """Sorts by address; at one address, the outermost symbol first, best name last."""
    return (symbol.value, -symbol.size, symbol.bind != elf64.STB_LOCAL, symbol.name)


def label_size(symbol, starts, place):
    """The size of a symbol that has none: up to the next symbol, within its section."""
    end = symbol.section.addr + symbol.section.size
    following = next((s for s in starts[place + 1 :] if s > symbol.value), end)
    return max(0, min(following, end) - symbol.value)


def entries_make(symbols):
    symbols = sorted(filter(is_wanted, symbols), key=sort_key)
    starts = [s.value for s in symbols]
    entries = []
    around = []  # indices of the symbols that reach beyond this one's start
    for i, s in enumerate(symbols):
        while around and entries[around[-1]].start + entries[around[-1]].size <= s.value:
            around.pop()
        outer = around[-1] if around else NONE
        size = s.size
        if not size and outer == NONE:
            size = label_size(s, starts, i)
        if size > NONE:
            raise elf64.ElfError(f"{s.name} is larger than 4 GiB")
        entries.append(Entry(s.value, size, s.name, type_letter(s), outer))
        if s.size:
            around.append(i)
    return entries


def names_pool(entries):
    """{name: offset}, each name once, in order of appearance; and the pool's length."""
    offsets, length = {}, 0
    for e in entries:
        if e.name not in offsets:
            offsets[e.name] = length
            length += len(e.name.encode()) + 1
    return offsets, length


def source_lines(entries):
    offsets, _ = names_pool(entries)
    by_name = sorted(range(len(entries)), key=lambda i: (entries[i].name.encode(), i))
    yield from head(
        "The symbols of the image", "gen_ksyms.py", "kernel/debug/ksyms_table.h"
    )
    yield from table(
        "ksyms_table",
        [
            f"dq {e.start:#x}\ndd {e.size}, {offsets[e.name]}, {e.outer:#x}, '{e.type}'"
            for e in entries
        ],
    )
    yield from table("ksyms_by_name", [f"dd {i}" for i in by_name])
    yield from table("ksyms_total", [f"dd {len(entries)}"])
    yield from table("ksyms_names", map(string, offsets))


def main():
    nasm_table.main(
        "gen_ksyms",
        "symbol table of an image",
        lambda image: entries_make(elf64.load(image).symbols()),
        source_lines,
        [],
    )


if __name__ == "__main__":
    main()
