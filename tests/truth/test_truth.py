"""test_truth.py - hits + misses by cause = executions, exactly, counted from outside.

    tests/run/run_tests.py truth [--long]

docs/testing.md says what is counted, and when.
"""

import re
import sys
import time

import tap
from counted import Counted, checksums, straight_pairs, text_of_image

LONG = "--long" in sys.argv
LIMIT = 1800 if LONG else 300  # seconds for one command; generous
SHOWN_MAX = 50

# Nobody but the workloads calls these, and what they do depends on the seed alone.
COMPUTING = ("qsort", "sort_compare", "hash_insert", "matrix_cell", "recurse")


def counted(smp, jump="off", icount=False):
    """The timer runs at its highest rate. Where every instruction traps, a tick takes most of
    the time until the next. With a clock that counts instructions instead (@icount) that is
    no loss, so all workloads can be run; but CPUs take turns then.
    """
    return Counted(smp=smp, append=f"hz=1000 kprobes-jump={jump}", icount=icount)


def quoted(workloads):
    """Each as one word of a command line."""
    return " ".join(f"'run {workload}'" for workload in workloads)


def cpus(smp):
    return f"{smp} CPU{'s' if smp > 1 else ''}"


def heap_blocks(machine):
    return int(re.search(r"HeapBlocks: +(\d+)", machine.ask("cat /proc/meminfo", LIMIT))[1])


def show(machine, mismatches):
    for address, executed, hits, missed in mismatches[:SHOWN_MAX]:
        place = machine.symbols.at(address)
        tap.note(f"{address:x} {place}: {executed} executed, {hits} hits, missed {missed}")
    if len(mismatches) > SHOWN_MAX:
        tap.note(f"... and {len(mismatches) - SHOWN_MAX} more")


def agrees(machine, outcome, name):
    """The fact that all of this is about."""
    mismatches = list(outcome.mismatches())
    figures = f"{outcome.total()} executions of {outcome.reached()} instructions"
    tap.check(not mismatches and outcome.total(), f"{name}: hits + misses = {figures}")
    show(machine, mismatches)
    causes = " ".join(f"{cause} {n}" for cause, n in outcome.misses().items())
    tap.note(f"{outcome.armed} armed, {outcome.refused} refused; missed: {causes}")


def skips_nothing(machine, outcome, name):
    """Executions are counted in the text. One that the engine runs in a copy, without having
    been asked for it, would be no execution to both sides.
    """
    torn = list(outcome.torn(straight_pairs()))
    tap.check(not torn, f"{name}: straight lines are executed straight on")
    for a, b in torn[:SHOWN_MAX]:
        counts = outcome.executions[a], outcome.executions[b]
        tap.note(f"{machine.symbols.at(b)}: {counts[1]} executed, {counts[0]} before it")


def leaves_nothing(machine, outcome, blocks, name):
    text = machine.read_memory(machine.text[0], machine.text[1] - machine.text[0])
    tap.check(text == text_of_image(*machine.text), f"{name}: the text is the image's again")
    tap.equal(outcome.left, 0, f"{name}: all executable memory is given back")
    tap.equal(heap_blocks(machine), blocks, f"{name}: as many blocks in the heap as before")


def trial(machine, words, workloads, name):
    """One run of `truth`: every fact about it."""
    plain = checksums("".join(machine.ask(f"run {each}", LIMIT) for each in workloads))
    machine.run("qsort 'run sort'", LIMIT)  # so that the records are a block of the heap
    blocks = heap_blocks(machine)
    start = time.monotonic()
    outcome = machine.run(f"{words} {quoted(workloads)}", LIMIT)
    tap.note(f"{time.monotonic() - start:.1f} s")
    agrees(machine, outcome, name)
    skips_nothing(machine, outcome, name)
    tap.equal(outcome.checksums(), plain, f"{name}: the checksums are those without probes")
    leaves_nothing(machine, outcome, blocks, name)
    return outcome


def as_often_as_without_probes(machine, bare, armed, name):
    """Hits and executions are both about int3s. Here is something that is not: how often
    the same work executes the same instructions when they carry no probes.
    """
    seen = len(list(bare.mismatches()))
    tap.check(seen == bare.reached() > 0, f"{name}: {seen} are seen without probes")
    for function in COMPUTING:
        start, size = machine.table[function]
        inside = range(start, start + size)
        wanted = {a: n for a, n in bare.executions.items() if a in inside}
        got = {a: armed.executions.get(a, 0) for a in wanted}
        tap.check(got == wanted and any(got.values()), f"{name}: {function} as without")


# ---- everything at once ----


def every_instruction_at_once():
    for smp in (1, 2, 4) if LONG else (1,):
        with counted(smp, icount=True) as machine:
            bare = machine.run("bare all 'run all'", LIMIT)
            armed = trial(machine, "all", ("all",), f"{cpus(smp)}, all")
            as_often_as_without_probes(machine, bare, armed, f"{cpus(smp)}, all")
    with counted(4) as machine:
        trial(machine, "all", ("switch", "mutex"), "4 CPUs side by side")


def every_instruction_a_jump():
    for smp in (1, 2, 4) if LONG else ():
        with counted(smp, "pun", icount=True) as machine:
            trial(machine, "all", ("all",), f"{cpus(smp)}, jumps, all")
    for smp in (2, 4) if LONG else (2,):
        with counted(smp, "pun") as machine:
            name = f"{cpus(smp)} side by side, jumps"
            trial(machine, "all", ("switch",), name)


def every_instruction_with_handlers():
    for engine in ("", "tf ") if LONG else ("tf ",):
        with counted(2, icount=True) as machine:
            workloads = ("all",) if LONG else ("strings", "mutex")
            trial(machine, f"{engine}handlers all", workloads, f"{engine}handlers")


# ---- NMIs ----


def storm(machine, words, count, functions):
    name = f"{count} NMIs, {words}{functions}"
    words = f"{words}nmis={count} {functions}"
    outcome = trial(machine, words, ("sort | head -n 0",), name)
    tap.equal(outcome.nmis, count, f"{name}: all of them were taken")


def nmi_storm():
    with counted(2) as machine:
        storm(machine, "", 10000, "nmi_dispatch,storm_nmi,where_nmi")
        storm(machine, "tf handlers ", 5000 if LONG else 200, "all")
        if LONG:
            storm(machine, "", 1000000, "storm_nmi")
            storm(machine, "handlers ", 5000, "all")


# ---- one function at a time, and a few ----


def functions_run(machine):
    """Names of the functions that the workloads come to, each an argument of `truth`."""
    seen = machine.run("bare all 'run all'", LIMIT)
    places = {machine.symbols.at(address) for address, n in seen.executions.items() if n}
    return sorted({place.partition("+")[0] for place in places})


def each_function():
    """All workloads for those that they come to; the others see at least that they go."""
    for smp in (1, 2, 4) if LONG else (1,):
        with counted(smp) as machine:
            names = functions_run(machine)
            tap.check(len(names) > 200, f"{cpus(smp)}: {len(names)} functions are run")
            name = f"{cpus(smp)}, one function at a time"
            trial(machine, f"each {','.join(names)}", ("all | tail -n 1",), f"{name}, all")
            trial(machine, "each all", ("fork",), f"{name}, fork")


def some_functions_on_all_cpus():
    with counted(4) as machine:
        for function in ("schedule", "mutex_lock", "kmalloc", "tick"):
            trial(machine, function, ("mutex", "heap"), f"4 CPUs, {function}")


def misses_too():
    """A handler that carries probes is hit in its own hits, again and again."""
    with counted(2) as machine:
        name = "probes in their own handler"
        outcome = trial(machine, "nested handler_nested,vfs_rmdir", ("tree",), name)
        misses = outcome.misses()
        tap.check(misses["recursion"] and misses["nested"], f"{name}: some are missed")


if __name__ == "__main__":
    tap.run(
        every_instruction_at_once,
        every_instruction_a_jump,
        every_instruction_with_handlers,
        nmi_storm,
        each_function,
        some_functions_on_all_cpus,
        misses_too,
    )
