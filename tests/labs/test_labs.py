"""test_labs.py - checks that a lab gives the right points: test_labs.py NAME.

The files of start/ lose every line of the rubric. The solution loses none. Each wrong
solution of NAME.toml loses the lines that its row names, and no others, and the student
reads the sentences of its row. The test prints how many of the wrong solutions that
wrong.py makes by rules lose a line. The task agrees with the rubric.

The long run uses twenty seeds: a wrong solution loses the same points with each, so that
no student can wait for a lucky one. A line that takes no seed is graded once, and a line
that is lost since its time is over, with FEW seeds. The long run also tries all solutions
made by rules; the short run tries a part of them. KEPT=FILE in the environment keeps the
gradings of wrong solutions in FILE, and a later run of the same files takes them from there.
"""

import contextlib
import glob
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import tap
import wrong
from docs.labs.host import grade, labs
from sonde.guest import ROOT

SEEDS = range(1, 21) if tap.LONG else (1,)
MADE_SECONDS = 2  # for a case of a solution made by rules: many of them hang
SAMPLE = 10  # the number of solutions made by rules in the short run
SLOW = {"handler": 3, "poke": 3}  # the same for labs that take long

FEW = 3  # further seeds for a line that is lost since its time is over
LATE = re.compile(r"(it did not end|no answer) within \d+ s")

# Lines whose cases are the same with every seed, so that one seed is run.
SEEDLESS = {
    "bugs": ("right", "place", "edge", "cut", "clear", "wait", "fixed"),
    "poke": ("fetch", "after", "ends", "two", "smallest"),
}

KEPT = os.environ.get("KEPT")


def kept(workshop, folder, what, find):
    """Return find(), or what it has returned to an earlier run for the files of @folder."""
    if not KEPT:
        return find()
    place, lab = os.path.join(ROOT, labs.GRADERS), workshop.lab
    paths = glob.glob(place + "/grade*") + glob.glob(f"{place}/{lab}/**", recursive=True)
    paths += glob.glob(f"{ROOT}/{labs.TASKS}/{lab}/**", recursive=True)
    paths += glob.glob(folder + "/*.c") + glob.glob(folder + "/*.asm")
    digest = hashlib.sha256()
    for path in filter(os.path.isfile, sorted(paths)):
        with open(path, "rb") as file:
            digest.update(os.path.basename(path).encode() + file.read())
    key = f"{lab} {digest.hexdigest()} {what}"
    with open(KEPT, "a+", encoding="utf-8") as file:
        file.seek(0)
        for row in file:
            if row.startswith(key + "\t"):
                return json.loads(row.split("\t")[1])
        found = find()
        file.write(f"{key}\t{json.dumps(found)}\n")
    return found


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
        [sys.executable, solver, path],
        check=True,
        env=dict(os.environ, SONDE_ROOT=ROOT),
    )
    return path


def takes_seed(lab, name):
    return name not in SEEDLESS.get(lab, ())


def loses(workshop, handed_in, names, what):
    """Check that an answer loses the lines @names, and no others. With further seeds, only
    these lines are graded, if there are any. Return the verdicts of the first seed.
    """
    first = None
    for seed in SEEDS:
        answer, begun = solved(workshop.lab, handed_in, seed), time.monotonic()
        verdicts = grade.grade(workshop, answer, seed)
        found = lost(verdicts)
        tap.note(f"graded in {time.monotonic() - begun:.1f} s, goal 30")
        tap.equal(
            set(found),
            set(names),
            f"{what} loses {', '.join(names) or 'no line'}",
        )
        for name in set(found) ^ set(names):
            tap.note(f"seed {seed}: {name}: {found.get(name, 'passed')}")
        first = first or verdicts
        if names and answer == handed_in:
            break
        if not any(takes_seed(workshop.lab, verdict.line.name) for verdict in first):
            break
    for name in names if tap.LONG and answer == handed_in else ():
        count, lucky = with_more_seeds(workshop, handed_in, name)
        tap.equal(lucky, [], f"{what}: {name} is lost with {count} seeds")
    return first


def with_more_seeds(workshop, folder, name):
    """Grade one line of the rubric with further seeds. Return how many seeds it was graded
    with, and a list of those with which it is passed.
    """
    line = next(line for line in labs.rubric(workshop.lab) if line.name == name)
    built, late, count, lucky = [], 0, 1, []

    def why(seed):
        if not built:
            workshop.build_answer(folder)
            built.append(folder)
        return grade.grade_line(workshop, line, seed, 0).why

    for seed in SEEDS[1:] if takes_seed(workshop.lab, name) else ():
        said = kept(workshop, folder, f"{name} {seed}", lambda: why(seed))
        count += 1
        late += bool(said and LATE.search(said))
        if not said:
            lucky.append(seed)
        if late == FEW:
            break
    return count, lucky


def printed(show, *words):
    """Return (what a function returns, what it prints)."""
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        return show(*words), shown.getvalue()


def each_failed_case_can_be_shown(workshop, handed_in, verdicts):
    """A case that failed in the grading fails again if it is run by --seed and --case."""
    for verdict in verdicts:
        words = workshop, handed_in, SEEDS[-1], verdict.case
        is_ok, shown = printed(grade.show_case, *words)
        head = f"# seed {SEEDS[-1]}, case {verdict.case}: {verdict.line.name}: "
        tap.check(
            not is_ok and shown.startswith(head),
            f"case {verdict.case} of {verdict.line.name} fails again",
        )


def teaches(workshop, folder, row, verdicts):
    """The student reads the sentences of the row."""
    told = printed(grade.show, verdicts, labs.NUMBERS[workshop.lab], SEEDS[0], False)[1]
    case = next(verdict.case for verdict in verdicts if verdict.why)
    words = workshop, folder, SEEDS[0], case
    shown = printed(grade.show_case, *words)[1] if row.shows else ""
    for text, wanted in ((told, row.says), (shown, row.shows)):
        for sentence in wanted:
            if not tap.check(re.search(sentence, text), f"{row.name}: {sentence}"):
                tap.note(text)


def written(files, target):
    os.makedirs(target)
    for name, text in files.items():
        with open(os.path.join(target, name), "w", encoding="utf-8") as file:
            file.write(text)
    return target


# ---- solutions made by rules


def code_of(workshop, files):
    """Return what a compiler without -g makes of a solution; None: it refuses it. Two
    solutions with the same code are one.
    """
    code = b""
    for name, text in files.items():
        with tempfile.TemporaryDirectory() as folder:
            source, target = os.path.join(folder, name), os.path.join(folder, "code.o")
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            options = workshop.to_compile(source, target)
            options = [word for word in options if word not in ("-g", "-F", "dwarf")]
            done = subprocess.run(
                [*options, *["-w"] * name.endswith(".c")],
                cwd=ROOT,
                capture_output=True,
                check=False,
            )
            if done.returncode:
                return None
            with open(target, "rb") as file:
                code += file.read().replace(folder.encode(), b"")
    return code


def line_lost(workshop, folder):
    """Return the first line of the rubric that an answer loses with the first seed; None:
    it gets full points.
    """
    try:
        workshop.build_answer(folder)
    except grade.NotBuilt:
        return "not built"
    for line in labs.rubric(workshop.lab):
        if grade.grade_line(workshop, line, SEEDS[0], 0).why:
            return line.name
    return None


def made_by_rules(workshop, scratch):
    """Grade the wrong solutions that wrong.py makes. Print how many were killed."""
    right, same = code_of(workshop, wrong.solution(workshop.lab)), 0
    known = wrong.harmless(workshop.lab)
    killed, survived, lucky = 0, [], []
    made = list(wrong.of_machine(workshop.lab))
    if not tap.LONG:
        made = made[:: max(1, len(made) // SLOW.get(workshop.lab, SAMPLE))]
    usual = workshop.seconds
    if workshop.lab not in labs.IN_GUESTS:
        workshop.seconds = min(usual, MADE_SECONDS * workshop.scale)
    for i, one in enumerate(made):
        code = code_of(workshop, one.files)
        if code is None:
            continue
        if code == right:
            same += 1
            continue
        folder = written(one.files, os.path.join(scratch, f"made-{i}"))
        name = kept(workshop, folder, "made", lambda: line_lost(workshop, folder))
        if name is None and one.edit in known:
            same += 1
        elif name is None:
            survived.append(one.name)
        else:
            killed += 1
            if name != "not built":
                seeds = with_more_seeds(workshop, folder, name)[1]
                lucky += [f"{one.name}: {name}, seed {seed}" for seed in seeds]
    workshop.seconds = usual
    for name in survived:
        tap.note("survived " + name)
    for name in lucky:
        tap.note("lucky " + name)
    of = max(killed + len(survived), 1)
    tap.note(
        f"{workshop.lab}, by rules: {killed} killed, {len(survived)} survived, {same} "
        f"equivalent; {100 * killed / of:.0f} %, aim 95 %"
    )


def grade_all(workshop, scratch):
    every = [line.name for line in labs.rubric(workshop.lab)]
    start = labs.starting(workshop.lab)
    verdicts = loses(workshop, start, every, "start")
    each_failed_case_can_be_shown(workshop, start, verdicts[:1] + verdicts[-1:])
    target = os.path.join(scratch, "solution")
    shutil.copytree(os.path.join(workshop.grader, "solution"), target)
    loses(workshop, target, [], "the solution")
    rows = list(wrong.of_people(workshop.lab))
    for row in rows:
        target = written(row.files, os.path.join(scratch, "wrong-" + row.name))
        teaches(workshop, target, row, loses(workshop, target, row.loses, row.name))
    tap.note(f"{workshop.lab}, by people: {len(rows)}")
    if any(name.endswith(".c") for name in wrong.solution(workshop.lab)):
        made_by_rules(workshop, scratch)


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
