"""lane.py - a copy of the tree in which mutants are built and tested.

Only changed files are copied into it, and only the programs that a test needs are built,
so make has little to do after each change.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from source import Problem, listed

LIMIT_MIN = 60  # seconds; the limit is ten times the usual time, but not less
LIMIT_FACTOR = 10
LIMIT_FIRST = 600
# Seconds beyond the limit until a test is killed. The kernel's runner itself keeps the
# limit, and prints where the CPUs are; scripts have limits of their own for each guest.
GRACE = {"unit": 0, "explore": 0, "hosted": 0, "kernel": 60}
GRACE_OF_SCRIPTS = 60
# No warnings, since a mutant may leave a variable unused. ./sonde passes it to its make.
MAKEFLAGS = "s -- WARNINGS=-w"
TESTS = "build/tests/sonde.elf"  # the image with the kernel tests; some sessions boot it
PYTHON_FOLDERS = "kernel/host:tests/run:."
FROM_OUTSIDE = ("B", "MAKEOVERRIDES", "MFLAGS", "EXTRA_OBJS", "CC", "VERBOSE", "LONG")

NOT_OK = re.compile(r"^not ok \d+ (?:- )?(.*)$", re.M)
PLAN = re.compile(r"^1\.\.\d+", re.M)

# Held while a guest runs on several CPUs: there is one such guest at a time.
several_cpus = threading.Lock()
running = set()  # the watch of each process, so that Ctrl-C ends them all
starting = threading.Lock()  # held from the start of a process until it has a watch


class Watch:
    """Kills a process, and all processes that it has started, at its limit."""

    def __init__(self, process, limit):
        self.process = process
        self.is_late = False
        self.timer = threading.Timer(limit, self.be_late)
        self.timer.start()
        running.add(self)

    def be_late(self):
        self.is_late = True
        self.stop()

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end(self):
        """Wait for the process. Return its status; None: it was killed at the limit."""
        status = self.process.wait()
        running.discard(self)
        self.timer.cancel()
        return None if self.is_late else status


def stop_all():
    """Kill the processes of all threads, which do not see Ctrl-C. No other one starts."""
    starting.acquire()
    for watch in list(running):
        watch.stop()


class Lane:
    def __init__(self, root, folder):
        self.root = root
        self.folder = folder

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def update(self):
        """Copy the tree into the lane. Unchanged files keep their times, so that make
        does not build them again."""
        os.makedirs(self.folder, exist_ok=True)
        if not os.path.isdir(self.path(".git")):
            subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True)
        wanted = listed(self.root)
        for name in set(listed(self.folder)) - set(wanted):
            os.unlink(self.path(name))
        for name in wanted:
            copy_if_changed(os.path.join(self.root, name), self.path(name))
        subprocess.run(["git", "add", "-A"], cwd=self.folder, check=True)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def build(self, targets, jobs=1):
        """Build @targets. Return None, or the output of make if it has failed."""
        if not targets:
            return None
        command = ["make", f"-j{jobs}", "-C", self.folder, *sorted(targets)]
        run = subprocess.run(
            command,
            env=environment(),
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return run.stdout if run.returncode else None

    def run(self, tests, limit):
        """Run @tests; tests of the kernel run in one boot. Return an outcome for each,
        the output, and the seconds that they took."""
        begun = time.monotonic()
        if tests[0].tier == "kernel" and (tests[0].cpus > 1 or tests[0].stepped):
            several_cpus.acquire()
            begun = time.monotonic()
            try:
                output, ended = self.output(tests, limit)
            finally:
                several_cpus.release()
        else:
            output, ended = self.output(tests, limit)
        took = time.monotonic() - begun
        return [outcome(test, output, ended) for test in tests], output, took

    def output(self, tests, limit):
        tier = tests[0].tier
        limit_here = limit + GRACE.get(tier, GRACE_OF_SCRIPTS)
        stop_at = None if tier in GRACE else NOT_OK
        return self.start(self.command(tests), limit, limit_here, stop_at)

    def start(self, command, limit, limit_here, stop_at):
        """Run @command until a line matches @stop_at: further facts would not change the
        outcome. The command is told @limit; it is killed after @limit_here seconds. Return
        the output and how it ended."""
        with starting:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment(limit),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
                errors="replace",
            )
            watch = Watch(process, limit_here)
        lines = []
        try:
            for line in process.stdout:
                lines.append(line)
                if stop_at and stop_at.match(line):
                    watch.stop()
        except BaseException:  # Ctrl-C, which the process itself does not get
            watch.stop()
            raise
        finally:
            ended = watch.end()
        return "".join(lines), ended

    def command(self, tests):
        test = tests[0]
        names = [test.name] if test.name else []
        if test.tier == "unit":
            return [self.path("build/unit/test_" + test.stem), *names]
        if test.tier == "explore":
            return [self.path("build/tests/explore", test.stem)]
        if test.tier == "hosted":
            return [
                self.path("build/hosted", test.variant, "test_" + test.stem),
                *names,
            ]
        if test.tier == "lint":
            return [self.path("tests/lint/check_" + test.stem)]
        if test.tier == "kernel":
            chosen = ",".join(".".join(filter(None, (t.stem, t.name))) for t in tests)
            stepped = ["stepped"] if test.stepped else []
            return [
                sys.executable,
                self.path("tests/run/kernel_test.py"),
                chosen,
                str(test.cpus),
                *stepped,
            ]
        if test.tier == "model":
            return [
                sys.executable,
                self.path("tests/model/test_model.py"),
                "--model=" + test.stem,
                "models_hold",
            ]
        return [sys.executable, self.path(test.source), *names]


def copy_if_changed(source, target):
    try:
        with open(source, "rb") as old, open(target, "rb") as new:
            if old.read() == new.read():
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(source, target)


def environment(limit=None):
    """The environment of tests: with the same seed each time, and the flags of lanes."""
    words = {key: value for key, value in os.environ.items() if key not in FROM_OUTSIDE}
    words.setdefault("SEED", "1")
    if limit:
        words["LIMIT"] = str(int(limit))
    return dict(
        words,
        MAKEFLAGS=MAKEFLAGS,
        PYTHONPATH=PYTHON_FOLDERS,
        VERBOSE="1",
        PYTHONDONTWRITEBYTECODE="1",
    )


def target_of(test):
    """The targets of make that a test needs."""
    if test.tier == "unit":
        return ["build/unit/test_" + test.stem]
    if test.tier == "explore":
        return ["build/tests/explore/" + test.stem]
    if test.tier == "hosted":
        return [f"build/hosted/{test.variant}/test_{test.stem}"]
    if test.tier == "kernel":
        return [TESTS]
    if test.tier == "model":
        return []
    if test.tier in ("pun", "region"):
        return ["build/sonde.elf", f"build/{test.tier}/check_{test.tier}"]
    if test.tier == "truth":
        modules = ["build/tests/truth.o", "build/tests/kernel/modules/guest.o"]
        return ["build/sonde.elf", "build/truth/exec_count.so", *modules]
    if test.tier == "fuzz" and test.stem != "console":
        return ["build/sonde.elf", f"build/fuzz/fuzz_{test.stem}"]
    if (test.tier, test.stem) == ("tools", "decode_page"):
        return ["build/decode.html", "build/page/native"]
    if (test.tier, test.stem) == ("tools", "program_model"):
        return ["build/hosted/gcc/program_ways"]
    return ["all", TESTS]


def group(tests):
    """Groups of @tests: tests that can share a boot are together, other tests alone."""
    boots = {}
    for test in tests:
        key = (test.cpus, test.stepped) if test.tier == "kernel" else test
        boots.setdefault(key, []).append(test)
    return [tuple(found) for found in boots.values()]


def limit_of(seconds):
    return max(LIMIT_MIN, LIMIT_FACTOR * seconds)


def outcome(test, output, ended):
    """The outcome: passes, fails, panics (also for a crash), hangs, or "does not run"."""
    if test.tier == "kernel":
        return outcome_in_guest(test, output, ended)
    failed = NOT_OK.findall(output)
    if any("GuestError: the kernel panicked" in what for what in failed):
        return "panics"
    if any("GuestError: no answer" in what for what in failed):
        return "hangs"
    if any("in 0 states" in what for what in failed):
        return "does not run"
    if failed:
        return "fails"
    if ended is None:
        return "hangs"
    if ended < 0 or not PLAN.search(output) or "Sanitizer" in output:
        return "panics"
    return "passes" if ended == 0 else "does not run"


def outcome_in_guest(test, output, ended):
    """The outcome by the lines about this test; other tests of the boot do not matter."""
    name = re.escape(".".join(filter(None, (test.stem, test.name))))
    own = name if test.name else name + r"\.\w+"
    if re.search(rf"^not ok \d+ - \d+ CPUs?, {own}(?::|$)", output, re.M):
        return "fails"
    if re.search(rf"tests ended, the last one begun: {own}$", output, re.M):
        hung = ended is None or re.search(r"^not ok .*no answer within", output, re.M)
        return "hangs" if hung else "panics"
    if re.search(rf"^ok \d+ - \d+ CPUs?, {own}(?::|$)", output, re.M):
        return "passes"
    return "does not run"


def lanes(root, folder, count):
    """@count lanes. clone() later makes copies of the first one, with its built files."""
    return [
        Lane(root, os.path.join(folder, f"lane{number + 1}")) for number in range(count)
    ]


def clone(first, other):
    """Make a new lane a copy of the first, with its built files. Update an old lane."""
    if not os.path.isdir(other.folder):
        subprocess.run(["cp", "-a", first.folder, other.folder], check=True)
        return
    other.update()


def must_build(lane, targets, jobs):
    said = lane.build(targets, jobs)
    if said is not None:
        raise Problem("the tree itself does not build:\n" + said)
