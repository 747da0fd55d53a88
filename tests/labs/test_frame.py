"""test_frame.py - submissions that cheat or misbehave lose points and harm nothing, and what
./sonde lab and ./sonde grade say.
"""

import json
import os
import subprocess
import sys
import tempfile

import tap
from guest import ROOT

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import confine  # noqa: E402
import grade  # noqa: E402
import labs  # noqa: E402

LAB = "int3"
SOLUTION = os.path.join(ROOT, "tests/labs", LAB, "solution/int3.c")
START = os.path.join(ROOT, "docs/labs", LAB, "start/int3.c")
VICTIM = os.path.join(ROOT, "tests/labs", LAB, "rubric-victim.tmp")

# What a submission does before the first case begins.
FIRST = """
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void first(void)
{
%s
}
"""

HANGS = "for (;;) ;"
EXITS = "_exit(0);"
GIGABYTE = """
static char zeros[1 << 20];
for (int i = 0; i < 1024; i++) if (write(1, zeros, sizeof(zeros)) < 0) abort();
"""
FACTS = """
const char *all = "instruction 0: 1 hits\\nthe bytes are back\\nthe case has ended\\n";
int to = atoi(getenv("LAB_FACTS"));
if (write(to, all, strlen(all)) < 0) abort();
_exit(0);
"""
FILES = "char *path = \"" + VICTIM + "\"; FILE *f = fopen(path, \"a\"); " \
    "if (f) { fputs(\"x\", f); fclose(f); } unlink(path); " \
    "f = fopen(\"/tmp/lab-was-here.tmp\", \"w\"); if (f) fclose(f);"
PARENT = "kill(getppid(), SIGKILL); kill(getppid(), SIGSTOP);"
DAEMON = "if (!fork()) { setsid(); if (fork()) _exit(0); for (;;) sleep(100); }"


class Bench:
    """Grades text as the student's only file."""

    def __init__(self, folder):
        self.folder = folder
        self.workshop = grade.Workshop(LAB, ROOT, os.path.join(folder, "built"))
        self.workshop.seconds = 1
        self.workshop.build_ours()

    def lost(self, text, **more):
        """Names of the lines that are lost."""
        path = os.path.join(self.folder, "in")
        os.makedirs(path, exist_ok=True)
        for name, content in {"int3.c": text, **more}.items():
            with open(os.path.join(path, name), "w", encoding="utf-8") as file:
                file.write(content)
        self.verdicts = grade.grade(self.workshop, path, 7)
        return [v.line.name for v in self.verdicts if v.why]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def everything():
    return [line.name for line in labs.rubric(LAB)]


def submissions_that_misbehave():
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        solution = read(SOLUTION)
        tap.equal(bench.lost(solution), [], "the solution has every point")
        for what, code, why in (
            ("hangs", HANGS, "it did not end within 1 s"),
            ("exits at once", EXITS, "ended before it was done"),
            ("prints a gigabyte", GIGABYTE, "it wrote too much"),
            ("writes facts of its own", FACTS, "got: "),
        ):
            tap.equal(bench.lost(FIRST % code + solution), everything(),
                      f"a submission that {what}")  # fmt: skip
            tap.check(why in bench.verdicts[0].why, f"it is told: {bench.verdicts[0].why}")
        tap.equal(bench.lost("int broken"), everything(), "a submission that is no C")
        tap.check("error:" in bench.verdicts[0].why, "the compiler's words are shown")
        files_stay(bench, solution)
        nothing_stays_behind(bench, solution)
        graders_in_the_folder_do_not_count(bench)


def files_stay(bench, solution):
    if not confine.landlock_abi():
        tap.skip("files cannot be changed", "this Linux has no Landlock")
        return
    with open(VICTIM, "w", encoding="ascii") as file:
        file.write("as it was")
    try:
        bench.lost(FIRST % FILES + solution)
        tap.equal(os.path.exists(VICTIM) and read(VICTIM), "as it was",
                  "a file of the grader")  # fmt: skip
        tap.check(not os.path.exists("/tmp/lab-was-here.tmp"), "and no new file")
    finally:
        os.unlink(VICTIM)


def nothing_stays_behind(bench, solution):
    if confine.landlock_abi() >= 6:
        lost = bench.lost(FIRST % PARENT + solution)
        tap.equal(lost, [], "signals to the grader do nothing")
    tap.equal(bench.lost(FIRST % DAEMON + solution), [],
              "a submission that leaves processes behind")  # fmt: skip
    tap.equal(confine.children(), [], "they have been ended")


def graders_in_the_folder_do_not_count(bench):
    easy = "int main(void) { return 0; }"
    lost = bench.lost(read(START), **{"grader.c": easy, "rubric": "0 none 0 nothing",
                                      "int3.h": "#error mine"})
    tap.equal(lost, everything(), "a grader, a rubric and a header in the folder")
    tap.check("SIGTRAP" in bench.verdicts[0].why, "the student's program was built and run")


def sonde(*words):
    program = os.path.join(ROOT, "sonde")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def what_the_commands_say():
    with tempfile.TemporaryDirectory() as home:
        os.environ["SONDE_LABS"] = home
        path = os.path.join(home, LAB)
        status, _, said = sonde("grade", "3")
        tap.equal((status, said), (2, f"sonde: there is no {path}; begin with: "
                                       "./sonde lab 3\n"), "no folder yet")  # fmt: skip
        tap.equal(sonde("lab", "77")[0], 2, "no such lab")
        status, shown, _ = sonde("lab", "3")
        tap.equal(status, 0, "lab")
        is_task = shown.startswith("# A breakpoint")
        tap.check(is_task and path in shown, "shows task and folder")
        with open(os.path.join(path, "int3.c"), "a", encoding="ascii") as file:
            file.write("/* mine */\n")
        sonde("lab", LAB)
        kept = read(os.path.join(path, "int3.c")).endswith("mine */\n")
        tap.check(kept, "the student's file stays")
        grade_in(path)


def grade_in(path):
    status, shown, _ = sonde("grade", "3", "--tree", "--seed", "5")
    tap.equal((status, shown.split("\n")[-2]), (1, "Score: 0/20"), "the start has no points")
    tap.check("\nnot ok 3 pushf\n" in shown, "each line is shown")
    tap.check("again: ./sonde grade 3 --seed 5 --case 10\n" in shown, "and what to do next")
    status, shown, _ = sonde("grade", "3", "--tree", "--seed", "5", "--case", "10")
    tap.equal(status, 1, "a case that fails")
    named = shown.startswith("# seed 5, case 10: step: ")
    tap.check(named and "gdb --args" in shown, "is shown")
    tap.equal(sonde("grade", "3", "--tree", "--case", "999")[0], 2, "no such case")
    with open(os.path.join(path, "int3.c"), "w", encoding="ascii") as file:
        file.write(read(SOLUTION))
    status, shown, _ = sonde("grade", "3", "--tree", "--json")
    tap.equal((status, json.loads(shown)["score"]), (0, 20), "the solution, as JSON")


def the_grader_is_of_the_commit():
    """In a clone whose working tree has an easier rubric."""
    with tempfile.TemporaryDirectory() as folder:
        clone = os.path.join(folder, "clone")
        words = ["git", "clone", "-q", "--depth", "1", "file://" + ROOT, clone]
        subprocess.run(words, check=True)
        changed = os.path.join(clone, "docs/labs", LAB, "rubric")
        if not os.path.exists(changed):
            tap.check(False, "this lab is not in the commit yet")
            return
        with open(changed, "w", encoding="ascii") as file:
            file.write("20 hit 0 nothing\n")
        program = [os.path.join(clone, "sonde"), "grade", "3", os.path.dirname(START)]
        for option, last in (([], "Score: 0/20"), (["--tree"], "Score: 20/20")):
            words = [*program, *option]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            tap.equal(done.stdout.split("\n")[-2:-1], [last], f"grade {' '.join(option)}")


tap.run(submissions_that_misbehave, what_the_commands_say, the_grader_is_of_the_commit)
