"""test_rounds.py - runs the stress program for 15 seconds on 1 CPU; the long run does so on
2, 4 and 8 CPUs, too, and stepped on 2 CPUs (see stress.py).

    tests/run/run_tests.py stress/rounds
"""

import os
import sys

import tap

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stress

SEED = int(os.environ.get("SEED", "1"))
GUESTS = ((1, False), (2, False), (4, False), (8, False), (2, True))  # CPUs, stepped


def all_is_as_it_was():
    tap.note(f"seed {SEED}")
    options = stress.parse(["--seconds", "15"])
    guests = GUESTS if "LONG" in os.environ else GUESTS[:1]
    for number, (cpus, stepped) in enumerate(guests):
        seed = SEED + number
        minute, failure = stress.run_minute(options, cpus, stepped, seed)
        name = f"{cpus} CPUs{', stepped' * stepped}, seed {seed}"
        rounds = minute.sums["rounds"]
        if not tap.check(not failure, f"{name}: {rounds} rounds, all is as it was"):
            tap.note("\n".join(failure))
        for what in ("hits", "missed", "returns", "faults", "locks"):
            tap.check(minute.sums[what], f"{name}: {minute.sums[what]} {what}")


tap.run(all_is_as_it_was)
