#!/usr/bin/env python3
"""same_text.py - compare the functions of two images of the kernel.

    tests/tools/same_text.py OLD.elf NEW.elf

Functions are compared by name; functions with the same name are compared as a set. Where
the linker has written an address, the target is compared: a symbol and the distance from
it, or a section if there is no symbol. So a function, a file or an object may move. A
changed instruction, constant or callee is reported. Exit status: 0 the same, 1 different,
2 an error.
"""

import os
import sys
from bisect import bisect_right
from collections import defaultdict

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "kernel", "debug"))
from elf64 import SHF_ALLOC, SHF_EXEC, STT_FUNC, STT_NOTYPE, STT_OBJECT, Elf, ElfError

WIDTH = {1: 8, 24: 8, 2: 4, 4: 4, 9: 4, 41: 4, 42: 4, 10: 4, 11: 4, 12: 2, 14: 1, 15: 1}
RELATIVE = (2, 4, 9, 41, 42, 15, 24)
IMAGE_BASE = 0xFFFFFFFF80000000
SHOWN_MAX = 20


# Opcodes with an immediate behind the memory operand, and the size of the immediate. With
# a 66 prefix, 4 becomes 2. F6 and F7 have an immediate only if their reg field is 0 or 1.
IMMEDIATE = {0x80: 1, 0x83: 1, 0xC0: 1, 0xC1: 1, 0xC6: 1, 0x6B: 1, 0xF6: 1,
             0x81: 4, 0x69: 4, 0xC7: 4, 0xF7: 4}  # fmt: skip
IMMEDIATE_0F = {0x70, 0x71, 0x72, 0x73, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6}


def immediate_behind(code, at):
    """The size of the immediate between the displacement at code[at] and the end of the
    instruction: the CPU adds the displacement to that end.
    """
    before = bytes(8) + code[:at]
    modrm, opcode, escape = before[-1], before[-2], before[-3]
    if modrm & 0xC7 != 5:  # not a rip-relative operand, so a branch
        return 0
    if escape == 0x0F:
        return 1 if opcode in IMMEDIATE_0F else 0
    if opcode in (0xF6, 0xF7) and modrm & 0x30:
        return 0
    size = IMMEDIATE.get(opcode, 0)
    is_short = 0x66 in (escape, before[-4] if escape & 0xF0 == 0x40 else 0)
    return 2 if size == 4 and is_short else size


class Image:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.elf = Elf(file.read())
        self.loaded = [s for s in self.elf.sections if s.flags & SHF_ALLOC]
        named = {}
        for s in self.elf.symbols():
            if s.section and s.type in (STT_NOTYPE, STT_FUNC, STT_OBJECT):
                best = named.get(s.value)
                if not best or (s.type, s.name) > (best.type, best.name):
                    named[s.value] = s
        self.symbols = [named[value] for value in sorted(named)]
        self.starts = [s.value for s in self.symbols]
        self.places = defaultdict(list)
        for r in self.elf.relocations():
            if r.section.flags & SHF_EXEC:
                if r.type not in WIDTH:
                    raise ElfError(f"a relocation of type {r.type} at {r.place:#x}")
                self.places[r.section].append(r)
        if not self.places:
            raise ElfError(f"{path} was linked without --emit-relocs")

    def readings(self, addr):
        """The meanings that an address may have, in a form that does not change when code
        moves: the start of a symbol, its end, or a place inside. Code that runs before
        paging uses physical addresses.
        """
        inside, edges = set(), set()
        for base in (0, IMAGE_BASE):
            at = bisect_right(self.starts, addr + base) - 1
            for symbol in self.symbols[max(at - 1, 0) : at + 1]:
                distance = addr + base - symbol.value
                if 0 < distance < symbol.size:
                    inside.add((symbol.name, distance))
                elif distance in (0, symbol.size):
                    edges.add((symbol.name, distance))
        if not inside and all(distance for _, distance in edges):  # no symbol starts here
            edges.update(
                (s.name, None) for s in self.loaded if s.addr <= addr <= s.addr + s.size
            )
        return inside | edges or {(hex(addr), None)}

    def functions(self):
        """{name: [content]}"""
        found = defaultdict(list)
        for section in self.loaded:
            if not section.flags & SHF_EXEC:
                continue
            text = self.elf.content(section)
            places = sorted(self.places[section], key=lambda r: r.place)
            starts = [r.place for r in places]
            inside = [s for s in self.symbols if s.section is section]
            for i, symbol in enumerate(inside):
                last = section.addr + section.size
                if i + 1 < len(inside):
                    last = inside[i + 1].value
                end = min(symbol.value + symbol.size if symbol.size else last, last)
                first = bisect_right(starts, symbol.value - 1)
                content = self.masked(
                    section,
                    text,
                    symbol,
                    end,
                    places[first : bisect_right(starts, end - 1)],
                )
                found[symbol.name].append(content)
        return found

    def masked(self, section, text, symbol, end, places):
        code = bytearray(text[symbol.value - section.addr : end - section.addr])
        leads_to = []
        for r in places:
            at, width = r.place - symbol.value, WIDTH[r.type]
            value = int.from_bytes(code[at : at + width], "little", signed=True)
            code[at : at + width] = bytes(width)
            if r.type in RELATIVE:
                value += r.place + 4 + immediate_behind(code, at)
            target = value & (1 << 64) - 1
            leads_to.append((at, self.readings(target)))
        if not symbol.size:  # the padding up to the next symbol is up to the linker
            code = code.rstrip(b"\xcc\x90")
        return bytes(code), leads_to


def is_same(one, other):
    return (
        one[0] == other[0]
        and len(one[1]) == len(other[1])
        and all(
            here == there and mine & others
            for (here, mine), (there, others) in zip(one[1], other[1])
        )
    )


def are_same(ones, others):
    """Can @ones and @others be paired, so that both functions of a pair are the same?"""
    left = list(others)
    for one in ones:
        like = next((other for other in left if is_same(one, other)), None)
        if like is None:
            return False
        left.remove(like)
    return not left


def main(old_path, new_path):
    old, new = Image(old_path).functions(), Image(new_path).functions()
    different = sorted(
        name for name in old.keys() | new.keys() if not are_same(old[name], new[name])
    )
    for name in different[:SHOWN_MAX]:
        word = (
            "only in the old image"
            if name not in new or not new[name]
            else "only in the new image"
            if not old[name]
            else "different"
        )
        print(f"{name}: {word}")
    if len(different) > SHOWN_MAX:
        print(f"and {len(different) - SHOWN_MAX} more")
    print(f"{len(old)} names of functions, {len(different)} of them different")
    return 1 if different else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__.split("\n\n")[1].strip(), file=sys.stderr)
        sys.exit(2)
    try:
        sys.exit(main(*sys.argv[1:]))
    except (OSError, ElfError) as error:
        print(f"same_text.py: {error}", file=sys.stderr)
        sys.exit(2)
