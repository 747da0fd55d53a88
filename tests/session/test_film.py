#!/usr/bin/env python3
"""test_film.py - checks that a film of a guest shows what happened, in the order that the
protocol for text changes prescribes.
"""

import re
import sys

sys.dont_write_bytecode = True
import tap
from session import LIMIT, ask, at_prompt
from sonde.guest import ROOT

sys.path.insert(0, ROOT)

from probes.film.host import film, scenes

PLACE = "film_fixture"


def filmed(guest, name):
    scene = scenes.SCENES[name]
    text = scenes.record(scene, lambda line: ask(guest, line))
    return film.parse(scenes.finish(scene, text))


def memory(guest, place):
    """Return the bytes that `probe explain` shows at a place now."""
    found = []
    for line in ask(guest, f"probe explain {place}").splitlines():
        match = re.match(r"(?:byte)? {6,10} +((?:[0-9a-f]{2} ?)+),", line)
        if match:
            found += match[1].split()
    return found


def steps(one):
    """Return the events of each step: its stores, and all events before the next step. A
    step that leaves a byte as it is has several stores, at the same time.
    """
    found, when = [], None
    for event in one.events:
        if event["ev"] == "store" and event["t"] != when:
            found.append([])
            when = event["t"]
        found[-1].append(event)
    return found


def stored(one):
    return [
        " ".join(event["bytes"] for event in step if event["ev"] == "store")
        for step in steps(one)
    ]


def every_step_is_synchronised(one, what):
    good = True
    for step in steps(one):
        kinds = [event["ev"] for event in step]
        asked = kinds.index("sync") if "sync" in kinds else None
        answers = [event["cpu"] for event in step if event["ev"] == "ack"]
        good = good and asked is not None and sorted(answers) == list(range(one.cpus))
        good = good and "ack" not in kinds[:asked]
    tap.check(good, f"{what}: behind each store all CPUs are asked, and each answers")


def an_exchange(guest):
    one = filmed(guest, "poke")
    tap.equal(stored(one), ["cc", "67 45 23 01", "b8"], "guard, tail, first byte")
    every_step_is_synchronised(one, "an exchange")
    traps = [i for i, event in enumerate(one.events) if event["ev"] == "trap"]
    tap.check(traps, f"{len(traps)} traps")
    now = memory(guest, f"{PLACE}+5")
    tap.equal(
        list(one.last_bytes()), now, "the last bytes of the film are those in memory"
    )
    ways = [
        event["ev"]
        for event in one.events
        if event.get("cpu") == 1 and event["ev"] in ("trap", "copy", "back")
    ]
    pairs = set(zip(ways, ways[1:]))
    tap.check(
        ("trap", "copy") in pairs and ("copy", "back") in pairs,
        "a CPU goes from the trap to the copy and back",
    )
    ask(guest, f"probe xmc {PLACE}+5 b8 45 23 01 00")


def a_jump(guest):
    one = filmed(guest, "jump")
    first = stored(one)
    tap.check(
        len(first) == 3 and first[0] == "cc" and first[2] == "e9",
        f"a breakpoint, the tail, the jump: {first}",
    )
    every_step_is_synchronised(one, "a jump")
    last = max(i for i, event in enumerate(one.events) if event["ev"] == "ack")
    behind = [event["ev"] for event in one.events[last:]]
    tap.check("trap" not in behind, "when all know the jump no CPU traps")
    tap.equal(
        list(one.last_bytes()), memory(guest, f"{PLACE}+5"), "memory is as on the film"
    )
    ask(guest, "probe del all")


def a_step(guest):
    one = filmed(guest, "step")
    ways = [
        event["ev"]
        for event in one.events
        if event.get("cpu") == 2 and event["ev"] in ("trap", "copy", "back")
    ]
    text = " ".join(ways)
    if not tap.check("trap copy trap back" in text, "two traps for an instruction"):
        tap.note(text)
    tap.equal(list(one.last_bytes()), one.first, "the probe has gone")


def the_program_has_not_noticed(guest):
    ask(guest, f"film start {PLACE}+5 1")
    ask(guest, f"probe add {PLACE}+5 film1")
    ask(guest, "run vfs")
    ask(guest, "probe del film1")
    ask(guest, "film stop")
    tap.check("film" not in ask(guest, "ps"), "the fixture's threads have ended")
    ask(guest, f"probe add {PLACE} film2")
    ask(guest, "run vfs")
    tap.check(
        re.search(r"film2 .* 0 +0 ", ask(guest, "probe list")),
        "no CPU runs the fixture any more",
    )
    ask(guest, "probe del all")


def what_is_refused(guest):
    def refused(line, name):
        reply = guest.machine.request(line, LIMIT, may_fail=True)
        tap.check(reply.name == name, f"{line}: {reply.text.strip()}")

    refused("film stop", "ENOENT")
    refused("film", "EINVAL")
    refused("film start", "EINVAL")
    refused("film start nowhere", "ENOENT")
    refused(f"film start {PLACE} 1001", "EINVAL")
    refused(f"film start {PLACE} 5x", "EINVAL")
    ask(guest, f"film start {PLACE} 0")
    refused(f"film start {PLACE}", "EBUSY")
    ask(guest, "film stop")


def other_text_is_not_slowed_down(guest):
    ask(guest, f"film start {PLACE} 1000")
    ask(guest, "probe all vfs_*")
    ask(guest, "probe del all")
    ask(guest, "film stop")
    one = film.parse(ask(guest, "cat /tmp/film"))
    tap.equal(one.events, [], "what changes elsewhere is not on the film")


def watches_go_on(guest):
    """A film handles #BP and #DB itself, but watches, which need #DB, work on."""
    ask(guest, "probe watch vfs_read x 1 reads")
    ask(guest, f"film start {PLACE} 1000")
    during = calls_and_hits(guest)
    ask(guest, "film stop")
    tap.check(during[0] == during[1] > 0, "a watch is hit while a film is recorded")
    calls, hits = calls_and_hits(guest)
    tap.equal(hits - during[1], calls, "and after it")
    ask(guest, "probe del all")


def calls_and_hits(guest):
    """Run a workload. Return (its calls, all hits of the watch up to now)."""
    calls = re.search(r"calls (\d+) of vfs_read", ask(guest, "run vfs"))
    hits = re.search(
        r"^reads +[0-9a-f]{16} w dr\d +(\d+) ", ask(guest, "probe list"), re.M
    )
    return int(calls[1]), int(hits[1])


def main():
    with at_prompt(smp=scenes.CPUS) as guest:

        def on(test):
            def run():
                test(guest)

            run.__name__ = test.__name__
            return run

        tap.run(
            *[
                on(test)
                for test in (
                    an_exchange,
                    a_jump,
                    a_step,
                    the_program_has_not_noticed,
                    what_is_refused,
                    other_text_is_not_slowed_down,
                    watches_go_on,
                )
            ]
        )


main()
