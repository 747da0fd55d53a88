"""scenes.py - makes the ten films of docs/films.

Films of the machine are recorded in a guest. The other films show a protocol with one
step left out: Spin finds the shortest way to the failure, so the film shows what the step
is for.
"""

import collections
import json
import os
import re
import sys

from . import film as films

ROOT = os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
)
FOLDER = os.path.join(ROOT, "docs", "films")
MS = 5
CPUS = 3

Scene = collections.namedtuple("Scene", "title says place commands")
Trail = collections.namedtuple("Trail", "title says model defines head words")

BREAKPOINTS = "echo off > /proc/sys/debug/kprobes-jump"
WORK = "run vfs"  # takes time, in which the optimizer makes jumps

SCENES = {
    "hit": Scene(
        "A breakpoint is hit",
        "An int3 over the first byte sends a CPU to the engine; a copy of the instruction "
        "runs elsewhere and leads back behind it.",
        "film_fixture+12", (BREAKPOINTS, "FILM", "probe add film_fixture+12",
                            "probe del all")),
    "step": Scene(
        "A hit with a post-handler",
        "Behind the copy stands a second int3: so there are two traps for one instruction.",
        "film_fixture+12", (BREAKPOINTS, "FILM", "probe add --post film_fixture+12",
                            "probe del all")),
    "poke": Scene(
        "An instruction of five bytes is exchanged",
        "The int3 stands guard while the bytes behind it change; the first byte comes last.",
        "film_fixture+5", ("FILM", "probe xmc film_fixture+5 b8 67 45 23 01")),
    "poke-without-guard": Trail(
        "The same without step 1: why there is an int3",
        "Without the guard a CPU can keep the old first byte and fetch the new second one.",
        "text_poke", ("-DCPUS=2", "-DSITES=1", "-DLEN=2", "-DNO_STEP_1"),
        {"cpus": 2, "bytes": "O0 O1 empty", "at": "+0",
         "labels": ["first", "second", "leads to"]},
        [["O0", "cc", "O0", "N0"], ["O1", "O1", "O1", "N1"], ["empty", "filled"]]),
    "jump": Scene(
        "A breakpoint becomes a jump",
        "The int3 of the breakpoint is the guard; from the last store on no CPU traps.",
        "film_fixture+5", ("FILM", "probe add film_fixture+5", WORK, WORK)),
    "pun": Scene(
        "A jump of two bytes",
        "The jump has five bytes, but only two are its own: it reads those of the next "
        "instruction, unchanged, as the rest of its displacement.",
        "film_fixture+10", ("FILM", "probe add film_fixture+10", WORK, WORK)),
    "region": Scene(
        "One jump displaces three instructions",
        "Between the int3 and the tail the engine waits until no thread is left inside.",
        "film_fixture+18", ("echo region > /proc/sys/debug/kprobes-jump", "FILM",
                            "probe add film_fixture+18", WORK, WORK)),
    "return": Scene(
        "A return probe comes and goes",
        "It is a probe at the entry, which exchanges the return address on the stack.",
        "film_fixture", ("FILM", "probe ret film_fixture", WORK, WORK, "probe del all")),
    "unload": Trail(
        "A module goes while a thread sleeps in it: why stacks are searched",
        "Without the search the module's fix-ups and text go, while a thread is inside.",
        "module", ("-DNO_SCAN",),
        {"cpus": 1, "bytes": "none", "at": "+0", "labels": ["text"]}, []),
    "nmi": Trail(
        "An NMI while the machine stands still: why CPUs are synchronised even then",
        "The others are parked, but an NMI that has begun fetches while the bytes change.",
        "stop_machine", ("-DCPUS=1", "-DNMIS_SERIALISE_ONLY"),
        {"cpus": 1, "bytes": "O0 O1", "at": "+0", "labels": ["first", "second"]},
        [["O0", "cc", "N0"], ["O1", "cc", "N1"]]),
}  # fmt: skip


# ---- films of the machine


def record(scene, ask):
    """@ask: runs a command in a guest with CPUS CPUs, and gives its output."""
    for command in scene.commands:
        ask(f"film start {scene.place} {MS}" if command == "FILM" else command)
    ask("film stop")
    return ask("cat /tmp/film")


def finish(scene, text):
    """The film @text with its title, and with times that begin at 0."""
    film = films.parse(text)
    head = dict(film.head, title=scene.title, says=scene.says)
    begun = film.events[0]["t"] if film.events else 0
    events = [dict(event, t=event["t"] - begun) for event in film.events]
    return lines(head, events)


def lines(head, events):
    return "".join(json.dumps(one) + "\n" for one in (head, *events))


# ---- films of Spin

BYTE = re.compile(r"byte (\d+) becomes (\d+)")
ACK = re.compile(r"CPU (\d+) serialises")
RUN = re.compile(
    r"context (\d+) on CPU (\d+) executes (?:site 0 as (\d+)|the (\w+) byte)"
)
TRAP = re.compile(r"on CPU (\d+) a trap asks")
LEAVES = re.compile(r"context \d+ on CPU (\d+) leaves")


# Lines of module.pml: its one thread is shown as a CPU.
MODULE = {
    "the text is mapped": {"ev": "store", "at": "+0", "bytes": "there",
                           "say": "The module's text is mapped."},
    "the text is freed": {"ev": "store", "at": "+0", "bytes": "freed",
                          "say": "The module's text is freed."},
    "the thread is in the module's text": {
        "ev": "run", "cpu": 0, "at": "+0", "stand": "asleep inside",
        "say": "The thread is in the module's text, and goes to sleep there."},
    "the thread has left the module": {"ev": "back", "cpu": 0, "at": "+0",
                                       "say": "The thread has left the module."},
}  # fmt: skip


def event_of(line, trail):
    """A line that a model has printed, as an event."""
    words = trail.words
    if line in MODULE:
        return MODULE[line]
    if match := BYTE.fullmatch(line):
        byte, value = int(match[1]), int(match[2])
        return {"ev": "store", "at": f"+{byte}", "bytes": words[byte][value]}
    if match := ACK.fullmatch(line):
        return {"ev": "ack", "cpu": int(match[1])}
    if match := RUN.fullmatch(line):
        byte = 1 if match[4] == "second" else 0
        event = {"ev": "run", "cpu": int(match[2]), "at": f"+{byte}", "bytes": "?"}
        event["say"] = (
            f"CPU {match[2]} executes the instruction whose first byte is "
            f"{words[0][int(match[3])]}."
            if match[3]
            else f"An NMI on CPU {match[2]} fetches the {match[4]} byte."
        )
        return event
    if match := TRAP.match(line):
        return {"ev": "trap", "cpu": int(match[1]), "at": "+0"}
    if match := LEAVES.match(line):
        return {"ev": "back", "cpu": int(match[1]), "at": "+0"}
    if line.endswith(" does not hold"):
        fact = line.split()[0].replace("_", " ")
        return {
            "ev": "end",
            "say": f"There it has happened: '{fact}' is not true any more.",
        }
    return {"ev": "note", "say": line[:1].upper() + line[1:] + "."}


def from_spin(trail):
    sys.path.insert(0, os.path.join(ROOT, "docs", "model"))
    import spin

    told = spin.explain(trail.model, list(trail.defines)).splitlines()
    events = [event_of(line, trail) for line in told if not line.startswith("site 0:")]
    head = dict(
        {"film": 1, "title": trail.title, "says": trail.says, "ms": 0}, **trail.head
    )
    head["from"] = " ".join(("spin", trail.model, *trail.defines))
    return lines(head, [dict({"t": i}, **event) for i, event in enumerate(events)])
