"""test_stacks.py - tests the stacks of all functions at once: each frame has a name."""

import json
import re

import tap
from recorded import OUTERMOST
from session import sonde

FRAMES_MAX = 16  # of a stack in a table


def stacks_of_all_functions():
    """Interrupts come while detours and handlers run, and have stacks as well."""
    for cpus in ("1", "2"):
        status, out, _ = sonde(
            "trace", "--json", "--smp", cpus, "* { stack }", "--", "run vfs"
        )
        objects = [json.loads(line) for line in out.splitlines()]
        tap.check(not any("event" in one for one in objects), "stacks are only counted")
        tables = [one for one in objects if "table" in one]
        stacks = [row[0].split(" <- ") for row in tables[0]["rows"]]
        odd = [
            stack
            for stack in stacks
            if not all(re.match(r"[\w.]+\+0x", frame) for frame in stack)
            or (len(stack) < FRAMES_MAX and stack[-1].split("+")[0] not in OUTERMOST)
        ]
        tap.check(
            status == 0 and len(stacks) > 1000, f"{cpus} CPUs: {len(stacks)} stacks"
        )
        tap.equal(odd, [], "all have names, and begin where a thread does")


tap.run(stacks_of_all_functions)
