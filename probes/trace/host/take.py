"""take.py - takes the pages of the tracer out of a running guest.

A request on the machine interface asks the guest for a batch of pages (`trace-pages`).
The guest answers with the address of a list of the pages. QEMU reads the pages from the
guest's memory, and the next request confirms that they were read.
"""

import collections
import re
import struct

from sonde import exits
from sonde.errors import SondeError

from .pages import PAGE, tell_missed

# An entry of the list: a page's address and CPU, events lost before it.
ENTRY = struct.Struct("<QQ")
ANSWER = re.compile(r"batch (\d+) pages (\d+) list 0x([0-9a-f]+) now (\d+)\n")
LIMIT = 60  # seconds for one request

# pages: (CPU, bytes) in the order of their ring   now: the guest's clock before the batch
Batch = collections.namedtuple("Batch", "pages now is_full")
BATCH_MAX = 1024  # pages in the guest; probes/trace/files/detach.c


class TraceError(SondeError):
    """The guest's tracer refused something; the text says what."""

    status = exits.FAILED


def pages_of(memory, listed):
    """Return the pages of a list, as (CPU, page)."""
    entries = list(ENTRY.iter_unpack(listed))
    data = memory.frames([place & -PAGE for place, _ in entries])
    return [
        (place % PAGE, page)
        for place, lost in entries
        for page in tell_missed(data[place & -PAGE], lost)
    ]


class Taker:
    """Takes pages. machine: a machine.Machine   memory: a memory.Memory"""

    def __init__(self, machine, memory):
        self.machine = machine
        self.memory = memory
        self.number = None

    def _ask(self, words):
        reply = self.machine.request("trace-pages " + words, LIMIT, may_fail=True)
        answer = ANSWER.fullmatch(reply.text)
        if reply.errno or not answer:
            raise TraceError(reply.text.strip() or f"trace-pages {words}: {reply.name}")
        number, count, frames, now = answer.groups()
        listed = self.memory.physical(int(frames, 16), ENTRY.size * int(count))
        pages = pages_of(self.memory, listed)
        self.number = int(number)
        return pages, int(now)

    def open(self):
        """Begin. Return the pages that an earlier host has not confirmed."""
        return self._ask("open")[0]

    def take(self, everything=False):
        """Return the next batch. everything: also pages that are not full yet."""
        pages, now = self._ask(f"{self.number + 1}{' all' * everything}")
        return Batch(pages, now, len(pages) >= BATCH_MAX)

    def drain(self):
        """Take all events that there are, and yield the batches."""
        while True:
            batch = self.take(everything=True)
            yield batch
            if not batch.is_full:
                return

    def switch(self, on):
        """Let recording and all histograms go on, or pause."""
        self.machine.request(f"trace-pages {'on' if on else 'off'}", LIMIT, may_fail=True)

    def switch_by_commands(self):
        """Let them go on while a command of the console runs, and pause else."""
        self.machine.request("trace-pages commands", LIMIT)

    def hide(self):
        """Record nothing of the thread that serves these requests. Return its number."""
        return int(self.machine.request("trace-pages hide", LIMIT).text.split()[-1])

    def close(self):
        self.machine.request(f"trace-pages {self.number} close", LIMIT, may_fail=True)
