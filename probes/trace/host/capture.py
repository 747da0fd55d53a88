"""capture.py - records a running guest: it sets up the tracer of the guest, takes its
pages, and reads the files that describe the pages.
"""

import re

from sonde.machine import Refused, quote

from . import dead, dead_hist, hist, question, recording
from .take import Taker, TraceError

ROOT = "/sys/kernel/tracing/"
LIMIT = 60
DEFINITION = re.compile(r"[prw]\d*[:\s]")  # a line of kprobe_events
SHORT = re.compile(
    r"(count|args|time|callers|graph)\s+([^\s{]+)"
)  # a question of two words
PROFILE = re.compile(r"\d+|by|stack|func|thread")  # words behind `profile`
WRITE_MAX = 4000  # characters in a write to kprobe_events
REMARK = "# "  # what `trace -n` prints beside the lines
# A line that `trace -n` prints for a question; and a histogram with its filter in it.
COMMAND = re.compile(r"echo '(.*)' >> (/\S+)")
TRIGGER = re.compile(r"hist:(\S*)(?: if (.*))?")
NOT_UNIQUE = "The symbol is not unique"
LOSSES = ("overrun", "commit overrun", "dropped events")
SLOWER = "NMIs took too long: at last {} samples in a second"  # as the console says it


def joined(lines):
    """Yield the lines, and words that are a question together as one."""
    lines = list(lines)
    while lines:
        while (
            lines[0].startswith("profile") and lines[1:] and PROFILE.fullmatch(lines[1])
        ):
            lines[:2] = [" ".join(lines[:2])]
        both = " ".join(lines[:2])
        if len(lines) > 1 and " " not in lines[0] and SHORT.fullmatch(both):
            lines[:2] = [both]
        yield lines.pop(0)


def in_few_writes(commands):
    """Yield (file, text), with as many lines of kprobe_events in a text as a line of the
    guest has room for. Each return gets the time that its call took.
    """
    lines = []
    for name, text in commands:
        is_definition = name == "kprobe_events"
        if is_definition and text.startswith("r") and " ns=" not in text:
            text += " ns=$ns:u64"
        if lines and (not is_definition or len("\n".join([*lines, text])) > WRITE_MAX):
            yield "kprobe_events", "\n".join(lines)
            lines = []
        if is_definition:
            lines.append(text)
        else:
            yield name, text
    if lines:
        yield "kprobe_events", "\n".join(lines)


class Files:
    """Reads and writes the tracer's files of a guest, by its machine interface."""

    def __init__(self, machine):
        self.machine = machine

    def _must(self, command, what):
        try:
            return self.machine.request(command, LIMIT).text
        except Refused as error:
            reply = error.reply
            raise TraceError(f"{what}: {reply.name}: {reply.text.strip()}") from None

    def read(self, name):
        return self._must(f"cat {ROOT}{name}", name)

    def list(self, name):
        return self._must(f"ls {ROOT}{name}", name).splitlines()

    def has(self, name):
        return not self.machine.request(f"stat {ROOT}{name}", LIMIT, may_fail=True).errno

    def write(self, name, text):
        self._must(f"echo -ne {quote(text)} >> {ROOT}{name}", f"{name}: {text!r}")

    def truncate(self, name):
        self._must(f"echo -n '' > {ROOT}{name}", name)


def folders(names):
    return [name[:-1] for name in names if name.endswith("/")]


class Capture:
    """One recording. @lines: definitions and questions."""

    force_gdb = False  # for tests: gdb also compiles names that the guest can resolve

    def __init__(self, machine, memory, symbols, cpus, lines=()):
        self.machine = machine
        self.files = Files(machine)
        self.machine_memory = memory
        self.taker = Taker(machine, memory)
        self.result = recording.Recording(
            symbols=symbols,
            lines=list(joined(lines)),
            pages=[[] for _ in range(cpus)],
            lost=[0] * cpus,
        )
        self.events = {}  # "group/event": the line that has made it, or asks about it
        self.asked = {}  # question: how the guest has understood it, a question.Question
        self.left_out = {}  # question: how many functions of its pattern have no probe
        self.hidden = None  # a thread whose hits do not count
        self.with_stack = set()
        self.by_program = set()  # "group/event" with a histogram that programs may fill
        self.records_all = True  # also what a question only counts
        self.sampled = None  # what asks for samples: its line, and how many in a second
        self.ends = {}  # "group/event" of one place of an interval: its question
        self.counted = {}  # "group/event" that has a histogram: its filter, or None

    def set_up(self, buffer_kb=0, record_all=True, is_alone=False, by_commands=False):
        """Empty the buffer, make the events of the lines, and switch them on.

        record_all: record also the events that a question only counts
        is_alone: the machine interface has no other user, and is left out of the answers
        by_commands: count, and record, only while a command of the console runs
        """
        self.taker.switch(False)
        self.records_all = record_all
        if is_alone:
            self.hidden = self.taker.hide()
        for line in self.result.lines:
            before = set(self.all_events())
            self.define(line)
            for event in self.all_events():
                if event not in before:
                    self.events[event] = line
        if buffer_kb:
            self.files.write("buffer_size_kb", str(buffer_kb))
        self.files.truncate("trace")
        self.describe()
        self.taker.open()
        for event in self.events:
            if self.records_all or event not in {**self.counted, **self.ends}:
                self.enable(event)
        if self.sampled:  # only now: what comes before would take longer
            self.files.write("profile_hz", self.sampled[1])
        if by_commands:
            self.taker.switch_by_commands()
        else:
            self.taker.switch(True)

    def enable(self, event):
        """Switch an event on. Its records pass the same filter as its histogram."""
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
            said = said.rstrip() or str(error)
            if NOT_UNIQUE in said:
                place = line.split()[1].split("+")[0]
                said += "\n" + self.lines_of("-n", ["count", place]).text.rstrip()
            raise TraceError(said) from None

    def question(self, line):
        """Write to the files what the console's `trace` would write for a question."""
        short = SHORT.fullmatch(line.strip())
        words = [short[1], short[2]] if short else [line]
        parts = self.lines_of("-p", words)
        if not parts.errno:  # else the guest refuses the line, and says why
            self.asked[line] = question.Question(parts.lines)
            words = words if short else [self.resolved(line)]
        reply = self.lines_of("-n", words)
        if reply.errno:
            said = [text for text in reply.lines if not COMMAND.fullmatch(text)]
            raise TraceError(question.as_typed(line, "\n".join(said).rstrip()))
        commands = []
        for command in reply.lines:
            if command.startswith(REMARK):
                self.left_out[line] = command.removeprefix(REMARK)
                continue
            match = COMMAND.fullmatch(command)
            if not match:
                raise TraceError(f"trace -n prints {command!r}")
            commands.append((match[2].removeprefix(ROOT), match[1]))
        for name, text in in_few_writes(commands):
            self.follow(line, name, text)

    def lines_of(self, option, words):
        """Return the reply to `trace` with @option and these words."""
        if any("'" in word and '"' in word for word in words):
            raise TraceError(f"{words[-1]!r} has both kinds of quotes")
        words = [f'"{word}"' if "'" in word else f"'{word}'" for word in words]
        return self.machine.request(
            " ".join(["trace", option, *words]), LIMIT, may_fail=True
        )

    def resolved(self, line):
        """Return the question with its C expressions compiled to programs."""
        asked, symbols = self.asked[line], self.result.symbols
        return question.resolve(line, asked, symbols, self.force_gdb)

    def follow(self, line, name, text):
        """Write one of the lines that the question @line consists of to its file."""
        event = re.fullmatch(r"events/(.+)/(?:enable|filter|trigger)", name)
        if event:  # it may be a marker, which was there before the question
            self.events[event[1]] = line
            if self.asked[line].kind == "graph" and name.endswith("/enable"):
                self.result.graphs[event[1]] = line
        if name == "profile_hz":
            self.sampled = line, text
            return
        trigger = TRIGGER.fullmatch(text)
        if not trigger or not name.endswith("/trigger"):
            self.files.write(name, text)
            return
        event, (keys, condition) = event[1], trigger.groups()
        others = f"common_pid != {self.hidden}" if self.hidden else ""
        if others and condition:
            others += f" && ({condition})"
        counts = f" if {others or condition}" if others or condition else ""
        self.files.write(name, f"hist:{keys}:pause{counts}")  # paused until switch(True)
        if "=common_timestamp" in keys:  # it has times, and no answer
            self.ends[event] = line
            return
        self.counted[event] = condition
        behind = f" if {condition}" if condition else ""
        if not re.search(r"(^|[:,=])stacktrace", keys):
            self.by_program.add(event)
        elif self.records_all and event not in self.with_stack:
            self.with_stack.add(event)
            self.files.write(name, "stacktrace" + behind)

    def all_events(self):
        """Yield "group/event" for each directory of an event."""
        for group in folders(self.files.list("events")):
            for event in folders(self.files.list(f"events/{group}")):
                yield f"{group}/{event}"

    def describe(self):
        """Read the files that describe the pages. This is done again at the end."""
        read = self.files.read
        self.result.header_page = read("events/header_page")
        self.result.header_event = read("events/header_event")
        self.result.printk = read("printk_formats")
        self.result.cmdlines = read("saved_cmdlines")
        chosen = re.search(r"\[(.*?)\]", read("trace_clock"))
        self.result.clock = chosen[1] if chosen else "local"
        self.result.version = self.machine.request(
            "cat /proc/version", LIMIT
        ).text.strip()
        known = dict.fromkeys(self.result.formats)
        for event in self.all_events():
            known[event.split("/")[0], read(f"events/{event}/format")] = None
        self.result.formats = list(known)
        modules = self.machine.request("module symbols", LIMIT)
        self.result.symbols.add_modules(modules.text)
        self.result.forget()

    def take(self):
        """Take the full pages that there are now."""
        is_full = True
        while is_full:
            batch = self.taker.take()
            self.keep(batch.pages)
            is_full = batch.is_full

    def keep(self, pages):
        for cpu, page in pages:
            self.result.pages[cpu].append(page)

    def finish(self):
        """Switch the events off, and take the remaining pages, tables and counts."""
        self.taker.switch(False)
        if self.sampled:
            self.note_rate(*self.sampled)
        for event in self.events:
            self.files.write(f"events/{event}/enable", "0")
        for batch in self.taker.drain():
            self.keep(batch.pages)
        behind = self.left_behind()
        self.taker.close()
        self.describe()
        for event, line in self.ends.items():
            self.note_unmatched(line, self.files.read(f"events/{event}/hist"))
        for event in self.counted:
            self.keep_table(event, self.file_of(event))
        for cpu in range(len(self.result.pages)):
            text = self.files.read(f"per_cpu/cpu{cpu}/stats")
            self.result.stats.append(text)
            counts = re.findall(r"^(.*): (\d+)$", text, re.M)
            self.result.lost[cpu] = sum(int(n) for name, n in counts if name in LOSSES)
            self.result.lost[cpu] += behind.get(cpu, 0)
        return self.result

    def note_rate(self, line, wanted):
        """Let no more samples come, and note if the guest could not take that many."""
        found = self.files.read("profile_hz").strip()
        self.files.write("profile_hz", "0")
        if int(found) < int(wanted):
            self.left_out[line] = SLOWER.format(found)

    def note_unmatched(self, line, text):
        """Note how many starts of an interval had no end, or ends no start."""
        for word, what in (
            ("Unread", "starts had no end"),
            ("Unmatched", "ends had no start"),
        ):
            found = re.search(rf"^    {word}: (\d+)$", text, re.M)
            if found:
                before = f"{self.left_out[line]}; " if line in self.left_out else ""
                self.left_out[line] = f"{before}{found[1]} {what}"

    def file_of(self, event):
        """Return the text of the event's file `hist`. Stacks make it long, and the guest's
        memory is read faster than its file; but programs count elsewhere.
        """
        if event in self.by_program:
            return self.files.read(f"events/{event}/hist")
        found = dead_hist.Histograms(self.machine_memory, self.result.symbols)
        return dict(found.texts([event]))[event]

    def tables_of(self, event, text):
        """Return the tables of a file `hist`. Fields that are signed in the event's format
        are shown as signed numbers.
        """
        group, name = event.split("/")
        signed = [
            field.name
            for format_ in self.result.by_id.values()
            if (format_.group, format_.name) == (group, name)
            for field in format_.fields
            if field.is_signed
        ]
        return hist.tables(self.asked[self.events[event]], hist.with_signs(text, signed))

    def keep_table(self, event, text):
        line = self.events[event]
        self.result.tables.append((line, self.tables_of(event, text)))
        self.result.answers[line] = self.asked[line].typed
        if line in self.left_out:
            self.result.remarks[line] = self.left_out[line]

    def tables_now(self):
        """Yield each question with its tables as they are now."""
        for event in self.counted:
            line = self.events[event]
            self.result.answers[line] = self.asked[line].typed
            yield line, self.tables_of(event, self.file_of(event))

    def names(self):
        """Return the names of threads as they are now. They are read from the guest's
        memory: to read a file would itself be recorded.
        """
        memory = dead.Dead(self.machine_memory, self.result.symbols)
        return "".join(memory.cmdlines())

    def left_behind(self):
        """Read from memory what no batch has: the snapshot, and the formats of deleted
        events. Return how many events the snapshot has lost, by CPU.
        """
        memory = dead.Dead(self.machine_memory, self.result.symbols)
        self.result.add_formats(memory.formats())
        lost = {}
        for cpu, found, count in memory.snapshot():
            if found:
                self.result.add_older(cpu, found)
            lost[cpu] = count
        return lost
