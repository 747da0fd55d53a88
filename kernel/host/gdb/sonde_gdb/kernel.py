"""kernel.py - reads the kernel by gdb: memory, structures, symbols, the build.

Bytes that were read are remembered until the guest runs on. No function here asks gdb for
the selected frame, so an unwinder may call all of them.
"""

import functools
import itertools
import os
import struct
import sys

import gdb

from sonde_gdb import fields

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../../.."))
sys.path.insert(0, os.path.join(ROOT, "kernel/debug"))
import elf64

MASK = (1 << 64) - 1


class Gone(Exception):
    """Memory or a symbol cannot be read, or the memory does not hold what is expected."""


# ---- what is remembered between two stops ----

_forgetters = []


def until_it_runs(make):
    """Decorate a function: remember its result until the guest runs on."""
    kept = []

    def get():
        if not kept:
            kept.append(make())
        return kept[0]

    _forgetters.append(kept.clear)
    get.__doc__ = make.__doc__
    return get


def forget(*_event):
    for forgetter in _forgetters:
        forgetter()


# ---- memory ----

BLOCK_LEN = 256  # at the kernel's own stub each byte costs 20 us, a round trip 300 us

_blocks = {}
_forgetters.append(_blocks.clear)


def _block(number):
    if number not in _blocks:
        start = number * BLOCK_LEN
        try:
            memory = gdb.selected_inferior().read_memory(start, BLOCK_LEN)
        except gdb.error as error:
            raise Gone(f"memory at {start:#x} cannot be read") from error
        _blocks[number] = bytes(memory)
    return _blocks[number]


def read(addr, length):
    """Return @length bytes of memory. Raises Gone."""
    addr &= MASK
    out = b""
    while len(out) < length:
        at = addr + len(out)
        offset = at % BLOCK_LEN
        out += _block(at // BLOCK_LEN)[offset : offset + length - len(out)]
    return out


def small(addr):
    """Return a number of 4 bytes, which is read by itself. Raises Gone."""
    try:
        data = gdb.selected_inferior().read_memory(addr, 4)
    except gdb.error as error:
        raise Gone(f"memory at {addr:#x} cannot be read") from error
    return int.from_bytes(bytes(data), "little")


def word(addr):
    return int.from_bytes(read(addr, 8), "little")


def text_at(addr, limit=64):
    """Return the string at @addr, which ends with a NUL, or after @limit bytes."""
    out = b""
    while b"\0" not in out and len(out) < limit:
        step = min(limit - len(out), BLOCK_LEN - (addr + len(out)) % BLOCK_LEN)
        out += read(addr + len(out), step)
    return out.partition(b"\0")[0].decode("utf-8", "backslashreplace")


# ---- structures ----


class Field:
    """A field. bit: its offset in the structure   bits: its size   type: its gdb.Type"""

    def __init__(self, bit, bits, type_):
        self.bit, self.bits, self.type = bit, bits, type_
        plain = type_.strip_typedefs()
        self.is_number = plain.code in (
            gdb.TYPE_CODE_INT,
            gdb.TYPE_CODE_BOOL,
            gdb.TYPE_CODE_PTR,
            gdb.TYPE_CODE_ENUM,
            gdb.TYPE_CODE_CHAR,
        )
        self.is_signed = (
            self.is_number and plain.code == gdb.TYPE_CODE_INT and bool(plain.is_signed)
        )


def _flattened(type_, base=0):
    """Return {name: Field} of a structure, with the fields of its nameless members."""
    found = {}
    for field in type_.fields():
        if not hasattr(field, "bitpos"):
            continue  # static
        bits = field.bitsize or field.type.sizeof * 8
        if not field.name:
            found.update(_flattened(field.type.strip_typedefs(), base + field.bitpos))
        else:
            found[field.name] = Field(base + field.bitpos, bits, field.type)
    return found


def _struct(name):
    """Return the gdb.Type of a structure in fields.STRUCTS."""
    if name in fields.POINTED_AT:
        return variable(fields.POINTED_AT[name]).type.strip_typedefs().target()
    return gdb.lookup_type("struct " + name)


class Layout:
    def __init__(self, name):
        type_ = _struct(name)
        self.name, self.size = name, type_.sizeof
        there = _flattened(type_)
        self.fields = {field: there[field] for field in fields.STRUCTS[name].split()}


_layouts = {}


def layout(name):
    if name not in _layouts:
        _layouts[name] = Layout(name)
    return _layouts[name]


class View:
    """A structure in memory. Its fields are attributes. A field of a number's type is an
    int; all other fields are bytes.
    """

    def __init__(self, name, addr):
        self.layout, self.here = layout(name), addr & MASK

    def __getattr__(self, name):
        field = self.layout.fields[name]
        start, end = field.bit // 8, (field.bit + field.bits + 7) // 8
        data = read(self.here + start, end - start)
        if not field.is_number:
            return data
        value = int.from_bytes(data, "little") >> field.bit % 8 & (1 << field.bits) - 1
        if field.is_signed and value >> field.bits - 1:
            value -= 1 << field.bits
        return value

    def at(self, name):
        """Return the address of a field."""
        return self.here + self.layout.fields[name].bit // 8

    def inside(self, name, struct_name):
        """Return the View of a field that is a structure itself."""
        return View(struct_name, self.at(name))


# ---- symbols ----

_addresses = {}


def address(name):
    """Return the address of a variable in fields.VARIABLES, or of a symbol."""
    if name not in _addresses:
        _addresses[name] = _find(name)
    return _addresses[name]


def _find(name):
    if name in fields.VARIABLES:
        return int(variable(name).address) & MASK
    wanted = (*fields.SYMBOLS, *fields.PATTERNS, *fields.ENDS)
    _addresses.update((s.name, s.value) for s in image().symbols() if s.name in wanted)
    if name not in _addresses:
        raise Gone(f"the image has no symbol {name}")
    return _addresses[name]


def variable(name):
    """Return the gdb.Value of a variable in fields.VARIABLES."""
    file, symbol = fields.VARIABLES[name]
    return _static(file, symbol)


def _static(file, name):
    found = list(gdb.lookup_static_symbols(name))
    one = gdb.lookup_global_symbol(name)
    for symbol in found + ([one] if one else []):
        if symbol.symtab and symbol.symtab.filename.endswith(file):
            return symbol.value()
    raise Gone(f"{file} has no {name}")


_constants = {}


def constant(name):
    if name not in _constants:
        symbol = gdb.lookup_static_symbol(name) or gdb.lookup_global_symbol(name)
        if not symbol:
            raise Gone(f"the image has no {name}")
        _constants[name] = int(symbol.value())
    return _constants[name]


_enums = {}


def enum_name(enum, value):
    """Return the name of an enumerator: "armed" for SITE_ARMED; "?7": 7 has no name."""
    if enum not in _enums:
        names = {}
        for field in gdb.lookup_type("enum " + enum).fields():
            names.setdefault(field.enumval, field.name)
        _enums[enum] = names
    name = _enums[enum].get(value)
    return name.removeprefix(fields.ENUMS[enum]).lower() if name else f"?{value}"


def symbol_at(addr, always_offset=True):
    """Write @addr as SYMBOL+0xOFF; in hex if there is no symbol."""
    text = gdb.execute(f"info symbol {addr:#x}", to_string=True)
    if text.startswith("No symbol"):
        return f"{addr:#x}"
    name, _, rest = text.partition(" ")
    offset = int(rest.split()[1]) if rest.startswith("+ ") else 0
    return f"{name}+{offset:#x}" if offset or always_offset else name


def prepare():
    """Look up all names of fields.py. Return the names that the image does not have."""
    missing = []

    def each(what, names, look_up):
        for name in names:
            try:
                look_up(name)
            except (Gone, KeyError, gdb.error):
                missing.append(f"{what}{name}")

    for name in fields.STRUCTS:
        try:
            there = _flattened(_struct(name))
        except (Gone, gdb.error):
            missing.append("struct " + name)
            continue
        each(f"struct {name}.", fields.STRUCTS[name].split(), there.__getitem__)
    names = fields.VARIABLES, fields.SYMBOLS, fields.PATTERNS, fields.ENDS
    each("", itertools.chain(*names), address)
    each("", fields.CONSTANTS, constant)
    each("enum ", fields.ENUMS, lambda name: enum_name(name, 0))
    return missing


def is_text(addr):
    """Is @addr in the text of the image?"""
    return address("_text") <= addr < address("_etext")


# ---- the image, and is it the guest's? ----

_image = []


def image_path():
    return next(o.filename for o in gdb.objfiles() if o.lookup_global_symbol("kmain"))


def image():
    """Return the ELF file, as kernel/debug/elf64.py reads it."""
    if not _image:
        _image.append(elf64.load(image_path()))
    return _image[0]


def _note_id(notes):
    """Find the build id in a section of notes; None: there is none."""
    at = 0
    while at + 12 <= len(notes):
        name_len, len_, kind = struct.unpack_from("<III", notes, at)
        name = at + 12
        content = name + (name_len + 3 & ~3)
        if kind == 3 and notes[name : name + 4] == b"GNU\0":
            return notes[content : content + len_].hex()
        at = content + (len_ + 3 & ~3)
    return None


def line_at(addr):
    """Return " at FILE:LINE"; "": no line is known."""
    line = gdb.find_pc_line(addr)
    return f" at {line.symtab.filename}:{line.line}" if line.symtab and line.line else ""


_routines = {}


def routine_at(start):
    """Return the name of the function that begins at @start; None: there is none."""
    if not _routines:
        _routines.update(
            (s.value, s.name) for s in image().symbols() if s.type == elf64.STT_FUNC
        )
    return _routines.get(start)


@functools.cache
def image_id():
    return _note_id(image().content(image().section(".notes")))


_guest_id = []


def guest_id():
    """Return the build id in the guest's memory. None: the guest has not loaded a kernel
    yet, or it has a kernel that is not sonde. An id is remembered until gdb leaves the
    guest: an unwinder asks at each stop, and reading takes a round trip.
    """
    if not _guest_id:
        try:
            start, end = address("notes_start"), address("notes_end")
            _guest_id.append(_note_id(read(start, end - start)))
        except Gone:
            return None
    return _guest_id[0]


def forget_guest(*_event):
    """gdb has left the guest. The next one may be another build."""
    _guest_id.clear()
    forget()


def is_known():
    """Does the guest run this image? No, too, before the guest has switched paging on,
    because the kernel's addresses cannot be read then.
    """
    return guest_id() == image_id() is not None


def other_build():
    """Return the message about a guest that runs another build."""
    return (
        f"the guest is another build than {os.path.basename(image_path())}: build id "
        f"{guest_id() or 'unknown'} there, {image_id()} here. Names and lines would be "
        "wrong. `./sonde gdb` builds what it runs."
    )
