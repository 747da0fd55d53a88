"""test_labs.py - checks that a lab gives the right points: test_labs.py NAME.

The files of start/ lose every line of the rubric. The solution loses none. Each wrong
solution is a patch of the solution, and loses the lines that the patch names, and no
others. The task agrees with the rubric.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import tap
from docs.labs.host import grade, labs
from sonde.guest import ROOT

SEEDS = (1, 2) if tap.LONG else (1,)


def lost(verdicts):
    return {v.line.name: v.why for v in verdicts if v.why}


def solved(lab, folder, seed):
    """Return a folder with a student's answer. If the right answer depends on the seed,
    the solution is a program, solve.py, which finds the answer for this seed.
    """
    solver = os.path.join(folder, "solve.py")
    if not os.path.exists(solver):
        return folder
    path = tempfile.mkdtemp(dir=folder)
    grade.begin(lab, path, seed)
    subprocess.run(
        [sys.executable, solver, path], check=True, env=dict(os.environ, SONDE_ROOT=ROOT)
    )
    return path


def loses(workshop, handed_in, names, what):
    for seed in SEEDS:
        answer, begun = solved(workshop.lab, handed_in, seed), time.monotonic()
        verdicts = grade.grade(workshop, answer, seed)
        found = lost(verdicts)
        tap.note(f"graded in {time.monotonic() - begun:.1f} s, goal 30")
        tap.equal(set(found), set(names), f"{what} loses {', '.join(names) or 'no line'}")
        for name in set(found) ^ set(names):
            tap.note(f"{name}: {found.get(name, 'passed')}")
    return verdicts


def each_failed_case_can_be_shown(workshop, handed_in, verdicts):
    """A case that failed in the grading fails again if it is run by --seed and --case."""
    for verdict in verdicts:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            is_ok = grade.show_case(workshop, handed_in, SEEDS[-1], verdict.case)
        head = f"# seed {SEEDS[-1]}, case {verdict.case}: {verdict.line.name}: "
        tap.check(
            not is_ok and shown.getvalue().startswith(head),
            f"case {verdict.case} of {verdict.line.name} fails again",
        )


def wrong_ones(lab):
    return os.path.join(ROOT, "tests", "labs", lab, "wrong")


def patched(lab, patch, target):
    """Make a wrong solution in @target: the solution with a patch. Return the names of
    the lines that it loses.
    """
    shutil.copytree(os.path.join(ROOT, labs.GRADERS, lab, "solution"), target)
    path = os.path.join(wrong_ones(lab), patch)
    subprocess.run(["git", "apply", path], cwd=target, check=True)
    with open(path, encoding="utf-8") as file:
        return file.readline().removeprefix("loses:").split()


def grade_all(workshop, scratch):
    every = [line.name for line in labs.rubric(workshop.lab)]
    start = labs.starting(workshop.lab)
    verdicts = loses(workshop, start, every, "start")
    each_failed_case_can_be_shown(workshop, start, verdicts[:1] + verdicts[-1:])
    target = os.path.join(scratch, "solution")
    shutil.copytree(os.path.join(workshop.grader, "solution"), target)
    loses(workshop, target, [], "the solution")
    wrong = sorted(os.listdir(wrong_ones(workshop.lab)))
    tap.check(len(wrong) >= 2, "there are two wrong solutions")
    for name in wrong:
        target = os.path.join(scratch, name)
        loses(workshop, target, patched(workshop.lab, name, target), f"wrong/{name}")


def task_agrees(lab):
    with open(os.path.join(ROOT, labs.TASKS, lab, "README.md"), encoding="utf-8") as file:
        task = file.read()
    shown = re.findall(r"^\| `([\w-]+)` \| (\d+) \|", task, re.M)
    lines = [(line.name, str(line.points)) for line in labs.rubric(lab)]
    tap.equal(shown, lines, "the task shows the lines of the rubric, in order")
    tap.equal(sum(line.points for line in labs.rubric(lab)), 20, "which are 20 points")
    tap.equal(task.count("<details><summary>Hint "), 3, "it has three hints")
    tap.check("\n## Now read\n" in task, "and says what to read then")
    with open(os.path.join(ROOT, labs.TASKS, "README.md"), encoding="utf-8") as file:
        row = f"| [{labs.NUMBERS[lab]} {lab}]({lab}/README.md) | "
        tap.check(row in file.read(), "the list of labs has a row for it")


def solution_fits(lab):
    """The solution consists of the same files that students hand in."""
    solution = os.path.join(ROOT, labs.GRADERS, lab, "solution")
    theirs = {name for name in os.listdir(solution) if name.endswith(labs.SOURCES)}
    if lab == "bomb":  # its solution is a program
        return
    tap.check(
        theirs and theirs <= set(labs.handed_in(lab)),
        f"the solution is what students hand in: {', '.join(sorted(theirs))}",
    )


def start_has_five_bugs():
    """The tracer that students begin with is the solution with five bugs, one for each of
    five lines of the rubric. It has no other difference.
    """
    folder = os.path.join(ROOT, labs.GRADERS, "bugs")
    lines = [line.name for line in labs.rubric("bugs")]
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(os.path.join(folder, "solution/tracer.c"), scratch)
        for name in lines[1:-1]:
            subprocess.run(
                ["git", "apply", os.path.join(folder, "bugs", name + ".patch")],
                cwd=scratch,
                check=True,
            )
        with open(os.path.join(scratch, "tracer.c"), encoding="utf-8") as file:
            planted = file.read()
    with open(os.path.join(labs.starting("bugs"), "tracer.c"), encoding="utf-8") as file:
        tap.equal(planted, file.read(), f"start/tracer.c has the bugs {lines[1:-1]}")


def main():
    lab = sys.argv[1]
    task_agrees(lab)
    solution_fits(lab)
    if lab == "bugs":
        start_has_five_bugs()
    with tempfile.TemporaryDirectory() as folder:
        workshop = grade.workshop_of(lab, ROOT, os.path.join(folder, "built"))
        with contextlib.closing(workshop):
            workshop.build_ours()
            grade_all(workshop, folder)
    tap.finish()


main()
