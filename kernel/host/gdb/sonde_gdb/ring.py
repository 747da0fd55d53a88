"""ring.py - reads the tracer's records from the memory of a guest that is stopped.

The code that reads the rings is the code of `./sonde trace` for a crashed guest
(probes/trace/host). The kernel's struct event describes the fields of a record. The lines
are the same as in the guest's file `trace`.
"""

import heapq
import importlib
import os
import sys

from sonde_gdb import kernel
from sonde_gdb.kernel import View, enum_name

sys.path[:0] = [kernel.ROOT, os.path.join(kernel.ROOT, "kernel/host")]
dead, pages, text, symbols = (
    importlib.import_module("probes.trace.host." + name)
    for name in ("dead", "pages", "text", "symbols")
)

HEAD_LEN = 8  # struct record_head


class Memory:
    """The guest's memory, with the methods that probes/trace/host calls."""

    direct_map = 0

    @staticmethod
    def virtual(addr, size):
        return kernel.read(addr, size)

    def physical(self, addr, size):
        return kernel.read(addr + self.direct_map, size)


_symbols = []


def all_symbols():
    if not _symbols:
        _symbols.append(symbols.Symbols(kernel.image_path()))
    return _symbols[0]


class Head:
    """The first bytes of each record: struct record_head."""

    def __init__(self, data):
        self.type = int.from_bytes(data[:2], "little")
        self.flags, self.preempt = data[2], data[3]
        self.pid = int.from_bytes(data[4:8], "little", signed=True)


def events():
    """Return {id: struct event}."""
    found, start = {}, kernel.address("events")
    for bucket in range(kernel.variable("events").type.range()[1] + 1):
        pointer = kernel.word(start + 8 * bucket)
        while pointer and len(found) < 65536:
            event = View("event", pointer)
            found[event.id] = event
            pointer = event.next
    for name in ("event_print", "event_stack"):
        event = View("event", kernel.address(name))
        found[event.id] = event
    return found


# ---- one record ----


def number(data, at, size=8, signed=False):
    return int.from_bytes(data[at : at + size], "little", signed=signed)


def value_text(kind, size, data, at):
    """Write one value of an argument as text."""
    plain = number(data, at, size)
    if kind == "signed":
        return str(number(data, at, size, signed=True))
    if kind == "hex":
        return f"{plain:#x}"
    if kind == "char":
        return f"'{chr(plain & 0xFF)}'"
    if kind == "symbol":
        return all_symbols().at(plain)
    if kind == "string":
        start, length = plain & 0xFFFF, plain >> 16
        if not length or start + length > len(data):
            return "(fault)"
        found = data[start : start + length].partition(b"\0")[0]
        return '"' + found.decode("utf-8", "replace") + '"'
    return str(plain)


def arguments(event, data, head):
    size = kernel.layout("fetch_arg").size
    for i in range(event.arg_count):
        arg = View("fetch_arg", event.args + i * size)
        kind = View("fetch_type", arg.type)
        name = enum_name("fetch_kind", kind.kind)
        values = [
            value_text(name, kind.size, data, head + arg.offset + n * kind.size)
            for n in range(arg.count or 1)
        ]
        shown = "{" + ",".join(values) + "}" if arg.count else values[0]
        yield f" {kernel.text_at(arg.name)}={shown}"


def said(event, data):
    """Return the text behind the time in the line of a record."""
    names, shape = all_symbols(), enum_name("event_shape", event.shape)
    if shape == "text":
        words = data[16:].partition(b"\0")[0].decode("utf-8", "replace")
        return f"{names.name_at(number(data, HEAD_LEN))}: {words}".rstrip("\n")
    if shape == "stack":
        callers = range(16, 16 + 8 * number(data, HEAD_LEN, 4), 8)
        found = [names.name_at(number(data, at)) for at in callers if at < len(data)]
        return "\n => ".join(["<stack trace>", *found])
    name = kernel.text_at(event.name)
    if shape == "return":
        where = f"{names.at(number(data, 16))} <- {names.name_at(number(data, HEAD_LEN))}"
        head = kernel.layout("record_return").size
    else:
        where = names.at(number(data, HEAD_LEN))
        head = kernel.layout("record_probe").size
    return f"{name}: ({where})" + "".join(arguments(event, data, head))


# ---- all of them ----


def lines():
    """Yield a line for each record, by time, and a line wherever records were lost."""
    memory = Memory()
    guest = dead.Dead(memory, all_symbols())
    memory.direct_map = guest.layout["direct_map"]
    known = events()
    comms = dict(line.split(" ", 1) for line in guest.cmdlines())
    cpus = [
        [record for page in found for record in pages.records(cpu, page)]
        for cpu, found, _ in guest.rings()
    ]
    for record in heapq.merge(*cpus, key=lambda record: record.time):
        if record.missed:
            yield text.lost(record.cpu, record.missed)
        yield line_of(record, known, comms)


def line_of(record, known, comms):
    head = Head(record.data)
    event = known.get(head.type)
    if event is not None and record.time < event.born:
        event = None
    comm = comms.get(str(head.pid), "<...>\n").rstrip("\n") if head.pid else "<idle>"
    us = (record.time + 500) // 1000
    words = said(event, record.data) if event else f"Unknown type {head.type}"
    return (
        f"{comm:>16}-{head.pid:<7d} [{record.cpu:03d}] {text.flags(head)} "
        f"{us // 1000000:5d}.{us % 1000000:06d}: {words}"
    )
