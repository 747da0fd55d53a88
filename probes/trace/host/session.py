"""session.py - ./sonde trace: sets up the tracer of a guest, runs commands there, and
writes the recording to files.

The commands run on the line of the console, so that the session can ask for pages on the
machine interface at the same time. If the guest panics or does not answer any more, it is
kept, and its rings are read from its memory.
"""

import contextlib
import heapq
import itertools
import os
import shutil
import signal
import struct
import sys
import threading
import time

from sonde import json_lines
from sonde.errors import writing
from sonde.machine import Gone, Machine

from . import as_json, dead, dead_hist, hist, pages, slices, text
from . import (
    write_csv,
    write_dat,
    write_folded,
    write_html,
    write_pftrace,
    write_speedscope,
)
from .capture import LIMIT, Capture
from .console_line import ConsoleLine
from .memory import Memory
from .symbols import Symbols

__all__ = ["Session", "WRITERS"]

WRITERS = {
    ".dat": write_dat,
    ".pftrace": write_pftrace,
    ".json": write_speedscope,
    ".folded": write_folded,
    ".html": write_html,
    ".csv": write_csv,
}
PAUSE = 0.1  # seconds between two requests for pages
LIVE_PAUSE = 0.2
WATCH_PAUSE = 1
GONE_WAIT = 2
AGAIN = 1  # seconds; `timeout` sends its signal twice
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CLEAR = "\x1b[H\x1b[J"


def show_tables(title, tables, on_a_page=False):
    """Print the tables of a question. @on_a_page: only as much as a terminal can show"""
    print(title)
    lines = [line for table in tables for line in hist.lines(table)]
    most = shutil.get_terminal_size().lines - 2 if on_a_page else len(lines)
    print("\n".join(lines[:most]))


class Live:
    """Prints events as they come, in the order of their times."""

    def __init__(self, recording, is_json):
        self.recording = recording
        self.is_json = is_json
        self.seen = [0] * len(recording.pages)  # pages of each CPU
        self.waiting = []
        self.count = itertools.count()

    def _take_new(self):
        for cpu, all_pages in enumerate(self.recording.pages):
            for page in all_pages[self.seen[cpu] :]:
                for record in pages.records(cpu, page):
                    event = self.recording.event_of(record)
                    heapq.heappush(
                        self.waiting, (event.time, cpu, next(self.count), event)
                    )
            self.seen[cpu] = len(all_pages)

    def show(self, until=float("inf")):
        """Print the events before the time @until. No event that comes later is older."""
        self._take_new()
        while self.waiting and self.waiting[0][0] < until:
            event = heapq.heappop(self.waiting)[3]
            if self.is_json:
                if event.missed:
                    json_lines.show(**as_json.lost(event.cpu, event.missed))
                json_lines.show(**as_json.event(self.recording, event))
                continue
            if event.missed:
                print(text.lost(event.cpu, event.missed))
            print(text.line(self.recording, event))


class Stopped(Exception):
    """The guest was stopped. Its recording is still in its memory."""


class Unwritable(Exception):
    """The output cannot be written. The guest has no part in that."""


@contextlib.contextmanager
def printing():
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        raise Unwritable from error


class Watched:
    """A guest that two threads use: one runs the commands, the other asks for pages. To
    see where the CPUs are, failure() stops them. No request for pages may be running
    then, and none may follow.
    """

    def __init__(self, guest):
        self.guest = guest
        self.asking = threading.Lock()
        self.is_stopped = False

    def __getattr__(self, name):
        return getattr(self.guest, name)

    def failure(self, when, timeout):
        with self.asking:
            self.is_stopped = True
            return self.guest.failure(when, timeout)


class Session:
    """One recording.

    options: of the command line     say: prints a message
    run_all: runs the commands on a guest and a machine.Machine, and returns the exit status;
             None: there are no commands, and Ctrl-C ends the recording
    """

    def __init__(self, guest, options, run_all, say):
        self.guest = guest
        self.watched = Watched(guest)
        self.options = options
        self.run_all = run_all
        self.say = say
        self.live = None
        self.shown = time.monotonic()  # when `watch` has printed last
        self.outcome = 0  # exit status of the commands, or the exception that they raised
        self.interrupt = None  # what to raise at the end: a signal came
        self.ended = None  # when end() was called
        self.finished = threading.Event()  # the commands have run

    def run(self):
        """Write the files. Then return the exit status, or raise the commands' error."""
        with Memory(self.guest.qmp) as memory:
            capture = Capture(
                self.guest.machine,
                memory,
                Symbols(self.guest.setup.elf),
                self.options.smp,
                self.options.lines,
            )
            wanted = self.options.live or self.options.output
            try:
                capture.set_up(
                    self.options.buffer,
                    record_all=bool(wanted),
                    is_alone=True,
                    by_commands=bool(self.run_all),
                )
            except (Gone, TimeoutError):
                raise self.guest.failure("while its tracer was set up", LIMIT) from None
            if self.options.live:
                self.live = Live(capture.result, self.options.json)
            with self.heeding():
                try:
                    self.record(capture)
                    if self.watched.is_stopped:
                        raise Stopped("a command had no end")
                    capture.finish()
                except (Stopped, Gone, TimeoutError, OSError, ValueError) as error:
                    # The lines of the guest close before QEMU ends.
                    if (
                        not self.guest.panicked
                        and self.guest.wait_end(GONE_WAIT) is not None
                    ):
                        raise self.guest.failure("while it was recorded", 0) from None
                    is_told = isinstance(error, Stopped)
                    why = str(error) if is_told else type(error).__name__
                    self.harvest(capture, memory, why)
                self.write(capture.result)
        if self.interrupt or isinstance(self.outcome, BaseException):
            raise self.interrupt or self.outcome
        return self.outcome

    @contextlib.contextmanager
    def heeding(self):
        """Let a signal end the recording, but interrupt nothing: a request would have no
        answer, and a file no end. A signal that comes AGAIN seconds later interrupts that.
        """
        usual = {number: signal.getsignal(number) for number in SIGNALS}

        def heed(number, frame):
            try:
                usual[number](number, frame)
            except (KeyboardInterrupt, SystemExit) as why:
                if self.ended and time.monotonic() - self.ended > AGAIN:
                    raise
                self.end(why)

        for number in SIGNALS:
            if callable(usual[number]):
                signal.signal(number, heed)
        try:
            yield
        finally:
            for number in SIGNALS:
                signal.signal(number, usual[number])

    def end(self, why):
        """End the recording. @why: Ctrl-C, SIGTERM, or an error of the output"""
        if self.ended:
            return
        self.ended = time.monotonic()
        if self.run_all:  # pass the Ctrl-C on to the command
            with contextlib.suppress(OSError):
                self.guest.console.send(b"\x03", AGAIN)
        if self.run_all or not isinstance(why, KeyboardInterrupt):
            self.interrupt = why

    def work(self):
        """Run the commands. This is the function of their thread."""
        try:
            machine = Machine(ConsoleLine(self.guest.console))
            self.outcome = self.run_all(self.watched, machine)
        except BaseException as error:
            self.outcome = error
        self.finished.set()

    def record(self, capture):
        if self.run_all:
            threading.Thread(target=self.work, daemon=True).start()
        else:
            self.say("recording; Ctrl-C ends it")
        try:
            while not self.ended and not self.finished.is_set():
                with self.watched.asking:
                    if not self.watched.is_stopped:
                        self.take(capture)
                        self.watch(capture)
                self.finished.wait(LIVE_PAUSE if self.live else PAUSE)
        except Unwritable as error:
            self.end(error.__cause__)
        if self.run_all:
            self.finished.wait(10)

    def watch(self, capture):
        """Print the tables as they are now, if it is time."""
        if not self.options.watch or time.monotonic() - self.shown < WATCH_PAUSE:
            return
        self.shown = time.monotonic()
        tables_now = list(capture.tables_now())
        is_page = sys.stdout.isatty() and not (self.live or self.options.json)
        with printing():
            print(CLEAR if is_page else "", end="")
            self.show_all(capture.result, tables_now, is_page)

    def show_all(self, result, tables, is_page=False):
        """Print tables: pairs of a question and what belongs to it."""
        if self.options.json:
            for one in as_json.tables(result, tables):
                json_lines.show(**one)
            return
        for title, found in tables:
            show_tables(title, found, is_page)
            if title in result.remarks:
                print(result.remarks[title])

    def take(self, capture):
        if not self.live:
            capture.take()
            return
        for batch in capture.taker.drain():
            capture.keep(batch.pages)
            if batch.pages:
                capture.result.cmdlines = capture.names()
                capture.result.forget()
            with printing():
                self.live.show(batch.now)

    def harvest(self, capture, memory, why):
        """Read the rings of a guest that does not answer from its memory."""
        result = capture.result
        self.say(
            f"the guest does not answer any more ({why}): "
            "its rings are read out of its memory"
        )
        self.guest.qmp.execute("stop")
        grave = dead.Dead(memory, result.symbols)
        for cpu, page in grave.batch(capture.taker.number):
            result.pages[cpu].append(page)
        for cpu, found, lost in grave.rings():
            result.add_older(cpu, found)
            result.lost[cpu] = lost
        result.add_formats(grave.formats())
        self.harvest_tables(capture, memory)
        result.cmdlines = "".join(grave.cmdlines())
        result.notes.append("The guest did not answer any more.")
        if not isinstance(self.outcome, BaseException):
            self.outcome = self.guest.failure("while it was recorded", 0)

    def harvest_tables(self, capture, memory):
        """Read the histograms as well. They lie in the heap, which may be damaged: then
        only they are missing.
        """
        result = capture.result
        try:
            found = dict(
                dead_hist.Histograms(memory, result.symbols).texts(capture.counted)
            )
        except (OSError, ValueError, KeyError, struct.error) as error:
            found = {}
            result.notes.append(f"The histograms could not be read ({error}).")
            self.say(result.notes[-1])
        for event in capture.counted:
            if event in found:
                capture.keep_table(event, found[event])

    def show_events(self, result):
        if self.options.json:
            for one in as_json.events(result):
                json_lines.show(**one)
            return
        for line in (*text.lines(result), *slices.tree_lines(result)):
            print(line)

    def write(self, result):
        """Write all files that can be written. Then print: the output may have no reader."""
        result.forget()
        failed = []
        for path in self.options.output:
            try:
                with writing(path), open(path, "wb") as file:
                    WRITERS[os.path.splitext(path)[1]].write(result, file)
            except OSError as error:
                failed.append(error)
        try:
            self.show(result)
        finally:
            if failed:
                raise failed[0]
        if self.options.output:
            count, lost = len(result.all_events), result.lost_in_all()
            self.say(f"{count} events and {lost} lost: {', '.join(self.options.output)}")

    def show(self, result):
        """Print what has not been printed yet."""
        if self.live:
            self.live.show()
        elif not self.options.output:
            self.show_events(result)
        self.show_all(result, result.tables)
