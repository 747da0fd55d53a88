#!/usr/bin/env python3
"""call_thunks.py - lets each function that has a thunk call it, in the file of an image.

    call_thunks.py IMAGE

The functions were compiled with ten bytes of NOPs at their entries. The first five are
the NOP of every function (entry_nops.py); a call of the thunk replaces the others. A
second run changes nothing.
"""

import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../kernel/debug"))
import elf64

THUNK = "contract_thunks."
PLACE, CALL_LEN = 5, 5
NOPS = b"\x90" * CALL_LEN
CALL = b"\xe8"


def calls(elf):
    """(offset in the file, the call) of each function that has a thunk."""
    symbols = list(elf.symbols())
    thunks = {s.name: s.value for s in symbols if s.name.startswith(THUNK)}
    for symbol in symbols:
        thunk = thunks.get(THUNK + symbol.name)
        if thunk is None or symbol.type != elf64.STT_FUNC:
            continue
        place = symbol.value + PLACE
        offset = elf.file_offset(place, CALL_LEN)
        code = elf.bytes_at(offset, CALL_LEN)
        if code == NOPS or code.startswith(CALL):
            yield offset, CALL + struct.pack("<i", thunk - place - CALL_LEN)


def main():
    path = sys.argv[1]
    try:
        found = list(calls(elf64.load(path)))
    except (OSError, elf64.ElfError) as error:
        sys.exit(f"call_thunks: {path}: {error}")
    with open(path, "r+b") as file:
        for offset, call in found:
            file.seek(offset)
            file.write(call)
    print(f"call_thunks: {len(found)} functions")


if __name__ == "__main__":
    main()
