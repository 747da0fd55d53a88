"""test_count.py - `trace count` counts what QEMU counts, for each function alone and for all
together.

Within one run this holds for every function: hits and misses by cause, the tracer's own work
among them, are together the executions, and the table has the hits.

Between two runs only functions count that the workloads call equally often in each run,
and that nothing else calls. The test leaves out functions that wait and functions of the
scheduler, since their calls depend on time; conditions of wait_event(), which are asked each
time that a thread wakes; and two of the heap, which look at blocks that the tracer has freed.
SEED=N chooses the same functions again.
"""

import collections
import os
import random
import re

import tap
from counted import symbol_table
from sonde.guest import BUILD
from trial import LIMIT, counted, show

LEFT_OUT = re.compile(
    "wait|wake|idle|switch_to|reaper|percpu_of|quiesce|thread_sleep|exec_contains"
    "|inside_copy|region_is_watched|xmc_is_inside"  # of quiesce(), at the ends of hits
    "|thread_forget|is_free_to_go|has_work|input_pending"
    "|block_free_check|small_block_check"
)
SCHEDULER = "kernel/thread/sched.c.o"  # the compiler may inline its functions, or not
ALONE = 12  # functions that are asked alone in a usual run


def executed(machine, command):
    """Return how often each function is entered, without probes: {name: number}."""
    outcome = machine.run(f"bare all '{command}'", LIMIT)
    places = {machine.symbols.at(a): n for a, n in outcome.executions.items() if n}
    entries = (re.fullmatch(r"(.*)\+0x0(?:/.*)?", place) for place in places)
    return {match[1]: places[match[0]] for match in entries if match}


def table_of(said):
    """Return the table that `trace` has printed: {name: number}."""
    return {name: int(n) for n, name in re.findall(r"^ +(\d+)  (\S+)$", said, re.M)}


def asked(machine, what):
    """Return what `trace count` prints: {name: number}."""
    return table_of(machine.ask(f"trace count '{what}' -- run all", LIMIT))


COUNTED = "{} {{ count by func }}"  # by a program in the detour
OTHERS = ("mem* { stack }", "ret * { count by func }")  # by C, which has work of its own


def image_table(machine, outcome):
    """Return the printed table without functions of the module truth."""
    table = table_of(outcome.output)
    return {name: n for name, n in table.items() if name in machine.table}


def in_one_run(machine, question):
    """Return what is wrong with the counts of the question, as (question, ...)."""
    words = f"'{question}' -- truth asked q1 'run all'"
    outcome = machine.run(words, LIMIT, command="trace")
    for counts in (
        outcome.records,
        outcome.executions,
    ):  # of the image; truth itself is none
        for address in [a for a in counts if not machine.text[0] <= a < machine.text[1]]:
            del counts[address]
    wrong = list(outcome.mismatches())
    show(machine, wrong)
    if question not in OTHERS:
        hits = collections.Counter()
        for address, (n, *_) in outcome.records.items():
            hits[machine.symbols.at(address).partition("+")[0]] += n
        table = collections.Counter(image_table(machine, outcome))
        wrong += (table - hits).items() | (hits - table).items()
    return [(question, *row) for row in wrong], outcome


def hits_and_misses():
    with counted(1, jump="pun", icount=True) as machine:
        names = []
        for question in (COUNTED.format("*"), *OTHERS):
            wrong, outcome = in_one_run(machine, question)
            tap.equal(wrong, [], f"{question}: {outcome.total()} executions")
            tap.note(f"missed: {outcome.misses()}")
            names = names or sorted(image_table(machine, outcome))
        seed = int(os.environ.get("SEED", random.randrange(1 << 31)))
        tap.note(f"seed {seed}")
        alone = names if tap.LONG else random.Random(seed).sample(names, ALONE)
        wrong = [in_one_run(machine, COUNTED.format(name))[0] for name in alone]
        tap.equal(sum(wrong, []), [], f"{len(alone)} of {len(names)} alone")


def alone_and_together():
    with counted(1, jump="pun", icount=True) as machine:
        others = executed(machine, "echo").keys()
        others |= symbol_table(os.path.join(BUILD, SCHEDULER)).keys()
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
    tap.run(hits_and_misses, alone_and_together)
