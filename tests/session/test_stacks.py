"""test_stacks.py - tests the stacks of many functions at once: each frame has a name."""

import json
import re

import tap
from recorded import OUTERMOST
from session import sonde

FRAMES_MAX = 16  # of a stack in a table
MANY = "sched_*, clock_ns, percpu_of, vfs_*, work_*, mem*"  # threads and interrupts
QUESTIONS = (MANY, f"ret {MANY}", *(["*"] if tap.LONG else []))


def is_odd(stack):
    """Is a frame no place of the program, or one of the engine's that is exchanged? Or does
    a whole stack begin elsewhere than a thread does?
    """
    return (
        not all(re.match(r"(?!kretprobe_trampoline)[\w.]+\+0x", frame) for frame in stack)
        or len(stack) < FRAMES_MAX
        and stack[-1].split("+")[0] not in OUTERMOST
    )


def stacks_of_many_functions():
    """Interrupts come while detours and handlers run, and have stacks as well."""
    for cpus in ("1", "2"):
        for places in QUESTIONS:
            question = f"{places} {{ stack }}"
            status, out, err = sonde(
                "trace", "--json", "--smp", cpus, question, "--", "run vfs"
            )
            tap.equal((status, err), (0, ""), f"{question} is answered on {cpus} CPUs")
            objects = [json.loads(line) for line in out.splitlines()]
            tap.check(
                not any("event" in one for one in objects), "stacks are only counted"
            )
            tables = [one for one in objects if "table" in one]
            stacks = [row[0].split(" <- ") for row in tables[0]["rows"]]
            tap.check(len(stacks) > 100, f"there are {len(stacks)} stacks")
            odd = [stack for stack in stacks if is_odd(stack)]
            tap.equal(odd, [], "all have names, and begin where a thread does")


tap.run(stacks_of_many_functions)
