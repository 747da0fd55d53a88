"""test_profile.py - the samples of `trace profile` find functions as often as these execute
instructions, which QEMU counts.
"""

import collections
import re

import tap
from trial import LIMIT, counted, quoted

SEEDS = range(1, 9)
IDLE = "cpu_idle_wait"  # it takes time, and executes nothing
TOP, TOLERANCE = 5, 5  # functions; points of percent


def shares(counts):
    del counts[IDLE]
    return {name: 100 * n / counts.total() for name, n in counts.items()}


def executed(machine):
    """Return how many instructions of each function the workloads execute."""
    outcome = machine.run(f"bare all {quoted(f'all {s}' for s in SEEDS)}", LIMIT)
    counts = collections.Counter({IDLE: 0})
    for address, n in outcome.executions.items():
        counts[machine.symbols.at(address).partition("+")[0]] += n
    return counts


def sampled(machine):
    counts = collections.Counter({IDLE: 0})
    for seed in SEEDS:
        said = machine.ask(f"trace profile 10000 by func -- run all {seed}", LIMIT)
        for n, name in re.findall(r"^ +(\d+) +[\d.]+  (\S+)$", said, re.M):
            counts[name] += int(n)
    return counts


def samples_and_instructions():
    with counted(1, icount=True) as machine:
        counts = sampled(machine)
        tap.check(counts.total() - counts[IDLE] > 1000, f"{counts.total()} samples")
        found, truth = shares(counts), shares(executed(machine))
        for name in sorted(found, key=found.get)[-TOP:]:
            both = f"{found[name]:.1f} % of the samples, {truth[name]:.1f} % executed"
            tap.check(abs(found[name] - truth[name]) < TOLERANCE, f"{name}: {both}")


if __name__ == "__main__":
    tap.run(samples_and_instructions)
