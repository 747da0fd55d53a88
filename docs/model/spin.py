#!/usr/bin/env python3
"""spin.py - checks a model by Spin, or shows how the model fails.

    docs/model/spin.py MODEL [-DNAME[=VALUE]...]

prints the shortest way to an error, if there is an error: what each process did, and what
changed. docs/model.md tells how to read this output.
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

DEPTH = 1_000_000  # the first limit for the depth of the search
DEPTH_MAX = 64_000_000
MEMORY_MB = 6000

TOO_SHALLOW = "max search depth too small"

# If Spin prints one of these texts, the search was not exhaustive.
INCOMPLETE = (
    TOO_SHALLOW,
    "Search not completed",
    "memory limit",
    "out of memory",
    "inherits",
)
FAILED = re.compile(r"^pan:1: (?:assertion violated )?(.*?) \(at depth", re.M)
SHOWN = re.compile(r"text of failed assertion: assert\((\w+)\)")


class Verdict:
    """The result of Spin. states: how many it has seen. fact: the fact that does not
    hold, or None.
    """

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
        """Has Spin seen all states, and does every fact hold in each of them?"""
        return (
            self.states > 0
            and not self.failed
            and not any(words in self.output for words in INCOMPLETE)
        )


def run(command, directory):
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def build(model, defines, directory, flags):
    """Build the checker of a model. Return the messages of the tools."""
    path = os.path.join(HERE, model + ".pml")
    said = run(["spin", "-a", *defines, path], directory)
    if "pan.c" not in os.listdir(directory):
        return said
    limits = [f"-DMEMLIM={MEMORY_MB}", "-DVECTORSZ=512"]
    return run(["gcc", "-w", *flags, *limits, "-o", "pan", "pan.c"], directory)


def check(model, defines, thorough=False):
    """Check all states of a model. Return a Verdict. @thorough: there are so many states
    that an optimized checker saves time. For a small model, optimizing can take ten times
    as long as the search.
    """
    live = "-DLIVE" in defines
    flags = ["-O2"] if thorough else ["-O0"]
    with tempfile.TemporaryDirectory(prefix="sonde-model-") as directory:
        said = build(model, defines, directory, flags if live else flags + ["-DSAFETY"])
        if not os.path.exists(os.path.join(directory, "pan")):
            return Verdict(said)
        return Verdict(said + search(["-a", "-f"] if live else [], directory))


def search(options, directory):
    """Run the checker. If the search becomes too deep, run it again with a higher limit."""
    depth = DEPTH
    while True:
        said = run(["./pan", f"-m{depth}", *options], directory)
        if TOO_SHALLOW not in said or "errors: 0" not in said or depth >= DEPTH_MAX:
            return said
        depth *= 4


def explain(model, defines):
    """Return the shortest way to an error, as text."""
    with tempfile.TemporaryDirectory(prefix="sonde-model-") as directory:
        live = "-DLIVE" in defines
        flags = ["-O1"] if live else ["-O1", "-DREACH", "-DSAFETY"]
        said = build(model, defines, directory, flags)
        if not os.path.exists(os.path.join(directory, "pan")):
            return said
        # Spin looks for the shortest way only to a false assertion. The depth of the search
        # limits how long a way is on which a model never comes to its end.
        for depth in (20, 40, 80, 160, 10000) if live else (10000,):
            options = ["-a", "-f"] if live else ["-i"]
            verdict = Verdict(run(["./pan", *options, f"-m{depth}"], directory))
            if verdict.failed:
                break
        if not verdict.failed:
            return f"no error in {verdict.states} states\n"
        path = os.path.join(HERE, model + ".pml")
        trail = os.path.join(directory, os.path.basename(path) + ".trail")
        told = run(["spin", "-k", trail, "-t", *defines, path], directory)
        found = SHOWN.search(told)  # the shortest way may lead to another failing fact
        fact = found.group(1) if found else verdict.fact
        return "".join(steps(told)) + f"{fact} does not hold\n"


def steps(told):
    """Yield the lines that the model's processes print when Spin replays the way."""
    for line in told.splitlines():
        if line.startswith(("spin:", "#processes")):
            return
        yield line.strip() + "\n"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(explain(sys.argv[1], sys.argv[2:]), end="")
