#!/usr/bin/env python3
"""mutate.py - edit a room at random, one edit at a time, and see which edits tests notice.

    tests/mutants/mutate.py [--seed N] [--count N] [--last host|named|all] [--again] ROOM

ROOM is a folder, such as probes/trace. edits.py makes the edits. An edit that does not
change the object, or stands in equivalent.tsv, is equivalent; an edit that does not
compile is skipped. Neither counts. The tests run in the order of their price, until one
fails:

    host    unit and hosted tests and explorers that link the file: its own one and those
            that rows of tests/mutants/*.toml name about the file, then others of the room
    named   tests in the guest that rows name about the file, the kernel tests in one boot,
            then others; then those that rows name about the room
    all     all of `make test` and `make test-tools` that runs code

Each result is at once a line of build/mutate/ROOM.tsv. A later run continues there;
--again tries the survivors of earlier runs again, with the tests of today.
"""

import argparse
import collections
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

import edits
import lane as lanes
import table
from run import lock
from source import Problem, Tree, read

STAGES = ("host", "named", "all")
VERDICTS = ("killed", "survived", "equivalent", "skipped")
SURE = ("killed", "equivalent", "skipped")  # verdicts that further tests do not change
ALL = "tests/run/run_tests.py"
NO_CODE = ("lint/",)  # what a lint says of an edit says nothing about tests
FAILED = re.compile(r"^not ok |^Bail out!|^Dubious", re.M)
LIMITS = {"unit": 60, "hosted": 120}  # seconds, beside ten times the usual time
HOSTED = ("ENGINE", "HOSTED_PORT", "HOSTED_REST")  # sources of all hosted tests


class Rows(dict):
    """The results by the lots of their edits, in a file that grows line by line."""

    NAMES = ("lot", "verdict", "stage", "by", "seconds", "kind", "place", "edit")

    def __init__(self, path):
        super().__init__()
        if os.path.exists(path):
            for line in read(path).splitlines():
                row = dict(zip(self.NAMES, line.split("\t")))
                self[row["lot"]] = row
        self.file = open(path, "a", buffering=1, encoding="utf-8")

    def put(self, *values):
        row = dict(zip(self.NAMES, map(str, values)))
        self[row["lot"]] = row
        self.file.write("\t".join(row.values()) + "\n")
        return row


class Mutate:
    def __init__(self, options):
        folder = os.path.abspath(options.folder)
        self.held = lock(folder)
        self.options = options
        self.tree = Tree(options.root)
        self.lane = lanes.Lane(options.root, os.path.join(folder, "lane"))
        room = options.room.strip("/")
        self.rows = Rows(os.path.join(folder, room.replace("/", "-") + ".tsv"))
        self.files = [path for path in self.tree.files if path.startswith(room + "/")]
        self.files = [path for path in self.files if path.endswith((".c", ".asm"))]
        if not self.files:
            raise Problem(f"no source in {room}")
        self.known = table.equivalents(options.tables)
        self.linked = None
        self.objects = {}  # by file: its object without the edit
        self.edit = None  # the edit that is being tried
        self.price = {}  # by group of tests: seconds, when they passed last
        self.fine = (
            {}
        )  # by group of tests that has failed: whether it passes without edits
        self.labels = None  # of all quick tests that pass without an edit

    # ---- which tests are about a file ----

    def prepare(self):
        """Copy the tree, and find which tests on the host link which files of the room."""
        self.lane.update()
        lanes.must_build(self.lane, ["build/unit.stamp"], self.options.jobs)
        stamp = read(self.lane.path("build/unit.stamp"))
        self.linked = {  # by label: the sources that the program links
            "unit/" + stem: set(sources.split())
            for stem, sources in re.findall(r"(\w+):((?: [^ :]+(?!\S))*)", stamp)
        }
        hosted = set().union(*map(self.variable, HOSTED))
        self.linked.update(
            {f"hosted/{stem}": hosted for stem in self.variable("HOSTED_STEMS")}
        )
        self.linked["tools/program_model"] = hosted
        self.explorers = {"explore/" + s for s in self.variable("EXPLORE_STEMS")}
        for label in self.explorers:
            self.linked[label] = self.variable(label.replace("/", "_"))
        self.named = {path: set() for path in self.files}  # labels that rows name
        for mutant in table.load(self.options.tables)[0]:
            for path, _, _ in self.tree.definitions(mutant.function):
                if path in self.named and mutant.file in (None, path):
                    self.named[path].update(map(without_name, mutant.tests))
        self.all_named = set().union(*self.named.values())

    def variable(self, name):
        make = ["make", "-s", "-C", self.lane.folder, "print-" + name]
        run = subprocess.run(
            make, env=lanes.environment(), text=True, stdout=subprocess.PIPE
        )
        return set(run.stdout.split())

    def host(self, path):
        """Two batches of tests on the host; the tests of each in the order of their price."""
        own = {"unit/" + stem_of(path)} | self.named[path]
        room = {"unit/" + stem_of(file) for file in self.files}
        room |= self.explorers | self.all_named
        for labels in own, room - own:
            labels = [label for label in labels if path in self.linked.get(label, ())]
            groups = [(table.test_of(label),) for label in sorted(labels, reverse=True)]
            yield sorted(groups, key=lambda group: self.price.get(group, 0))

    def in_guest(self, path):
        """Batches of tests in the guest; the kernel tests of one are one group."""
        own = self.named[path]
        for tests in guests(own), guests(self.all_named - own):
            kernel = tuple(test for test in tests if test.tier == "kernel")
            if kernel:
                yield [kernel]
            yield [(test,) for test in tests if test.tier != "kernel"]

    # ---- one edit ----

    def judge(self, edit, stages):
        lines = edit.lines(self.tree.files[edit.path])
        if (edit.path, edit.function, lines) in self.known:
            return "equivalent", "table", ""
        if not self.linked:
            self.prepare()
        return self.try_edit(edit, stages)

    def try_edit(self, edit, stages):
        """(verdict, stage, by): what tests say of an edit."""
        self.edit = edit
        self.change(False)
        if edit.path not in self.objects:
            self.objects[edit.path] = self.object_of(edit.path)
        self.change(True)
        try:
            changed = self.object_of(edit.path)
            if changed is None:
                return "skipped", "", "it does not compile"
            if changed == self.objects[edit.path]:
                return "equivalent", "", ""
            for stage in stages:
                by = getattr(self, "kill_" + stage)(edit.path)
                if by:
                    return "killed", stage, by
            return "survived", stages[-1], ""
        finally:
            self.change(False)

    def change(self, is_edited):
        """Have the edit in the lane, or not."""
        text = self.tree.files[self.edit.path]
        self.lane.write(self.edit.path, self.edit.apply(text) if is_edited else text)

    def object_of(self, path):
        """The object of a file without its debug data; None: it does not compile."""
        name = f"build/{path}.o"
        if self.lane.build([name]) is not None:
            return None
        bare = self.lane.path("build/without_debug.o")
        command = ["objcopy", "--strip-debug", self.lane.path(name), bare]
        subprocess.run(command, check=True)
        with open(bare, "rb") as file:
            return file.read()

    def kill(self, batch):
        """Build a batch of groups of tests. Return the labels of the first that fails."""
        targets = {t for group in batch for test in group for t in lanes.target_of(test)}
        if self.lane.build(targets, self.options.jobs) is not None:
            self.change(False)
            lanes.must_build(self.lane, targets, self.options.jobs)
            return "the build"
        for group in batch:
            if self.fails(group) and self.passes(group, targets):
                return ",".join(test.label for test in group)
        return None

    def passes(self, group, targets):
        """Does the group pass without the edit? It runs at most once."""
        if group not in self.fine:
            self.change(False)
            built = self.lane.build(targets, self.options.jobs) is None
            self.fine[group] = built and not self.fails(group)
            self.change(True)
            self.lane.build(targets, self.options.jobs)
            if not self.fine[group]:
                print(f"without the edit it fails, too: {group}", flush=True)
        return self.fine[group]

    def fails(self, group):
        usual = lanes.LIMIT_MIN if group in self.price else lanes.LIMIT_FIRST
        limit = LIMITS.get(group[0].tier, usual) + 10 * self.price.get(group, 0)
        begun = time.monotonic()
        output, ended = self.lane.start(
            self.lane.command(group),
            limit,
            limit + lanes.GRACE.get(group[0].tier, 60),
            FAILED,
        )
        if ended == 0:
            self.price[group] = time.monotonic() - begun
        return ended != 0 or FAILED.search(output)

    def kill_host(self, path):
        return first(map(self.kill, self.host(path)))

    def kill_named(self, path):
        return first(map(self.kill, self.in_guest(path)))

    def kill_all(self, path):
        if self.labels is None:
            self.change(False)
            self.labels = self.quick_ones()
            self.change(True)
        output, ended = self.run_all(FAILED)
        if ended == 0:
            return None
        begun = re.findall(r"^\[[\d:]+\] ([\w/-]+) \.", output, re.M)  # prove's lines
        return ("hangs in " if ended is None else "") + (begun[-1] if begun else "all")

    def quick_ones(self):
        """Labels of `make test` and `make test-tools` that pass without the edit."""
        command = [sys.executable, self.lane.path(ALL), "--list"]
        labels = [
            label
            for option in ((), ("--tools",))
            for label in subprocess.check_output([*command, *option], text=True).split()
        ]
        self.labels = [label for label in labels if not label.startswith(NO_CODE)]
        output, ended = self.run_all(None)
        if ended is None:
            raise Problem("without any edit the tests have no end")
        failed = set(re.findall(r"^([\w/-]+) +\(Wstat", output, re.M))
        if failed:
            print("without any edit tests fail, so they are left out:", *sorted(failed))
        return [label for label in self.labels if label not in failed]

    def run_all(self, stop_at):
        command = [sys.executable, self.lane.path(ALL), *self.labels]
        return self.lane.start(command, None, self.options.limit, stop_at)

    # ---- all edits ----

    def stages_left(self, edit):
        """The stages that an edit has still to go through."""
        row = self.rows.get(edit.lot)
        stages = STAGES[: STAGES.index(self.options.last) + 1]
        if row is None or row["verdict"] == "survived" and self.options.again:
            return stages
        if row["verdict"] in SURE:
            return ()
        return stages[STAGES.index(row["stage"]) + 1 :]

    def run(self):
        found = [
            edit
            for path in self.files
            for edit in edits.edits_of(path, self.tree.files[path], self.options.seed)
        ]
        print(f"{len(found)} edits of {len(self.files)} files", flush=True)
        done = []
        for edit in edits.draw(found):
            stages = self.stages_left(edit)
            if stages:
                begun = time.monotonic()
                verdict, stage, by = self.judge(edit, stages)
                self.note(edit, verdict, stage, by, time.monotonic() - begun)
            done.append(self.rows[edit.lot])
            if sum(r["verdict"] in VERDICTS[:2] for r in done) == self.options.count:
                break
        show(done)
        return 0

    def note(self, edit, verdict, stage, by, seconds):
        line = self.tree.line(edit.path, edit.start)
        words = [" ".join(text.split()) for text in (edit.old, edit.new)]
        row = self.rows.put(
            edit.lot,
            verdict,
            stage,
            by,
            f"{seconds:.0f}",
            edit.kind,
            f"{edit.path}:{line} {edit.function}",
            " -> ".join(words),
        )
        print("{verdict} ({seconds} s) {by}: {place}: {edit}".format(**row), flush=True)


def first(results):
    """The first result that says something."""
    return next(filter(None, results), None)


def stem_of(path):
    return os.path.basename(path).partition(".")[0]


def guests(labels):
    """The tests of @labels that boot a guest."""
    tests = [table.test_of(label) for label in sorted(labels)]
    return [test for test in tests if test.tier in ("kernel", "session", "gdb")]


def without_name(test):
    """The label of a whole program or subject, by gcc and on the usual CPUs."""
    return f"{test.tier}/{test.stem}"


def show(rows):
    """The table of verdicts by kind, after the list of survivors."""
    for row in rows:
        if row["verdict"] == "survived":
            print("survived {stage}: {place}: {edit}".format(**row))
    count = collections.Counter((row["kind"], row["verdict"]) for row in rows)
    print("".join(f"{word:>12}" for word in ("", *VERDICTS)))
    for kind in (*edits.KINDS, "all"):
        numbers = [
            sum(n for (k, v), n in count.items() if v == verdict and kind in (k, "all"))
            for verdict in VERDICTS
        ]
        print(f"{kind:>12}" + "".join(f"{number:12}" for number in numbers))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--last", choices=STAGES, default="all", help="the last stage")
    parser.add_argument("--again", action="store_true", help="survivors as well")
    parser.add_argument("--limit", type=int, default=3600, help="seconds of stage all")
    parser.add_argument("--jobs", type=int, default=2, help="of make")
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "mutate"))
    parser.add_argument("--tables", default=HERE, help="the folder of the rows")
    parser.add_argument("--root", default=ROOT, help="the tree")
    parser.add_argument("room", metavar="ROOM")
    return parser.parse_args()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(Mutate(parse()).run())
    except Problem as error:
        print(f"mutate.py: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
