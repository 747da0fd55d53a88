"""test_class.py - ./sonde class: what is handed out and collected, and what of both could be
misused. The class is tests/labs/roster.csv with tests/labs/handed-in.
"""

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import tap
from guest import ROOT

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import classroom  # noqa: E402

HERE = os.path.join(ROOT, "tests", "labs")
ROSTER = os.path.join(HERE, "roster.csv")


def sonde(*words):
    words = [os.path.join(ROOT, "sonde"), "class", *words]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def scores(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {row["id"]: {lab: n for lab, n in row.items() if n and lab != "id"}
                for row in csv.DictReader(file)}  # fmt: skip


def what_is_handed_in_is_graded():
    """ben counts without nesting, eve hangs, fay hands in the keys of ada's bomb. In a copy,
    gus hands in a zip file, and links that lead to the work of others.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy, roster = os.path.join(folder, "in"), os.path.join(folder, "roster.csv")
        shutil.copytree(os.path.join(HERE, "handed-in"), copy)
        shutil.copy(ROSTER + ".secret", roster + ".secret")
        shutil.copy(ROSTER, roster)
        with open(roster, "a", encoding="utf-8") as file:
            file.write("gus,Gus Example\n")
        with zipfile.ZipFile(os.path.join(copy, "gus.zip"), "w") as packed:
            solution = os.path.join(HERE, "reenter/solution/reenter.c")
            packed.write(solution, "reenter/reenter.c")
            packed.writestr("bomb/../../keys", "outside")
        os.makedirs(os.path.join(copy, "gus/int3"))
        os.symlink(os.path.join(HERE, "int3/solution/int3.c"),
                   os.path.join(copy, "gus/int3/int3.c"))  # fmt: skip
        output = os.path.join(folder, "grades.csv")
        status, said, error = sonde(roster, "--collect", copy, "-o", output)
        tap.equal((status, error), (0, ""), "collect")
        tap.check(re.fullmatch(r"5 students in \d+ s: .*grades.csv\n", said), said.strip())
        tap.equal(scores(output), {
            "ada": {"bomb": "20", "sum": "20"},
            "ben": {"reenter": "11", "sum": "11"},
            "eve": {"reenter": "0", "sum": "0"},
            "fay": {"bomb": "0", "sum": "0"},
            "gus": {"reenter": "20", "sum": "20"},
        }, "the points of each")  # fmt: skip
        tap.check(not os.path.exists(os.path.join(folder, "keys")), "nothing is unpacked")


def each_student_has_a_seed():
    with tempfile.TemporaryDirectory() as folder:
        roster, out = os.path.join(folder, "class.csv"), os.path.join(folder, "out")
        with open(roster, "w", encoding="ascii") as file:
            file.write("id\nann\nbob\n")
        status, _, error = sonde(roster, "-o", out)
        tap.equal((status, error), (0, ""), "hand out")
        tap.equal(sorted(os.listdir(out)), ["ann.zip", "bob.zip"], "a file for each")
        mode = os.stat(roster + ".secret").st_mode
        tap.equal(mode & 0o77, 0, "the secret is the teacher's")
        secret = classroom.secret_of(roster)
        seeds = {}
        for student in ("ann", "bob"):
            with zipfile.ZipFile(os.path.join(out, student + ".zip")) as packed:
                names = packed.namelist()
                seeds[student] = int(packed.read("bomb/seed"))
                bomb = packed.read("bomb/bomb.o")
            tap.check({"int3/int3.c", "int3/int3.h", "bomb/keys"} <= set(names), "has files")
            tap.check(bomb[:4] == b"\x7fELF", "and a bomb")
            tap.equal(seeds[student], classroom.seed_of(secret, student, "bomb", "task"),
                      "whose seed the secret gives")  # fmt: skip
        tap.check(seeds["ann"] != seeds["bob"], "each has another one")
        cases = classroom.seed_of(secret, "ann", "bomb", "cases")
        tap.check(cases != seeds["ann"], "the cases have another one still")


def what_is_no_class():
    with tempfile.TemporaryDirectory() as folder:
        roster = os.path.join(folder, "class.csv")
        for text in ("id\n", "id\n../up\n", "id\nann\nann\n"):
            with open(roster, "w", encoding="ascii") as file:
                file.write(text)
            tap.equal(sonde(roster)[0], 2, f"a roster of {text!r}")
        tap.equal(sonde(os.path.join(folder, "none"))[0], 2, "no roster")
        tap.equal(sonde()[0], 2, "nothing at all")
        tap.equal(sonde(ROSTER, "--collect", os.path.join(folder, "none"))[0], 2, "no folder")


def guests_take_memory():
    status, said, _ = sonde("--guests", "2", "--memory", "64M")
    words = r"2 guests of 64M: at most (\d+) MB together, \d+ MB each .*\n"
    found = re.fullmatch(words, said)
    tap.check(status == 0 and found and 20 < int(found[1]) < 600, said.strip())


tap.run(what_is_handed_in_is_graded, each_student_has_a_seed, what_is_no_class,
        guests_take_memory)
