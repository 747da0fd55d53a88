#!/usr/bin/env python3
"""compare.py - what `bench` has measured beside what others have, as a table.

    tests/bench/compare.py FILE...

Reads lines `WHO.NAME VALUE UNIT` of sonde, linux and floor; others are skipped. The stem of
a file says how the machine ran: one with `icount` in it has instructions for cycles, one
with `smp4` had four CPUs. The verdict is information: a busy host spoils every time.
"""

import os
import re
import sys

LINE = re.compile(r"(sonde|linux|floor)\.(\S+) ([0-9.]+)\b")

# run, ours, theirs or None, goal: at most so many times theirs, or at most that much
HITS = (
    ("int3_boostable", "linux.hit.int3_boost_simulated", 0.6, 0.7),
    ("int3_unboostable", "linux.hit.int3_unboostable", 0.6, 0.7),
    ("int3_emulated", "linux.hit.int3_emulated", None, 0.7),
    ("int3_posthandler", "linux.hit.int3_posthandler", None, 0.7),
    ("int3_two_probes", "linux.hit.int3_two_probes", None, None),
)
ROWS = [
    (run, f"hit.{ours}.{figure}", f"{theirs}.{figure}", icount if run == "icount" else smp)
    for run, figure in (("smp", "cycles"), ("smp", "cycles_min"), ("icount", "cycles"))
    for ours, theirs, smp, icount in HITS
]
ROWS += [
    ("smp", "hit.int3_tf.cycles", "floor.int3_tf_step_db_iret", 1.5),
    ("smp", "hit.int3_boostable.cycles", "floor.int3_save15_call_popf_ret", None),
]
WAYS = ("register_one_by_one", "register_set", "unregister_one_by_one", "unregister_set")
for run in ("icount", "smp4"):
    for crowd in (1000, 10000, 37222, 100000):
        ROWS += [(run, f"scale.hit.{crowd}.cycles", "sonde.scale.hit.1.cycles", 1.1)]
    for way in WAYS:
        first = f"sonde.scale.{way}.1000.ns_per_probe"
        for crowd in (10000, 37222, 100000):
            ROWS += [(run, f"scale.{way}.{crowd}.ns_per_probe", first, 1.1)]
ROWS += [
    ("smp4", "scale.register_one_by_one.37222.total", None, 5e6),
    ("smp4", "scale.register_set.37222.total", None, 0.5e6),
    ("smp4", "mem.per_probe.bytes", None, 200),
    ("smp", "cache.hit_ratio", None, None),
]


def run_of(path):
    stem = os.path.basename(path)
    return "icount" if "icount" in stem else "smp4" if "smp4" in stem else "smp"


def read(paths):
    figures = {}
    for path in paths:
        with open(path, errors="replace") as file:
            for line in file:
                match = LINE.match(line)
                if match:
                    name = f"{match[1]}.{match[2]}"
                    figures[run_of(path), name] = float(match[3])
    return figures


def verdict(value, goal):
    if goal is None:
        return "-"
    return "met" if value <= goal else "MISSED"


def row(figures, run, ours, theirs, goal):
    """The cells of one row; None when there is nothing of ours."""
    value = figures.get((run, "sonde." + ours))
    other = figures.get((run, theirs)) if theirs else None
    if value is None:
        return None
    wanted = "-" if goal is None else f"{goal:g}" if theirs is None else f"{goal:g} x"
    if theirs is None:
        return ours, run, f"{value:g}", "-", "-", wanted, verdict(value, goal)
    if not other:
        return ours, run, f"{value:g}", "?", "-", wanted, "-"
    ratio = value / other
    cells = f"{value:g}", f"{other:g} {theirs}", f"{ratio:.2f}", wanted
    return ours, run, *cells, verdict(ratio, goal)


def main():
    figures = read(sys.argv[1:])
    table = [("name", "run", "sonde", "beside", "ratio", "goal", "verdict")]
    table += filter(None, (row(figures, *r) for r in ROWS))
    widths = [max(map(len, column)) for column in zip(*table)]
    for cells in table:
        print("  ".join(map(str.ljust, cells, widths)).rstrip())


main()
