"""building.py - runs make, and reports its progress if no terminal shows its lines."""

import contextlib
import errno
import fcntl
import os
import re
import subprocess
import sys
import time

from sonde.errors import SondeError, say
from sonde.guest import BUILD, ELF, ROOT

STEP = re.compile(r"  [A-Z]+ +\S")  # the line of the Makefile for each file that it makes
SPARE = 2**22  # if a build fails and less is free, the full device is the reason
FIRST_REPORT = 10  # seconds; each later report comes after twice the time


ELSEWHERE = "; with B=DIR, DIR has the build"


def hint(error):
    """What helps if @error is of a file in a build folder that this user cannot write."""
    name = str(getattr(error, "filename", None))
    is_closed = getattr(error, "errno", 0) in (errno.EACCES, errno.EPERM, errno.EROFS)
    return ELSEWHERE if is_closed and name.startswith(BUILD + "/") else ""


class HostError(SondeError):
    """The host cannot do its part: build, or find a tool."""


def must_have_room(*folders):
    """Raise HostError if a device is full: a build that has failed is no mistake of its
    source then.
    """
    for folder in folders:
        there = os.statvfs(folder)
        if there.f_bavail * there.f_frsize < SPARE:
            raise HostError(f"no space is left on the device of {folder}")


class Progress:
    """Turns the lines of make, one for each file, into a few reports.

    say: prints a report    show: prints a line of make as it is
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
    """Our environment with variables of an outer make, no job server, and B as it is here."""
    flags = os.environ.get("MAKEFLAGS", "").split()
    flags = [flag for flag in flags if not flag.startswith(("-j", "--jobserver", "B="))]
    return dict(os.environ, MAKEFLAGS=" ".join(flags))


# A build with nothing to do takes less time. Waiting for such a build is not reported.
SILENT_SECONDS, SILENT_TRIES = 3, 30


def lock_build(say):
    """Wait until no other process builds. Return a file: it is the lock while open. A
    folder that cannot be written to has no lock, and maybe needs no build.
    """
    try:
        os.makedirs(BUILD, exist_ok=True)
        lock = open(os.path.join(BUILD, ".lock"), "w", encoding="ascii")
    except OSError:
        return contextlib.nullcontext()
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
    """Run make, and call take() with each line. Return the exit status of make."""
    process = subprocess.Popen(
        words, env=make_environment(), stdout=subprocess.PIPE, text=True, errors="replace"
    )
    try:
        for line in process.stdout:
            if not re.match(r"make(\[\d+\])?: ", line):  # such as: nothing to be done
                take(line)
        return process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise


def install(groups):
    """Install the missing tools of these groups of need.sh, which reports it."""
    need = os.path.join(ROOT, "kernel", "host", "need.sh")
    if subprocess.run([need, *groups], check=False).returncode:
        raise HostError("a tool is missing")


def spelled(path):
    """A path as the Makefile spells it: relative to ROOT if the file is inside ROOT."""
    path = os.path.abspath(os.path.join(ROOT, path))
    return path[len(ROOT) + 1 :] if path.startswith(ROOT + "/") else path


# The variable with the build folder in which a test run has built everything already.
BUILT = "SONDE_BUILT"


def build(targets, say):
    """Build @targets. On a terminal, the lines of make are shown.

    A test run builds everything once, before its first test (run_tests.py). So its tests
    need not run make again, hundreds of times.
    """
    if os.environ.get(BUILT) == BUILD:
        return
    words = [
        "make",
        "--no-print-directory",
        f"-j{os.cpu_count()}",
        "-C",
        ROOT,
        "KEEP_OBJS=1",
    ]
    progress = Progress(say, sys.stderr.write)
    take = sys.stderr.write if sys.stderr.isatty() else progress.take
    with lock_build(say) as lock:
        status = run_make(words + targets, take)
    if status and not lock:
        raise HostError(f"{BUILD} cannot be written to{ELSEWHERE}")
    if status:
        raise HostError(f"the build failed (make ended with status {status})")
    progress.end()


def build_kernel(say=say):
    """Build the kernel that a Guest boots, if it is not up to date. Raises HostError."""
    build([spelled(ELF), "samples"], say)
