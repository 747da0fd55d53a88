"""test_truth.py - hits + misses by cause = executions, exactly. QEMU counts the
executions. One CPU executes, or several CPUs do in turns.

    tests/run/run_tests.py truth/truth [--long]
"""

import re

import tap
from trial import LIMIT, counted, cpus, each_function, functions_run, quoted, storm, trial

# Only the workloads call these functions, and their work depends on the seed alone.
COMPUTING = ("qsort", "sort_compare", "hash_insert", "matrix_cell", "recursion_step")

# These workloads execute more instructions than all others together.
LONGEST = ("heap", "special", "write")


def as_often_as_without_probes(machine, bare, armed, name):
    """With probes, both hits and executions are counted at int3s. So compare the
    executions also with those of the same work without probes.
    """
    seen = len(list(bare.mismatches()))
    tap.check(seen == bare.reached() > 0, f"{name}: {seen} are seen without probes")
    for function in COMPUTING:
        start, size = machine.table[function]
        inside = range(start, start + size)
        wanted = {a: n for a, n in bare.executions.items() if a in inside}
        got = {a: armed.executions.get(a, 0) for a in wanted}
        tap.check(got == wanted and any(got.values()), f"{name}: {function} as without")


def workloads_of(machine):
    if tap.LONG:
        return ("all",)
    names = re.findall(r"^(\w+)  ", machine.ask("run list", LIMIT), re.M)
    return [name for name in names if name not in LONGEST]


def every_instruction_at_once():
    for smp in (1, 4) if tap.LONG else (1,):
        with counted(smp, icount=True) as machine:
            workloads = workloads_of(machine)
            bare = machine.run(f"bare all {quoted(workloads)}", LIMIT)
            armed = trial(machine, "all", workloads, f"{cpus(smp)}, all")
            as_often_as_without_probes(machine, bare, armed, f"{cpus(smp)}, all")


def every_instruction_a_jump():
    for smp in (1, 4) if tap.LONG else ():
        with counted(smp, "pun", icount=True) as machine:
            trial(machine, "all", ("all",), f"{cpus(smp)}, jumps, all")


def every_instruction_with_handlers():
    if tap.LONG:
        for engine in ("", "tf "):
            with counted(2, icount=True) as machine:
                trial(machine, f"{engine}handlers all", ("all",), f"{engine}handlers")
    with counted(2, icount=True) as machine:
        for places in (",".join(functions_run(machine)), *["all"] * tap.LONG):
            storm(machine, "tf handlers ", 200, places, ("strings", "mutex"))


def one_function_at_a_time():
    each_function(1)


if __name__ == "__main__":
    tap.run(
        every_instruction_at_once,
        every_instruction_a_jump,
        every_instruction_with_handlers,
        one_function_at_a_time,
    )
