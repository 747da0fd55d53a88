"""test_rounds.py - runs the stress program for 6 seconds on 1 CPU; the long run for 15
seconds, and on 2, 4 and 8 CPUs, too, stepped on 2 CPUs, and with a debugger on 4
(see stress.py).

    tests/run/run_tests.py stress/rounds
"""

import os
import re
import sys

import tap

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stress

SEED = int(os.environ.get("SEED", "1"))
# CPUs, stepped, with a debugger
GUESTS = (
    (1, False, False),
    (2, False, False),
    (4, False, False),
    (8, False, False),
    (2, True, False),
    (4, False, True),
)


def all_is_as_it_was():
    tap.note(f"seed {SEED}")
    options = stress.parse(["--seconds", "15" if "LONG" in os.environ else "6"])
    guests = GUESTS if "LONG" in os.environ else GUESTS[:1]
    for number, (cpus, stepped, stub) in enumerate(guests):
        seed = SEED + number
        minute, failure = stress.run_minute(options, cpus, stepped, seed, stub)
        name = f"{cpus} CPUs{', stepped' * stepped}{', stub' * stub}, seed {seed}"
        rounds = minute.sums["rounds"]
        if not tap.check(not failure, f"{name}: {rounds} rounds, all is as it was"):
            tap.note("\n".join(failure))
        for what in ("hits", "missed", "returns", "faults", "locks"):
            tap.check(minute.sums[what], f"{name}: {minute.sums[what]} {what}")
        if stub:
            seen = not re.search(r"\b0 (stops|breaks)", minute.stub)
            tap.check(seen, f"{name}:{minute.stub}")


tap.run(all_is_as_it_was)
