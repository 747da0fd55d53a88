"""slices.py - finds out when functions ran, by the entries and returns of a recording.

A slice is one run of a function; it ends at a return event. The slice begins `ns`
earlier, if the event has an argument `ns`; else at an event of an entry of the same
function in the same thread. An entry without a return is an instant, and so is a return
without an entry.
"""

import functools
from dataclasses import dataclass, field

from . import hist, text


STACK = "kernel_stack"


@dataclass
class Slice:
    """A time from begin to end in one thread. In an instant both are the same."""

    name: str
    pid: int
    cpu: int  # of its end
    begin: int  # ns
    end: int
    event: object  # recording.Event of its end
    stack: list = field(default_factory=list)  # callers, the outermost first
    is_instant: bool = True
    calls: list = field(default_factory=list)  # of a `graph`: the calls that it has made

    @property
    def depth(self):
        return self.event.values["depth"]


@functools.lru_cache(1)
def of(recording):
    """Return the Threads of a recording. They are computed once for several writers."""
    return Threads(recording)


class Threads:
    """The slices and instants of a recording, by thread."""

    def __init__(self, recording):
        self.recording = recording
        self.open = {}  # (pid, function) -> entries that have not returned
        self.found = []
        self.graphs = (
            {}
        )  # question -> {pid: its calls that no other call has made, so far}
        self.returning = {
            event.values["__probe_func"]
            for event in recording.all_events
            if event.format.is_return
        }
        last = {}  # CPU: its last slice, to which a stack belongs
        for event in recording.all_events:
            if event.name == STACK:
                self._add_stack(last.get(event.cpu), event)
            else:
                last[event.cpu] = self._add(event)
        for threads in self.graphs.values():
            for calls in threads.values():
                self.found += in_order(calls)
        self.found.sort(key=lambda s: (s.begin, -s.end))

    def _add_stack(self, slice_, event):
        if slice_ and slice_.pid == event.pid and not slice_.stack:
            skip = hist.SAMPLER_FRAMES if self.recording.is_sample(slice_.event) else 0
            slice_.stack = list(text.stack(self.recording, event, skip))[::-1]

    def _add(self, event):
        begin = event.time
        function = event.values.get("__probe_func")
        if event.format.is_return and isinstance(event.values.get("ns"), int):
            begin = event.time - event.values["ns"]
        elif event.format.is_return:
            begin = self._entry(event.pid, function, event.time)
        elif event.values.get("__probe_ip") in self.returning:
            key = event.pid, event.values["__probe_ip"]
            self.open.setdefault(key, []).append(event.time)
        name = self.recording.label(event)
        if function is not None:
            name = self.recording.symbols.name_at(function)
        slice_ = Slice(
            name,
            event.pid,
            event.cpu,
            begin,
            event.time,
            event,
            is_instant=begin == event.time,
        )
        question = self.recording.graph_of(event)
        if question:
            self._add_call(slice_, self.graphs.setdefault(question, {}))
        else:
            self.found.append(slice_)
        return slice_

    @staticmethod
    def _add_call(slice_, threads):
        """Add a call of a `graph`, which has made all deeper calls of its thread that have
        returned since the last one that is not deeper.
        """
        calls = threads.setdefault(slice_.pid, [])
        while calls and calls[-1].depth > slice_.depth:
            slice_.calls.insert(0, calls.pop())
        calls.append(slice_)

    def _entry(self, pid, function, end):
        entries = self.open.get((pid, function))
        return entries.pop() if entries else end

    def by_thread(self):
        """Return {pid: its slices and instants}, sorted by begin, outer slices first."""
        threads = {}
        for one in self.found:
            threads.setdefault(one.pid, []).append(one)
        return threads


def in_order(calls, begin=0):
    """Yield the calls of a `graph`, each in front of those that it has made. Times are
    taken at the ends of calls, so a begin is not exact: a call does not begin before its
    caller.
    """
    for call in calls:
        call.begin = max(call.begin, begin)
        yield call
        yield from in_order(call.calls, call.begin)


def tree_lines(recording):
    """Yield each `graph` as the guest's `trace` shows it."""
    for question, threads in of(recording).graphs.items():
        yield question
        yield f"{'NS':>12}  CPU  CALL"
        for pid, calls in threads.items():
            yield f"{recording.name_of(pid)}-{pid}"
            for call in in_order(calls):
                ns = call.event.values["ns"]
                yield f"{ns:12}  {call.cpu:3}  {'  ' * call.depth}{call.name}"


def nested(slices):
    """Yield (slice, end): a slice is cut so that it ends within the slice around it."""
    around = []
    for one in slices:
        while around and around[-1] <= one.begin:
            around.pop()
        end = min([one.end] + around[-1:])
        yield one, max(end, one.begin)
        if end > one.begin:
            around.append(end)


def running(recording):
    """Return for each CPU the threads that were seen on it, as lists of (pid, first time,
    last time).
    """
    rows = [[] for _ in recording.pages]
    for event in recording.all_events:
        row = rows[event.cpu]
        if row and row[-1][0] == event.pid:
            row[-1][2] = event.time
        else:
            row.append([event.pid, event.time, event.time])
    return rows
