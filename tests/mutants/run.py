#!/usr/bin/env python3
"""run.py - undo what the code does, one thing at a time, and check that tests notice it.

    tests/mutants/run.py [--list] [--again] [--lanes N] [--folder DIR] [NAME...]

A NAME is a mutant, or a table: then it means all rows of tests/mutants/NAME.toml. Without
a NAME a run continues the one before: see Killed. The output is TAP, with a fact for each
mutant: its tests kill it, and each of these tests passes on the unchanged tree. README.md
describes a row.
"""

import argparse
import fcntl
import glob
import hashlib
import os
import queue
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

import lane as lanes
import table
from source import Problem, Tree, read

SHOWN = 30  # lines of output that are shown
FACTS_SHOWN = 5  # failed facts that are shown of a killed mutant


class Report:
    """Prints TAP for several threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.count = self.failed = 0

    def fact(self, holds, what, *notes):
        with self.lock:
            self.count += 1
            self.failed += not holds
            print(f"{'ok' if holds else 'not ok'} {self.count} - {what}")
            for note in notes:
                for line in note.splitlines()[-SHOWN:]:
                    print("# " + line)
            sys.stdout.flush()

    def note(self, text):
        with self.lock:
            print("# " + text, flush=True)


class Killed:
    """The mutants that a run has seen killed, in a file. One of them is tried again when its
    row, the file that it changes, or a file with one of its tests is another one."""

    def __init__(self, folder, tree):
        self.path = os.path.join(folder, "killed.txt")
        self.tree = tree
        self.keys = set()
        if os.path.exists(self.path):
            self.keys.update(read(self.path).split())

    def key(self, mutant):
        path, _, _ = self.tree.find(mutant.function, mutant.old, mutant.file)
        texts = [repr(mutant), self.tree.files[path]]
        for test in mutant.tests:
            where = os.path.join(self.tree.root, test.source)
            files = sorted(glob.glob(where + "*")) if where.endswith("/") else [where]
            texts += map(read, files)
        return hashlib.sha1("\0".join(texts).encode()).hexdigest()

    def add(self, mutant):
        with open(self.path, "a", encoding="ascii") as file:
            file.write(self.key(mutant) + "\n")


class Run:
    def __init__(self, root, mutants, folder, count, report):
        self.tree = Tree(root)
        self.mutants = mutants
        self.report = report
        self.folder = folder
        self.killed = Killed(folder, self.tree)
        self.lanes = lanes.lanes(root, folder, count)
        self.seconds = {}  # by group of tests: its time without a mutant, if all pass

    def prepare(self):
        """Build all that the tests need, once, and give each lane a copy."""
        first, *others = self.lanes
        tests = {test for mutant in self.mutants for test in mutant.tests}
        first.update()
        targets = {target for test in tests for target in lanes.target_of(test)}
        lanes.must_build(first, targets, len(self.lanes))
        for other in others:
            lanes.clone(first, other)

    def share(self, jobs, function):
        """Call function(lane, job) for all jobs; each lane runs one job at a time."""
        waiting = queue.SimpleQueue()
        for job in jobs:
            waiting.put(job)

        def work(lane):
            while True:
                try:
                    job = waiting.get_nowait()
                except queue.Empty:
                    return
                function(lane, job)

        threads = [
            threading.Thread(target=work, args=[lane], daemon=True) for lane in self.lanes
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run_unchanged(self):
        """Run every group of tests on the unchanged tree."""
        groups = {
            group: None for mutant in self.mutants for group in lanes.group(mutant.tests)
        }
        self.share(groups, self.see_it_pass)

    def see_it_pass(self, lane, group):
        said = lane.build({t for test in group for t in lanes.target_of(test)})
        outcomes, output, took = lane.run(group, lanes.LIMIT_FIRST)
        if said is None and set(outcomes) == {"passes"}:
            self.seconds[group] = took
            return
        for test, outcome in zip(group, outcomes):
            if outcome != "passes":
                self.report.note(f"without any mutant {test.label}: {outcome}")
        self.report.note("\n# ".join(output.splitlines()[-SHOWN:]))

    def try_mutants(self):
        # Sorted by file: the build for a mutant then also undoes the previous mutant.
        jobs = [(self.tree.find(m.function, m.old, m.file), m) for m in self.mutants]
        self.share(sorted(jobs, key=lambda job: job[0]), self.try_one)

    def try_one(self, lane, job):
        (path, start, end), mutant = job
        broken = [
            test.label
            for group in lanes.group(mutant.tests)
            if group not in self.seconds
            for test in group
        ]
        if broken:
            self.report.fact(
                False, f"{mutant.label}: a test fails without it, " + ", ".join(broken)
            )
            return
        begun = time.monotonic()
        text = self.tree.files[path]
        lane.write(path, text[:start] + mutant.new.strip() + text[end:])
        try:
            holds, what, *notes = self.verdict(lane, mutant)
        finally:
            lane.write(path, text)
        took = time.monotonic() - begun
        self.report.fact(holds, f"{mutant.label}: {what} ({took:.0f} s)", *notes)
        if holds:
            self.killed.add(mutant)

    def verdict(self, lane, mutant):
        """(whether the mutant is killed, the verdict in words, notes...)"""
        tests, notes, seen, said_no = mutant.tests, [], {}, []
        said = lane.build({t for test in tests for t in lanes.target_of(test)})
        if said is not None:
            return False, "it does not build", said
        for group in lanes.group(tests):
            outcomes, output, _ = lane.run(group, lanes.limit_of(self.seconds[group]))
            seen.update(zip(group, outcomes))
            if all(is_kill(mutant, outcome) for outcome in outcomes):
                said_no += lanes.NOT_OK.findall(output)
                if mutant.any:
                    break
            else:
                notes.append(output)
        kills = [test.label for test, outcome in seen.items() if is_kill(mutant, outcome)]
        if kills and (mutant.any or len(kills) == len(tests)):
            return True, "killed by " + ", ".join(kills), *said_no[:FACTS_SHOWN]
        others = [
            f"{test.label} {outcome}"
            for test, outcome in seen.items()
            if not is_kill(mutant, outcome)
        ]
        return False, "; ".join(others), mutant.why, *notes


def is_kill(mutant, outcome):
    return outcome in ("fails", mutant.how)


def lock(folder):
    """Lock the lanes. Return a file: while it is open, no other run changes the lanes."""
    os.makedirs(folder, exist_ok=True)
    file = open(os.path.join(folder, ".lock"), "w", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Problem(f"another run is using {folder}") from None
    return file


def parse():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="only show the rows")
    parser.add_argument("--again", action="store_true", help="also those killed before")
    parser.add_argument("--lanes", type=int, default=2, help="how many at a time")
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "mutants"))
    parser.add_argument("--tables", default=HERE, help="the folder of the tables")
    parser.add_argument("--root", default=ROOT, help="the tree that is changed")
    parser.add_argument("names", nargs="*", metavar="NAME")
    return parser.parse_args()


def main():
    options = parse()
    begun = time.monotonic()
    report = Report()
    mutants, problems = table.load(options.tables)
    mutants = table.choose(mutants, options.names)
    if options.list:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a pipe into head
        for mutant in mutants:
            print(f"{mutant.label}: {mutant.why}")
        return 0
    folder = os.path.abspath(options.folder)
    held = lock(folder)
    run = Run(options.root, mutants, folder, options.lanes, report)
    good = []
    for mutant in mutants:
        found = list(table.problems_of(mutant, run.tree))
        problems += found
        good += [mutant] * (not found)
    for problem in problems:
        report.fact(False, problem)
    if not options.names and not options.again:
        run.mutants = [m for m in good if run.killed.key(m) not in run.killed.keys]
        report.note(
            f"{len(good) - len(run.mutants)} rows were killed before, and are as they were"
        )
        good = run.mutants
    run.mutants = good
    if good:
        run.prepare()
        report.note(f"built after {time.monotonic() - begun:.0f} s")
        run.run_unchanged()
        report.note(f"every test seen to pass after {time.monotonic() - begun:.0f} s")
        run.try_mutants()
    report.note(
        f"{report.count} mutants, {report.count - report.failed} killed, "
        f"{time.monotonic() - begun:.0f} s"
    )
    print(f"1..{report.count}")
    held.close()
    return 1 if report.failed or not mutants else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Problem as error:
        print(f"Bail out! {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        lanes.stop_all()
        sys.exit(130)
