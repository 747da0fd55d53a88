"""pages.py - reads the records of raw pages of the tracer's rings.

A page has Linux's layout: a time, the number of bytes of data, and the data. See struct
ring_page in probes/trace/ring/ring.h.
"""

import struct
from collections import namedtuple

PAGE = 4096
HEAD = 16
MISSED, MISSED_COUNT = 1 << 31, 1 << 30
PADDING, EXTEND, STAMP = 29, 30, 31
DELTA_BITS = 27

# missed: events that the CPU lost right before the record; SOME: an unknown number
# end: offset in the page's data where the record ends
Record = namedtuple("Record", "cpu time data missed end")
SOME = -1


class PageError(Exception):
    """The bytes are not a page of a ring."""


def missed(page):
    """Return how many events were lost right before the page."""
    (commit,) = struct.unpack_from("<Q", page, 8)
    if not commit & MISSED:
        return 0
    if not commit & MISSED_COUNT:
        return SOME
    return struct.unpack_from("<Q", page, HEAD + commit % MISSED_COUNT)[0]


def records(cpu, page):
    """Yield the records of a page, as Record."""
    try:
        yield from _records(cpu, page)
    except struct.error:
        raise PageError(f"a page of CPU {cpu} has an event without an end") from None


def _records(cpu, page):
    time, commit = struct.unpack_from("<QQ", page)
    at, end = HEAD, HEAD + commit % MISSED_COUNT
    lost = missed(page)
    if end > PAGE:
        raise PageError(f"a page of CPU {cpu} has {end - HEAD} bytes of data")
    while at < end:
        (header,) = struct.unpack_from("<I", page, at)
        kind, delta = header & 31, header >> 5
        if kind == PADDING and not delta:
            return
        if kind in (0, PADDING, EXTEND, STAMP):
            (word,) = struct.unpack_from("<I", page, at + 4)
        if kind == EXTEND:
            time += delta + (word << DELTA_BITS)
            at += 8
        elif kind == STAMP:
            time = time >> 59 << 59 | delta + (word << DELTA_BITS)
            at += 8
        elif kind == PADDING:
            at += 4 + word
        else:
            head, size = (4, kind * 4) if kind else (8, word - 4)
            time += delta
            at += head
            if size < 0 or at + size > end:
                raise PageError(
                    f"a page of CPU {cpu} has an event without an end: {size} bytes at "
                    f"{at - HEAD} of {end - HEAD}, header {header:#x}"
                )
            at += size
            yield Record(cpu, time, page[at - size : at], lost, at - HEAD)
            lost = 0


def time_of(page):
    """Return the time of a page, from which its first event's delta counts."""
    return struct.unpack_from("<Q", page)[0]


def part(page, start, end, lost=0):
    """Make a page of the records between two offsets, each 0 or the end of a record."""
    (time,) = struct.unpack_from("<Q", page)
    for record in records(0, struct.pack("<QQ", time, start) + page[HEAD:]):
        time = record.time
    data = page[HEAD + start : HEAD + end]
    commit = len(data)
    if lost:
        commit |= MISSED
        if len(data) + 8 <= PAGE - HEAD:
            commit |= MISSED_COUNT
            data += struct.pack("<Q", lost)
    return (struct.pack("<QQ", time, commit) + data).ljust(PAGE, b"\0")


def tell_missed(page, lost):
    """Return a page, as a list of pages that say how many events were lost before it. A
    full page has no room for the number: then its last event goes to a page of its own.
    """
    if missed(page) != SOME or not lost:
        return [page]
    ends = [record.end for record in records(0, page)]
    if len(ends) < 2:
        return [page]
    return [part(page, 0, ends[-2], lost), part(page, ends[-2], ends[-1])]
