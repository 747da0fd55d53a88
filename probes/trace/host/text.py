"""text.py - prints events as the lines that the guest's `trace` shows."""

import itertools

from . import pages


NO_NS = ("counter", "x86-tsc")  # clocks that do not count nanoseconds
IRQS_OFF, NEED_RESCHED, HARDIRQ, NMI = 0x01, 0x04, 0x08, 0x40


def flags(event):
    count = "{:x}"
    interrupt = (
        "Z"
        if event.flags & NMI and event.flags & HARDIRQ
        else "z"
        if event.flags & NMI
        else "h"
        if event.flags & HARDIRQ
        else "."
    )
    return "".join(
        (
            "d" if event.flags & IRQS_OFF else ".",
            "n" if event.flags & NEED_RESCHED else ".",
            interrupt,
            count.format(event.preempt & 15) if event.preempt & 15 else ".",
            count.format(event.preempt >> 4) if event.preempt >> 4 else ".",
        )
    )


def said(recording, event):
    """Return the part of a line behind the time."""
    if not event.format.id:
        number = int.from_bytes(event.data[:2], "little")
        return f"Unknown type {number}"
    if event.name == "print":
        place = recording.symbols.name_at(event.values["ip"])
        return f"{place}: {event.values['buf']}".rstrip("\n")
    if event.name == "kernel_stack":
        return "\n => ".join(["<stack trace>", *stack(recording, event)])
    place = recording.place(event)
    words = [f"{event.name}:"] + ([place] if place else [])
    return " ".join(words + recording.arguments(event))


def stack(recording, event, skip=0):
    """Yield the names of the functions of an event kernel_stack, the innermost first, but
    not the first @skip. All other addresses are behind a call, which may be the last
    instruction of its function.
    """
    for i, address in enumerate(itertools.islice(stack_addresses(event), skip, None)):
        yield recording.symbols.name_at(address - bool(i))


def stack_addresses(event):
    field = next(f for f in event.format.fields if f.name == "caller")
    data = event.data[field.offset :]
    count = event.values.get("size", len(data) // 8)
    for i in range(min(count, len(data) // 8)):
        address = int.from_bytes(data[8 * i : 8 * i + 8], "little")
        if not address or address == (1 << 64) - 1:
            return
        yield address


def shown_time(recording, time):
    if recording.clock in NO_NS:
        return f"{time:12d}"
    us = (time + 500) // 1000
    return f"{us // 1000000:5d}.{us % 1000000:06d}"


def line(recording, event):
    return (
        f"{recording.name_of(event.pid):>16}-{event.pid:<7d} [{event.cpu:03d}] "
        f"{flags(event)} {shown_time(recording, event.time)}: {said(recording, event)}"
    )


def lost(cpu, count):
    if count == pages.SOME:
        return f"CPU:{cpu} [LOST EVENTS]"
    return f"CPU:{cpu} [LOST {count} EVENTS]"


def lines(recording):
    """Yield the lines of the whole recording, with losses where they happened."""
    for event in recording.events():
        if event.missed:
            yield lost(event.cpu, event.missed)
        if not recording.graph_of(event):
            yield line(recording, event)
    for cpu in range(len(recording.pages)):
        if recording.lost_behind(cpu):
            yield lost(cpu, recording.lost_behind(cpu))
