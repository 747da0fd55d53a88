#!/usr/bin/env python3
"""test_mutants.py - tests of tests/mutants on small trees: when a mutant is killed."""

import fcntl
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import scratch

MUTANTS = os.path.join(scratch.ROOT, "tests/mutants")
sys.path.insert(0, MUTANTS)
import lane
import source
import table

MAKEFILE = """
build/unit/test_small: tests/unit/test_small.c small.c
\t@mkdir -p build/unit
\t@gcc $(WARNINGS) -o $@ $^
"""
SMALL = """
int limit = 3;
static int twice(int x)
{
    return x + x; /* not x * 3 */
}

int grown(int x)
{
    if (x > limit)
        return limit;
    return twice(x) + 1;
}
"""
TEST = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int grown(int x);
static int run(const char *name, int holds)
{
    printf("%s 1 - %s\\n1..1\\n", holds ? "ok" : "not ok", name);
    return !holds;
}
int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "it_grows";
    if (!strcmp(name, "it_grows"))
        return run(name, grown(2) == 5);
    if (!strcmp(name, "it_ends"))
        for (FILE *f = fopen("pid", "w"); fprintf(f, "%d ", getpid()) > 0 && !fclose(f);)
            pause();
    if (!strcmp(name, "never_beyond_a_limit"))
        return run(name, grown(7) == 3);
    return run(name, strcmp(name, "it_shrinks"));
}
"""


class Trees(scratch.Scratch):
    small = SMALL

    def tree(self, rows=""):
        for name, text in (
            ("Makefile", MAKEFILE),
            ("small.c", self.small),
            (".gitignore", "build/\nlanes/\n"),
            ("tables/t.toml", rows),
            ("tests/unit/test_small.c", TEST + "/* it_shrinks, it_ends */"),
            ("tests/tools/test_small.py", "def test_it_grows():\n    pass\n"),
        ):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            self.write(name, text)
        subprocess.run(["git", "init", "-q"], cwd=self.path("."), check=True)

    def start(self, row, *words):
        """A run with one row: a right row with the keys of @row."""
        good = {
            "name": "m",
            "why": "Why.",
            "function": "grown",
            "old": "> limit",
            "new": ">= limit + 9",
            "tests": ["unit/small.never_beyond_a_limit"],
        }
        lines = [
            f"{key} = {str(value).lower() if value is True else repr(value)}"
            for key, value in {**good, **row}.items()
        ]
        self.tree("[[mutant]]\n" + "\n".join(lines) + "\n")
        command = [
            sys.executable,
            os.path.join(MUTANTS, "run.py"),
            "--root",
            self.path("."),
            "--tables",
            self.path("tables"),
            "--folder",
            self.path("lanes"),
            *words,
        ]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)

    def mutants(self, row, *words):
        """The output of a run with one row."""
        with self.start(row, *words) as run:
            said, complaint = run.communicate()
        self.assertEqual(complaint, "")
        self.status = run.returncode
        return said

    def expect(self, row, verdict, *words):
        said = self.mutants(row, *words)
        self.assertIn(verdict, said)
        self.assertEqual(self.status, 0 if verdict.startswith("ok") else 1, said)
        with open(self.path("lanes/lane1/small.c"), encoding="utf-8") as file:
            self.assertEqual(file.read(), self.small, "the change is taken back")

    def test_a_test_that_fails_kills(self):
        self.expect({}, "ok 1 - t/m: killed by unit/small.never_beyond_a_limit")

    def test_a_test_that_passes_lets_it_survive(self):
        self.expect(
            {"tests": ["unit/small.it_grows"]},
            "not ok 1 - t/m: unit/small.it_grows passes",
        )

    def test_every_test_has_to_fail(self):
        both = ["unit/small.never_beyond_a_limit", "unit/small.it_grows"]
        self.expect({"tests": both}, "not ok 1 - t/m: unit/small.it_grows passes")
        self.expect(
            {"tests": both, "any": True}, "ok 1 - t/m: killed by unit/small.never"
        )

    def test_what_does_not_compile_is_no_kill(self):
        self.expect({"new": "> nothing"}, "not ok 1 - t/m: it does not build")

    def test_what_becomes_unused_compiles(self):
        self.expect(
            {"old": "twice(x)", "new": "8", "tests": ["unit/small.it_grows"]}, "ok 1"
        )

    def test_a_test_that_fails_anyway_is_no_kill(self):
        self.expect(
            {"tests": ["unit/small.it_shrinks"]},
            "not ok 1 - t/m: a test fails without it, unit/small.it_shrinks",
        )

    def test_a_crash_only_if_the_row_says_so(self):
        crash = {"old": "return limit", "new": "__builtin_trap()"}
        self.expect(crash, "not ok 1 - t/m: unit/small.never_beyond_a_limit panics")
        self.expect({**crash, "how": "hangs"}, "not ok 1")
        self.expect({**crash, "how": "panics"}, "ok 1 - t/m: killed")

    def test_rows_that_do_not_fit(self):
        for row, why in (
            ({"function": "shrunk"}, "there is no shrunk"),
            ({"old": "< limit"}, "no such text: < limit"),
            ({"old": "limit"}, "that text 2 times: small.c:10, small.c:11"),
            ({"old": "> lim"}, "no such text"),
            ({"new": ">   limit"}, "changes nothing"),
            ({"tests": ["unit/large"]}, "there is no test unit/large"),
            ({"tests": ["unit/small.it_flies"]}, "no test unit/small.it_flies"),
            ({"tests": ["tools/small.test_it_grows"]}, "no test tools/small"),
            ({"tests": ["small"]}, "small is not TIER/STEM"),
            ({"how": "slowly"}, "how is one of"),
            ({"hwo": "fails"}, "['hwo']"),
        ):
            self.assertIn(why, self.mutants(row))
            self.assertEqual(self.status, 1)

    def test_a_later_run_continues(self):
        self.expect({}, "ok 1")
        self.assertIn("1 rows were killed before", self.mutants({}))
        self.assertEqual(self.status, 0)
        for row, *words in (
            ({}, "--again"),
            ({}, "m"),
            ({"new": ">= limit + 8"},),  # another row
            ({"tests": ["unit/small.it_grows"], "old": "twice(x)", "new": "8"},),
        ):
            self.assertIn("ok 1 - t/m: killed by", self.mutants(row, *words))
        self.expect({"tests": ["unit/small.it_grows"]}, "not ok 1")
        self.expect({"tests": ["unit/small.it_grows"]}, "not ok 1")

    def test_a_changed_file_is_tried_again(self):
        self.expect({}, "ok 1")
        self.small += "/* and a word more */\n"
        self.expect({}, "ok 1")

    def test_only_what_is_named(self):
        self.assertIn("ok 1 - t/m: killed", self.mutants({}, "t/m"))
        self.assertIn("no mutant is called n", self.mutants({}, "n"))
        self.assertEqual(self.status, 2)

    def test_one_run_at_a_time(self):
        self.expect({}, "ok 1")
        with open(self.path("lanes/.lock"), "w", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertIn("Bail out! another run is using", self.mutants({}))
        self.assertEqual(self.status, 2)

    def pid_of_test(self):
        for number in (1, 2):
            path = self.path(f"lanes/lane{number}/pid")
            if os.path.exists(path) and os.path.getsize(path):
                with open(path, encoding="ascii") as file:
                    return int(file.read())
        return None

    def test_ctrl_c_ends_the_tests_as_well(self):
        with self.start({"tests": ["unit/small.it_ends"]}) as run:
            while not (pid := self.pid_of_test()):
                self.assertIsNone(run.poll())
                time.sleep(0.01)
            run.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(), 130)
        for _ in range(500):
            if not os.path.exists(f"/proc/{pid}"):
                return
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        self.fail("a test goes on")

    def test_the_copy_follows_the_tree(self):
        self.expect({}, "ok 1")
        self.write("lanes/lane1/small.c", "left of a run that was ended")
        self.write("lanes/lane2/old.c", "")
        self.expect({}, "ok 1", "--again")
        self.assertFalse(os.path.exists(self.path("lanes/lane2/old.c")))


class Functions(scratch.Scratch):
    def found(self, name, text, function, old):
        self.write(name, text)
        subprocess.run(["git", "init", "-q"], cwd=self.path("."), check=True)
        path, start, end = source.Tree(self.path(".")).find(function, old)
        self.assertEqual(path, name)
        return text[start:end], text.count("\n", 0, start) + 1

    def test_in_c(self):
        text = (
            "int f(int x);\n#define G(x) \\\n    one(x)\n"
            "int g(void)\n{\n    f(1);\n}\n\n"
            "static struct s *f(int x,\n        int y)\n{\n    one(x);\n"
            "    two(one);\n}\n"
            "static const char t[2] = {\n    one,\n};\n"
        )
        self.assertEqual(
            self.found("a.c", text, "f", "one(x);\ttwo"), ("one(x);\n    two", 12)
        )
        self.assertEqual(self.found("a.c", text, "G", "one"), ("one", 3))
        self.assertEqual(self.found("a.c", text, "t", "one"), ("one", 16))

    def test_in_nasm(self):
        text = "proc a\n    cli\n    ret\nendproc a\n%macro ab 1\n    cli\n%endmacro\n"
        self.assertEqual(self.found("a.asm", text, "a", "cli"), ("cli", 2))
        self.assertEqual(self.found("a.asm", text, "ab", "cli"), ("cli", 6))

    def test_in_promela(self):
        text = "inline a(x)\n{\n    x++\n}\nactive [2] proctype b()\n{\n    x++\n}\n"
        self.assertEqual(self.found("a.pml", text, "a", "x++"), ("x++", 3))
        self.assertEqual(self.found("a.pml", text, "b", "x++"), ("x++", 7))

    def test_in_python(self):
        text = (
            "class A:\n    def b(self):\n        return 1\n\n"
            "    def c(self):\n        return 1\n"
        )
        self.assertEqual(self.found("a.py", text, "c", "1"), ("1", 6))


GUEST = """ok 1 - 2 CPUs, a.first: it does
not ok 2 - 2 CPUs, a.first: it does that too
ok 3 - 2 CPUs, a.first_of_all: fine
"""
HUNG = "not ok 4 - no answer within 60 s, during its tests\n"
PANIC = "not ok 4 - the kernel panicked, during its tests\n"
LAST = "not ok 5 - 2 CPUs, 2 of 3 tests ended, the last one begun: a.last\n1..5\n"


class Outcomes(scratch.Scratch):
    def of(self, label, output, ended=0):
        return lane.outcome(table.test_of(label), output, ended)

    def test_in_a_guest(self):
        self.assertEqual(self.of("kernel/a.first", GUEST), "fails")
        self.assertEqual(self.of("kernel/a.first_of_all", GUEST), "passes")
        self.assertEqual(self.of("kernel/a", GUEST), "fails")
        self.assertEqual(self.of("kernel/a.last", GUEST), "does not run")
        self.assertEqual(self.of("kernel/a.last", GUEST + PANIC + LAST), "panics")
        self.assertEqual(self.of("kernel/a.last", GUEST + HUNG + LAST), "hangs")
        self.assertEqual(self.of("kernel/a.first_of_all", GUEST + HUNG + LAST), "passes")

    def test_on_the_host(self):
        self.assertEqual(self.of("unit/a", "ok 1 - x\n1..1\n"), "passes")
        self.assertEqual(self.of("unit/a", "not ok 1 - x\n1..1\n", 1), "fails")
        self.assertEqual(self.of("unit/a.x", "1..0\n", 1), "does not run")
        self.assertEqual(self.of("unit/a", "ok 1 - x\n", -6), "panics")
        self.assertEqual(self.of("unit/a", "ok 1 - x\n", None), "hangs")
        nothing = "not ok 1 - a: holds, in 0 states\n1..1\n"
        self.assertEqual(self.of("model/a", nothing, 1), "does not run")
        panic = "not ok 1 - f: GuestError: the kernel panicked, at its start\n1..1\n"
        self.assertEqual(self.of("session/a", panic, 1), "panics")


scratch.main()
