"""labs.py - knows the labs and their rubrics, and makes a student's folder.

    docs/labs/NAME/       README.md (the task), rubric, start/ (what the student begins with)
    docs/labs/host/NAME/  grader.c, or grader.py with a Workshop of its own; solution/, and
                          where they are needed: truth/ (right answers, if not by the
                          solution), input.c
"""

import os
import re
import shlex
import shutil
import subprocess
import sys

from sonde.errors import write_whole
from sonde.guest import ROOT
from sonde.options import UsageError

# In the order in which a student should do the labs. A lab keeps its number.
NUMBERS = {"bomb": 1, "int3": 3, "decode": 4, "boost": 5, "reenter": 6, "handler": 2,
           "poke": 7, "return": 8, "pun": 9, "bugs": 10}  # fmt: skip
IN_GUESTS = ("bomb", "handler")  # these need the kernel

TASKS = "docs/labs"
GRADERS = "docs/labs/host"
HINT = re.compile(r"<details><summary>(.*?)</summary>\n\n(.*?)\n\n</details>", re.S)
COLUMNS_MAX = 100
SOURCES = (".c", ".asm", "keys")  # files of the student; headers are the grader's own


class Line:
    """A line of a rubric: points, name, number of cases, description."""

    def __init__(self, text):
        points, self.name, cases, self.about = text.strip().split(None, 3)
        self.points, self.cases = int(points), int(cases)


def name_of(word):
    """Return the name of the lab with a number or a name. Raises UsageError."""
    for name, number in NUMBERS.items():
        if word in (name, str(number)):
            return name
    there = ", ".join(
        f"{number} {name}"
        for name, number in sorted(NUMBERS.items(), key=lambda row: row[1])
    )
    raise UsageError(f"there is no lab {word}; there are {there}")


def rubric(name, tree=ROOT):
    """Return the lines of a lab's rubric."""
    with open(os.path.join(tree, TASKS, name, "rubric"), encoding="utf-8") as file:
        return [Line(text) for text in file if text.strip() and text[0] != "#"]


def starting(name, tree=ROOT):
    """Return the folder with the files that a student begins with."""
    return os.path.join(tree, TASKS, name, "start")


def handed_in(name, tree=ROOT):
    """Return the names of the files that a student hands in: start/ without headers."""
    return sorted(f for f in os.listdir(starting(name, tree)) if f.endswith(SOURCES))


def folder(name):
    """Return the folder of a student's files, if the command line names no other one."""
    parent = os.environ.get("SONDE_LABS") or os.path.expanduser("~/sonde-labs")
    return os.path.join(parent, name)


def in_shell(path):
    """Write a path for a shell, with ~/ if it is in the home directory."""
    home, path = os.path.expanduser("~/"), os.path.abspath(path)
    if path.startswith(home):
        return "~/" + shlex.quote(path.removeprefix(home))
    return shlex.quote(path)


def begin(name, path):
    """Make the student's folder. Do not change files that exist. Return the names of
    the new files.
    """
    os.makedirs(path, exist_ok=True)
    new = [
        f
        for f in sorted(os.listdir(starting(name)))
        if not os.path.lexists(os.path.join(path, f))
    ]
    for file in new:
        with open(os.path.join(starting(name), file), "rb") as start:
            write_whole(os.path.join(path, file), start.read())
    return new


def show_list():
    """Print all labs, each with the first line of its task."""
    for name, number in NUMBERS.items():
        with open(os.path.join(ROOT, TASKS, name, "README.md"), encoding="utf-8") as file:
            title = file.readline().strip("# \n")
        print(f"{number:3}  {name:8} {title}")


def task_of(name):
    """Return the task. Its links lead from the top of the tree."""
    place = os.path.join(TASKS, name)
    with open(os.path.join(ROOT, place, "README.md"), encoding="utf-8") as file:
        return re.sub(
            r"\]\((\.\./[^)]*)\)",
            lambda link: f"]({os.path.normpath(os.path.join(place, link[1]))})",
            file.read(),
        )


def print_text(markdown):
    """Print a text, on a terminal as a person reads it, if lowdown is there."""
    printer = shutil.which("lowdown")
    if not printer or not sys.stdout.isatty():
        print(markdown)
        return
    columns = min(shutil.get_terminal_size().columns, COLUMNS_MAX)
    words = [printer, "-Tterm", f"--term-columns={columns}", "--term-hmargin=0"]
    sys.stdout.flush()
    subprocess.run(words, input=markdown.encode(), check=False)


def show_hint(name, number):
    for title, text in HINT.findall(task_of(name)):
        if title.startswith(f"Hint {number}:"):
            print_text(f"**{title}**\n\n{text}")
            return
    raise UsageError(f"lab {NUMBERS[name]} has no hint {number}; the first is --hint 1")


def show(name=None, path=None, begin_in=begin, hint=None):
    """Run ./sonde lab: show the task, and make its folder by @begin_in(name, path).
    @hint: show only the hint of this number, or None; the task has their titles
    """
    if name is None and hint is not None:
        raise UsageError(f"lab --hint {hint}: of which lab?")
    if name is None:
        show_list()
        return
    if hint is not None:
        show_hint(name, hint)
        return
    path = path or folder(name)
    task = task_of(name).replace(f"~/sonde-labs/{name}", in_shell(path))
    asks = f"./sonde lab {NUMBERS[name]} --hint"
    task = HINT.sub(lambda hint: f"- `{asks} {hint[1][5]}`{hint[1][6:]}", task)
    task = re.sub(r"\n\n(?=- `\./sonde lab \d+ --hint [^1])", "\n", task)
    new = begin_in(name, path)  # before the output: its reader may close the pipe
    print_text(task)
    print(f"Your files are in {path}" + (f" (new: {', '.join(new)})" if new else ""))
    print(f"Points: ./sonde grade {NUMBERS[name]}")
