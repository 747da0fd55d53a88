"""building.py - run make, and say how far it is where no terminal shows its lines."""

import fcntl
import os
import re
import subprocess
import sys
import time

from guest import BUILD, ROOT

STEP = re.compile(r"  [A-Z]+ +\S")  # what the Makefile prints for each file it makes
FIRST_REPORT = 10  # seconds; the next ones after twice as long each, so they stay few


class HostError(Exception):
    """The host cannot do it: build, find a tool."""


class Progress:
    """Make's lines, one per file that is made, as a few lines of our own.

    say: prints a line of ours    show: passes on a line of make's as it is
    """

    def __init__(self, say, show, clock=time.monotonic):
        self.say = say
        self.show = show
        self.clock = clock
        self.count = 0
        self.started = clock()
        self.next = FIRST_REPORT

    def take(self, line):
        if not STEP.match(line):
            self.show(line)
            return
        if not self.count:
            self.say("building (a minute or two the first time)")
        self.count += 1
        elapsed = self.clock() - self.started
        if elapsed >= self.next:
            self.next *= 2
            now = " ".join(line.split())
            self.say(f"{elapsed:.0f} s: {self.count} steps done, now {now}")

    def end(self):
        if self.count:
            self.say(f"built in {self.clock() - self.started:.0f} s")


def make_environment():
    """Ours without an outer make's job server; the variables of that make stay."""
    flags = os.environ.get("MAKEFLAGS", "").split()
    flags = [flag for flag in flags if not flag.startswith(("-j", "--jobserver"))]
    return dict(os.environ, MAKEFLAGS=" ".join(flags))


# A build with nothing to do takes less; waiting for one of these is not worth a word.
SILENT_SECONDS, SILENT_TRIES = 3, 30


def lock_build(say):
    """One builder at a time; returns the file that holds the lock until it is closed."""
    os.makedirs(BUILD, exist_ok=True)
    lock = open(os.path.join(BUILD, ".lock"), "w", encoding="ascii")
    for _ in range(SILENT_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            time.sleep(SILENT_SECONDS / SILENT_TRIES)
    say("waiting for another build in " + BUILD)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def run_make(words, take):
    """Give each line of make's to take(). Its exit status."""
    process = subprocess.Popen(
        words, env=make_environment(), stdout=subprocess.PIPE, text=True, errors="replace"
    )
    try:
        for line in process.stdout:
            if not re.match(r"make(\[\d+\])?: ", line):  # that there is nothing to do
                take(line)
        return process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise


def install(groups):
    """Install the tools of need.sh's groups that are missing; it says so."""
    need = os.path.join(ROOT, "tests", "run", "need.sh")
    if subprocess.run([need, *groups], check=False).returncode:
        raise HostError("a tool is missing")


def spelled(path):
    """A file, seen from ROOT, as the Makefile spells it: relative if it is in there."""
    path = os.path.abspath(os.path.join(ROOT, path))
    return path[len(ROOT) + 1 :] if path.startswith(ROOT + "/") else path


# What holds the name of a build folder in which all is built, for the programs of a test run.
BUILT = "SONDE_BUILT"


def build(targets, say):
    """Bring the targets up to date. On a terminal make's own lines are shown.

    A test run builds everything once, before its first test (run_tests.py), so that its tests
    need not ask make again, hundreds of times.
    """
    if os.environ.get(BUILT) == BUILD:
        return
    words = ["make", "--no-print-directory", f"-j{os.cpu_count()}", "-C", ROOT, "KEEP_OBJS=1"]
    progress = Progress(say, sys.stderr.write)
    take = sys.stderr.write if sys.stderr.isatty() else progress.take
    with lock_build(say):
        status = run_make(words + targets, take)
    if status:
        raise HostError(f"the build failed (make ended with status {status})")
    progress.end()
