#!/usr/bin/env python3
"""spin.py - checks one model, or shows how it fails.

    tests/model/spin.py MODEL [-DNAME[=VALUE]...]

prints the shortest way to the error, if there is one: what each process did, and what
changed. docs/model.md tells how to read it.
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

DEPTH = 1_000_000  # of the search to begin with
DEPTH_MAX = 64_000_000
MEMORY_MB = 6000

TOO_SHALLOW = "max search depth too small"

# Exhaustive means: Spin says none of this.
INCOMPLETE = (TOO_SHALLOW, "Search not completed", "memory limit",
              "out of memory", "inherits")
FAILED = re.compile(r"^pan:1: (?:assertion violated )?(.*?) \(at depth", re.M)
SHOWN = re.compile(r"text of failed assertion: assert\((\w+)\)")


class Verdict:
    """What Spin says: `states` seen, and the `fact` that does not hold, or None."""

    def __init__(self, output):
        self.output = output
        states = re.search(r"^\s*([\d.e+]+) states, stored", output, re.M)
        self.states = int(float(states.group(1))) if states else 0
        errors = re.search(r"errors: (\d+)", output)
        self.failed = bool(errors and int(errors.group(1)))
        self.fact = self.what_failed() if self.failed else None

    def what_failed(self):
        if "acceptance cycle" in self.output:
            return "it_returns"
        found = FAILED.search(self.output)
        return found.group(1) if found else "?"

    def holds(self):
        """True when all states were looked at, and all was well in each."""
        return (self.states > 0 and not self.failed
                and not any(words in self.output for words in INCOMPLETE))


def run(command, directory):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True,
                          check=False)
    return done.stdout + done.stderr


def build(model, defines, directory, flags):
    """Make the checker of a model; what the tools said, if they failed."""
    path = os.path.join(HERE, model + ".pml")
    said = run(["spin", "-a", *defines, path], directory)
    if "pan.c" not in os.listdir(directory):
        return said
    limits = [f"-DMEMLIM={MEMORY_MB}", "-DVECTORSZ=512"]
    return run(["gcc", "-w", *flags, *limits, "-o", "pan", "pan.c"], directory)


def check(model, defines, thorough=False):
    """Look at all states of a model. @thorough: many are expected, which are worth the time
    of an optimizing compiler; it can take ten times that of the search.
    """
    live = "-DLIVE" in defines
    flags = ["-O2"] if thorough else ["-O0"]
    with tempfile.TemporaryDirectory(prefix="sonde-model-") as directory:
        said = build(model, defines, directory, flags if live else flags + ["-DSAFETY"])
        if not os.path.exists(os.path.join(directory, "pan")):
            return Verdict(said)
        return Verdict(said + search(["-a", "-f"] if live else [], directory))


def search(options, directory):
    """Look at all states, as deep as it takes."""
    depth = DEPTH
    while True:
        said = run(["./pan", f"-m{depth}", *options], directory)
        if TOO_SHALLOW not in said or "errors: 0" not in said or depth >= DEPTH_MAX:
            return said
        depth *= 4


def explain(model, defines):
    """The shortest way to an error, as text."""
    with tempfile.TemporaryDirectory(prefix="sonde-model-") as directory:
        said = build(model, defines, directory, ["-O1", "-DREACH", "-DSAFETY"])
        if not os.path.exists(os.path.join(directory, "pan")):
            return said
        verdict = Verdict(run(["./pan", "-i", "-m10000"], directory))
        if not verdict.failed:
            return f"no error in {verdict.states} states\n"
        path = os.path.join(HERE, model + ".pml")
        trail = os.path.join(directory, os.path.basename(path) + ".trail")
        told = run(["spin", "-k", trail, "-t", *defines, path], directory)
        found = SHOWN.search(told)  # on the shortest way it may be another fact
        fact = found.group(1) if found else verdict.fact
        return "".join(steps(told)) + f"{fact} does not hold\n"


def steps(told):
    """What the model's processes say when they go that way again."""
    for line in told.splitlines():
        if line.startswith(("spin:", "#processes")):
            return
        yield line.strip() + "\n"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(explain(sys.argv[1], sys.argv[2:]), end="")
