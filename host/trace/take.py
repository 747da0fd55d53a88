"""take.py - takes the pages of the tracer out of a running guest.

The guest is asked by its machine interface for a batch of pages (`trace-pages`); it answers
where the list of their frames lies. The pages are read out of its memory by QEMU, and the
next request says that they were.
"""

import collections
import re
import struct

FRAME = 4096
ANSWER = re.compile(r"batch (\d+) pages (\d+) list 0x([0-9a-f]+) now (\d+)\n")
LIMIT = 60  # seconds for one request

# pages: (CPU, its bytes) in the order of their ring   now: the guest's clock before
Batch = collections.namedtuple("Batch", "pages now is_full")
BATCH_MAX = 1024  # pages; probes/trace/files/detach.c


class TraceError(Exception):
    """The guest's tracer refused something; the text says what."""


class Taker:
    """machine: its interface   memory: a memory.Memory"""

    def __init__(self, machine, memory):
        self.machine = machine
        self.memory = memory
        self.number = None

    def _ask(self, words):
        reply = self.machine.request("trace-pages " + words, LIMIT)
        answer = ANSWER.fullmatch(reply.text)
        if reply.errno or not answer:
            raise TraceError(reply.text.strip() or f"trace-pages {words}: {reply.name}")
        number, count, frames, now = answer.groups()
        self.number = int(number)
        return self._read(int(count), int(frames, 16)), int(now)

    def _read(self, count, frames):
        """The @count pages of the list at @frames."""
        entries = struct.unpack(f"<{count}Q", self.memory.physical(frames, 8 * count))
        data = self.memory.frames([entry & -FRAME for entry in entries])
        return [(entry % FRAME, data[entry & -FRAME]) for entry in entries]

    def open(self):
        """Begin. The pages that a host before this one has not confirmed."""
        return self._ask("open")[0]

    def take(self, everything=False):
        """The next batch. everything: also what is on pages that are not full yet."""
        pages, now = self._ask(f"{self.number + 1}{' all' * everything}")
        return Batch(pages, now, len(pages) == BATCH_MAX)

    def drain(self):
        """All that there is, in batches."""
        while True:
            batch = self.take(everything=True)
            yield batch
            if not batch.is_full:
                return

    def switch(self, on):
        """As tracing_on, without opening a file, which may be what is traced."""
        self.machine.request(f"trace-pages {'on' if on else 'off'}", LIMIT)

    def close(self):
        self.machine.request(f"trace-pages {self.number} close", LIMIT)
