"""recording.py - holds a whole recording: its pages, and the files that describe them.
All writers of files take a Recording.
"""

import dataclasses
import functools
import heapq

from . import formats, pages


QUESTIONS = "trace"  # the group of the events that the console's `trace` makes
SAMPLE = "sample"  # the field of `profile` for the place that was interrupted


@dataclasses.dataclass
class Event:
    """A record whose format is known."""

    cpu: int
    time: int  # ns
    pid: int
    flags: int  # common_flags
    preempt: int  # common_preempt_count
    format: formats.Format
    values: dict
    missed: int  # events that its CPU lost right before; pages.SOME: an unknown number
    data: bytes

    @property
    def name(self):
        return self.format.name


class Unknown:
    """The format of a record whose event is not known."""

    group, name, id, text = "", "unknown", 0, ""
    fields, arguments, shown = (), (), ""
    is_return = is_probe = False

    @staticmethod
    def values(_data):
        return {}


@dataclasses.dataclass(eq=False)
class Recording:
    header_page: str = ""
    header_event: str = ""
    formats: list = dataclasses.field(default_factory=list)  # (group, text of the file)
    symbols: object = None  # symbols.Symbols
    cmdlines: str = ""  # "pid name" in lines
    printk: str = ""
    clock: str = "local"
    version: str = ""
    pages: list = dataclasses.field(default_factory=list)  # of each CPU, by time
    lost: list = dataclasses.field(default_factory=list)  # events of each CPU, all in all
    stats: list = dataclasses.field(default_factory=list)  # per_cpu/cpuN/stats
    tables: list = dataclasses.field(default_factory=list)  # (question, its hist.Tables)
    answers: dict = dataclasses.field(default_factory=dict)  # question: what is in { }
    lines: list = dataclasses.field(default_factory=list)  # definitions and questions
    graphs: dict = dataclasses.field(default_factory=dict)  # "group/event": question
    remarks: dict = dataclasses.field(default_factory=dict)  # question: its remark
    notes: list = dataclasses.field(default_factory=list)  # sentences about failures

    def add_formats(self, found):
        """Add formats of events, without those that are known already."""
        self.formats = list(dict.fromkeys([*self.formats, *found]))

    def add_older(self, cpu, found):
        """Add pages that were read late, and sort the pages of the CPU by time."""
        self.pages[cpu] = sorted(self.pages[cpu] + found, key=pages.time_of)

    def forget(self):
        """Drop values that were computed from the descriptions, which have changed."""
        for name in ("by_id", "names", "all_events"):
            self.__dict__.pop(name, None)

    @functools.cached_property
    def by_id(self):
        parsed = [formats.Format(group, text) for group, text in self.formats]
        return {format_.id: format_ for format_ in parsed}

    @functools.cached_property
    def names(self):
        """The names of threads, by number."""
        pairs = (line.split(" ", 1) for line in self.cmdlines.splitlines())
        return {int(pid): name for pid, name in pairs} | {0: "<idle>"}

    def name_of(self, pid):
        return self.names.get(pid, "<...>")

    def event_of(self, record):
        head = int.from_bytes(record.data[:2], "little")
        format_ = self.by_id.get(head, Unknown)
        return Event(
            cpu=record.cpu,
            time=record.time,
            pid=int.from_bytes(record.data[4:8], "little", signed=True),
            flags=record.data[2],
            preempt=record.data[3],
            format=format_,
            values=format_.values(record.data),
            missed=record.missed,
            data=record.data,
        )

    def of_cpu(self, cpu):
        """Yield the events of a CPU, in their order."""
        for page in self.pages[cpu]:
            for record in pages.records(cpu, page):
                yield self.event_of(record)

    def events(self):
        """Return all events, sorted by time. At the same time the lower CPU is first."""
        streams = [self.of_cpu(cpu) for cpu in range(len(self.pages))]
        return heapq.merge(*streams, key=lambda event: event.time)

    @functools.cached_property
    def all_events(self):
        return list(self.events())

    def lost_before(self, cpu):
        """Count the lost events that a CPU's pages report; an unknown number as 1."""
        return sum(
            1 if n == pages.SOME else n for n in map(pages.missed, self.pages[cpu])
        )

    def lost_behind(self, cpu):
        """Return how many events of a CPU were lost after its last event."""
        return max(self.lost[cpu] - self.lost_before(cpu), 0) if self.lost else 0

    def lost_in_all(self):
        return sum(
            self.lost_before(cpu) + self.lost_behind(cpu)
            for cpu in range(len(self.pages))
        )

    def label(self, event):
        """Return the name of an event in pictures. For an event of a question this is the
        name of its function.
        """
        if event.format.group != QUESTIONS or not event.format.is_probe:
            return event.name
        if self.is_sample(event):
            return self.symbols.name_at(event.values[SAMPLE])
        ip = event.values.get("__probe_func", event.values.get("__probe_ip"))
        name = self.symbols.name_at(ip)
        return f"{name} returns" if event.format.is_return else name

    def is_sample(self, event):
        """Was it recorded by the question `profile`?"""
        return event.format.group == QUESTIONS and SAMPLE in event.values

    def graph_of(self, event):
        """Return the question whose tree of calls the event belongs to, or None."""
        return self.graphs.get(f"{event.format.group}/{event.name}")

    def place(self, event):
        return formats.shown_place(event.format, event.values, self.symbols)

    def arguments(self, event):
        return formats.shown_arguments(event.format, event.values, self.symbols)
