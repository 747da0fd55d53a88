#!/usr/bin/env python3
"""test_model.py - checks models of the protocols, in all orders of events, by Spin.

    tests/model/test_model.py [--long] [--model=NAME] [FUNCTION...]

Each model must hold in every state. Each mutant of a model must violate the property that
it was made to violate. The usual run has small models, and one or two mutants of each
model. --long: more CPUs, longer chains, and all mutants. --model: only this model.
docs/model.md explains the models and their properties, docs/model/mutants.tsv their mutants.
"""

import glob
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests/run"), ROOT]
import tap
from docs.model import spin

ONLY = [word.removeprefix("--model=") for word in sys.argv if word.startswith("--model=")]
JOBS = 1 if tap.LONG else 2  # models at a time

ONE = "CPUS=2 SITES=1 LEN=2"  # one instruction of two bytes, until its site is freed
TWO = "CPUS=2 SITES=2 LEN=2"  # two instructions; a jump at the first reads the second
TINY = "CPUS=2 SITES=2 LEN=1"  # two instructions of one byte each

# Models that must hold in every state.
MODELS = [
    ("text_poke", ONE),
    ("stop_machine", "CPUS=2"),
    ("stop_machine", "CPUS=3"),
    ("optimize", "CPUS=1"),
    ("quiesce", "CPUS=1"),
    ("shadow", "DEPTH=2"),
    ("link", "CPUS=2"),
    ("ring", "EVENTS=4"),
    ("module", "LOADS=1"),
]
MODELS_LONG = [
    ("text_poke", ONE + " LIVE"),
    ("text_poke", TWO),
    ("text_poke", ONE + " HALTS"),
    ("text_poke", TINY),
    ("text_poke", TWO + " HALTS"),
    ("text_poke", TWO + " LIVE"),
    ("text_poke", "CPUS=3 SITES=1 LEN=2"),
    ("text_poke", "CPUS=3 SITES=1 LEN=1"),
    ("text_poke", "CPUS=3 SITES=2 LEN=2"),
    ("text_poke", "CPUS=3 SITES=2 LEN=1"),
    ("text_poke", "CPUS=2 SITES=3 LEN=2"),
    ("text_poke", "CPUS=2 SITES=3 LEN=1"),
    ("optimize", "CPUS=2"),
    ("optimize", "CPUS=3"),
    ("quiesce", "CPUS=2"),
    ("quiesce", "CPUS=3 THREADS=2"),
    ("shadow", "DEPTH=3"),
    ("link", "CPUS=3"),
    ("ring", "EVENTS=5 ROOM=2"),
    ("ring", "EVENTS=5 SLOTS=3"),
    ("module", "LOADS=2"),
]

# A row of the table changes a model. The property must not hold any more; HOLDS shows that
# no property depends on the step that was left out.
TABLE = os.path.join(ROOT, "docs/model/mutants.tsv")
HOLDS = "holds"

# Defines that set the size of a model, and are no mutants.
SIZES = {"CPUS", "SITES", "LEN", "THREADS", "DEPTH", "LIVE", "HALTS", "EVENTS", "ROOM",
         "SLOTS", "LOADS"}  # fmt: skip


def defines(size, mutant=""):
    return ["-D" + word for word in (size + " " + mutant).split()]


def in_words(model, size):
    live = " ends" * ("LIVE" in size) + " with CPUs that halt" * ("HALTS" in size)
    numbers = [
        f"{name}={value}"
        for name, _, value in (word.partition("=") for word in size.split())
        if value
    ]
    return f"{model}{live}, {' '.join(numbers)}"


def checked(rows, check):
    """Yield (row, verdict) for @rows in their order. JOBS of them are checked at a time."""
    rows = [row for row in rows if not ONLY or row[0] in ONLY]
    with ThreadPoolExecutor(JOBS) as pool:
        yield from zip(rows, pool.map(check, rows))


def check_model(row):
    return spin.check(row[0], defines(row[1]), thorough=row in MODELS_LONG)


def check_mutant(row):
    return spin.check(row[0], defines(row[1], row[2]))


def expect_to_hold(verdict, what):
    if not tap.check(verdict.holds(), f"{what}, in {verdict.states:,} states"):
        tap.note(verdict.output)


def models_hold():
    rows = MODELS + (MODELS_LONG if tap.LONG else [])
    for row, verdict in checked(rows, check_model):
        expect_to_hold(verdict, in_words(*row) + ": holds")


def mutants():
    """The rows of the table as (model, size, change, property, run, what is wrong)."""
    with open(TABLE, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("#")]
    return [tuple(line.split("\t")) for line in lines]


def mutants_are_killed():
    rows = [row for row in mutants() if tap.LONG or row[4] == "usual"]
    for row, verdict in checked(rows, check_mutant):
        model, _, mutant, fact, _, wrong = row
        if fact == HOLDS:
            expect_to_hold(verdict, f"{model} with {mutant}: holds all the same")
            continue
        killed = verdict.fact == fact
        if not tap.check(
            killed, f"{model} with {mutant} ({wrong}): {fact} does not hold"
        ):
            tap.note(verdict.output)


def no_mutant_is_forgotten():
    """Each switch in a model is in the table, which says what it makes wrong."""
    known = {word for row in mutants() for word in row[2].split()}
    found = set()
    for path in glob.glob(os.path.join(ROOT, "docs/model/*.pml")):
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith(("#if", "#elif")):
                    found |= set(re.findall(r"\b[A-Z][A-Z_0-9]+\b", line))
    tap.equal(found - SIZES, known, "the table has every switch in a model, and no other")
    lost = [row[2] for row in mutants() if len(row) != 6 or not row[5]]
    tap.equal(lost, [], "and says of each what is wrong")


if __name__ == "__main__":
    tap.run(models_hold, mutants_are_killed, no_mutant_is_forgotten)
