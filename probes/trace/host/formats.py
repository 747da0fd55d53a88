"""formats.py - reads format files, and by them the values of a record's fields.

A format file lists the fields of an event, and tells how C would print them (`print
fmt`). Of a `print fmt` only the conversions are used here.
"""

import functools
import re
import struct

FIELD = re.compile(r"\tfield:(.*?);\toffset:(\d+);\tsize:(\d+);(?:\tsigned:(\d);)?")
DECLARATION = re.compile(r"(__data_loc )?(.*?)(\w+)(\[(\d*)\])?$")
FAULT = "(fault)"
LETTERS = {1: "b", 2: "h", 4: "i", 8: "q"}  # size of a number: its letter for struct


class FormatError(Exception):
    """A format file that cannot be read."""


class Field:
    """One field: its place in a record, and its type."""

    def __init__(self, declaration, offset, size, signed):
        located, kind, name, brackets, count = DECLARATION.fullmatch(declaration).groups()
        if not name:
            raise FormatError(f"{declaration!r} has no name")
        self.name = name
        self.kind = kind.strip()
        self.offset, self.size, self.is_signed = offset, size, signed
        self.is_located = bool(located)
        # With __data_loc it is "char[] x" or "char[2] x", else "u8 x[4]" or "char buf[]".
        inner = re.search(r"\[(\d*)\]", self.kind) if located else None
        self.count = None
        if inner and inner[1]:
            self.count = int(inner[1])
        elif brackets and not located and size:
            self.count = int(count) if count else size // (size_of(self.kind) or size)
        self.is_rest = bool(brackets) and not located and not size

    @property
    def is_number(self):
        """Is the field a single number, not a string and not an array?"""
        return self.count is None and not self.is_located and not self.is_rest

    def value(self, data):
        """Return an int, a string (None: it could not be read), or a list of these."""
        if self.is_rest:
            return self._rest(data[self.offset :])
        each = 4 if self.is_located else self.size // (self.count or 1)
        values = [
            self._one(data, self.offset + i * each, each) for i in range(self.count or 1)
        ]
        if self.count is None:
            return values[0]
        if self.kind == "char" and not self.is_located:
            return text_of(bytes(v & 255 for v in values))
        return values

    def _rest(self, data):
        """Return the value of a field that reaches to the end of the record."""
        size = size_of(self.kind)
        if size < 2:
            return text_of(data)
        return [
            int.from_bytes(data[i : i + size], "little")
            for i in range(0, len(data) - size + 1, size)
        ]

    def _one(self, data, at, size):
        number = int.from_bytes(data[at : at + size], "little", signed=self.is_signed)
        if not self.is_located:
            return number
        number &= 0xFFFFFFFF
        start, length = number & 0xFFFF, number >> 16
        if not length or start + length > len(data):
            return None
        return text_of(data[start : start + length])


def size_of(kind):
    """Return the bytes of an element, by the name of its type; 0: unknown."""
    sizes = {"char": 1, "short": 2, "int": 4, "long": 8, "unsigned": 4}
    match = re.fullmatch(r"[usx](8|16|32|64)", kind)
    return int(match[1]) // 8 if match else sizes.get(kind.split()[-1] if kind else "", 0)


def text_of(data):
    return bytes(data).split(b"\0")[0].decode("utf-8", "backslashreplace")


class Format:
    """The format of an event."""

    def __init__(self, group, text):
        self.group, self.text = group, text
        name = re.search(r"^name: (.*)$", text, re.M)
        number = re.search(r"^ID: (\d+)$", text, re.M)
        shown = re.search(r"^print fmt: (.*)", text, re.M | re.S)
        if not name or not number or not shown:
            raise FormatError(f"no name, ID or print fmt in a format of {group}")
        self.name, self.id = name[1], int(number[1])
        self.fields = [
            Field(d, int(o), int(s), sign == "1") for d, o, s, sign in FIELD.findall(text)
        ]
        self.arguments = [
            f for f in self.fields if not f.name.startswith(("common_", "__probe_"))
        ]
        self.shown = shown[1].rstrip("\n")

    @property
    def is_return(self):
        return any(field.name == "__probe_ret_ip" for field in self.fields)

    @property
    def is_probe(self):
        return any(field.name in ("__probe_ip", "__probe_func") for field in self.fields)

    @functools.cached_property
    def plain(self):
        """(names, Struct) of the fields that are single numbers, sorted by offset."""
        names, layout, at = [], "<", 0
        for field in sorted(self.fields, key=lambda field: field.offset):
            letter = LETTERS.get(field.size)
            if not letter or not field.is_number or field.offset < at:
                continue
            letter = letter if field.is_signed else letter.upper()
            layout += f"{field.offset - at}x{letter}"
            names.append(field.name)
            at = field.offset + field.size
        return names, struct.Struct(layout)

    @functools.cached_property
    def others(self):
        return [field for field in self.fields if field.name not in self.plain[0]]

    def values(self, data):
        """Return the values of the fields by name. A record that is too short is read as
        if zeros followed it.
        """
        names, layout = self.plain
        if len(data) < layout.size:
            data = data.ljust(layout.size, b"\0")
        values = dict(zip(names, layout.unpack_from(data)))
        for field in self.others:
            values[field.name] = field.value(data)
        return values


def shown_place(format_, values, symbols):
    """Return the place of the probe, as it is printed in front of the arguments."""
    if format_.is_return:
        to, back = values["__probe_ret_ip"], values["__probe_func"]
        return f"({symbols.at(to)} <- {symbols.name_at(back)})"
    if "__probe_ip" in values:
        return f"({symbols.at(values['__probe_ip'])})"
    return None


def shown_arguments(format_, values, symbols):
    """Return name=value of each argument, as the guest's `trace` prints them."""
    texts = conversions(format_.shown)
    return [
        f"{field.name}={shown(values[field.name], texts.get(field.name), symbols)}"
        for field in format_.arguments
    ]


def conversions(print_fmt):
    """Return the conversions of a `print fmt`, by the name of the argument."""
    match = re.match(r'"((?:[^"\\]|\\.)*)"(.*)', print_fmt, re.S)
    if not match:
        return {}
    return {
        name: conversion
        for name, conversion in re.findall(
            r"""(\w+)=\{?(?:0x)?\\?['"]?(%\w+)""", match[1]
        )
    }


def shown(value, conversion, symbols):
    if isinstance(value, list):
        return "{%s}" % ",".join(shown(one, conversion, symbols) for one in value)
    if value is None:
        return FAULT
    if isinstance(value, str):
        return f'"{value}"'
    if conversion and conversion.endswith("x"):
        return f"{value & (1 << 64) - 1:#x}"
    if conversion == "%pS":
        return symbols.at(value)
    if conversion == "%c":
        return f"'{chr(value & 255)}'"
    return str(value)
