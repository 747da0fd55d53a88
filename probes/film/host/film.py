"""film.py - reads the file of a film, and makes frames: the state after each event.

A CPU may still execute any value that a byte has had since the CPU last synchronised, as
docs/model.md says; so a frame has a list of values for each CPU and byte.
"""

import collections
import json

from sonde import exits
from sonde.errors import SondeError, read_whole

EVENTS = ("store", "sync", "ack", "trap", "copy", "back", "run", "halt", "note", "end")
CPUS_MAX = 64
IN_PROGRAM = "in the program"

Frame = collections.namedtuple("Frame", "number said memory fetched stands lit")
# memory: a value for each byte; fetched[cpu][byte]: values, oldest first; stands[cpu]:
# where the CPU is, in words; lit: what this event has changed: ("byte", i), ("cpu", c)


class FilmError(SondeError):
    """The file is no film."""

    status = exits.FAILED


class Film:
    def __init__(self, head, events):
        self.head, self.events = head, events
        self.cpus = head["cpus"]
        self.first = head["bytes"].split()
        self.place, self.offset = split_place(head["at"])
        self.labels = head.get("labels") or [
            self.label(i) for i in range(len(self.first))
        ]
        if len(self.labels) != len(self.first):
            raise FilmError("it does not have a label for each byte")
        self.title = head.get("title", f"What happens at {head['at']}")
        self.says = head.get("says", "")

    def label(self, index):
        return f"+{self.offset + index:#x}" if self.place else f"+{index}"

    def index_of(self, at):
        """The index of the byte at @at among the filmed bytes."""
        place, offset = split_place(at)
        return offset - self.offset if place == self.place else -1

    def last_bytes(self):
        """The filmed bytes after all stores."""
        return self.frames()[-1].memory

    def frames(self):
        return list(make_frames(self))


def split_place(at):
    name, _, offset = at.rpartition("+")
    return (name, int(offset, 0)) if name or offset.isdigit() else (at, 0)


NO_FILM = (ValueError, LookupError, AttributeError, TypeError, RecursionError)


def parse(text):
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        head, *events = [json.loads(line) for line in lines or [""]]
        if head.get("film") != 1:
            raise FilmError("its first line is not that of a film")
        if head["cpus"] not in range(1, CPUS_MAX + 1):
            raise FilmError(f"its CPUs are 1 to {CPUS_MAX}")
        for number, event in enumerate(events, 2):
            if event["ev"] not in EVENTS:
                raise FilmError(
                    f"line {number}: an event of the unknown kind {event['ev']}"
                )
            if not 0 <= event.get("cpu", 0) < head["cpus"]:
                raise FilmError(f"line {number}: there is no CPU {event['cpu']}")
        film = Film(head, events)
        "".join([*film.labels, *as_text(film)]).encode()  # each frame can be shown
        return film
    except NO_FILM as error:
        raise FilmError(f"it is no film: {error}") from None


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return parse(read_whole(file))
    except FilmError as error:
        raise FilmError(f"{path}: {error}") from None
    except OSError as error:
        raise FilmError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FilmError(f"{path}: it is no text") from None


def sentence(event):
    """The sentence that tells what happens in @event."""
    if "say" in event:
        return event["say"]
    kind, at = event["ev"], event.get("at")
    who = f"CPU {event['cpu']}" if "cpu" in event else "The patcher"
    if kind == "store":
        return f"{who} stores {event['bytes']} at {at}."
    if kind == "sync":
        return f"{who} asks all CPUs to synchronise."
    if kind == "ack" and event.get("halted"):
        return f"{who} is halted: it will synchronise before it executes anything."
    if kind == "ack":
        return f"{who} has synchronised: what it had fetched before is forgotten."
    if kind == "trap":
        return f"{who} runs into an int3 at {at}."
    if kind == "copy":
        return f"{who} is in code that stands in for the instruction at {at}."
    if kind == "back":
        return f"{who} is back in the program, at {at}."
    if kind == "halt":
        return f"{who} halts."
    return f"{who} executes {event['bytes']} at {at}."


STANDS = {
    "trap": "in a trap at {at}",
    "copy": "in a copy for {at}",
    "run": "at {at}",
    "halt": "halted",
}


def make_frames(film):
    memory = list(film.first)
    fetched = [[[value] for value in memory] for _ in range(film.cpus)]
    stands = [IN_PROGRAM] * film.cpus
    begin = f"It begins: {' '.join(memory)} at {film.head['at']}."
    yield Frame(
        0,
        film.head.get("begin", begin),
        tuple(memory),
        copy_of(fetched),
        tuple(stands),
        (),
    )
    for number, event in enumerate(film.events, 1):
        lit = []
        cpu = event.get("cpu")
        if event["ev"] == "store":
            start = film.index_of(event["at"])
            for i, value in enumerate(event["bytes"].split(), start):
                if not 0 <= i < len(memory):
                    raise FilmError(f"event {number} stores outside of what is filmed")
                memory[i] = value
                lit.append(("byte", i))
                for one in fetched:
                    one[i] = [kept for kept in one[i] if kept != value] + [value]
        elif event["ev"] == "ack":
            fetched[cpu] = [[value] for value in memory]
        if cpu is not None and event["ev"] != "store":
            lit.append(("cpu", cpu))
        if event["ev"] in STANDS:
            words = event.get("stand", STANDS[event["ev"]])
            stands[cpu] = words.format(at=short(film, event.get("at", "")))
        elif event["ev"] == "back" or event["ev"] == "ack" and stands[cpu] == "halted":
            stands[cpu] = IN_PROGRAM
        yield Frame(
            number,
            sentence(event),
            tuple(memory),
            copy_of(fetched),
            tuple(stands),
            tuple(lit),
        )


def copy_of(fetched):
    return tuple(tuple(tuple(values) for values in one) for one in fetched)


def short(film, at):
    place, offset = split_place(at)
    return f"+{offset:#x}" if place and place == film.place else at


def as_text(film):
    """All of the film in sentences, for readers who cannot see it move."""
    yield film.title
    if film.says:
        yield film.says
    for frame in film.frames():
        yield f"{frame.number}. {frame.said}"
        if frame.lit and frame.lit[0][0] == "byte":
            yield "   In memory: " + " ".join(frame.memory)
        for cpu, one in enumerate(frame.fetched):
            several = [
                f"{film.labels[i]} {' or '.join(values)}"
                for i, values in enumerate(one)
                if len(values) > 1
            ]
            if several and frame.lit and frame.lit[0][0] == "byte":
                yield f"   CPU {cpu} may still execute " + ", ".join(several)
