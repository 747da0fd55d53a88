"""write_dat.py - writes trace.dat, version 6, for `trace-cmd report` and KernelShark.

Pages go into the file unchanged.
"""

import re
import struct

from .pages import PAGE
from .recording import QUESTIONS

OPTION_END, OPTION_CPUSTAT, OPTION_CLOCK, OPTION_UNAME = 0, 2, 4, 5


def sized(kind, text):
    data = text.encode() if isinstance(text, str) else text
    return struct.pack(kind, len(data)) + data


def labels(recording):
    """Return {event: function} of the questions that one function has answered."""
    found = {}
    for event in recording.all_events:
        if event.format.group == QUESTIONS:
            found.setdefault(event.name, set()).add(recording.label(event))
    return {name: min(those) for name, those in found.items() if len(those) == 1}


def descriptions(recording):
    """Yield the formats: first those of the group ftrace, then the other groups. The event of
    a question is named after its function.
    """
    groups, known = {}, labels(recording)
    for group, text in recording.formats:
        name, _, rest = text.removeprefix("name: ").partition("\n")
        if group == QUESTIONS and name in known:
            text = "name: " + re.sub(r"\W+", "_", known[name]) + "\n" + rest
        groups.setdefault(group, []).append(text)
    ours = groups.pop("ftrace", [])
    yield struct.pack("<I", len(ours))
    for text in ours:
        yield sized("<Q", text)
    yield struct.pack("<I", len(groups))
    for group, texts in groups.items():
        yield group.encode() + b"\0" + struct.pack("<I", len(texts))
        for text in texts:
            yield sized("<Q", text)


def option(number, text):
    return struct.pack("<H", number) + sized("<I", text.encode() + b"\0")


def options(recording):
    yield b"options  \0"
    for cpu, text in enumerate(recording.stats):
        yield option(OPTION_CPUSTAT, f"CPU: {cpu}\n{text}")
    yield option(OPTION_CLOCK, f"[{recording.clock}]")
    if recording.version:
        yield option(OPTION_UNAME, recording.version)
    yield struct.pack("<H", OPTION_END)


def head(recording):
    yield b"\x17\x08\x44tracing6\0" + struct.pack("<BBI", 0, 8, PAGE)
    yield b"header_page\0" + sized("<Q", recording.header_page)
    yield b"header_event\0" + sized("<Q", recording.header_event)
    yield from descriptions(recording)
    yield sized("<I", recording.symbols.kallsyms())
    yield sized("<I", recording.printk)
    yield sized("<Q", recording.cmdlines)
    yield struct.pack("<I", len(recording.pages))
    yield from options(recording)
    yield b"flyrecord\0"


def write(recording, file):
    start = b"".join(head(recording))
    at = len(start) + 16 * len(recording.pages)
    file.write(start)
    for pages in recording.pages:
        at = -(-at // PAGE) * PAGE
        file.write(struct.pack("<QQ", at, PAGE * len(pages)))
        at += PAGE * len(pages)
    at = file.tell()
    for pages in recording.pages:
        file.write(bytes(-at % PAGE))
        at += -at % PAGE
        file.writelines(pages)
        at += PAGE * len(pages)
