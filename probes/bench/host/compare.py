#!/usr/bin/env python3
"""compare.py - prints a table of what `bench` has measured, beside the figures of Linux
and of a lower bound.

    probes/bench/host/compare.py FILE...

Reads the lines `WHO.NAME VALUE UNIT` of sonde, linux and floor; other lines are skipped.
The name of a file says how the machine ran: if it contains `icount`, cycles are
instructions; if it contains `smp4`, the machine had four CPUs. The verdict is information
only, since a busy host spoils every time.

Goals that need no figures of others are in probes/bench/bench_goal.c. `bench` prints
these behind the figure, as `goal LIMIT`.
"""

import os
import re
import sys

LINE = re.compile(r"(sonde|linux|floor)\.(\S+) ([0-9.]+)\b(?: \S+  goal ([0-9.]+))?")

# our figure, their figure, and how many times theirs ours may be: in cycles, and in
# instructions; None: no goal. A kind of hit that is not measured has no row.
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
    ("opt_crowd", "linux.hit.opt", 0.55, None),
    ("opt_two_probes", "linux.hit.opt_two_probes", None, None),
    ("kret_opt", "linux.hit.kret_opt", 0.35, None),
    ("kret_opt_entryh", "linux.hit.kret_opt_entryh", None, None),
    ("kprobe_kret_opt", "linux.hit.kprobe_kret_opt", 0.4, None),
    ("event_int3_0args", "linux.hit.event_int3_0args", 0.5, 0.5),
    ("event_int3_3regs", "linux.hit.event_int3_3regs", 0.5, 0.5),
    ("event_opt_0args", "linux.hit.event_opt_0args", 0.25, 0.5),
    ("event_opt_3regs", "linux.hit.event_opt_3regs", 0.25, 0.5),
    ("event_opt_3mem", "linux.hit.event_opt_3mem", None, None),
)
# run, our figure, their figure, goal: how many times theirs ours may be. The figures of
# the floor include the call of the target, unless the row says `less` the call.
ROWS = [
    (
        run,
        f"hit.{ours}.{figure}",
        f"{theirs}.{figure}",
        icount if run == "icount" else smp,
    )
    for run, figure in (("smp", "cycles"), ("smp", "cycles_min"), ("icount", "cycles"))
    for ours, theirs, smp, icount in HITS
]
ROWS += [
    ("smp", "hit.int3_tf.cycles", "floor.int3_tf_step_db_iret", 1.5),
    ("smp", "hit.int3_boostable.cycles", "floor.int3_save15_call_popf_ret", None),
    (
        "smp",
        "hit.opt_count.cycles",
        "floor.jmp_detour_lahf_count less floor.call_ret",
        1.3,
    ),
    ("icount", "hit.int3_tf.cycles", "linux.hit.int3_unboostable.cycles", 0.7),
    ("smp", "hit.opt_pad.cycles", "sonde.hit.opt.cycles", None),
    ("smp", "hit.opt_posthandler.cycles", "sonde.hit.int3_posthandler.cycles", None),
]


def run_of(path):
    stem = os.path.basename(path)
    return "icount" if "icount" in stem else "smp4" if "smp4" in stem else "smp"


def read(paths):
    """The figures, and the goals of figures that have one: both by (run, name)."""
    figures, goals = {}, {}
    for path in paths:
        with open(path, errors="replace") as file:
            for match in filter(None, map(LINE.match, file)):
                key = run_of(path), f"{match[1]}.{match[2]}"
                figures[key] = float(match[3])
                if match[4]:
                    goals[key] = float(match[4])
    return figures, goals


def other_figure(figures, run, theirs):
    """Their figure, or the difference of two; None if it was not measured."""
    whole, _, part = theirs.partition(" less ")
    value, less = figures.get((run, whole)), figures.get((run, part), 0)
    return value - less if value else None


def verdict(value, goal):
    if goal is None:
        return "-"
    return "met" if value <= goal else "MISSED"


def row(figures, run, ours, theirs, goal):
    """The cells of one row; None if our figure was not measured."""
    value = figures.get((run, "sonde." + ours))
    other = other_figure(figures, run, theirs)
    if value is None:
        return None
    wanted = "-" if goal is None else f"{goal:g} x"
    if not other:
        return ours, run, f"{value:g}", "?", "-", wanted, "-"
    ratio = value / other
    cells = f"{value:g}", f"{other:g} {theirs}", f"{ratio:.2f}", wanted
    return ours, run, *cells, verdict(ratio, goal)


def goal_row(figures, goals, key):
    """The cells of a figure that was printed with its goal."""
    run, name = key
    value, goal = figures[key], goals[key]
    ours = name.removeprefix("sonde.")
    return ours, run, f"{value:g}", "-", "-", f"{goal:g}", verdict(value, goal)


def main():
    figures, goals = read(sys.argv[1:])
    table = [("name", "run", "sonde", "beside", "ratio", "goal", "verdict")]
    table += filter(None, (row(figures, *r) for r in ROWS))
    table += (goal_row(figures, goals, key) for key in goals)
    widths = [max(map(len, column)) for column in zip(*table)]
    for cells in table:
        print("  ".join(map(str.ljust, cells, widths)).rstrip())
    missed = [cells[0] for cells in table if cells[-1] == "MISSED"]
    judged = missed + [cells[0] for cells in table if cells[-1] == "met"]
    print(f"# {len(judged)} goals, {len(missed)} missed")
    for name in missed:
        print(f"# missed: {name}")


main()
