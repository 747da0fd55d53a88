"""lint.py - functions for all checks: find the files of the tree, report facts."""

import os
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.chdir(ROOT)
sys.path[:0] = [os.path.join(ROOT, "tests/run"), os.path.join(ROOT, "kernel/host")]
import tap

signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `make size | head`


PICTURES = (".webp",)  # no texts


def files(*endings, under=("",)):
    """Paths of all texts that git does not ignore, with these endings and beginnings."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    paths = sorted(set(listed.stdout.split("\n")))
    return [
        p
        for p in paths
        if p.endswith(endings)
        and p.startswith(under)
        and not p.endswith(PICTURES)
        and os.path.isfile(p)
    ]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def make_variable(name, *settings):
    """The words of a variable of the Makefile, given settings like CC=clang."""
    command = ["make", "-s", "--no-print-directory", "print-" + name, *settings]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return run.stdout.split()


def report(fact, problems):
    """Print the @problems, then report @fact: it holds if there are no problems."""
    for problem in problems:
        tap.note(problem)
    tap.check(not problems, fact)


done = tap.finish
