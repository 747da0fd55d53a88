"""capture.py - records a guest that runs: sets up its tracer, takes its pages, asks for what
describes them.
"""

import re

from machine import quote

from . import recording
from .take import Taker, TraceError

ROOT = "/sys/kernel/tracing/"
LIMIT = 60
DEFINITION = re.compile(r"[pr]\d*[:\s]")  # a line of kprobe_events
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

    def __init__(self, machine, memory, symbols, cpus, lines=()):
        self.machine = machine
        self.files = Files(machine)
        self.taker = Taker(machine, memory)
        self.result = recording.Recording(
            symbols=symbols,
            lines=list(lines),
            pages=[[] for _ in range(cpus)],
            lost=[0] * cpus,
        )
        self.events = []  # "group/event", that were defined here

    def set_up(self, buffer_kb=0):
        """An empty buffer and the events of the lines, switched on."""
        self.taker.switch(False)
        before = set(self.all_events())
        for line in self.result.lines:
            self.define(line)
        if buffer_kb:
            self.files.write("buffer_size_kb", str(buffer_kb))
        self.files.truncate("trace")
        self.describe()
        self.taker.open()
        self.events = [event for event in self.all_events() if event not in before]
        for event in self.events:
            self.files.write(f"events/{event}/enable", "1")
        self.taker.switch(True)

    def define(self, line):
        if not DEFINITION.match(line):
            raise TraceError(f"{line!r} is no definition of an event: p or r, and a place")
        try:
            self.files.write("kprobe_events", line)
        except TraceError as error:
            said = self.files.read("error_log") if self.files.has("error_log") else ""
            raise TraceError(said.rstrip() or str(error)) from None

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
        self.taker.close()
        self.describe()
        for cpu in range(len(self.result.pages)):
            text = self.files.read(f"per_cpu/cpu{cpu}/stats")
            self.result.stats.append(text)
            counts = re.findall(r"^(.*): (\d+)$", text, re.M)
            self.result.lost[cpu] = sum(int(n) for name, n in counts if name in LOSSES)
        return self.result
