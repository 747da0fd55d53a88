#!/usr/bin/env python3
"""facts.py - find the facts of one run of the tests that another run does not have.

    tests/tools/facts.py [--list] FEWER MORE

Both are folders of TAP as run_tests.py leaves them, one file for each test: build/tap
after a run, or TAP_FOLDER of that run; both runs are of the same tree. Numbers, addresses
and names of temporary files in the name of a fact are not compared, because they may
differ from run to run; the number of CPUs is compared. Failed and skipped facts are left
out. The tool counts the facts of MORE that FEWER does not have; with
--list it prints them.

Exit status: 0 when MORE has all facts of FEWER, 1 when some are missing there, 2 an
error.
"""

import os
import re
import sys

FACT = re.compile(r"ok \d+ - (.*)")
CPUS = re.compile(r"\d+ CPUs?,? ")
NUMBER = re.compile(
    r"\b(?:0x[0-9a-f]+|\d[\d,.]*)\b|\b[mMX]?[0-9a-f]{16}\b|(?<=/tmp)/tmp\w+"
)


def masked(name):
    """The name with N in place of all that may differ, except for the CPUs at its start."""
    cpus = CPUS.match(name)
    kept = cpus[0] if cpus else ""
    return kept + NUMBER.sub("N", name[len(kept) :])


def facts_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        found = (FACT.match(line) for line in file)
        return {
            masked(fact[1].strip()) for fact in found if fact and "# SKIP" not in fact[1]
        }


def run_of(folder):
    """{test: facts}"""
    paths = sorted(entry.path for entry in os.scandir(folder) if entry.is_file())
    run = {os.path.basename(path): facts_of(path) for path in paths}
    if not any(run.values()):
        raise OSError(f"{folder} has no facts")
    return run


def missing(run, other):
    """(test, fact) of @run that @other does not have."""
    return [
        (test, fact)
        for test, facts in run.items()
        for fact in sorted(facts - other.get(test, set()))
    ]


def main(words):
    is_list = words[:1] == ["--list"]
    fewer, more = (run_of(folder) for folder in words[is_list:])
    only = missing(more, fewer)
    for test in more if not is_list else ():
        count = sum(of == test for of, _ in only)
        if count:
            share = "all" if test not in fewer else f"{count} of"
            print(f"{test}: {share} {len(more[test])} facts are left out")
    for test, fact in only if is_list else ():
        print(f"{test}: {fact}")
    lost = missing(fewer, more)
    for test, fact in lost:
        print(f"LOST {test}: {fact}")
    print(
        f"{sum(map(len, fewer.values()))} facts, {sum(map(len, more.values()))} facts: "
        f"{len(only)} are left out, {len(lost)} are lost"
    )
    return 1 if lost else 0


if __name__ == "__main__":
    if len(sys.argv) - (sys.argv[1:2] == ["--list"]) != 3:
        print(__doc__.split("\n\n")[1].strip(), file=sys.stderr)
        sys.exit(2)
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as error:
        print(f"facts.py: {error}", file=sys.stderr)
        sys.exit(2)
