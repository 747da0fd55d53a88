"""capture.py - records a guest that runs: sets up its tracer, takes its pages, asks for what
describes them.
"""

import re

from machine import quote

from . import dead, hist, question, recording
from .take import Taker, TraceError

ROOT = "/sys/kernel/tracing/"
LIMIT = 60
DEFINITION = re.compile(r"[pr]\d*[:\s]")  # a line of kprobe_events
SHORT = re.compile(r"(count|args|time|callers)\s+([^\s{]+)")  # a question of two words
# What `trace -n` prints of a question, and in it a histogram with its filter.
COMMAND = re.compile(r"echo '(.*)' >> (/\S+)")
TRIGGER = re.compile(r"hist:(\S*)(?: if (.*))?")
LOSSES = ("overrun", "commit overrun", "dropped events")


class Files:
    """The tracer's files of a guest, by its machine interface."""

    def __init__(self, machine):
        self.machine = machine

    def _must(self, reply, what):
        if reply.errno:
            raise TraceError(f"{what}: {reply.name}: {reply.text.strip()}")
        return reply.text

    def read(self, name):
        return self._must(self.machine.request(f"cat {ROOT}{name}", LIMIT), name)

    def list(self, name):
        reply = self.machine.request(f"ls {ROOT}{name}", LIMIT)
        return self._must(reply, name).splitlines()

    def has(self, name):
        return not self.machine.request(f"stat {ROOT}{name}", LIMIT).errno

    def write(self, name, text):
        command = f"echo -ne {quote(text)} >> {ROOT}{name}"
        self._must(self.machine.request(command, LIMIT), f"{name}: {text!r}")

    def truncate(self, name):
        self._must(self.machine.request(f"echo -n '' > {ROOT}{name}", LIMIT), name)


def folders(names):
    return [name[:-1] for name in names if name.endswith("/")]


class Capture:
    """One recording, of what was asked in lines."""

    force_gdb = False  # gdb compiles also what the guest could resolve: for tests

    def __init__(self, machine, memory, symbols, cpus, lines=()):
        self.machine = machine
        self.files = Files(machine)
        self.machine_memory = memory
        self.taker = Taker(machine, memory)
        self.result = recording.Recording(
            symbols=symbols,
            lines=list(lines),
            pages=[[] for _ in range(cpus)],
            lost=[0] * cpus,
        )
        self.events = {}  # "group/event", defined here: its line
        self.counted = {}  # those with a histogram: its filter, or None

    def set_up(self, buffer_kb=0, record_all=True):
        """An empty buffer and the events of the lines, switched on.

        record_all: also those that a question only counts
        """
        self.taker.switch(False)
        for line in self.result.lines:
            before = set(self.all_events())
            self.define(line)
            self.events |= {event: line for event in self.all_events() if event not in before}
        if buffer_kb:
            self.files.write("buffer_size_kb", str(buffer_kb))
        self.files.truncate("trace")
        self.describe()
        self.taker.open()
        for event in self.events:
            if record_all or event not in self.counted:
                self.enable(event)
        self.taker.switch(True)

    def enable(self, event):
        """Its records pass the filter that its histogram has."""
        if self.counted.get(event):
            self.files.write(f"events/{event}/filter", self.counted[event])
        self.files.write(f"events/{event}/enable", "1")

    def define(self, line):
        if not DEFINITION.match(line):
            self.question(line)
            return
        try:
            self.files.write("kprobe_events", line)
        except TraceError as error:
            said = self.files.read("error_log") if self.files.has("error_log") else ""
            raise TraceError(said.rstrip() or str(error)) from None

    def question(self, line):
        """What the console's `trace` writes for a question is written here instead."""
        short = SHORT.fullmatch(line.strip())
        words = [short[1], short[2]] if short else [self.resolved(line)]
        reply = self.lines_of(words)
        if reply.errno:
            raise TraceError(reply.text.rstrip())
        for command in reply.lines:
            match = COMMAND.fullmatch(command)
            if not match:
                raise TraceError(f"trace -n prints {command!r}")
            self.follow(match[2].removeprefix(ROOT), match[1])

    def lines_of(self, words):
        """The reply to `trace -n` with these words."""
        if any("'" in word and '"' in word for word in words):
            raise TraceError(f"{words[-1]!r} has both kinds of quotes")
        words = [f'"{word}"' if "'" in word else f"'{word}'" for word in words]
        return self.machine.request(" ".join(["trace", "-n", *words]), LIMIT)

    def resolved(self, line):
        """The question, its C expressions as programs."""
        return question.resolve(line, lambda text: self.lines_of([text]),
                                self.result.symbols, self.force_gdb)

    def follow(self, name, text):
        """Write what a question is made of."""
        if name == "kprobe_events" and text.startswith("r") and " ns=" not in text:
            text += " ns=$ns:u64"  # how long the call took
        trigger = TRIGGER.fullmatch(text)
        if not trigger or not name.endswith("/trigger"):
            self.files.write(name, text)
            return
        event = name.removeprefix("events/").removesuffix("/trigger")
        keys, condition = trigger.groups()
        behind = f" if {condition}" if condition else ""
        self.files.write(name, f"hist:{keys}:pause{behind}")  # until all is set up
        self.counted[event] = condition
        if re.search(r"(^|[:,=])stacktrace", keys):
            self.files.write(name, "stacktrace" + behind)

    def all_events(self):
        """group/event of each that has a format."""
        for group in folders(self.files.list("events")):
            for event in folders(self.files.list(f"events/{group}")):
                yield f"{group}/{event}"

    def describe(self):
        """What makes sense of the pages; asked for again at the end."""
        read = self.files.read
        self.result.header_page = read("events/header_page")
        self.result.header_event = read("events/header_event")
        self.result.printk = read("printk_formats")
        self.result.cmdlines = read("saved_cmdlines")
        chosen = re.search(r"\[(.*?)\]", read("trace_clock"))
        self.result.clock = chosen[1] if chosen else "local"
        self.result.version = self.machine.request("cat /proc/version", LIMIT).text.strip()
        known = dict.fromkeys(self.result.formats)
        for event in self.all_events():
            known[event.split("/")[0], read(f"events/{event}/format")] = None
        self.result.formats = list(known)
        modules = self.machine.request("cat /proc/kallsyms | grep [", LIMIT)
        self.result.symbols.add_modules(modules.text)
        self.result.forget()

    def take(self):
        """Full pages, as many as there are now."""
        is_full = True
        while is_full:
            batch = self.taker.take()
            self.keep(batch.pages)
            is_full = batch.is_full

    def keep(self, pages):
        for cpu, page in pages:
            self.result.pages[cpu].append(page)

    def finish(self):
        """Switch the events off, and take what is left."""
        self.taker.switch(False)
        for event in self.events:
            self.files.write(f"events/{event}/enable", "0")
        for batch in self.taker.drain():
            self.keep(batch.pages)
        behind = self.left_behind()
        self.taker.close()
        self.describe()
        for event in self.counted:
            self.keep_table(event, self.files.read(f"events/{event}/hist"))
        for cpu in range(len(self.result.pages)):
            text = self.files.read(f"per_cpu/cpu{cpu}/stats")
            self.result.stats.append(text)
            counts = re.findall(r"^(.*): (\d+)$", text, re.M)
            self.result.lost[cpu] = sum(int(n) for name, n in counts if name in LOSSES)
            self.result.lost[cpu] += behind.get(cpu, 0)
        return self.result

    def keep_table(self, event, text):
        """The text of a histogram's file, with signs where the event's format has them."""
        group, name = event.split("/")
        signed = [field.name for format_ in self.result.by_id.values()
                  if (format_.group, format_.name) == (group, name)
                  for field in format_.fields if field.is_signed]  # fmt: skip
        self.result.tables.append((self.events[event], hist.with_signs(text, signed)))

    def left_behind(self):
        """What is in no batch: the snapshot, and the formats of events that have gone.
        Returns how many events the snapshot has lost, by CPU.
        """
        memory = dead.Dead(self.machine_memory, self.result.symbols)
        self.result.add_formats(memory.formats())
        lost = {}
        for cpu, found, count in memory.snapshot():
            if found:
                self.result.add_older(cpu, found)
            lost[cpu] = count
        return lost
