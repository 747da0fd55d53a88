"""dead.py - reads the pages of a guest that cannot answer any more, from its memory.

The symbol `trace_layout` of the guest's ELF file leads to the rings. They are read as
probes/trace/ring/ring.c reads them, but more simply, because no CPU writes to them any more.
"""

import struct

from .take import ENTRY, pages_of
from .pages import PAGE, part, records, tell_missed

# probes/trace/buffer/buffer.c: trace_layout
NAMES = """cpus cpu_count cpu_size cpu_ring cpu_old cpu_spare cpu_snapshot
           published slots slot_count read dropped overrun dropped_before overrun_before
           overwritten ring_size slot_size slot_end slot_first slot_lost
           read_off read_events read_lost lap_shift
           comms comm_count comm_size comm_name direct_map""".split()
FREE, OPEN, UNREAD = range(3)
PLACE_LOW = (1 << 16) - 1
LAP_MASK = (1 << 26) - 1
NAME_LEN = 16


class Dead:
    """Reads the rings of a guest.

    memory: a memory.Memory of the guest   symbols: of its ELF file
    """

    def __init__(self, memory, symbols):
        self.memory = memory
        self.symbols = symbols
        words = self._words(symbols.objects["trace_layout"], len(NAMES))
        self.layout = dict(zip(NAMES, words))

    def _words(self, address, count):
        return struct.unpack(f"<{count}Q", self.memory.virtual(address, 8 * count))

    def _page(self, word):
        """Return the page in a slot's word."""
        address = ((word >> 16) & -PAGE) | (0xFFFF << 48 if word >> 63 else 0)
        return self.memory.physical(address - self.layout["direct_map"], PAGE)

    def batch(self, taken):
        """Return pages that were taken out of the rings but did not reach the host, as
        (CPU, page). The host has got the batches up to number @taken.
        """
        number, count, frames = self._words(self.symbols.objects["trace_batch"], 3)
        if not frames or not count or number <= taken:
            return []
        return pages_of(self.memory, self.memory.virtual(frames, ENTRY.size * count))

    def rings(self, places=("cpu_snapshot", "cpu_spare", "cpu_old", "cpu_ring")):
        """Yield (CPU, its pages, how many events it has lost), the oldest pages first.
        The spare ring has pages if a snapshot was taken right before the end.
        """
        layout = self.layout
        for cpu in range(layout["cpu_count"]):
            base = layout["cpus"] + cpu * layout["cpu_size"]
            if not self._words(base + layout["cpu_ring"], 1)[0]:
                return
            found, lost = [], 0
            for place in places:
                (ring,) = self._words(base + layout[place], 1)
                if ring:
                    more, count = self.ring(ring)
                    found += more
                    lost += count
            yield cpu, found, lost

    def snapshot(self):
        """Yield the same for the snapshot, which is not in the batches. This works also
        for a running guest, while it does not record.
        """
        return self.rings(("cpu_snapshot",))

    def formats(self):
        """Yield (group, format) of each event that was made since a host takes pages."""
        (at,) = self._words(self.symbols.objects["trace_described"], 1)
        while at:
            following, size = self._words(at, 2)
            text = self.memory.virtual(at + 16, size).decode()
            yield tuple(text.split("\n", 1))
            at = following

    def ring(self, address):
        """Return (unread pages, events lost since the ring was reset)."""
        layout = self.layout
        data = self.memory.virtual(address, layout["ring_size"])

        def word(offset):
            return struct.unpack_from("<Q", data, offset)[0]

        read, count = layout["read"], word(layout["slot_count"]) & 0xFFFFFFFF
        published = word(layout["published"])
        last = (published >> layout["lap_shift"]) * count + (published & PLACE_LOW)
        cursor = {
            "seq": word(read),
            "off": word(read + layout["read_off"]) & 0xFFFFFFFF,
            "events": word(read + layout["read_events"]),
            "lost": word(read + layout["read_lost"]),
        }
        cursor["lost"] -= cursor["lost"] >> 63 << 64  # below 0: lost in earlier rings
        before = max(-cursor["lost"], 0)
        slots = self.memory.virtual(word(layout["slots"]), count * layout["slot_size"])
        pages, overwritten = self._unread(cursor, slots, count, last)
        kinds = ("dropped", "overrun")
        lost = sum(word(layout[n]) - word(layout[n + "_before"]) for n in kinds)
        return pages, before + lost + overwritten + word(layout["overwritten"])

    def _unread(self, cursor, slots, count, last):
        layout, pages, overwritten = self.layout, [], 0
        if cursor["seq"] + count <= last:
            cursor |= {"seq": last - count + 1, "off": 0}
        for seq in range(cursor["seq"], last + 1):
            at = seq % count * layout["slot_size"]
            (word,) = struct.unpack_from("<Q", slots, at)
            first, lost = (
                struct.unpack_from("<Q", slots, at + layout[n])[0]
                for n in ("slot_first", "slot_lost")
            )
            lap, state = word >> 2 & LAP_MASK, word & 3
            off = cursor["off"] if seq == cursor["seq"] else 0
            if lap != seq // count & LAP_MASK or state == FREE:
                continue
            page = self._page(word)
            missed = 0
            if not off:
                missed = first - cursor["events"] + lost - cursor["lost"]
                overwritten += first - cursor["events"]
                cursor |= {"events": first, "lost": lost}
            (end,) = struct.unpack_from("<I", slots, at + layout["slot_end"])
            if seq == last:
                (end,) = struct.unpack_from("<Q", page, 8)
            page = part(page, off, end, missed)
            found = sum(1 for _ in records(0, page))
            cursor["events"] += found
            if found:
                pages += tell_missed(page, missed)
        return pages, overwritten

    def cmdlines(self):
        """Yield the names of threads, as saved_cmdlines shows them."""
        layout = self.layout
        size = layout["comm_count"] * layout["comm_size"]
        data = self.memory.virtual(layout["comms"], size)
        for i in range(layout["comm_count"]):
            at = i * layout["comm_size"]
            (pid,) = struct.unpack_from("<i", data, at)
            name = data[at + layout["comm_name"] :][:NAME_LEN].split(b"\0")[0]
            if pid > 0:
                yield f"{pid} {name.decode('utf-8', 'replace')}\n"
