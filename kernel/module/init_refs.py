#!/usr/bin/env python3
"""init_refs.py - checks that no code or data that stays refers to memory that is freed
when boot is over.

    init_refs.py IMAGE

Functions marked INIT and variables marked INIT_DATA are freed as soon as boot is over
(kernel/module/init_text.c). If other text called such a function later, or if data that
stays had its address, a CPU would jump into freed memory. So this program looks at each
address that the linker has filled in (--emit-relocs keeps a list of them in the image).
An address outside of the freed memory must not lead into it, except for

  - the code that runs before the higher half is entered: it runs first and never again
  - constructors: only boot calls them
  - tables about text: the kernel does not look up addresses of freed text
  - tables of switch statements: they lead to the inside of a function, not to its start

Markers and static keys in a function of boot are refused, too: the kernel would
switch them later.
"""

import bisect
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../debug"))
import elf64

R_64, R_PC32, R_PLT32, R_32, R_32S, R_PC64 = 1, 2, 4, 10, 11, 24
ABSOLUTE = {R_64: 8, R_32: 4, R_32S: 4}
RELATIVE = {R_PC32: 4, R_PLT32: 4, R_PC64: 8}
SIZES = {**ABSOLUTE, **RELATIVE}
BEHIND_FIELD = 4  # most bytes of an instruction that follow a relative address

MAY = ".boot", "__patchable_function_entries"
MAY_BETWEEN = (
    ("init_array_start", "init_array_end"),
    ("extable_start", "extable_end"),
    ("nokprobe_start", "nokprobe_end"),
    ("nokprobe_ranges_start", "nokprobe_ranges_end"),
    ("noretprobe_start", "noretprobe_end"),
)
SWITCHES = (
    ("marker_insns_start", "marker_insns_end"),
    ("static_keys_start", "static_keys_end"),
)


def ranges(values, names):
    return [(values[a], values[b]) for a, b in names if a in values]


def contains(places, place):
    return any(start <= place < end for start, end in places)


class Image:
    def __init__(self, elf):
        self.elf = elf
        symbols = [s for s in elf.symbols() if s.section]
        values = {s.name: s.value for s in symbols}
        self.start, self.end = values["_init_text"], values["_init_end"]
        self.text_end = values["_init_text_end"]
        self.may = ranges(values, MAY_BETWEEN)
        self.switches = ranges(values, SWITCHES)
        sized = sorted(
            (s.value, s.value + s.size, s.name)
            for s in symbols
            if s.size and s.type in (elf64.STT_FUNC, elf64.STT_OBJECT)
        )
        self.starts = [s[0] for s in sized]
        self.sized = sized
        self.functions = {s.value for s in symbols if s.type == elf64.STT_FUNC}

    def name_of(self, addr):
        i = bisect.bisect_right(self.starts, addr) - 1
        if i < 0 or addr >= self.sized[i][1]:
            return hex(addr)
        start, _, name = self.sized[i]
        return name if addr == start else f"{name}+{addr - start:#x}"

    def meant(self, place, kind, section):
        """Return the address to which the field at @place leads. For a relative field in
        an instruction, the result may be up to BEHIND_FIELD bytes too low."""
        size = SIZES.get(kind)
        offset = self.elf.file_offset(place, size or 0)
        if size is None or offset is None:
            raise elf64.ElfError(f"{section.name}: a relocation of type {kind}")
        value = int.from_bytes(self.elf.bytes_at(offset, size), "little", signed=True)
        if kind in RELATIVE:
            value += place + (size if section.flags & elf64.SHF_EXEC else 0)
        return value & (1 << 64) - 1

    def is_freed(self, addr):
        return self.start <= addr < self.end

    def may_refer(self, place, to, section):
        if section.name in MAY or contains(self.may, place):
            return True
        is_data = not section.flags & elf64.SHF_EXEC
        return (
            is_data
            and self.start < to < self.text_end
            and to not in self.functions
            and not contains(self.switches, place)
        )

    def wrong(self):
        """Yield (place, address) for each place that leads to a forbidden address."""
        for place, kind, section in sorted(self.elf.relocations()):
            if self.is_freed(place):
                continue
            to = self.meant(place, kind, section)
            if (
                self.start < to < self.end - BEHIND_FIELD
                and to != self.text_end
                and not self.may_refer(place, to, section)
            ):
                yield place, to


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: init_refs.py IMAGE")
    try:
        image = Image(elf64.load(sys.argv[1]))
        lines = [
            f"{image.name_of(place)} refers to {image.name_of(to)}, which is freed when "
            "boot is over (INIT, INIT_DATA)"
            for place, to in image.wrong()
        ]
    except (OSError, KeyError, elf64.ElfError) as error:
        sys.exit(f"init_refs.py: {sys.argv[1]}: {error}")
    for line in lines:
        print(line, file=sys.stderr)
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
