"""dead_hist.py - reads the histograms of a guest that cannot answer any more, from its
memory.

The symbols `live_layout` and `hist_layout` of the guest's ELF file lead to them. They are
printed as the text of the file `hist`, as probes/trace/language/hist_print.c prints it. Each
entry that the table shows is complete, even if a CPU was in the middle of a hit.
"""

import struct

# probes/trace/live/live_list.c: live_layout
LIVE = """events next link group name name_size attached count trigger hist""".split()
# probes/trace/language/hist_print.c: hist_layout
HIST = """hist_size table keys key_count vals val_count sorts sort_count no_hitcount
          part_size part_name part_signed part_show part_bucket part_at part_bytes
          sort_size sort_by_key sort_index sort_descending
          table_size size entry_size slot entries used hits dropped
          comm sum""".split()
# probes/trace/language/hist_parts.h: enum hist_show
(NUMBER, HEX, SYM, SYM_OFFSET, EXECNAME, LOG2, BUCKETS, STRING, STACK, MIN,
 MAX, SYSCALL, USECS, PERCENT, GRAPH) = range(15)  # fmt: skip
BAR = 20  # characters of the longest bar
NAME_MAX = 64
LISTED_MAX = 1 << 16  # entries of a list; a damaged list may have no end


def text_at(data, at, width=0):
    """Return the text at @at, up to a NUL. Blanks fill it up to @width bytes."""
    text = data[at:].split(b"\0")[0].ljust(width)
    return text.decode("utf-8", "backslashreplace")


class Part:
    """A key or a value."""

    def __init__(self, memory, layout, data, at):
        def field(name, form):
            return struct.unpack_from("<" + form, data, at + layout[name])[0]

        self.name = text_at(memory.virtual(field("part_name", "Q"), NAME_MAX), 0)
        self.signed = field("part_signed", "B")
        self.show = field("part_show", "I")
        self.bucket = field("part_bucket", "Q")
        self.at = field("part_at", "H")
        self.size = field("part_bytes", "H")

    def sorted_by(self, key):
        """Return the value by which this part of a key is sorted."""
        if self.size != 8:  # a text or a stack
            return key[self.at : self.at + self.size]
        return int.from_bytes(
            key[self.at : self.at + 8], "little", signed=bool(self.signed)
        )

    def text(self, key, comm, symbols):
        if self.show == STACK:
            words = struct.unpack_from(f"<{self.size // 8}Q", key, self.at)
            texts = [symbols.place_at(words[0])]
            texts += [symbols.caller_at(word) for word in words[1:] if word]
            return f"{self.name}:\n" + "".join(f"         {text}\n" for text in texts)
        if self.show in (STRING, USECS) and self.size != 8:
            return f"{self.name}: {text_at(key[: self.at + self.size], self.at, 50)}"
        (value,) = struct.unpack_from("<Q", key, self.at)
        place = symbols.place_at(value) if self.show in (SYM, SYM_OFFSET) else ""
        texts = {
            HEX: f"{value:x}",
            SYM: f"[{value:x}] {place.split('+')[0]:<45}",
            SYM_OFFSET: f"[{value:x}] {place:<55}",
            EXECNAME: f"{comm:<16}[{value:10}]",
            SYSCALL: f"{'unknown_syscall':<30}[{value:3}]",
            LOG2: f"~ 2^{value:<2}",
            BUCKETS: f"~ {value}-{value + self.bucket - 1}",
        }
        return f"{self.name}: {texts.get(self.show, f'{value:10}')}"


class Histogram:
    """A histogram. Its struct hist is at @address."""

    def __init__(self, memory, layout, address):
        self.memory = memory
        self.layout = layout
        self.data = memory.virtual(address, layout["hist_size"])
        self.table = memory.virtual(self.word(self.data, "table"), layout["table_size"])
        self.keys = self.parts("keys", "key_count")
        self.vals = self.parts("vals", "val_count")

    def word(self, data, name, form="Q"):
        return struct.unpack_from("<" + form, data, self.layout[name])[0]

    def parts(self, first, count):
        return [
            Part(
                self.memory,
                self.layout,
                self.data,
                self.layout[first] + i * self.layout["part_size"],
            )
            for i in range(self.word(self.data, count, "I"))
        ]

    def entries(self):
        """Yield (comm, sums, key) of each entry with hits, in the order of their making."""
        size, entry_size = self.word(self.table, "size"), self.word(
            self.table, "entry_size"
        )
        slots = self.memory.virtual(self.word(self.table, "slot"), 8 * size)
        data = self.memory.virtual(self.word(self.table, "entries"), size * entry_size)
        for number in sorted(slot for (slot,) in struct.iter_unpack("<I", slots) if slot):
            one = data[(number - 1) * entry_size : number * entry_size]
            sums = struct.unpack_from(f"<{1 + len(self.vals)}Q", one, self.layout["sum"])
            behind = self.layout["sum"] + 8 * len(sums)
            if sums[0]:
                yield text_at(one, self.layout["comm"]), sums, one[behind:]

    def sorted(self):
        """Return the entries in the order in which they are printed."""
        found = list(self.entries())
        for i in reversed(range(self.word(self.data, "sort_count", "I"))):
            at = self.layout["sorts"] + i * self.layout["sort_size"]
            by_key = self.data[at + self.layout["sort_by_key"]]
            (index,) = struct.unpack_from("<I", self.data, at + self.layout["sort_index"])
            down = self.data[at + self.layout["sort_descending"]]
            found.sort(key=self.order(by_key, index), reverse=bool(down))
        return found

    def order(self, by_key, index):
        if by_key:
            return lambda entry: self.keys[index].sorted_by(entry[2])
        if index and self.vals[index - 1].signed:
            return lambda entry: entry[1][index] - (entry[1][index] >> 63 << 64)
        return lambda entry: entry[1][index]

    @staticmethod
    def value(part, value, column):
        if part.show == PERCENT:
            share = min(value * 10000 // (sum(column) % 2**64 or 1), 10000)
            return f"{part.name} (%): {share // 100:3}.{share % 100:02}"
        if part.show == GRAPH:
            length = (value * 2 * BAR // (max(column) or 1) + 1) // 2
            return f"{part.name}: {'#' * length:{BAR}}"
        return f"{part.name}: {f'{value:x}' if part.show == HEX else value:>10}"

    def line(self, entry, columns, symbols):
        comm, sums, key = entry
        keys = ", ".join(part.text(key, comm, symbols) for part in self.keys)
        many_lines = self.keys and self.keys[-1].show == STACK
        said = f"{{ {keys}{'' if many_lines else ' '}}}"
        if not self.data[self.layout["no_hitcount"]]:
            said += f" hitcount: {sums[0]:10}"
        for part, value, column in zip(self.vals, sums[1:], columns[1:]):
            said += "  " + self.value(part, value, column)
        return said + "\n"

    def text(self, symbols):
        found = self.sorted()
        columns = list(zip(*(sums for _, sums, _ in found)))
        entries = "".join(self.line(entry, columns, symbols) for entry in found)
        hits, dropped = (self.word(self.table, name) for name in ("hits", "dropped"))
        return (
            f"# event histogram\n#\n\n{entries}\nTotals:\n    Hits: {hits}\n"
            f"    Entries: {len(found)}\n    Dropped: {dropped}\n"
        )


class Histograms:
    """Finds the histograms of all events.

    memory: a memory.Memory of the guest   symbols: a symbols.Symbols
    """

    def __init__(self, memory, symbols):
        self.memory = memory
        self.symbols = symbols
        self.live = self._layout("live_layout", LIVE)
        self.layout = self._layout("hist_layout", HIST)

    def _words(self, address, count=1):
        return struct.unpack(f"<{count}Q", self.memory.virtual(address, 8 * count))

    def _layout(self, symbol, names):
        return dict(zip(names, self._words(self.symbols.objects[symbol], len(names))))

    def _events(self):
        """Yield ("group/event", its address) of each event."""
        live = self.live
        (at,) = self._words(live["events"] + live["next"])
        for _ in range(LISTED_MAX):
            if at == live["events"]:
                return
            event = at - live["link"]
            names = [
                text_at(self.memory.virtual(event + live[name], live["name_size"]), 0)
                for name in ("group", "name")
            ]
            yield "/".join(names), event
            (at,) = self._words(at + live["next"])

    def _of(self, event):
        """Yield the addresses of the histograms of an event."""
        (attached,) = self._words(event + self.live["attached"])
        if not attached:
            return
        data = self.memory.virtual(attached + self.live["count"], 4)
        count = int.from_bytes(data, "little")
        for trigger in self._words(attached + self.live["trigger"], count):
            (hist,) = self._words(trigger + self.live["hist"])
            if hist:
                yield hist

    def texts(self, wanted):
        """Yield ("group/event", the text of its file `hist`) for the events of @wanted
        that have a histogram.
        """
        for name, event in self._events():
            if name in wanted:
                found = [
                    Histogram(self.memory, self.layout, hist).text(self.symbols)
                    for hist in self._of(event)
                ]
                if found:
                    yield name, "\n\n".join(found)
