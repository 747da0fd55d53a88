"""cfi.py - reads the image's call frame information: how to find a function's caller.

gdb reads this information, too. But gdb does not pass it to unwinders in Python, and gdb
has no frames at all for threads that are off their CPUs. The entries are made by the
compiler and by kernel/debug/gen_frames.py.

Source: DWARF Debugging Information Format, version 4, "Call Frame Information", "DWARF
Expressions".
"""

import bisect

from sonde_gdb import kernel

# In the order of their numbers in DWARF, as kernel/base/registers.h has them.
NAMES = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11",
         "r12", "r13", "r14", "r15", "rip")  # fmt: skip
NUMBER = {name: number for number, name in enumerate(NAMES)}
NUMBER["eflags"] = 49
BY_NUMBER = {number: name for name, number in NUMBER.items()}
RETURN = 16


class Unsupported(Exception):
    """An entry uses an operation that neither our compilers nor our tools use."""


class Reader:
    def __init__(self, data, at=0, end=None):
        self.data, self.at = data, at
        self.end = len(data) if end is None else end

    def number(self, size, signed=False):
        self.at += size
        return int.from_bytes(
            self.data[self.at - size : self.at], "little", signed=signed
        )

    def uleb(self):
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def sleb(self):
        start, value = self.at, self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> bits - 1 else value

    def block(self):
        length = self.uleb()
        self.at += length
        return self.data[self.at - length : self.at]

    def text(self):
        start = self.at
        self.at = self.data.index(b"\0", start) + 1
        return self.data[start : self.at - 1]


class Entry:
    """An entry for a piece of code.

    start, end: the code   is_signal: the caller was interrupted, and did not call it
    """

    def __init__(self, start, length, cie, program):
        self.start, self.end, self.program = start, start + length, program
        self.cie = cie

    @property
    def is_signal(self):
        return self.cie[1]


_table = []


def entries():
    """Return (entries by address, their starts), without the entry of the mirrors."""
    if not _table:
        elf = kernel.image()
        data = elf.content(elf.section(".debug_frame"))
        _table.extend(sorted(_read(data), key=lambda entry: entry.start))
        _table.append([entry.start for entry in _table])
    return _table[:-1], _table[-1]


def _read(data):
    reader = Reader(data)
    cies = {}
    while reader.at + 8 <= len(data):
        place = reader.at
        end = reader.number(4) + place + 4
        pointer = reader.number(4)
        if pointer != 0xFFFFFFFF:
            start, length = reader.number(8), reader.number(8)
            if start >> 32 == 0xFFFFFFFF:
                yield Entry(start, length, _cie(data, pointer, cies), (reader.at, end))
        reader.at = end


def _cie(data, at, cies):
    """Read a CIE, the common part of several entries. Return (data alignment, is_signal,
    (start, end) of the CIE's program).
    """
    if at not in cies:
        reader = Reader(data, at)
        end = reader.number(4) + at + 4
        reader.at += 5
        augmentation = reader.text()
        if augmentation not in (b"", b"S") or reader.uleb() != 1:
            raise Unsupported(f"augmentation {augmentation}")
        alignment = reader.sleb()
        reader.uleb()
        cies[at] = alignment, augmentation == b"S", (reader.at, end)
    return cies[at]


def find(pc):
    """Return the entry for the code at @pc; None: there is none."""
    table, starts = entries()
    index = bisect.bisect_right(starts, pc) - 1
    return table[index] if index >= 0 and pc < table[index].end else None


# ---- rows ----


class Row:
    """cfa: (register, distance) or an expression; rules: {number: (how, what)}"""

    def __init__(self):
        self.cfa, self.rules = None, {}

    def copy(self):
        row = Row()
        row.cfa, row.rules = self.cfa, dict(self.rules)
        return row


def row_at(entry, pc):
    elf = kernel.image()
    data = elf.content(elf.section(".debug_frame"))
    row = Row()
    _run(Reader(data, *entry.cie[2]), row, Row(), entry, pc)
    first = row.copy()
    _run(Reader(data, *entry.program), row, first, entry, pc)
    return row


def _run(reader, row, first, entry, pc):
    """Execute a program of call frame instructions, up to the row for @pc."""
    at, kept, alignment = entry.start, [], entry.cie[0]
    while reader.at < reader.end:
        op = reader.number(1)
        high, low = op >> 6, op & 0x3F
        step = 0
        if high == 1:
            step = low
        elif high == 2:
            row.rules[low] = "offset", reader.uleb() * alignment
        elif high == 3:
            _restore(row, first, low)
        elif op in (0x02, 0x03, 0x04):
            step = reader.number({2: 1, 3: 2, 4: 4}[op])
        elif op == 0x00:
            pass
        elif op == 0x05:
            number = reader.uleb()
            row.rules[number] = "offset", reader.uleb() * alignment
        elif op == 0x06:
            _restore(row, first, reader.uleb())
        elif op == 0x07:
            row.rules[reader.uleb()] = "undefined", None
        elif op == 0x08:
            row.rules.pop(reader.uleb(), None)
        elif op == 0x0A:
            kept.append(row.copy())
        elif op == 0x0B:
            was = kept.pop()
            row.cfa, row.rules = was.cfa, was.rules
        elif op == 0x0C:
            row.cfa = reader.uleb(), reader.uleb()
        elif op == 0x0D:
            row.cfa = reader.uleb(), row.cfa[1]
        elif op == 0x0E:
            row.cfa = row.cfa[0], reader.uleb()
        elif op == 0x0F:
            row.cfa = reader.block()
        elif op in (0x10, 0x16):
            number = reader.uleb()
            row.rules[number] = "at" if op == 0x10 else "value", reader.block()
        elif op == 0x11:
            number = reader.uleb()
            row.rules[number] = "offset", reader.sleb() * alignment
        elif op == 0x12:
            row.cfa = reader.uleb(), reader.sleb() * alignment
        else:
            raise Unsupported(f"call frame instruction {op:#x}")
        at += step
        if at > pc:
            return


def _restore(row, first, number):
    if number in first.rules:
        row.rules[number] = first.rules[number]
    else:
        row.rules.pop(number, None)


# ---- values ----


def evaluate(block, registers, stack):
    """Compute a DWARF expression. Only operations that the entries use are known here."""
    reader = Reader(block)
    stack = list(stack)
    while reader.at < reader.end:
        op = reader.number(1)
        if 0x30 <= op <= 0x4F:
            stack.append(op - 0x30)
        elif 0x70 <= op <= 0x8F:
            stack.append(registers[BY_NUMBER[op - 0x70]] + reader.sleb())
        elif op == 0x06:
            stack.append(kernel.word(stack.pop()))
        elif op == 0x08:
            stack.append(reader.number(1))
        elif op == 0x09:
            stack.append(reader.number(1, signed=True))
        elif op == 0x10:
            stack.append(reader.uleb())
        elif op == 0x12:
            stack.append(stack[-1])
        elif op == 0x16:
            stack[-2:] = stack[-1], stack[-2]
        elif op == 0x1A:
            stack.append(stack.pop() & stack.pop())
        elif op == 0x1C:
            top = stack.pop()
            stack.append(stack.pop() - top)
        elif op == 0x21:
            stack.append(stack.pop() | stack.pop())
        elif op == 0x22:
            stack.append(stack.pop() + stack.pop())
        elif op == 0x23:
            stack.append(stack.pop() + reader.uleb())
        elif op == 0x29:
            stack.append(int(stack.pop() == stack.pop()))
        elif op == 0x94:
            size = reader.number(1)
            stack.append(int.from_bytes(kernel.read(stack.pop(), size), "little"))
        else:
            raise Unsupported(f"operation {op:#x}")
        stack[-1] &= kernel.MASK
    return stack[-1]


def caller(entry, row, registers):
    """Return (CFA, address of the word with the return address or None, the caller's
    registers). A register that cannot be known is left out, also rip.
    """
    if isinstance(row.cfa, bytes):
        cfa = evaluate(row.cfa, registers, [])
    else:
        cfa = registers[BY_NUMBER[row.cfa[0]]] + row.cfa[1] & kernel.MASK
    found = dict(registers, rsp=cfa)
    del found["rip"]
    slot = None
    for number, (how, what) in row.rules.items():
        name = BY_NUMBER.get(number)
        if not name:
            continue
        if how == "offset":
            place = cfa + what & kernel.MASK
        elif how == "at":
            place = evaluate(what, registers, [cfa])
        else:
            place = None
        if place is not None:
            found[name] = kernel.word(place)
            slot = place if number == RETURN else slot
        elif how == "value":
            found[name] = evaluate(what, registers, [cfa])
        else:
            found.pop(name, None)
    return cfa, slot, found
