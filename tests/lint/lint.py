"""lint.py - what the checks share: the files of the tree, and TAP with reasons."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.chdir(ROOT)

count = 0
failed = 0


def files(*endings, under=("",)):
    """Paths of all files, committed or about to be, that end and begin like this."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    paths = sorted(set(listed.stdout.split("\n")))
    return [p for p in paths
            if p.endswith(endings) and p.startswith(under) and os.path.isfile(p)]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def make_variable(name, *settings):
    """The words of a variable of the Makefile, given settings like CC=clang."""
    command = ["make", "-s", "--no-print-directory", "print-" + name, *settings]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return run.stdout.split()


def report(fact, problems):
    """One TAP line: the fact holds unless there are problems, which are told first."""
    global count, failed
    count += 1
    for problem in problems:
        print("# " + problem.replace("\n", "\n# "))
    if problems:
        failed += 1
    print(f"{'not ok' if problems else 'ok'} {count} - {fact}", flush=True)


def done():
    print(f"1..{count}")
    sys.exit(1 if failed else 0)
