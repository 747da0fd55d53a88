"""test_side_by_side.py - hits + misses by cause = executions, when several CPUs execute
at the same time.

    tests/run/run_tests.py truth/side_by_side [--long]
"""

import tap
from trial import counted, cpus, each_function, functions_run, storm, trial


def every_instruction_at_once():
    """Only in a long run. A usual run tests this on one CPU in truth/truth, and with
    jumps on two CPUs in session/probe_all.
    """
    if not tap.LONG:
        return
    with counted(4) as machine:
        trial(machine, "all", ("switch", "mutex"), "4 CPUs side by side")


def every_instruction_a_jump():
    """Only the functions that the workloads execute have jumps here. The plans of the jumps
    in all other functions take most of a minute, and pun/plans makes them as well.
    """
    for smp in (2, 4) if tap.LONG else (2,):
        with counted(smp, "pun") as machine:
            places = ",".join(functions_run(machine))
            trial(machine, places, ("switch",), f"{cpus(smp)} side by side, jumps")


def nmi_storm():
    work = ("sort | head -n 0",)
    with counted(2) as machine:
        count = 10000 if tap.LONG else 3000
        storm(machine, "", count, "nmi_dispatch,work_hash,where_nmi", work)
        if tap.LONG:
            storm(machine, "", 250000, "work_hash", work)
            storm(machine, "handlers ", 1500, "all", work)
            storm(machine, "tf handlers ", 1500, "all", work)


def one_function_at_a_time():
    if tap.LONG:
        each_function(2)


def some_functions_on_all_cpus():
    with counted(4) as machine:
        for function in ("sched_block", "mutex_lock", "kmalloc", "sched_tick"):
            trial(machine, function, ("mutex", "heap"), f"4 CPUs, {function}")


def misses_too():
    """A handler with probes on its own instructions: these are hit during its hits, and
    are missed.
    """
    with counted(2) as machine:
        name = "probes in their own handler"
        outcome = trial(machine, "nested strrchr,vfs_rmdir", ("tree",), name)
        misses = outcome.misses()
        tap.check(misses["recursion"] and misses["nested"], f"{name}: some are missed")


if __name__ == "__main__":
    tap.run(
        every_instruction_at_once,
        every_instruction_a_jump,
        nmi_storm,
        one_function_at_a_time,
        some_functions_on_all_cpus,
        misses_too,
    )
