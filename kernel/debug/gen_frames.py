#!/usr/bin/env python3
"""gen_frames.py - tells debuggers where the stacks of assembly routines lead.

    gen_frames.py -o frames.asm IMAGE       the routines of an image as .debug_frame, for NASM
    gen_frames.py --unknown IMAGE           the instructions of which nothing is known

Compilers write call frame information for the code that they compile. This program writes
it for each function that has none: see asm_frames.py. Debuggers read it; it is never
loaded.

One more entry describes no code. For a caller, a debugger looks up the byte in front of
the return address, which is in the call. But if a signal frame has interrupted the
caller, the debugger looks up the address itself. This is right for a program at a probed
instruction, but a frame that gdb's Python finds can be no signal frame (tests/gdb). So
each address of the last 4 GiB has a mirror, MIRROR bytes below it, where no code is. A
frame with a mirror as its pc is a signal frame, and its caller is at the address that
belongs to the mirror.

Source: DWARF Debugging Information Format, version 4, "Call Frame Information"; the System V
ABI of AMD64, "DWARF Register Number Mapping"; gdb and gcc for the augmentation "S".
"""

import argparse
import bisect
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict

sys.dont_write_bytecode = True
import asm_frames
import elf64

MIRROR = 1 << 40
MIRRORED = (1 << 64) - (1 << 32)  # from here to the end

MARK_LEN = 4 * 8  # of a `frame` in .debug_asm_frames
SECTIONS = (".text", ".rodata")  # routines, and patterns of code

OPS = {
    "deref": b"\x06",
    "dup": b"\x12",
    "swap": b"\x16",
    "minus": b"\x1c",
    "plus": b"\x22",
    "or": b"\x21",
}


def uleb(value):
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def sleb(value):
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        is_last = value == (-1 if byte & 0x40 else 0)
        out.append(byte | (0 if is_last else 0x80))
        if is_last:
            return bytes(out)


def plus(distance):
    """DW_OP_plus_uconst, or a subtraction."""
    if distance >= 0:
        return b"\x23" + uleb(distance)
    return b"\x10" + uleb(-distance) + OPS["minus"]


def expression(words):
    """The words of an asm_frames.Rule in DWARF's bytes."""
    out = b""
    for word in words:
        name, number = word if isinstance(word, tuple) else (word, None)
        if name == "plus" and number is not None:
            out += plus(number)
        elif name == "deref_at":
            out += plus(number) + OPS["deref"]
        elif name == "lit":
            out += bytes([0x30 + number])
        elif name == "deref_size":
            out += bytes([0x94, number])
        else:
            out += OPS[name]
    return out


# ---- from states to the program of an entry ----


def rule_bytes(number, rule):
    if rule.how == "unknown":
        return b"\x07" + uleb(number)  # DW_CFA_undefined
    if rule.how == "at" and len(rule.words) == 1:
        return offset_bytes(number, rule.words[0][1])
    text = expression(rule.words)
    code = b"\x10" if rule.how == "at" else b"\x16"  # DW_CFA_expression, val_expression
    return code + uleb(number) + uleb(len(text)) + text


def offset_bytes(number, place):
    return b"\x11" + uleb(number) + sleb(place // -asm_frames.WORD)  # offset_extended_sf


def row_of(state):
    """{what: bytes} of a state; what: "cfa" or the number of a register."""
    if state is None or not state.is_known:
        return {
            "cfa": cfa_bytes(asm_frames.STACK, asm_frames.WORD),
            asm_frames.RETURN: rule_bytes(asm_frames.RETURN, asm_frames.UNKNOWN),
        }
    if state.rsp is not None:
        row = {"cfa": cfa_bytes(asm_frames.STACK, state.rsp)}
    else:
        row = {"cfa": cfa_bytes(asm_frames.REGISTERS["rbp"], state.rbp)}
    for number, place in state.saved.items():
        row[number] = offset_bytes(number, place)
    for number, rule in state.rules.items():
        row[number] = rule_bytes(number, rule)
    return row


def cfa_bytes(register, distance):
    if distance < 0:
        return b"\x12" + uleb(register) + sleb(distance // -asm_frames.WORD)  # def_cfa_sf
    return b"\x0c" + uleb(register) + uleb(distance)  # def_cfa


def forget_bytes(number):
    if number == asm_frames.STACK:  # it is the CFA again
        return b"\x16" + uleb(number) + b"\x00"
    return b"\x08" + uleb(number)  # DW_CFA_same_value


def advance(distance):
    return b"\x04" + distance.to_bytes(4, "little") if distance else b""


def program(rows):
    """rows: [(offset in the routine, row_of())], ascending."""
    out, at, known = b"", 0, {}
    for offset, row in rows:
        changes = b""
        for what in sorted(set(known) | set(row), key=str):
            if known.get(what) == row.get(what):
                continue
            changes += row[what] if what in row else forget_bytes(what)
        if changes:
            out += advance(offset - at) + changes
            at, known = offset, row
    return out


# ---- reading the image ----


def covered_starts(elf):
    """The addresses of the functions that compilers have described in .debug_frame."""
    section = elf.section(".debug_frame")
    data, at, starts = elf.content(section) if section else b"", 0, set()
    while at + 4 <= len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        if int.from_bytes(data[at + 4 : at + 8], "little") != 0xFFFFFFFF:
            starts.add(int.from_bytes(data[at + 8 : at + 16], "little"))
        at += 4 + length
    return starts


def marks_of(elf):
    """{address: [(kind, (site_addr, site_len))]} of each `frame` in the source."""
    marks = defaultdict(list)
    section = elf.section(".debug_asm_frames")
    data = elf.content(section) if section else b""
    for at in range(0, len(data), MARK_LEN):
        addr, kind, *args = (
            int.from_bytes(data[i : i + 8], "little") for i in range(at, at + MARK_LEN, 8)
        )
        marks[addr].append((asm_frames.KINDS[kind], tuple(args)))
    return marks


def patterns_of(elf, marks):
    """[(start, end)] of each struct plat_pattern with a `frame pattern` at its entry."""
    entries = {
        addr for addr in marks if any(kind == "pattern" for kind, _ in marks[addr])
    }
    found = []
    for symbol in elf.symbols():
        offset = elf.file_offset(symbol.value, 16) if symbol.size == 32 else None
        if offset is None or symbol.section.name != ".rodata":
            continue
        start, length, entry = struct.unpack("<QHH", elf.bytes_at(offset, 12))
        if start + entry in entries:
            found.append((start, start + length))
    return found


def routines(elf, marks):
    """[(start, end)] of routines and patterns that have no call frame information yet."""
    covered = covered_starts(elf)
    found = {
        (s.value, s.value + s.size)
        for s in elf.symbols()
        if s.type == elf64.STT_FUNC
        and s.size
        and s.section
        and s.section.name == ".text"
        and s.value not in covered
    }
    return sorted(found | set(patterns_of(elf, marks)))


def disassemble(elf, ranges):
    """[{address: Insn}], one for each range."""
    gap = 16  # so that no instruction is read from two ranges
    starts, raw = [], b""
    for start, end in ranges:
        starts.append(len(raw))
        raw += (
            elf.bytes_at(elf.file_offset(start, end - start), end - start) + b"\x90" * gap
        )
    with tempfile.NamedTemporaryFile() as file:
        file.write(raw)
        file.flush()
        words = [
            "objdump",
            "-D",
            "-b",
            "binary",
            "-m",
            "i386:x86-64",
            "-M",
            "intel",
            "-z",
            "--insn-width=15",
            file.name,
        ]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = [{} for _ in ranges]
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) < 3:
            continue
        at = int(fields[0].strip().rstrip(":"), 16)
        index = bisect.bisect_right(starts, at) - 1
        base = ranges[index][0] - starts[index]
        if base + at < ranges[index][1]:
            insn = insn_of(base + at, base, fields)
            found[index][insn.addr] = insn
    return found


PREFIXES = {"rep", "repz", "repnz", "lock", "bnd", "notrack", "cs", "ds", "es", "gs"}


def insn_of(addr, base, fields):
    words = fields[2].partition("#")[0].split(None, 1)
    while words[0] in PREFIXES and len(words) > 1:
        words = words[1].split(None, 1)
    operands = words[1].strip().split(",") if len(words) > 1 else []
    target = None
    if len(operands) == 1 and operands[0].startswith("0x") and words[0] != "push":
        target = (base + int(operands[0], 16)) % 2**64
    return asm_frames.Insn(
        addr,
        words[0],
        [o.strip() for o in operands],
        addr + len(fields[1].split()),
        target,
    )


def analyse(elf):
    """[(start, end, is_signal, {address: State or None})]"""
    marks = marks_of(elf)
    ranges = routines(elf, marks)
    result = []
    for (start, end), insns in zip(ranges, disassemble(elf, ranges)):
        own = {addr: marks[addr] for addr in marks if start <= addr < end}
        states = asm_frames.walk(insns, start, own)
        first = own.get(start) or (next(iter(own.values())) if own else [("call", ())])
        is_signal = first[-1][0] in asm_frames.SIGNAL
        result.append((start, end, is_signal, {addr: states.get(addr) for addr in insns}))
    return result


# ---- writing ----


def cie_bytes(is_signal):
    augmentation = b"S\0" if is_signal else b"\0"
    start = cfa_bytes(asm_frames.STACK, asm_frames.WORD)
    body = b"\xff\xff\xff\xff\x01" + augmentation + uleb(1) + sleb(-asm_frames.WORD)
    return body + bytes([asm_frames.RETURN]) + start


def padded(body):
    body += bytes(-(len(body) + 4) % 8)  # DW_CFA_nop
    return len(body).to_bytes(4, "little") + body


def mirror_program():
    """The caller is MIRROR bytes above the pc, with the same registers."""
    place = b"\x92" + uleb(asm_frames.RETURN) + sleb(MIRROR)  # DW_OP_bregx
    return (
        cfa_bytes(asm_frames.STACK, 0)
        + b"\x16"
        + uleb(asm_frames.RETURN)
        + uleb(len(place))
        + place
    )


def write(out, entries):
    out.write(
        "; made by kernel/debug/gen_frames.py\n"
        "section .debug_frame progbits noalloc noexec nowrite align=8\n"
    )
    for name, is_signal in (("called", False), ("signal", True)):
        out.write(f"{name}:\n    db {numbers(padded(cie_bytes(is_signal)))}\n")
    entries = [
        (
            start,
            end - start,
            is_signal,
            program([(addr - start, row_of(states[addr])) for addr in sorted(states)]),
        )
        for start, end, is_signal, states in entries
    ]
    entries.append((MIRRORED - MIRROR, 2**64 - MIRRORED, True, mirror_program()))
    for start, length, is_signal, text in entries:
        text += bytes(-len(text) % 8)
        out.write(
            f"    dd {20 + len(text)}, {'signal' if is_signal else 'called'}\n"
            f"    dq {start:#x}, {length:#x}\n    db {numbers(text)}\n"
        )


def numbers(data):
    return ", ".join(f"{byte:#x}" for byte in data) or "0"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output")
    parser.add_argument("--unknown", action="store_true")
    parser.add_argument("image")
    options = parser.parse_args()
    elf = elf64.load(options.image)
    entries = analyse(elf)
    if options.unknown:
        for start, _, _, states in entries:
            name = elf.symbol_at(start)
            for addr, state in sorted(states.items()):
                if state is None or not state.is_known:
                    print(f"{addr:#x} {name}+{addr - start:#x}")
        return
    with open(options.output, "w", encoding="ascii") as out:
        write(out, entries)


if __name__ == "__main__":
    try:
        main()
    except (OSError, elf64.ElfError) as error:
        sys.exit(f"gen_frames.py: {error}")
