"""trial.py - runs the console command `truth`, and checks all that must hold for its
outcome.

docs/testing.md says what is counted, and when.
"""

import os
import random
import re
import time

import tap
from counted import Counted, checksums, straight_pairs
from sonde.memory import text_of_image

LIMIT = 1800 if tap.LONG else 300  # seconds for one command; generous
SHOWN_MAX = 50


def counted(smp, jump="off", icount=False):
    """A guest whose timer runs at its highest rate. If every instruction traps, a tick
    takes most of the time until the next tick. If the clock counts instructions
    (@icount), ticks do not come faster than the guest executes, so all workloads can be
    run; but then the CPUs execute in turns.
    """
    return Counted(smp=smp, append=f"hz=1000 kprobes-jump={jump}", icount=icount)


def quoted(workloads):
    """The commands for `truth` that run @workloads, each command line as one word."""
    return " -- ".join(f"'run {workload}'" for workload in workloads)


def cpus(smp):
    return f"{smp} CPU{'s' if smp > 1 else ''}"


def heap_blocks(machine):
    return int(
        re.search(r"HeapBlocks: +(\d+)", machine.ask("cat /proc/meminfo", LIMIT))[1]
    )


def show(machine, mismatches):
    for address, executed, hits, missed in mismatches[:SHOWN_MAX]:
        place = machine.symbols.at(address)
        tap.note(
            f"{address:x} {place}: {executed} executed, {hits} hits, missed {missed}"
        )
    if len(mismatches) > SHOWN_MAX:
        tap.note(f"... and {len(mismatches) - SHOWN_MAX} more")


def agrees(machine, outcome, name):
    """Check that the counters of the probes and of the plugin agree."""
    mismatches = list(outcome.mismatches())
    figures = f"{outcome.total()} executions of {outcome.reached()} instructions"
    tap.check(not mismatches and outcome.total(), f"{name}: hits + misses = {figures}")
    show(machine, mismatches)
    causes = " ".join(f"{cause} {n}" for cause, n in outcome.misses().items())
    tap.note(f"{outcome.armed} armed, {outcome.refused} refused; missed: {causes}")


def skips_nothing(machine, outcome, name, pairs):
    """Check that of each straight line all instructions were executed equally often.
    Executions are counted in the text. If the engine ran a copy of an instruction that
    was not hit, neither side would count the execution.
    """
    torn = list(outcome.torn(pairs))
    tap.check(not torn, f"{name}: straight lines are executed straight on")
    for a, b in torn[:SHOWN_MAX]:
        counts = outcome.executions[a], outcome.executions[b]
        tap.note(f"{machine.symbols.at(b)}: {counts[1]} executed, {counts[0]} before it")


def leaves_nothing(machine, outcome, blocks, name):
    text = machine.read_memory(machine.text[0], machine.text[1] - machine.text[0])
    tap.check(
        text == text_of_image(*machine.text), f"{name}: the text is the image's again"
    )
    tap.equal(outcome.left, 0, f"{name}: all executable memory is given back")
    tap.equal(
        heap_blocks(machine), blocks, f"{name}: as many blocks in the heap as before"
    )


def trial(machine, words, workloads, name):
    """Run `truth` once, and check every fact about it. Return the outcome."""
    plain = checksums("".join(machine.ask(f"run {each}", LIMIT) for each in workloads))
    machine.run("qsort 'run sort'", LIMIT)  # allocates the records, which stay
    blocks = heap_blocks(machine)
    start = time.monotonic()
    outcome = machine.run(f"{words} {quoted(workloads)}", LIMIT)
    tap.note(f"{time.monotonic() - start:.1f} s")
    agrees(machine, outcome, name)
    skips_nothing(machine, outcome, name, straight_pairs())
    tap.equal(
        outcome.checksums(), plain, f"{name}: the checksums are those without probes"
    )
    leaves_nothing(machine, outcome, blocks, name)
    return outcome


def storm(machine, words, count, functions, workloads):
    """Call trial() with @count NMIs meanwhile."""
    several = f"{functions.count(',') + 1} functions"
    name = f"{count} NMIs, {words}{functions if len(functions) < SHOWN_MAX else several}"
    outcome = trial(machine, f"{words}nmis={count} {functions}", workloads, name)
    tap.equal(outcome.nmis, count, f"{name}: all of them were taken")


# ---- one function at a time ----


def functions_run(machine):
    """The names of the functions that the workloads execute."""
    seen = machine.run("bare all 'run all'", LIMIT)
    places = {machine.symbols.at(address) for address, n in seen.executions.items() if n}
    return sorted({place.partition("+")[0] for place in places})


def each_function(smp):
    """Try one function at a time. All workloads are run for each function that they
    execute. In a long run, all other functions are armed and disarmed, too. A usual run
    takes a random sixteenth of the functions, and a long run with several CPUs takes a
    random half of them: a long run with one CPU takes all.
    """
    with counted(smp) as machine:
        names = functions_run(machine)
        tap.check(len(names) > 200, f"{cpus(smp)}: {len(names)} functions are run")
        share = 16 if not tap.LONG else 2 if smp > 1 else 1
        if share > 1:
            seed = int(os.environ.get("SEED", random.randrange(1 << 31)))
            tap.note(f"seed {seed}")
            names = random.Random(seed).sample(names, len(names) // share)
        name = f"{cpus(smp)}, one function at a time"
        trial(machine, f"each {','.join(names)}", ("all | tail -n 1",), f"{name}, all")
        if tap.LONG:
            trial(machine, "each all", ("fork",), f"{name}, fork")
