"""answer.py - a question of the tracer for the page: asked of the guest of a page while a
workload runs there, answered by pictures and as files.
"""

import csv
import io
import re

from probes.trace.host import as_json, write_html
from probes.trace.host.capture import Capture
from probes.trace.host.memory import Memory
from probes.trace.host.session import WRITERS
from probes.trace.host.symbols import Symbols
from sonde.guest import ELF

LIMIT = 60  # seconds for the workload
FILES = (*WRITERS, ".csv")


class Asking(Capture):
    """A capture that can remove what it has written to the tracer's files."""

    def __init__(self, *args):
        super().__init__(*args)
        self.written = []  # (file, line)
        write = self.files.write

        def write_and_note(name, text):
            write(name, text)
            self.written.append((name, text))

        self.files.write = write_and_note

    def clean_up(self):
        for name, text in reversed(list(self.written)):
            event = re.match(r"[pr]\d*:(\S+)", text)
            if name.endswith("/trigger"):
                self.files.write(name, "!" + text)
            elif name.endswith("/enable"):
                self.files.write(name, "0")
            elif name == "kprobe_events" and event:
                self.files.write(name, f"-:{event[1]}")


def ask(guest, machine, question, load):
    """Ask @question while the workload @load runs. Return the Recording.

    Raises TraceError with the tracer's own text, and its caret, if it refuses the question.
    """
    with Memory(guest.qmp) as memory:
        capture = Asking(machine, memory, Symbols(ELF), guest.setup.smp, [question])
        try:
            capture.set_up()
            machine.request(f"run {load}", LIMIT)
            return capture.finish()
        finally:
            capture.clean_up()


def picture(recording):
    """The answer as HTML, and its style for a shadow tree."""
    style = re.sub(r"^:root|(?<=\{ ):root|^body", ":host", write_html.STYLE, flags=re.M)
    return {"style": style, "html": "\n".join(write_html.body(recording))}


def file_of(recording, ending):
    """The answer as the bytes of a file."""
    file = io.BytesIO()
    if ending == ".csv":
        text = io.TextIOWrapper(file, "utf-8", newline="")
        rows = csv.writer(text)
        for table in as_json.tables(recording):
            rows.writerows([table["columns"], *table["rows"]])
        text.flush()
    else:
        WRITERS[ending].write(recording, file)
    return file.getvalue()
