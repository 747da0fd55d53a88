"""listing.py - a function of a running guest for the page: source, instructions, counts.

What the guest says comes from `probe listing`; source lines come from the image's debug data,
instructions from objdump. The counts are read from the guest's memory: the guest executes
nothing for them, so a page that shows them four times a second is not in them.
"""

import bisect
import functools
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

from docs.labs.host import labs
from kernel.module import send
from sonde.guest import ELF, ROOT
from sonde.memory import Unreadable

sys.path.append(os.path.join(ROOT, "kernel", "debug"))
import elf64
import gen_lines

INSN = re.compile(r"^ *([0-9a-f]+):\t(.*?) *$", re.M)
GAP_MAX = 4096  # bytes that are read in vain rather than by a request of their own
AROUND = 2  # lines of source before and behind those that were compiled
CODE_MAX = 256  # bytes of a detour or cell that are shown
FUNCTION_MAX = 1 << 16  # bytes
THREADS_MAX = 256
# Graders and solutions, which the page does not show.
HIDDEN = (labs.GRADERS, "tests/labs")
PARTS_MAX = 12  # detours may be linked to each other without end
TRAP_STEPS = [{"text": f"the CPU traps: <{name}>"} for name in ("exc_int3",)] + [
    {"text": f"<{name}>"} for name in ("kprobe_int3_handler", "hit_enter")
]
EMULATED = [
    {"text": "<emulate_run> does in the saved registers what the instruction does"}
]


# ---- the image


def read_lines(data):
    """{address: (path, line)} of the first instruction of each statement. @data: of the
    section .debug_line
    """
    found, at = {}, 0
    while at < len(data):
        try:
            for address, path, line in gen_lines.Program(data, at, ROOT).rows():
                found[address] = (path, line)
        except gen_lines.DAMAGE:
            pass
        at += 4 + int.from_bytes(data[at : at + 4], "little")
    return found


class Image:
    """Symbols and lines of the image that the guests run. Made once for a build."""

    def __init__(self):
        words = ["nm", "-n", "--defined-only", ELF]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
        table = {name: int(at, 16) for at, _, name in rows}
        self.text = range(table["_text"], table["_etext"])
        self.changes, self.threads = table["console_changes"], table["sched_all"]
        self.symbols = [
            (int(at, 16), name)
            for at, kind, name in rows
            if kind in "tT" and int(at, 16) in self.text and name != "_text"
        ]
        elf = elf64.load(ELF)
        self.lines = read_lines(elf.content(elf.section(".debug_line")))
        self.starts = sorted(self.lines)

    def line_of(self, address, first):
        """The (path, line) of the instruction in the function that begins at @first."""
        i = bisect.bisect_right(self.starts, address) - 1
        if i < 0 or self.starts[i] < first:
            return None
        return self.lines[self.starts[i]]

    def functions(self):
        """[name, path of its file] of each function, in order of names."""
        files = {name: self.lines[at][0] for at, name in self.symbols if at in self.lines}
        return sorted(files.items())


class Object:
    """Lines of the object from which a module was made. Its section number N begins at
    N << 32; the functions lie elsewhere in the guest.
    """

    def __init__(self, path):
        elf = elf64.load(path)
        symbols = list(elf64.SYMBOL.iter_unpack(elf.content(elf.section(".symtab"))))
        self.functions = {
            symbol.name: (
                (elf.sections.index(symbol.section) << 32) + symbol.value,
                symbol.size,
            )
            for symbol in elf.symbols()
            if symbol.section and symbol.type == elf64.STT_FUNC
        }
        data = bytearray(elf.content(elf.section(".debug_line")))
        table = elf.content(elf.section(".rela.debug_line"))
        for place, info, addend in elf64.RELOCATION.iter_unpack(table):
            _, _, _, section, value, _ = symbols[info >> 32]
            struct.pack_into("<Q", data, place, (section << 32) + value + addend)
        self.lines = read_lines(data)
        self.starts = sorted(self.lines)

    line_of = Image.line_of


def lines_of_module(module, function, size):
    """The lines of a module, and where they have the function; (None, 0): there are none, or
    they are of another object than the one that is loaded.
    """
    try:
        lines = object_of(module, os.path.getmtime(send.with_debug_data(module)))
    except (
        OSError,
        ValueError,
        IndexError,
        AttributeError,
        struct.error,
        elf64.ElfError,
    ):
        return None, 0
    at, known_size = lines.functions.get(function, (0, 0))
    return (lines, at) if known_size == size else (None, 0)


@functools.lru_cache(maxsize=16)
def object_of(module, _when):
    return Object(send.with_debug_data(module))


@functools.lru_cache(maxsize=1)
def image_of(_when):
    return Image()


def image():
    return image_of(os.path.getmtime(ELF))


def disassembled(data, address):
    """[(address, text)] of the instructions in @data, which lies at @address."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        words = [
            "objdump",
            "-D",
            "-b",
            "binary",
            "-m",
            "i386:x86-64",
            "--no-show-raw-insn",
        ]
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


def source_of(path):
    """The text of a file of the tree, or of a lab's folder; else None: debug data of a
    module could name any file.
    """
    full = os.path.realpath(os.path.join(ROOT, path))
    inside = os.path.relpath(full, os.path.realpath(ROOT))
    of_labs = os.path.realpath(labs.folder("."))
    if inside.startswith(HIDDEN) or not full.endswith((".c", ".h", ".asm")):
        return None
    if inside.startswith("..") and not full.startswith(of_labs + os.sep):
        return None
    try:
        with open(full, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def pieces(rows, own):
    """The lines of source that @rows were compiled from: those of the function's own file
    first, in one piece if @own. [{"path", "first", "lines"}]
    """
    wanted = {}
    for row in rows:
        if "path" in row:
            wanted.setdefault(row["path"], set()).add(row["line"])
    out = []
    for path, lines in wanted.items():
        text = source_of(path)
        if text is None:
            continue
        text = text.split("\n")
        for first, last in runs(sorted(lines), own and not out):
            first, last = max(first - AROUND, 1), min(last + AROUND, len(text))
            out.append({"path": path, "first": first, "lines": text[first - 1 : last]})
    return out


def runs(lines, own):
    """Ranges of lines that are shown together; those of the function itself (@own) are one
    range.
    """
    found = [[lines[0], lines[0]]]
    for line in lines:
        if line > found[-1][1] + 2 * AROUND + 1 and not own:
            found.append([line, line])
        found[-1][1] = line
    return found


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
            for probe in row["probes"]:
                yield i, int(row["address"], 16), int(probe["kprobe"], 16), probe[
                    "others"
                ]

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
            parts.append({"what": "engine", "steps": TRAP_STEPS})
            if row.get("tier") == "emulate":
                parts.append({"what": "engine", "steps": EMULATED})
                at = None
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

    def part(self, what, address, size):
        """The instructions from @address to the first jump, and where that leads."""
        found, to = [], None
        for step, text in disassembled(self.memory.read(address, size), address):
            found.append({"address": f"{step:x}", "text": named(text, self.name_of)})
            jump = re.match(r"jmp +0x([0-9a-f]+)$", text)
            if jump:
                to = int(jump[1], 16)
            if re.match(r"(jmp|ret|int3|\(bad\))", text) or (what == "jump"):
                break
        return {"what": what, "steps": found}, to


def word(data, at, kind="Q"):
    return struct.unpack_from("<" + kind, data, at)[0]
