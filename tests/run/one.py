"""one.py - runs one test for prove, as run_tests.py has planned it.

    tests/run/one.py LABEL      PLAN in the environment names the file of the plan

Python starts it for each test, of which many take less time than the imports of
run_tests.py. So it imports little.
"""

import ctypes
import marshal
import os
import sys
import time

SIGINT, SIGKILL, SIGPIPE, SIGXFSZ = 2, 9, 13, 25
PR_SET_PDEATHSIG = 1
SIG_DFL = None
EXPLAINED_MAX = 100  # lines that are shown of a failing test

libc = ctypes.CDLL(None)


def begin(words, environment, folder):
    """Start a program, which ends with this one. Return its process, and the file that has
    its output."""
    output, ours = os.pipe()
    child = os.fork()
    if child:
        os.close(ours)
        return child, os.fdopen(output, "rb")
    try:
        libc.prctl(PR_SET_PDEATHSIG, SIGKILL)
        for number in (SIGINT, SIGPIPE, SIGXFSZ):  # Python ignores them, or a run by &
            libc.signal(number, SIG_DFL)
        os.dup2(ours, 1)
        os.chdir(folder)
        os.execvpe(words[0], words, environment)
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr, flush=True)
    os._exit(127)


def note_end(label, elapsed, usage, status):
    """Write a line for Totals.pm and outcomes(): the seconds that the test took, seconds of
    CPU, its status."""
    with open(os.environ["TIMES"], "a", encoding="ascii") as file:
        cpu = usage.ru_utime + usage.ru_stime
        file.write(f"{elapsed:.1f} {cpu:.1f} {label} {status}\n")


def explain(label, path):
    """Print the failed facts with their notes. Prove shows only which facts failed."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    shown = 0
    failing = False
    for line in lines:
        if line.startswith(("ok ", "not ok ")):
            failing = line.startswith("not ok ")
        if failing and shown < EXPLAINED_MAX:
            print(f"{label}: {line}", file=sys.stderr)
            shown += 1


def main():
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL)  # the parent is prove, which may be killed
    label = sys.argv[1]
    with open(os.environ["PLAN"], "rb") as file:
        words, path, folder, nice, environment = marshal.load(file)[label]
    os.nice(nice)
    begun = time.monotonic()
    child, output = begin(words, environment, folder)
    with output, open(path, "wb", buffering=0) as file:
        for line in output:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            file.write(line)
    _, status, usage = os.wait4(child, 0)
    status = os.waitstatus_to_exitcode(status)
    note_end(label, time.monotonic() - begun, usage, status)
    if "VERBOSE" not in os.environ:
        explain(label, path)
    return status


sys.exit(main())
