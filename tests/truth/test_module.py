"""test_module.py - hits + misses by cause = executions, in a module that is loaded and
unloaded while all CPUs call it.

    tests/run/run_tests.py truth/module [--long]

Every instruction of the module carries a probe, which is registered by name. The window
is open from the first load on, after its constructors, until the last unload
(truth_module.c).
"""

import os
import re

import tap
from counted import Counted, straight_pairs
from sonde.guest import BUILD
from trial import LIMIT, agrees, cpus, heap_blocks, leaves_nothing, skips_nothing

OBJECT = os.path.join(BUILD, "tests", "kernel", "modules", "guest.o")
PAGE, TEXT_GAP = 4096, 16  # kernel/module/elf_link.h
LOADS = 20 if tap.LONG else 4


def counted(smp, jump):
    return Counted(smp=smp, append=f"hz=1000 kprobes-jump={jump}", modules=(OBJECT,))


def run(machine, words, count):
    words = f"{words} /boot/guest.o {count} guest_spread"
    return machine.run(words, LIMIT, "truth-module")


def loads(machine, words, name):
    run(machine, words, 1)  # allocates what stays: the records, and names of symbols
    blocks = heap_blocks(machine)
    outcome = run(machine, words, LOADS)
    agrees(machine, outcome, name)
    # The .text of the module begins on a page of its own, behind a gap.
    base = min(outcome.records) // PAGE * PAGE + TEXT_GAP
    skips_nothing(machine, outcome, name, straight_pairs(OBJECT, base))
    kept = int(re.search(r"kept (\d+)", outcome.output)[1])
    tap.check(
        outcome.armed > 120 and outcome.reached() > 70,
        f"{name}: {outcome.reached()} of {outcome.armed} are reached",
    )
    tap.check(kept >= LOADS, f"{name}: it is asked to go too early {kept} times")
    tap.equal(len(outcome.checksums()), 1, f"{name}: the checksum is always the same")
    leaves_nothing(machine, outcome, blocks, name)


def every_instruction_of_a_module():
    for smp in (1, 2, 4) if tap.LONG else (4,):
        for jump in ("pun", "off"):
            with counted(smp, jump) as machine:
                for words in ("", "handlers"):
                    name = f"{cpus(smp)}, jumps {jump}{words and ', '}{words}"
                    loads(machine, words, name)


if __name__ == "__main__":
    tap.run(every_instruction_of_a_module)
