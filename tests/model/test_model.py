#!/usr/bin/env python3
"""test_model.py - checks models of the protocols, in all orders of events, by Spin.

    tests/model/test_model.py [--long] [--model=NAME] [FUNCTION...]

Each model must hold in every state. Each mutant of a model must violate the property that
it was made to violate. The usual run has small models, and one or two mutants of each
model. --long: more CPUs, longer chains, and all mutants. --model: only this model.
docs/model.md explains the models, their properties and their mutants.
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
DOC = os.path.join(ROOT, "docs", "model.md")
JOBS = 1 if tap.LONG else 2  # models at a time

ONE = "CPUS=2 SITES=1 LEN=2"  # one instruction of two bytes, until its site is freed
TWO = "CPUS=2 SITES=2 LEN=2"  # two instructions; a jump at the first reads the second
TINY = "CPUS=2 SITES=2 LEN=1"  # two instructions of one byte each

# Models that must hold in every state.
MODELS = [
    ("text_poke", ONE),
    ("text_poke", ONE + " LIVE"),
    ("text_poke", TWO),
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

# Models that are changed and must still hold. They show that the property does not depend
# on the step that was left out.
HARMLESS = [
    ("text_poke", ONE, "NO_RETRY"),
    ("text_poke", ONE, "REGISTRY_EARLY"),
    ("stop_machine", "CPUS=2", "IPS_IGNORED"),
]

# (model, its size, the change, the property that must not hold any more)
MUTANTS = [
    ("text_poke", ONE, "NO_SYNC_2", "no_instruction_is_torn"),
    ("text_poke", TWO, "LEVELS_IGNORED", "no_instruction_is_torn"),
    ("stop_machine", "CPUS=2", "NMIS_SERIALISE_ONLY", "new_is_whole"),
    ("optimize", "CPUS=1", "READERS_IGNORED", "displacement_is_as_planned"),
    ("quiesce", "CPUS=1", "PREEMPT_IS_OUTSIDE", "no_cpu_is_inside"),
    ("shadow", "DEPTH=2", "UNWIND_INTERRUPTIBLE", "return_is_found"),
    ("link", "CPUS=2", "NO_CUT", "off_is_off"),
    ("ring", "EVENTS=4", "SPARE_LATE", "record_is_next"),
    ("module", "LOADS=1", "NO_SCAN", "text_is_there"),
]
MUTANTS_LONG = [
    ("text_poke", ONE, "NO_QUIESCENCE", "what_is_used_is_there"),
    ("text_poke", ONE + " HALTS", "WAKES_STALE", "all_execute_the_new"),
    ("text_poke", ONE, "NO_SYNC_0", "what_it_leads_to_is_seen"),
    ("text_poke", ONE, "NO_SYNC_1", "no_instruction_is_torn"),
    ("text_poke", ONE, "NO_SYNC_3", "all_execute_the_new"),
    ("text_poke", ONE, "NO_STEP_1", "no_instruction_is_torn"),
    ("text_poke", ONE, "STEPS_SWAPPED", "no_instruction_is_torn"),
    ("text_poke", ONE, "SYNC_LEAVES_ONE_OUT", "what_it_leads_to_is_seen"),
    ("text_poke", TWO, "LEVELS_SWAPPED", "no_instruction_is_torn"),
    ("text_poke", TWO, "LEVELS_NOT_SYNCED", "no_instruction_is_torn"),
    ("text_poke", TINY, "LEVELS_IGNORED", "no_instruction_is_torn"),
    ("text_poke", TINY, "LONE_READS", "no_instruction_is_torn"),
    ("text_poke", TWO, "READER_LEFT_OUT", "no_instruction_is_torn"),
    ("text_poke", ONE, "REGISTRY_FIRST", "int3_has_a_site"),
    ("text_poke", ONE, "REGISTRY_EARLY NO_RETRY", "int3_has_a_site"),
    ("text_poke", ONE + " LIVE", "TRAP_WAITS", "it_returns"),
    ("stop_machine", "CPUS=2", "NO_SYNC", "new_is_whole"),
    ("stop_machine", "CPUS=2", "BYTEWISE", "new_is_whole"),
    ("stop_machine", "CPUS=2", "NOT_GUARDED", "second_is_an_instruction"),
    ("stop_machine", "CPUS=2", "NO_QUIESCENCE", "second_is_an_instruction"),
    ("stop_machine", "CPUS=2", "HIT_RETURNS_INSIDE", "second_is_an_instruction"),
    ("optimize", "CPUS=1", "NO_QUIESCENCE_IN_PASS", "detour_is_unused"),
    ("optimize", "CPUS=1", "READERS_IGNORED_IN_PASS", "displacement_is_as_planned"),
    ("optimize", "CPUS=1", "NO_GUARD", "displacement_is_as_planned"),
    ("optimize", "CPUS=1", "OLD_PAD_FREED", "old_pad_is_unused"),
    ("optimize", "CPUS=1", "READER_FIRST", "displacement_is_as_planned"),
    ("optimize", "CPUS=1", "SWEEP_IGNORES_READERS", "displacement_is_as_planned"),
    ("optimize", "CPUS=1", "NO_QUIESCENCE_AT_RECLAIM", "site_is_unused"),
    ("optimize", "CPUS=1", "NO_SWEEP", "site_is_unused"),
    ("optimize", "CPUS=1", "DETOUR_KEPT", "no_leak"),
    ("optimize", "CPUS=1", "PASS_WITHOUT_LOCK", "move_is_legal"),
    ("optimize", "CPUS=1", "NO_KICK", "is_as_wanted"),
    ("optimize", "CPUS=1", "REFUSALS_STAY", "is_as_wanted"),
    ("optimize", "CPUS=1", "REFUSED_NOT_ASKED_AGAIN", "is_as_wanted"),
    ("quiesce", "CPUS=1", "WAY_IN_OPEN", "no_cpu_is_inside"),
    ("quiesce", "CPUS=1", "HANDLER_SLEEPS", "no_cpu_is_inside"),
    ("quiesce", "CPUS=1", "CALLEE_NOT_COVERED", "no_cpu_is_inside"),
    ("quiesce", "CPUS=1", "COUNT_IGNORED", "no_cpu_is_inside"),
    ("quiesce", "CPUS=1", "IP_IGNORED", "no_cpu_is_inside"),
    ("quiesce", "CPUS=1", "RUNNING_IS_OUTSIDE", "no_cpu_is_inside"),
    ("quiesce", "CPUS=1", "IRQ_IS_OUTSIDE", "no_cpu_is_inside"),
    ("quiesce", "CPUS=1", "IPI_NOT_AWAITED", "no_cpu_is_inside"),
    ("quiesce", "CPUS=1", "ONE_END_IS_ENOUGH", "no_cpu_is_inside"),
    ("quiesce", "CPUS=1", "END_PASSED_TWICE", "no_cpu_is_inside"),
    ("shadow", "DEPTH=2", "NOT_EMPTIED", "entry_is_mine"),
    ("shadow", "DEPTH=2", "NOT_CLAIMED", "entry_is_mine"),
    ("shadow", "DEPTH=2", "BELOW_FIRST", "backtrace_is_right"),
    ("shadow", "DEPTH=2", "SLOT_FIRST", "backtrace_is_right"),
    ("link", "CPUS=2", "NOT_FORGOTTEN", "what_is_used_is_there"),
    ("link", "CPUS=2", "MADE_EARLY", "what_is_used_is_there"),
    ("link", "CPUS=2", "CUT_LATE", "off_is_off"),
    ("link", "CPUS=2", "NO_QUIESCENCE", "what_is_used_is_there"),
    ("link", "CPUS=2", "FORGET_NOT_SYNCED", "what_is_used_is_there"),
    ("ring", "EVENTS=4", "DROPS_APART", "all_are_read_or_lost"),
    ("ring", "EVENTS=4", "ALL_PUBLISH", "record_is_next"),
    ("ring", "EVENTS=4", "NO_LOOK_AGAIN", "all_are_read_or_lost"),
    ("ring", "EVENTS=4", "PUBLISHED_FIRST", "only_the_overwritten_is_gone"),
    ("ring", "EVENTS=4", "FIRST_LATE", "record_is_next"),
    ("ring", "EVENTS=4", "HELD_OVERWRITTEN", "record_is_next"),
    ("ring", "EVENTS=4", "CLAIMED_BLINDLY", "record_is_next"),
    ("ring", "EVENTS=4", "NO_LAP", "record_is_next"),
    ("ring", "EVENTS=4", "LOOK_AFTER", "record_is_next"),
    ("ring", "EVENTS=4", "NO_SECOND_LOOK", "record_is_next"),
    ("module", "LOADS=1", "ARMED_LATE", "constructor_is_seen"),
    ("module", "LOADS=1", "SYMBOLS_FIRST", "fixup_is_known"),
    ("module", "LOADS=1", "NO_QUIESCENCE", "fixup_is_known"),
    ("module", "LOADS=1", "NOT_CLOSED", "probe_has_text"),
    ("module", "LOADS=1", "OPENED_EARLY", "probe_has_text"),
    ("module", "LOADS=1", "NO_QUIESCENCE_AT_END", "table_is_there"),
]

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


def what_is_harmless():
    if not tap.LONG:
        return
    for row, verdict in checked(HARMLESS, check_mutant):
        expect_to_hold(verdict, f"{row[0]} with {row[2]}: holds all the same")


def mutants_are_killed():
    rows = MUTANTS + (MUTANTS_LONG if tap.LONG else [])
    for row, verdict in checked(rows, check_mutant):
        model, _, mutant, fact = row
        killed = verdict.fact == fact
        if not tap.check(killed, f"{model} with {mutant}: {fact} does not hold"):
            tap.note(verdict.output)


def all_rows():
    return [row[:3] for row in HARMLESS + MUTANTS + MUTANTS_LONG]


def no_mutant_is_forgotten():
    """Each switch in a model is in a table above, and docs/model.md explains it."""
    known = {word for _, _, mutant in all_rows() for word in mutant.split()} | SIZES
    found = set()
    for path in glob.glob(os.path.join(ROOT, "docs/model/*.pml")):
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith(("#if", "#elif")):
                    found |= set(re.findall(r"\b[A-Z][A-Z_0-9]+\b", line))
    tap.equal(found - known, set(), "every switch in a model is tried here")
    with open(DOC, encoding="utf-8") as file:
        told = file.read()
    words = {word for _, _, mutant in all_rows() for word in mutant.split()}
    missing = {word for word in words if f"`{word}`" not in told}
    tap.equal(missing, set(), "docs/model.md explains each of them")


if __name__ == "__main__":
    tap.run(models_hold, mutants_are_killed, what_is_harmless, no_mutant_is_forgotten)
