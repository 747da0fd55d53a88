"""lane.py - a copy of the tree in which mutants are built and tested.

Only what differs is copied into it, and only what a test needs is built, so make has little
to do behind each change.
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

LIMIT_MIN = 60  # seconds; and ten times what the test takes without a mutant
LIMIT_FACTOR = 10
LIMIT_FIRST = 600
# Beyond the limit. The kernel's runner keeps it by itself, and says where the CPUs are;
# scripts have limits of their own, for each guest.
GRACE = {"unit": 0, "hosted": 0, "kernel": 60}
GRACE_OF_SCRIPTS = 60
# What an edit leaves unused is no reason not to compile. It is for the makes of ./sonde, too.
MAKEFLAGS = "s -- WARNINGS=-w"
FROM_OUTSIDE = ("B", "MAKEOVERRIDES", "MFLAGS", "EXTRA_OBJS", "CC", "VERBOSE", "LONG")

NOT_OK = re.compile(r"^not ok \d+ (?:- )?(.*)$", re.M)
PLAN = re.compile(r"^1\.\.\d+", re.M)

# Guests that execute on several CPUs at the same time: one at a time.
several_cpus = threading.Lock()


class Watch:
    """Stops a process, and all that it has started, at its limit."""

    def __init__(self, process, limit):
        self.process = process
        self.is_late = False
        self.timer = threading.Timer(limit, self.be_late)
        self.timer.start()

    def be_late(self):
        self.is_late = True
        self.stop()

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end(self):
        """Its status; None: it has not ended by itself in time."""
        status = self.process.wait()
        self.timer.cancel()
        return None if self.is_late else status


class Lane:
    def __init__(self, root, folder):
        self.root = root
        self.folder = folder

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def update(self):
        """Make the lane what the tree is; what is the same stays as old as it is."""
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
        """None, or what make said."""
        if not targets:
            return None
        command = ["make", f"-j{jobs}", "-C", self.folder, *sorted(targets)]
        run = subprocess.run(command, env=environment(), text=True, errors="replace",
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return run.stdout if run.returncode else None

    def run(self, tests, limit):
        """Run @tests, of the kernel in one boot. Returns an outcome for each, what was
        printed, and the seconds it took."""
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
        process = subprocess.Popen(
            self.command(tests), cwd=self.folder, env=environment(limit),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, text=True, errors="replace")
        watch = Watch(process, limit + GRACE.get(tests[0].tier, GRACE_OF_SCRIPTS))
        lines = []
        for line in process.stdout:
            lines.append(line)
            if tests[0].tier not in GRACE and NOT_OK.match(line):
                watch.stop()  # what else it finds out takes time, and adds nothing
        return "".join(lines), watch.end()

    def command(self, tests):
        test = tests[0]
        names = [test.name] if test.name else []
        if test.tier == "unit":
            return [self.path("build/unit/test_" + test.stem), *names]
        if test.tier == "hosted":
            return [self.path("build/hosted", test.variant, "test_" + test.stem), *names]
        if test.tier == "lint":
            return [self.path("tests/lint/check_" + test.stem)]
        if test.tier == "kernel":
            chosen = ",".join(".".join(filter(None, (t.stem, t.name))) for t in tests)
            stepped = ["stepped"] if test.stepped else []
            return [sys.executable, self.path("tests/run/kernel_test.py"), chosen,
                    str(test.cpus), *stepped]
        if test.tier == "model":
            return [sys.executable, self.path("tests/model/test_model.py"),
                    "--model=" + test.stem, "models_hold"]
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
    """What tests see: a seed that is always the same, the flags of the lanes."""
    words = {key: value for key, value in os.environ.items() if key not in FROM_OUTSIDE}
    words.setdefault("SEED", "1")
    if limit:
        words["LIMIT"] = str(int(limit))
    return dict(words, MAKEFLAGS=MAKEFLAGS, PYTHONPATH="tests/run", VERBOSE="1",
                PYTHONDONTWRITEBYTECODE="1")


def target_of(test):
    """What make has to build for a test."""
    if test.tier == "unit":
        return ["build/unit/test_" + test.stem]
    if test.tier == "hosted":
        return [f"build/hosted/{test.variant}/test_{test.stem}"]
    if test.tier == "kernel":
        return ["build/sonde.elf"]
    if test.tier == "model":
        return []
    if test.tier in ("pun", "region"):
        return ["build/sonde.elf", f"build/{test.tier}/check_{test.tier}"]
    if test.tier == "truth":
        return ["build/sonde.elf", "build/truth/exec_count.so"]
    if test.tier == "fuzz" and test.stem != "console":
        return ["build/sonde.elf", f"build/fuzz/fuzz_{test.stem}"]
    if (test.tier, test.stem) == ("tools", "decode_page"):
        return ["build/decode.html", "build/page/native"]
    return ["all"]


def group(tests):
    """Those that run in one boot together, the others alone."""
    boots = {}
    for test in tests:
        key = (test.cpus, test.stepped) if test.tier == "kernel" else test
        boots.setdefault(key, []).append(test)
    return [tuple(found) for found in boots.values()]


def limit_of(seconds):
    return max(LIMIT_MIN, LIMIT_FACTOR * seconds)


def outcome(test, output, ended):
    """passes, fails, panics (or crashes), hangs, or "does not run"."""
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
    """By what is said of this very test, whatever others do in the same boot."""
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
    """@count lanes. The later ones begin as copies of the first, with all that is built."""
    return [Lane(root, os.path.join(folder, f"lane{number + 1}")) for number in range(count)]


def clone(first, other):
    """Give a new lane what the first one has built."""
    if not os.path.isdir(other.folder):
        subprocess.run(["cp", "-a", first.folder, other.folder], check=True)
        return
    other.update()


def must_build(lane, targets, jobs):
    said = lane.build(targets, jobs)
    if said is not None:
        raise Problem("the tree itself does not build:\n" + said)
