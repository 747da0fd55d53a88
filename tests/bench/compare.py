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

# ours, theirs, and how many times theirs it may be: in cycles, in instructions. What is not
# measured has no row.
HITS = (
    ("int3_boostable", "linux.hit.int3_boost_simulated", 0.6, 0.7),
    ("int3_unboostable", "linux.hit.int3_unboostable", 0.6, 0.7),
    ("int3_emulated", "linux.hit.int3_emulated", None, 0.7),
    ("int3_posthandler", "linux.hit.int3_posthandler", None, 0.7),
    ("int3_two_probes", "linux.hit.int3_two_probes", None, None),
    ("kret_int3", "linux.hit.kret_int3", None, None),
    ("kret_int3_entryh", "linux.hit.kret_int3_entryh", None, None),
    ("kret_int3_unboostable", "linux.hit.kret_int3_unboostable", None, None),
    ("kprobe_kret_int3", "linux.hit.kprobe_kret_int3", None, None),
    ("opt", "linux.hit.opt", 0.55, None),
    ("opt_two_probes", "linux.hit.opt_two_probes", None, None),
    ("kret_opt", "linux.hit.kret_opt", 0.35, None),
    ("kret_opt_entryh", "linux.hit.kret_opt_entryh", None, None),
    ("kprobe_kret_opt", "linux.hit.kprobe_kret_opt", 0.4, None),
)
# run, ours, theirs or None, goal: at most so many times theirs, or at most that much. The
# floor's figures include the call of the target, but for those that say `less` it.
ROWS = [
    (run, f"hit.{ours}.{figure}", f"{theirs}.{figure}", icount if run == "icount" else smp)
    for run, figure in (("smp", "cycles"), ("smp", "cycles_min"), ("icount", "cycles"))
    for ours, theirs, smp, icount in HITS
]
ROWS += [
    ("smp", "hit.int3_tf.cycles", "floor.int3_tf_step_db_iret", 1.5),
    ("smp", "hit.int3_boostable.cycles", "floor.int3_save15_call_popf_ret", None),
    ("smp", "hit.opt_count.cycles", "floor.jmp_detour_lahf_count less floor.call_ret", 1.3),
    ("smp", "hit.opt.cycles", "sonde.hit.int3_tf.cycles", 0.1),
    ("icount", "hit.int3_tf.cycles", "linux.hit.int3_unboostable.cycles", 0.7),
    ("smp", "hit.opt_pad.cycles", "sonde.hit.opt.cycles", None),
    ("smp", "hit.opt_posthandler.cycles", "sonde.hit.int3_posthandler.cycles", None),
]
# What Linux has no longer, or does not do, beside the next dearer way.
NEXT_WAYS = (
    ("kret_opt_posthandler", "kret_int3_unboostable"),
    ("jprobe_int3", "jprobe_int3_unboostable"),
    ("jprobe_opt", "jprobe_int3"),
    ("jprobe_opt_posthandler", "jprobe_int3_unboostable"),
    ("jprobe_kret_int3", "jprobe_kret_int3_unboostable"),
    ("jprobe_kret_opt", "jprobe_kret_int3"),
)
ROWS += [
    ("smp", f"hit.{ours}.cycles", f"sonde.hit.{other}.cycles", 1) for ours, other in NEXT_WAYS
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
    ("smp4", "scale.optimize_set.37222.total", None, 2e6),
    ("smp4", "scale.unoptimize_set.37222.total", None, 1e6),
    ("smp4", "scale.optimize_set.37222.breakpoints", None, None),
    ("smp4", "scale.jump_memory.37222.bytes", None, None),
    ("smp4", "mem.jump_page_tables.bytes", None, 9 << 20),
    ("smp4", "counted.entries.slowdown", None, 2),
    ("smp4", "counted.instructions.slowdown", None, 15),
    ("smp4", "counted.instructions.memory", None, 180),
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


def other_figure(figures, run, theirs):
    """Theirs, or one less another; None when it was not measured."""
    whole, _, part = theirs.partition(" less ")
    value, less = figures.get((run, whole)), figures.get((run, part), 0)
    return value - less if value else None


def verdict(value, goal):
    if goal is None:
        return "-"
    return "met" if value <= goal else "MISSED"


def row(figures, run, ours, theirs, goal):
    """The cells of one row; None when there is nothing of ours."""
    value = figures.get((run, "sonde." + ours))
    other = other_figure(figures, run, theirs) if theirs else None
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
