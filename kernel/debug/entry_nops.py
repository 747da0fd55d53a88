#!/usr/bin/env python3
"""entry_nops.py - makes the five entry NOPs of every function one instruction, in the file.

    entry_nops.py IMAGE

-fpatchable-function-entry=5 reserves five bytes. gcc fills them with five NOPs of one
byte, clang with a NOP of five bytes that has a displacement of its own choice. Right
after the link, this program replaces them by the NOP of five bytes that the manuals
recommend. So the listing, the tables, the debugger and the memory have the same first
instruction of each function. The section __patchable_function_entries has the addresses.
A second run changes nothing. Other bytes at such an address are an error, and then
nothing is written.
"""

import struct
import sys

sys.dont_write_bytecode = True
import elf64

NOP_LEN = 5
NOP = bytes.fromhex("0f1f440000")
NOP_ANY_DISPLACEMENT = NOP[:4]
FIVE_NOPS = b"\x90" * NOP_LEN
SECTION = "__patchable_function_entries"


def entries_read(elf):
    section = elf.section(SECTION)
    if not section:
        raise elf64.ElfError(f"no section {SECTION}")
    content = elf.content(section)
    if len(content) % 8:
        raise elf64.ElfError(f"{SECTION} is not a list of addresses")
    return [addr for (addr,) in struct.iter_unpack("<Q", content)]


def is_reserved(code):
    return code == FIVE_NOPS or code[:4] == NOP_ANY_DISPLACEMENT


def places_find(elf, entries):
    """File offsets of the entries that do not have the recommended NOP yet."""
    places = set()
    for addr in entries:
        offset = elf.file_offset(addr, NOP_LEN)
        if offset is None:
            raise elf64.ElfError(f"{elf.symbol_at(addr)}: {addr:#x} is not in the file")
        code = elf.bytes_at(offset, NOP_LEN)
        if not is_reserved(code):
            raise elf64.ElfError(
                f"{elf.symbol_at(addr)}: {code.hex(' ')} at {addr:#x} are no entry NOPs"
            )
        if code != NOP:
            places.add(offset)
    return places


def places_write(path, places):
    with open(path, "r+b") as file:
        for offset in sorted(places):
            file.seek(offset)
            file.write(NOP)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: entry_nops.py IMAGE")
    path = sys.argv[1]
    try:
        elf = elf64.load(path)
        entries = entries_read(elf)
        places = places_find(elf, entries)
        places_write(path, places)
    except (OSError, elf64.ElfError) as error:
        sys.exit(f"entry_nops: {path}: {error}")
    print(f"entry_nops: {len(entries)} functions, {len(places)} rewritten")


if __name__ == "__main__":
    main()
