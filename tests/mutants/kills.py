#!/usr/bin/env python3
"""kills.py - edit the product at random, and write which facts of unit tests notice it.

    tests/mutants/kills.py [--guest] [--seed N] [--count N] [ROOM...]
    tests/mutants/kills.py [--guest] --cover

Unlike mutate.py, it does not stop at the first fact that fails. Each edit is at once a line
of build/mutants/kills-unit.tsv: its lot, its place, the edit, and the facts that fail or a
word. A later run continues there. For speed there are no sanitizers, slow facts are not
asked, and programs that link the same sources are one program here, so that an edit costs
one link. With rooms, folders or files, only these are edited.

--guest asks the kernel tests, in one boot on two CPUs, about the edits that no unit test
notices; slow tests are not asked. A panic counts for the test that was running.

--cover prints the facts that no row of a table names and that kill nothing that others
do not kill. The others are found by three quarters of the edits, one by one: the next one
kills most further edits for its lines. The last line tells the cost: edits of the last
quarter that only the printed facts notice.
"""

import argparse
import collections
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

import edits
import table
from lane import TESTS, Lane
from run import lock
from source import Tree, read

FOLDER = "build/mutants"
ROWS = FOLDER + "/kills-%s.tsv"
OBJECTS = FOLDER + "/kills"
LIMIT = 10  # seconds of a program; usual are fractions of one
LIMIT_GUEST = 200  # seconds of a boot with kernel tests; half a minute is usual
SLOW = 0.1  # seconds; slower facts are not asked
SLOW_GUEST = (
    "conformance",
    "contain.locks_that_a_handler_leaves_taken_are_named",
    "contain.what_a_handler_does_to_its_cpu_ends_with_the_hit",
    "events.questions_come_and_go_under_hits",
    "everywhere",
    "files.list_is_sorted_by_address",
    "frame.all_of_it_can_be_used_and_given_back",
    "handlers.one_that_takes_long_is_named_once",
    "marker_live.switched_under_probes",
    "marks.none_is_lost_while_all_changes",
    "optimize.any_density_in_and_out",
    "preempt",
    "program.all_cpus_count_and_lose_nothing",
    "recording.a_read_ends_although_all_functions_of_the_reader_are_probed",
    "region.any_density_in_and_out",
    "returns.every_function_at_once",
)  # kernel tests of seconds, two thirds of the time of all
WORDS = ("skipped", "equivalent", "hangs", "survived")  # in place of facts
PRODUCT = ("boot/", "drivers/", "kernel/", "libc/", "probes/")
TABLES = ("tests/hard-cases.tsv", "tests/requirements.tsv")
FACT = re.compile(r"^(not ok|ok) \d+ - (\w+)$", re.M)
GUEST_FACT = re.compile(r"^not ok \d+ - 2 CPUs, (?:.* last one begun: )?(\w+\.\w+)", re.M)
NOT_OK = re.compile(r"^not ok ", re.M)
BOOT = "boot"  # in place of a test: the kernel ends before its first one
UNIT_TEST = re.compile(r"^UNIT_TEST\((\w+)\)\n\{\n.*?^\}\n", re.M | re.S)
KTEST = re.compile(r"^KTEST\((\w+), (\w+)\)\n\{\n.*?^\}\n", re.M | re.S)
PLAN = re.compile(r"^1\.\.\d+$", re.M)
MAIN = """#include <string.h>
#define TEST(stem) \\
    int main_##stem(int, char **); \\
    if (!strcmp(argv[1], #stem)) \\
        return main_##stem(argc - 1, argv + 1);
int main(int argc, char **argv)
{
    %s
    return 99;
}
"""


def variable(name):
    make = ["make", "-s", "print-" + name]
    return subprocess.check_output(make, text=True).split()


class Units:
    """The unit tests that link a file of @rooms, as programs of objects that are compiled
    once.
    """

    def __init__(self, rooms):
        subprocess.run(["make", "-s", "build/unit.stamp"], check=True)
        stamp = re.findall(r"(\w+):((?: [^ :]+(?!\S))*)", read("build/unit.stamp"))
        flags = variable("C_COMMON")
        self.flags = ["-O1", *(f for f in flags if not f.startswith(("-g", "-W")))]
        groups = collections.defaultdict(list)
        for stem, sources in stamp:
            if any(path.startswith(rooms) for path in sources.split()):
                groups[tuple(sorted(sources.split()))].append(stem)
        self.programs = {  # by name: its stems, its sources
            stems[0]: (stems, sources) for sources, stems in groups.items()
        }
        self.facts = {}  # by stem: what passes without an edit, and fast
        for name, (stems, sources) in self.programs.items():
            self.prepare(name, stems, sources)

    def prepare(self, name, stems, sources):
        for path in ("tests/unit/unit.c", *sources):
            self.compile(path)
        for stem in stems:
            flags = (f"-Dmain=main_{stem}", f"-DUNIT_SECTION=tests_of_{stem}")
            self.compile(f"tests/unit/test_{stem}.c", *flags)
        calls = "\n".join(f"TEST({stem})" for stem in stems)
        self.compile(f"main_{name}.c", text=MAIN % calls)
        self.link(name)
        for stem in stems:
            passed = self.start(name, stem, limit=None)[1]
            self.facts[stem] = [f for f in passed if self.is_fast(name, stem, f)]

    def compile(self, path, *flags, text=None, target=None):
        """Compile a file, or @text in its place. Return whether that was possible."""
        target = target or f"{OBJECTS}/{path}.o"
        if text is None and os.path.exists(target):
            return True
        if path.startswith("libc/"):
            flags += ("-include", "tests/unit/libc_rename.h")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        command = ["gcc", *self.flags, *flags, "-w", "-c", "-o", target, "-x", "c", "-"]
        text = read(path) if text is None else text
        run = subprocess.run(command, input=text, text=True, stderr=subprocess.DEVNULL)
        return run.returncode == 0

    def link(self, name, edited=None):
        """Link a program, with the object of @edited in its edited form."""
        stems, sources = self.programs[name]
        paths = [f"main_{name}.c", "tests/unit/unit.c", *sources]
        paths += [f"tests/unit/test_{stem}.c" for stem in stems]
        objects = [
            f"{OBJECTS}/{path if path != edited else 'edited'}.o" for path in paths
        ]
        command = ["gcc", "-fuse-ld=lld", "-o", f"{OBJECTS}/{name}", *objects]
        subprocess.run(command, check=True)

    def start(self, name, stem, *facts, limit=LIMIT):
        """(names of facts that failed, that passed, is the output complete?)"""
        run = subprocess.run(
            [f"{OBJECTS}/{name}", stem, *facts],
            env=dict(os.environ, SEED="1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=limit,
            text=True,
            errors="replace",
        )
        found = FACT.findall(run.stdout)
        failed = [fact for how, fact in found if how == "not ok"]
        passed = [fact for how, fact in found if how == "ok"]
        return (
            failed,
            passed,
            PLAN.search(run.stdout) and (failed or not run.returncode),
        )

    def is_fast(self, name, stem, fact):
        begun = os.times().children_user
        passed = self.start(name, stem, fact, limit=None)[1]
        return passed and os.times().children_user - begun < SLOW

    def failing(self, name, stem):
        """The facts of a stem that fail. After a crash each runs alone."""
        facts = self.facts[stem]
        if not facts:
            return []
        failed, _, is_whole = self.start(name, stem, *facts)
        if is_whole:
            return failed
        return [fact for fact in facts if fact not in self.start(name, stem, fact)[1]]

    def killers(self, edit, text):
        """The facts that an edit fails, or a word."""
        target = f"{OBJECTS}/edited.o"
        if not self.compile(edit.path, text=edit.apply(text), target=target):
            return "skipped"
        if same(target, f"{OBJECTS}/{edit.path}.o"):
            return "equivalent"
        killers = []
        try:
            for name, (stems, sources) in self.programs.items():
                if edit.path in sources:
                    self.link(name, edit.path)
                    for stem in stems:
                        killers += [f"{stem}.{f}" for f in self.failing(name, stem)]
        except subprocess.TimeoutExpired:
            return "hangs"
        return " ".join(killers) or "survived"


def same(one, other):
    with open(one, "rb") as a, open(other, "rb") as b:
        return a.read() == b.read()


class Guest:
    """The image with the kernel tests, built in a copy of the tree."""

    def __init__(self):
        self.lane = Lane(ROOT, os.path.join(ROOT, FOLDER, "kills-guest"))
        self.lane.update()
        if self.lane.build([TESTS]):
            sys.exit("the image cannot be built")
        self.image = self.read_image()
        self.usual = self.failing()  # without an edit

    def read_image(self):
        with open(self.lane.path(TESTS), "rb") as file:
            return file.read()

    def failing(self):
        """The tests that fail, or None if there is no end."""
        chosen = ",-".join(["all", *SLOW_GUEST])
        command = [sys.executable, "tests/run/kernel_test.py", chosen, "2"]
        output, ended = self.lane.start(command, LIMIT_GUEST, 2 * LIMIT_GUEST, None)
        if ended is None:
            return None
        failed = set(GUEST_FACT.findall(output))
        return failed or {BOOT} if NOT_OK.search(output) else failed

    def killers(self, edit, text):
        """The tests that an edit fails, or a word."""
        self.lane.write(edit.path, edit.apply(text))
        try:
            if self.lane.build([TESTS]):
                return "skipped"
            if self.read_image() == self.image:
                return "equivalent"
            failed = self.failing()
        finally:
            self.lane.write(edit.path, text)
        if failed is None:
            return "hangs"
        return " ".join(sorted(failed - self.usual)) or "survived"


def rows_path(options):
    return ROWS % ("guest" if options.guest else "unit")


def rows(options):
    """(lot, place, edit, killers) of each edit so far."""
    if not os.path.exists(rows_path(options)):
        return []
    return [line.split("\t") for line in read(rows_path(options)).splitlines()]


def run(options):
    held = lock(FOLDER)
    tree = Tree(ROOT)
    done = {row[0] for row in rows(options)}
    rooms = tuple(options.rooms)
    units = Units(rooms)
    guest = Guest() if options.guest else None
    linked = {path for _, sources in units.programs.values() for path in sources}
    found = [
        edit
        for path in sorted(tree.files if guest else linked)
        if path.startswith(rooms)
        and path.startswith(PRODUCT)
        and path.endswith((".c", ".asm"))
        for edit in edits.edits_of(path, tree.files[path], options.seed)
    ]
    facts = sum(map(len, units.facts.values()))
    print(f"{len(found)} edits, {facts} facts", flush=True)
    left = options.count
    with open(rows_path(options), "a", buffering=1, encoding="utf-8") as file:
        for edit in edits.draw(found):
            if not left:
                break
            if edit.lot in done:
                left -= 1
                continue
            text = tree.files[edit.path]
            killers = units.killers(edit, text) if edit.path in linked else "survived"
            if guest and killers == "survived":
                killers = guest.killers(edit, text)
            elif guest:
                continue
            left -= 1
            place = f"{edit.path}:{tree.line(edit.path, edit.start)} {edit.function}"
            words = [" ".join(text.split()) for text in (edit.old, edit.new)]
            row = (edit.lot, place, " -> ".join(words), killers)
            file.write("\t".join(row) + "\n")
    held.close()


def lines_of_facts():
    """The lines of each fact."""
    found = {}
    for name in sorted(os.listdir("tests/unit")):
        path = "tests/unit/" + name
        if name.startswith("test_"):
            for fact in UNIT_TEST.finditer(read(path)):
                found[f"{name[5:-2]}.{fact[1]}"] = fact[0].count("\n") + 1
    return found


def lines_of_guest():
    """The lines of each kernel test."""
    return {
        ".".join(found.groups()): found[0].count("\n") + 1
        for path, text in Tree(ROOT).files.items()
        if path.startswith("tests/") and path.endswith(".c")
        for found in KTEST.finditer(text)
    }


def named_by_rows(tier):
    """The facts of a tier that a row of a table names."""
    text = "".join(map(read, TABLES))
    named = set(re.findall(rf"\b{tier}/(\w+\.\w+)", text))
    for mutant in table.load(HERE)[0]:
        named |= {f"{t.stem}.{t.name}" for t in mutant.tests if t.tier == tier}
    return named


def cover(options):
    """Print the facts that can go, with their lines and the edits that they kill."""
    lines = lines_of_guest() if options.guest else lines_of_facts()
    kills = {fact: set() for fact in lines}
    unused = []  # the killers of each edit that is not used here
    for lot, _, _, killers in rows(options):
        killers = set(() if killers in WORDS else killers.split()) & set(lines)
        if int(lot, 16) % 4 == 0:
            unused.append(killers)
            continue
        for fact in killers:
            kills[fact].add(lot)
    others = named_by_rows("kernel" if options.guest else "unit") & set(lines)
    if options.guest:
        others |= {test for test in lines if {test, test.split(".")[0]} & set(SLOW_GUEST)}
    left = set().union(*kills.values()) - set().union(*(kills[f] for f in others))
    while left:
        best = max(sorted(kills), key=lambda f: len(kills[f] & left) / lines[f])
        others.add(best)
        left -= kills[best]
    for fact in sorted(set(lines) - others):
        print(fact, lines[fact], len(kills[fact]), sep="\t")
    lost = sum(bool(killers) and not killers & others for killers in unused)
    print(f"# without them {lost} of {sum(map(bool, unused))} other edits go unnoticed")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--guest", action="store_true")
    parser.add_argument("--cover", action="store_true")
    parser.add_argument("rooms", metavar="ROOM", nargs="*", default=[""])
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the guest ends, too
    os.chdir(ROOT)
    if arguments.cover:
        cover(arguments)
    else:
        run(arguments)
