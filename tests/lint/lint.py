"""lint.py - functions for all checks: find the files of the tree, report facts."""

import concurrent.futures
import os
import shlex
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


def clang_compiler(flags, source):
    """The words that have clang's compiler read files like @source, without the files.

    Clang's driver starts its compiler anew for each file, which takes longer than reading
    most of them. So the driver only tells how it would start it.
    """
    command = ["clang", *flags, "-fsyntax-only"]
    told = subprocess.run(
        [*command, "-###", source], capture_output=True, text=True, check=True
    )
    words = shlex.split(told.stderr.splitlines()[-1])
    at = words.index("-main-file-name")
    assert words[1] == "-cc1" and words[-1] == source
    words = words[:at] + words[at + 2 : -1]
    # The driver asks for colours where it takes the output for a terminal.
    return [word for word in words if word != "-fcolor-diagnostics"]


def clang_complaints(flags, paths):
    """What clang says about the C of @paths, which a process for each CPU reads."""
    command, jobs = clang_compiler(flags, paths[0]), os.cpu_count()

    def read(some):
        return subprocess.run([*command, *some], capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = list(pool.map(read, [paths[i::jobs] for i in range(jobs)]))
    return [
        run.stderr or f"clang ended with status {run.returncode}"
        for run in runs
        if run.returncode or run.stderr
    ]


def report(fact, problems):
    """Print the @problems, then report @fact: it holds if there are no problems."""
    for problem in problems:
        tap.note(problem)
    tap.check(not problems, fact)


done = tap.finish
