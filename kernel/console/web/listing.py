"""listing.py - a function of a running guest for the page: source, instructions, counts.

What the guest says comes from `probe listing`; source lines come from sources.py,
instructions from objdump. The counts are read from the guest's memory: the guest executes
nothing for them, so a page that shows them four times a second is not in them.
"""

import bisect
import json
import re
import struct
import subprocess
import tempfile

from kernel.console.web.sources import image, lines_of_module, pieces
from sonde.memory import Unreadable

INSN = re.compile(r"^ *([0-9a-f]+):\t(.*?) *$", re.M)
GAP_MAX = 4096  # bytes that are read in vain rather than by a request of their own
CODE_MAX = 256  # bytes of a detour or cell that are shown
FUNCTION_MAX = 1 << 16  # bytes
PAGE = 4096
THREADS_MAX = 256
PARTS_MAX = 12  # detours may be linked to each other without end
TRAPPED = ("the CPU traps: <exc_int3>", "<kprobe_int3_handler>", "<hit_enter>")
EMULATED = "<emulate_run> does in the saved registers what the instruction does"


def disassembled(data, address):
    """[(address, text)] of the instructions in @data, which lies at @address."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        words = "objdump -D -b binary -m i386:x86-64 --no-show-raw-insn".split()
        words += [f"--adjust-vma={address:#x}", file.name]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [(int(at, 16), text) for at, text in INSN.findall(done.stdout)]


def named(text, names):
    """The text of an instruction, with names in place of addresses in functions."""

    def name(match):
        found = names(int(match[1], 16))
        return f"<{found}>" if found else match[0]

    return re.sub(r"0x([0-9a-f]{16})", name, text)


# ---- a function


def module_symbols(ask):
    """[(address, name, module)] of the functions of modules."""
    found = re.findall(
        r"^([0-9a-f]{16}) +\w+ [tT] (\S+)\s+\[(\S+)\]$", ask("module symbols"), re.M
    )
    return [(int(at, 16), name, module) for at, name, module in found]


class Function:
    """A function, or the entries of the functions of a file, as a page shows it.

    ask: runs a command of the console in the guest, and returns its output
    memory: a sonde.memory.Memory of the guest
    """

    def __init__(self, name, ask, memory):
        self.asked = name
        self.memory = memory
        self.head, *self.rows = map(json.loads, ask(f"probe listing {name}").splitlines())
        self.told = {}  # the counts as the page has them
        self.module, self.symbols = None, []
        self.lines, self.shift = image(), 0  # an address of the guest here, minus there
        if "address" in self.head and int(self.head["address"], 16) not in image().text:
            self.find_module(module_symbols(ask))
        for row in self.rows:
            self.complete(row)

    def find_module(self, symbols):
        self.symbols = sorted((at, f"{of}:{name}") for at, name, of in symbols)
        first = int(self.head["address"], 16)
        for at, name, self.module in symbols:
            if (at, name) == (first, self.head["function"]):
                self.lines, here = lines_of_module(self.module, name, self.head["size"])
                self.shift = here - first
                return

    def complete(self, row):
        """Add to @row what debug data tell: its line of source, and its offset."""
        address = int(row["address"], 16)
        first = int(self.head.get("address", row["address"]), 16)
        row.setdefault("function", self.head.get("function"))
        row["offset"] = address - first
        line = self.lines and self.lines.line_of(address + self.shift, first + self.shift)
        if line:
            row["path"], row["line"] = line

    def add_texts(self):
        """The texts of all instructions: they follow each other only in a function, so each
        one is put where it was.
        """
        first = min(int(row["address"], 16) for row in self.rows)
        last = max(int(row["address"], 16) for row in self.rows)
        data = bytearray(b"\x90" * (last + 16 - first))
        for row in self.rows:
            at = int(row["address"], 16) - first
            code = bytes.fromhex(row["original"])
            data[at : at + len(code)] = code
        texts = dict(disassembled(data, first))
        for row in self.rows:
            row["text"] = named(texts.get(int(row["address"], 16), "?"), self.name_of)

    def name_of(self, address):
        symbols = image().symbols if address in image().text else self.symbols
        i = bisect.bisect_left(symbols, (address + 1, "")) - 1
        if i < 0 or address - symbols[i][0] > FUNCTION_MAX:
            return None
        at, name = symbols[i]
        return name if at == address else f"{name}+{address - at:#x}"

    def json(self):
        if self.rows:
            self.add_texts()
        return {
            "asked": self.asked,
            "function": self.head.get("function") or self.head["file"],
            "file": "file" in self.head,
            "module": self.module,
            "address": self.head.get("address"),
            "size": self.head.get("size"),
            "causes": self.head["causes"],
            **{name: self.head[name] for name in ("optimize", "engine", "engines")},
            "rows": self.rows,
            "source": pieces(self.rows, own="file" not in self.head),
        }

    # -- counts

    def probes(self):
        for i, row in enumerate(self.rows):
            for one in row["probes"]:
                yield i, int(row["address"], 16), int(one["kprobe"], 16), one["others"]

    def counts(self):
        """As changes(), also if the memory has gone with a module."""
        try:
            return self.changes()
        except Unreadable:
            return {"stale": True}

    def changes(self):
        """What has changed since the last call: {"rows": {number of the row: [hits, misses
        by cause...] of its probe}}; {"stale": True}: the listing does not hold any more.

        Of several probes at one instruction, those of the first one are told.
        """
        changes = word(self.memory.read(image().changes, 4), 0, "I")
        bytes_now = self.read_all(
            [(int(row["address"], 16), len(row["owners"])) for row in self.rows]
        )
        if changes != self.head["changes"] or [data.hex() for data in bytes_now] != [
            row["now"] for row in self.rows
        ]:
            return {"stale": True}
        layout, found = self.head["kprobe"], {}
        structs = self.read_all(
            [(probe, layout["size"]) for _, _, probe, _ in self.probes()]
        )
        numbers = [word(data, layout["counter"], "I") for data in structs]
        sums = self.counters(numbers + [others for _, _, _, others in self.probes()])
        causes = len(self.head["causes"]) - 1  # the last one is a difference
        for (i, address, _, others), data, number in zip(self.probes(), structs, numbers):
            if word(data, layout["addr"]) != address or not word(data, layout["site"]):
                return {"stale": True}
            hits = word(data, layout["hits"]) + sums[number]
            seen = sums[others] if others else hits
            missed = struct.unpack_from(f"<{causes}Q", data, layout["missed"])
            found.setdefault(i, [seen, *missed, max(0, hits - seen)])
        changed = {i: row for i, row in found.items() if self.told.get(i) != row}
        self.told = found
        return {"rows": changed}

    def counters(self, numbers):
        """{number: sum over all CPUs} of counters; counter 0 is none."""
        used = sorted(set(numbers) - {0})
        sums = dict.fromkeys([0, *used], 0)
        for base in (int(text, 16) for text in self.head["counters"]):
            data = self.read_all([(base + 8 * number, 8) for number in used])
            for number, value in zip(used, data):
                sums[number] += word(value, 0)
        return sums

    def read_all(self, places):
        """The bytes of each (address, size) of @places, by as few requests as possible."""
        blocks = []
        for address, size in sorted(set(places)):
            if blocks and address - blocks[-1][1] <= GAP_MAX:
                blocks[-1][1] = max(blocks[-1][1], address + size)
            else:
                blocks.append([address, address + size])
        read = {start: self.memory.read(start, end - start) for start, end in blocks}
        starts = sorted(read)

        def one(address, size):
            start = starts[bisect.bisect_right(starts, address) - 1]
            return read[start][address - start : address - start + size]

        return [one(*place) for place in places]

    def threads(self):
        """[tid, name, state, CPU, us on a CPU] of each thread. The list may change meanwhile:
        then it ends early.
        """
        layout, found, end = self.head["thread"], [], image().threads
        link = word(self.memory.read(end, 8), 0)
        while link != end and len(found) < THREADS_MAX:
            try:
                data = self.memory.read(link - layout["link"], layout["size"])
            except Unreadable:
                break
            tid, state, cpu = (
                word(data, layout[n], "I") for n in ("tid", "state", "cpu")
            )
            name = data[layout["name"] :].split(b"\0")[0].decode("ascii", "replace")
            if state >= len(layout["states"]):
                break
            us = word(data, layout["run_ns"]) // 1000
            found.append([tid, name, layout["states"][state], cpu, us])
            link = word(data, layout["link"])
        return found

    # -- what the CPU executes on a hit

    def path(self, number):
        """What a CPU executes at row @number, up to the next instruction of the program:
        [{"what", "steps": [{"address", "text"}]}].
        """
        row = self.rows[number]
        parts = []
        if row["owners"].startswith("i"):
            at, what = row.get("cell"), "copy"
            parts.append(self.part("trap", int(row["address"], 16), 1)[0])
            steps = [{"text": text} for text in TRAPPED]
            if row.get("tier") == "emulate":
                steps.append({"text": EMULATED})
                at = None
            parts.append({"what": "engine", "steps": steps})
        else:
            at, what = row["address"], "jump"
        address, known = at and int(at, 16), {}
        for name in ("pad", "detour", "cell"):
            if name in row:
                known.setdefault(int(row[name], 16), name)
        while address and len(parts) < PARTS_MAX:
            part, address = self.part(what, address, CODE_MAX)
            parts.append(part)
            if address in image().text:
                break
            what = known.get(address, "next detour")
        return parts

    def code_at(self, address, size):
        """@size bytes of code; fewer if the next page is not mapped."""
        try:
            return self.memory.read(address, size)
        except Unreadable:
            return self.memory.read(address, PAGE - address % PAGE)

    def part(self, what, address, size):
        """The instructions from @address to the first jump, and where that leads."""
        found, to = [], None
        for step, text in disassembled(self.code_at(address, size), address):
            found.append({"address": f"{step:x}", "text": named(text, self.name_of)})
            jump = re.match(r"jmp +0x([0-9a-f]+)$", text)
            if jump:
                to = int(jump[1], 16)
            if re.match(r"(jmp|ret|int3|\(bad\))", text) or (what == "jump"):
                break
        return {"what": what, "steps": found}, to


def word(data, at, kind="Q"):
    return struct.unpack_from("<" + kind, data, at)[0]
