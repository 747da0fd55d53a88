"""dwarf.py - reads debug data of an image: functions, their parameters, types.

The makers of tables share this file. It reads units of DWARF 2 to 4, as the kernel's own
units are, and passes over other units and units that are damaged.
"""

import functools
import struct
import sys

sys.dont_write_bytecode = True

TAG_PARAMETER, TAG_UNIT, TAG_INLINED, TAG_FUNCTION = 0x05, 0x11, 0x1D, 0x2E
TAG_POINTER, TAG_BASE, TAG_ENUM = 0x0F, 0x24, 0x04
THROUGH = {0x16, 0x26, 0x35, 0x37}  # typedef, const, volatile, restrict
KEPT = {
    TAG_PARAMETER,
    TAG_UNIT,
    TAG_INLINED,
    TAG_FUNCTION,
    TAG_POINTER,
    TAG_BASE,
    TAG_ENUM,
}
KEPT |= THROUGH
AROUND = {TAG_UNIT, TAG_INLINED, TAG_FUNCTION, 0x0B}  # and a block: around what is kept

AT_SIBLING, AT_NAME, AT_SIZE, AT_LINES = 0x01, 0x03, 0x0B, 0x10
AT_LOW_PC, AT_HIGH_PC = 0x11, 0x12
AT_FOLDER, AT_ORIGIN, AT_ENCODING, AT_SPECIFICATION = 0x1B, 0x31, 0x3E, 0x47
AT_TYPE, AT_ENTRY_PC, AT_RANGES = 0x49, 0x52, 0x55
WANTED = {AT_NAME, AT_SIZE, AT_LINES, AT_LOW_PC, AT_HIGH_PC, AT_FOLDER, AT_ORIGIN,
          AT_ENCODING, AT_SPECIFICATION, AT_TYPE, AT_ENTRY_PC, AT_RANGES}  # fmt: skip

FORM_ADDR, FORM_STRING, FORM_STRP, FORM_REF_ADDR = 0x01, 0x08, 0x0E, 0x10
# Forms of a fixed size, and forms that begin with their size.
FIXED = {FORM_ADDR: 8, 0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x0C: 1, FORM_STRP: 4,
         FORM_REF_ADDR: 4, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x17: 4, 0x19: 0,
         0x20: 8}  # fmt: skip
COUNTED = {0x0A: 1, 0x03: 2, 0x04: 4}
LEB, LEB_COUNTED = {0x0D, 0x0F, 0x15}, {0x09, 0x18}
RELATIVE = {0x11, 0x12, 0x13, 0x14, 0x15}  # references within the unit


class Damaged(Exception):
    pass


DAMAGE = (IndexError, KeyError, TypeError, ValueError, struct.error, Damaged)


def leb(data, at):
    if data[at] < 0x80:
        return data[at], at + 1
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def number(data, at, size):
    return int.from_bytes(data[at : at + size], "little")


def text(data, at):
    return data[at : data.index(b"\0", at)].decode("utf-8", "backslashreplace")


def behind(data, form, at):
    """Where the value of @form at @at, which has no fixed size, ends."""
    if form == FORM_STRING:
        return data.index(b"\0", at) + 1
    if form in LEB:
        return leb(data, at)[1]
    if form in LEB_COUNTED:
        size, at = leb(data, at)
        return at + size
    if form in COUNTED:
        return at + COUNTED[form] + number(data, at, COUNTED[form])
    raise Damaged(f"form {form:#x}")


class Abbreviation:
    """What an entry has. steps: how many bytes to pass over, then an attribute to keep
    or None, and its form; rest: how many bytes are behind the last step.
    """

    def __init__(self, tag, pairs):
        self.tag = tag if tag in KEPT else 0
        self.steps, self.rest = [], 0
        self.has_length = (AT_HIGH_PC, FORM_ADDR) not in pairs  # and not an end
        for attribute, form in pairs:
            is_kept = self.tag and attribute in WANTED
            is_kept |= attribute == AT_SIBLING and tag not in AROUND
            if is_kept or form not in FIXED:
                self.steps.append((self.rest, attribute if is_kept else None, form))
                self.rest = 0
            self.rest += FIXED.get(form, 0)


def abbreviations(data, at):
    """{code: Abbreviation} of the table at @at."""
    table = {}
    while True:
        code, at = leb(data, at)
        if not code:
            return table
        tag, at = leb(data, at)
        at += 1  # has children
        end = data.index(b"\0\0", at)
        table[code] = abbreviation(tag, data[at:end])
        at = end + 2


@functools.lru_cache(None)
def abbreviation(tag, data):
    """Most units have the same ones."""
    numbers, at = [], 0
    while at < len(data):
        value, at = leb(data, at)
        numbers.append(value)
    return Abbreviation(tag, list(zip(numbers[::2], numbers[1::2])))


class Unit:
    """entries: {offset: (tag, {attribute: value})}; "parameters" of a function are the
    attributes of each. base: the address from which its ranges count.
    """

    def __init__(self, debug, start, end):
        self.debug = debug
        self.start, self.end = start, end
        self.version = number(debug.info, start + 4, 2)
        self.entries = {}
        self.read()
        self.root = next(iter(self.entries.values()), (0, {}))[1]
        self.base = self.root.get(AT_LOW_PC, 0)

    def read(self):
        info, end = self.debug.info, self.end
        table = self.debug.abbreviations(number(info, self.start + 6, 4))
        at, parameters = self.start + 11, None
        while at < end:
            offset = at
            code, at = leb(info, at)
            if not code:
                continue
            known = table[code]
            values = {}
            for skipped, attribute, form in known.steps:
                at += skipped
                if attribute:
                    values[attribute] = self.value(form, at)
                if form not in FIXED:
                    at = behind(info, form, at)
            at += known.rest
            if AT_SIBLING in values:
                at = max(at, values.pop(AT_SIBLING))
            tag = known.tag
            if tag == TAG_PARAMETER and parameters is not None:
                parameters.append(values)
            else:
                parameters = None  # they are the first entries in a function
            if tag == TAG_FUNCTION:
                values["parameters"] = parameters = []
            if tag:
                if AT_HIGH_PC in values and known.has_length:
                    values[AT_HIGH_PC] += values.get(AT_LOW_PC, 0)
                self.entries[offset] = tag, values

    def value(self, form, at):
        info = self.debug.info
        if form == FORM_STRP:
            return self.debug.string(number(info, at, 4))
        if form == FORM_STRING:
            return text(info, at)
        value = leb(info, at)[0] if form in LEB else number(info, at, FIXED.get(form, 0))
        return value + self.start if form in RELATIVE else value

    def of(self, *tags):
        """The attributes of all entries with one of @tags."""
        return [values for tag, values in self.entries.values() if tag in tags]


class Debug:
    def __init__(self, elf):
        def content(name):
            section = elf.section(name)
            return elf.content(section) if section else b""

        self.info, self.abbrev = content(".debug_info"), content(".debug_abbrev")
        self.strings, self.ranges = content(".debug_str"), content(".debug_ranges")
        self.lines = content(".debug_line")
        self.abbreviations = functools.lru_cache(None)(
            lambda at: abbreviations(self.abbrev, at)
        )
        self.string = functools.lru_cache(None)(lambda at: text(self.strings, at))

    def units(self):
        at = 0
        while at + 11 <= len(self.info):
            end = at + 4 + number(self.info, at, 4)
            if 2 <= number(self.info, at + 4, 2) <= 4:
                try:
                    yield Unit(self, at, min(end, len(self.info)))
                except DAMAGE:
                    pass
            at = end


@functools.lru_cache(1)
def units(elf):
    """The units of an image, read once for all tables."""
    return list(Debug(elf).units())
