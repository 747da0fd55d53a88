"""answer.py - a question of the tracer that stands in the guest of a page. The page asks for
its answer again and again, in pictures; workloads run on the console meanwhile.
"""

import contextlib
import dataclasses
import io
import re

from probes.trace.host import write_html
from probes.trace.host.capture import Capture
from probes.trace.host.memory import Memory
from probes.trace.host.session import WRITERS
from probes.trace.host.symbols import Symbols
from probes.trace.host.take import TraceError
from sonde.guest import ELF

PAGES_MAX = 256  # of a CPU; older ones are dropped, and their events count as lost


class Standing(Capture):
    """A question that stands until withdraw().

    Raises TraceError with the tracer's own text, and its caret, if it refuses the question.
    """

    def __init__(self, machine, guest, question):
        self.memory = Memory(guest.qmp)
        super().__init__(machine, self.memory, Symbols(ELF), guest.setup.smp, [question])
        self.written = []  # (file, line), to be undone
        write = self.files.write

        def write_and_note(name, text):
            write(name, text)
            self.written.append((name, text))

        self.files.write = write_and_note
        self.was_on = self.files.read("tracing_on")
        try:
            self.set_up()
        except BaseException:
            self.withdraw()
            raise

    def look(self):
        """Take what has come since the last look. Return the Recording, and whether anything
        has come.
        """
        before = self.result.tables
        found = 0
        for batch in self.taker.drain():
            self.keep(batch.pages)
            found += len(batch.pages)
        for pages in self.result.pages:
            del pages[:-PAGES_MAX]
        self.result.tables = []
        for event in self.counted:
            self.keep_table(event, self.files.read(f"events/{event}/hist"))
        self.result.cmdlines = self.names()
        is_new = found > 0 or self.result.tables != before
        return dataclasses.replace(self.result), is_new  # nothing of the copy is computed

    def withdraw(self):
        """Remove from the guest what the question has written, last things first. A part
        that the user has removed on the console is refused, and the others go on.
        """
        with contextlib.suppress(TraceError), contextlib.ExitStack() as undo:
            undo.callback(self.memory.__exit__)
            undo.callback(self.files.write, "tracing_on", self.was_on)
            undo.callback(self.taker.switch, True)  # for histograms of the user
            for name, text in self.written:
                event = re.match(r"[pr]\d*:(\S+)", text)
                if name.endswith("/trigger"):
                    undo.callback(self.files.write, name, "!" + text)
                elif name.endswith("/enable") or name == "profile_hz":
                    undo.callback(self.files.write, name, "0")
                elif name == "kprobe_events" and event:
                    undo.callback(self.files.write, name, f"-:{event[1]}")
            if self.taker.number is not None:
                undo.callback(self.taker.close)
                undo.callback(self.taker.switch, False)


def picture(recording):
    """The answer as HTML, and its style for a shadow tree."""
    style = re.sub(r"^:root|(?<=\{ ):root|^body", ":host", write_html.STYLE, flags=re.M)
    return {"style": style, "html": "\n".join(write_html.body(recording))}


def file_of(recording, ending):
    """The answer as the bytes of a file; none if nothing in it belongs there."""
    file = io.BytesIO()
    WRITERS[ending].write(recording, file)
    return file.getvalue()
