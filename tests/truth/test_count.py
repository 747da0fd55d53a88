"""test_count.py - `trace count` counts what QEMU counts, for each function alone and for all
together.

Only functions count that the workloads call equally often in each run, and that nothing else
calls. The test leaves out functions that wait and functions of the scheduler, since their
calls depend on time, and two of the heap, which look at blocks that the tracer has freed.
SEED=N chooses the same functions again.
"""

import os
import random
import re

import tap
from trial import LIMIT, counted

LEFT_OUT = re.compile(
    "sched|wait|wake|idle|switch_to|reaper|percpu_of|quiesce|thread_sleep|exec_contains"
    "|block_free_check|small_block_check"
)
ALONE = 12  # functions that are asked alone in a usual run


def executed(machine, command):
    """Return how often each function is entered, without probes: {name: number}."""
    outcome = machine.run(f"bare all '{command}'", LIMIT)
    places = {machine.symbols.at(a): n for a, n in outcome.executions.items() if n}
    entries = (re.fullmatch(r"(.*)\+0x0(?:/.*)?", place) for place in places)
    return {match[1]: places[match[0]] for match in entries if match}


def asked(machine, what):
    """Return what `trace count` prints: {name: number}."""
    said = machine.ask(f"trace count '{what}' -- run all", LIMIT)
    rows = re.findall(r"^ +(\d+)  (\S+)$", said, re.M)
    return {name: int(n) for n, name in rows}


def alone_and_together():
    with counted(1, jump="pun", icount=True) as machine:
        others = executed(machine, "echo")
        first, second = (executed(machine, "run all") for _ in range(2))
        together = asked(machine, "*")
        wanted = {
            name: n
            for name, n in first.items()
            if second.get(name) == n
            and name not in others
            and name in together
            and not LEFT_OUT.search(name)
        }
        tap.check(len(wanted) >= 100, f"{len(wanted)} functions")
        wrong = {f: (together[f], n) for f, n in wanted.items() if together[f] != n}
        tap.equal(wrong, {}, "all together")
        seed = int(os.environ.get("SEED", random.randrange(1 << 31)))
        tap.note(f"seed {seed}")
        chosen = sorted(wanted)
        if not tap.LONG:
            chosen = random.Random(seed).sample(chosen, ALONE)
        wrong = {name: asked(machine, name) for name in chosen}
        wrong = {name: got for name, got in wrong.items() if got != {name: wanted[name]}}
        tap.equal(wrong, {}, f"{len(chosen)} alone")


if __name__ == "__main__":
    tap.run(alone_and_together)
