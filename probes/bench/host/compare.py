#!/usr/bin/env python3
"""compare.py - prints the table of `make bench`: goal, figure, Linux and floor in one row.

    probes/bench/host/compare.py FILE...
    probes/bench/host/compare.py --host        print the lines `host.NAME VALUE` of this host

Reads the lines `WHO.NAME VALUE UNIT` of sonde, linux, floor and host; other lines are
skipped. The name of a file says how the machine ran: if it contains `icount`, cycles are
instructions; if it contains `smp4`, the machine had four CPUs. The verdict is information
only, since a busy host spoils every time.

The floor is the time of a mechanism alone. Its figures include the call of the target, which
is subtracted here.

Goals that need no figures of others are in probes/bench/bench_goal.c. `bench` prints
these behind the figure, as `goal LIMIT`.
"""

import os
import platform
import re
import signal
import subprocess
import sys
import time
import typing

LINE = re.compile(r"(sonde|linux|floor)\.(\S+) ([0-9.]+)\b(?: \S+  goal ([0-9.]+))?")
HOST = re.compile(r"host\.(\S+) (.*)")
HEADER = ("name", "run", "goal", "sonde", "verdict", "Linux", "ratio", "floor", "ratio")
CALL = "call_ret"  # what the floor takes without a hit


class Hit(typing.NamedTuple):
    """A kind of hit, and what it is compared with. A goal says how many times that of
    LINUX or FLOOR our figure may be, in cycles and in instructions; None: no goal.
    """

    kind: str
    linux: str = None
    floor: str = None
    smp: tuple = None
    icount: tuple = None


class Row(typing.NamedTuple):
    """A row of the table; None: not measured, or there is none."""

    name: str
    run: str
    goal: float
    sonde: float
    linux: float = None
    floor: float = None

    @property
    def verdict(self):
        if self.goal is None:
            return "-"
        return "met" if self.sonde <= self.goal else "MISSED"


def linux(times):
    return times, "linux"


def floor(times):
    return times, "floor"


# A kind that was not measured has no row.
HITS = (
    Hit("int3_boostable", "int3_boost_simulated", "int3_save15_call_popf_ret",
        linux(0.6), linux(0.7)),
    Hit("int3_unboostable", "int3_unboostable", None, linux(0.6), linux(0.7)),
    Hit("int3_tf", "int3_unboostable", "int3_tf_step_db_iret", floor(1.5), linux(0.7)),
    Hit("int3_emulated", "int3_emulated", None, None, linux(0.7)),
    Hit("int3_posthandler", "int3_posthandler", None, None, linux(0.7)),
    Hit("int3_two_probes", "int3_two_probes"),
    Hit("kret_int3", "kret_int3"),
    Hit("kret_int3_entryh", "kret_int3_entryh"),
    Hit("kret_int3_unboostable", "kret_int3_unboostable"),
    Hit("kprobe_kret_int3", "kprobe_kret_int3"),
    Hit("opt", "opt", "jmp_detour_image_lahf", linux(0.55)),
    Hit("opt_no_image", "opt", "jmp_detour_lahf_callclobbered", linux(0.45)),
    Hit("opt_pad", "opt", "jmp_pad_detour_lahf_full"),
    Hit("opt_crowd", "opt", "jmp_detour_image_lahf", linux(0.55)),
    Hit("opt_light", "opt", "jmp_detour_lahf_callclobbered"),
    Hit("opt_count", None, "jmp_detour_lahf_count", floor(1.3)),
    Hit("opt_two_probes", "opt_two_probes"),
    Hit("opt_posthandler"),
    Hit("kret_opt", "kret_opt", None, linux(0.35)),
    Hit("kret_opt_entryh", "kret_opt_entryh"),
    Hit("kprobe_kret_opt", "kprobe_kret_opt", None, linux(0.4)),
    Hit("event_int3_0args", "event_int3_0args", None, linux(0.5), linux(0.5)),
    Hit("event_int3_3regs", "event_int3_3regs", None, linux(0.5), linux(0.5)),
    Hit("event_opt_0args", "event_opt_0args", None, linux(0.2), linux(0.5)),
    Hit("event_opt_3regs", "event_opt_3regs", None, linux(0.2), linux(0.5)),
    Hit("event_opt_3mem", "event_opt_3mem", None, linux(0.25)),
    # BPF has counts and powers of two, as bpftrace makes them; Linux's triggers the others.
    Hit("question_count", "bpf_count_cpu", None, None, linux(0.1)),
    Hit("question_hist", "bpf_log2", None, None, linux(0.1)),
    Hit("question_sum", "hist_sum_cpu", None, None, linux(0.1)),
    Hit("question_by_arg", "hist_by_arg", None, None, linux(0.1)),
    Hit("question_if_false", "hist_if_false", None, None, linux(0.1)),
    Hit("question_if_true", "hist_if_true", None, None, linux(0.1)),
    Hit("question_stack", "hist_stack", None, None, linux(0.4)),
)  # fmt: skip
RUNS = (("smp", "cycles"), ("smp", "cycles_min"), ("icount", "cycles"))


def run_of(path):
    stem = os.path.basename(path)
    return "icount" if "icount" in stem else "smp4" if "smp4" in stem else "smp"


def read(paths):
    """The figures, and the goals of figures that have one, both by (run, name); and what the
    host said of itself.
    """
    figures, goals, host = {}, {}, {}
    for path in paths:
        with open(path, errors="replace") as file:
            for line in file:
                match = LINE.match(line)
                if match:
                    key = run_of(path), f"{match[1]}.{match[2]}"
                    figures[key] = float(match[3])
                    if match[4]:
                        goals[key] = float(match[4])
                elif HOST.match(line):
                    host.update([HOST.match(line).groups()])
    return figures, goals, host


def hit_row(figures, hit, run, figure):
    """The row of a hit; None if it was not measured."""
    ours = figures.get((run, f"sonde.hit.{hit.kind}.{figure}"))
    others = {
        "linux": figures.get((run, f"linux.hit.{hit.linux}.{figure}")),
        "floor": figures.get((run, f"floor.{hit.floor}")),
    }
    if others["floor"]:
        others["floor"] -= figures.get((run, f"floor.{CALL}"), 0)
    times, whose = (hit.icount if run == "icount" else hit.smp) or (None, None)
    if ours is None:
        return None
    goal = times * others[whose] if times and others[whose] else None
    return Row(f"hit.{hit.kind}.{figure}", run, goal, ours, **others)


def rows_of(figures, goals):
    hits = [hit_row(figures, hit, *run) for run in RUNS for hit in HITS]
    alone = [
        Row(name.removeprefix("sonde."), run, goals[run, name], figures[run, name])
        for run, name in goals
    ]
    return [row for row in hits if row] + alone


def cells_of(row):
    def number(value):
        return "-" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")

    def ratio(other):
        return f"{row.sonde / other:.2f}" if other else "-"

    ours = row.name, row.run, number(row.goal), number(row.sonde), row.verdict
    beside = number(row.linux), ratio(row.linux), number(row.floor), ratio(row.floor)
    return ours + beside


def first_line(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0]


def host_lines():
    """What figures of this host can be compared with, and how busy it is."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        model = re.search(r"^model name\s*: (.*)$", file.read(), re.M)
    yield f"host.name {platform.node()}"
    yield f"host.processor {model[1] if model else '?'}, {os.cpu_count()} CPUs"
    yield f"host.load {os.getloadavg()[0]:.2f}"
    yield f"host.qemu {first_line('qemu-system-x86_64', '--version')}"
    yield f"host.source {first_line('git', 'log', '-1', '--format=%h %s')}"
    yield f"host.time {time.strftime('%Y-%m-%d %H:%M')}"


def main(words):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a pipe into head
    if words == ["--host"]:
        print("\n".join(host_lines()))
        return
    figures, goals, host = read(words)
    rows = rows_of(figures, goals)
    table = [HEADER, *map(cells_of, rows)]
    widths = [max(map(len, column)) for column in zip(*table)]
    for name, value in host.items():
        print(f"# {name}: {value}")
    for cells in table:
        print("  ".join(map(str.ljust, cells, widths)).rstrip())
    missed = [row.name for row in rows if row.verdict == "MISSED"]
    judged = [row for row in rows if row.verdict != "-"]
    print(f"# {len(judged)} goals, {len(missed)} missed")
    for name in missed:
        print(f"# missed: {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
