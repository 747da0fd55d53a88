#!/usr/bin/env python3
"""test_extend.py - tests each example of docs/extend.md: applies it to a copy of the
tree, builds it, and runs it as the document says. And makes three mechanisms of the tree
once more, under another name: a row each, which the tests that are there already test.
"""

import difflib
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
import rows
from sonde.guest import ROOT

COPY = os.path.join(ROOT, "build", "extend")
NAMES = ("way", "operation", "fetch", "command")
FILES_MAX, LINES_MAX = 3, 80  # of a mechanism
AGAIN = "again"


def blocks():
    """Return {(language, name): text} of the blocks in the document."""
    with open(os.path.join(ROOT, "docs", "extend.md"), encoding="utf-8") as file:
        found = re.findall(r"^```(\w+) (\w+)\n(.*?)^```$", file.read(), re.M | re.S)
    return {(kind, name): text for kind, name, text in found}


def run(words, **more):
    return subprocess.run(
        words, capture_output=True, text=True, errors="replace", check=False, **more
    )


def copy_tree():
    """Copy all files that git knows, if they have changed. Objects that an earlier run
    has built in the copy are used again.
    """
    listed = run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT
    ).stdout
    os.makedirs(COPY, exist_ok=True)
    for name in listed.split("\0")[:-1]:
        here, there = os.path.join(ROOT, name), os.path.join(COPY, name)
        if os.path.exists(there) and filecmp.cmp(here, there, shallow=False):
            continue
        os.makedirs(os.path.dirname(there), exist_ok=True)
        shutil.copy(here, there)


def apply(patch, *options):
    """Apply a patch to the copy. GIT_CEILING_DIRECTORIES keeps git from taking the copy
    for a part of the repository around it.
    """
    env = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(COPY))
    return run(["git", "apply", *options, "-"], input=patch, cwd=COPY, env=env)


def sonde(*words):
    """Run ./sonde of the copy, which finds its own modules and not those of this run."""
    env = dict(os.environ, B="build")
    env.pop("PYTHONPATH", None)
    return run([os.path.join(COPY, "sonde"), *words], cwd=COPY, env=env)


def shown(text):
    """Return [(command, lines that it prints)] of a block."""
    found = []
    for line in text.splitlines():
        if line.startswith("> "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def example(name):
    patch, text = blocks()["diff", name], blocks()["text", name]
    done = apply(patch)
    if not tap.check(done.returncode == 0, f"{name}: the patch applies"):
        tap.note(done.stdout + done.stderr)
        return
    try:
        steps = shown(text)
        words = [command for command, _ in steps]
        done = sonde("exec", "--json", *words)
        if not tap.check(
            done.returncode == 0, f"{name}: it is built, and the commands run"
        ):
            tap.note((done.stdout + done.stderr)[-3000:])
        replies = [json.loads(line) for line in done.stdout.splitlines()]
        for (command, lines), reply in zip(steps, replies):
            for line in lines:
                tap.check(line in reply["output"], f"{command}: {line}")
    finally:
        apply(patch, "-R")


def an(name):
    def test():
        example(name)

    test.__name__ = name
    return test


# ---- mechanisms once more ----


def renamed(text, name):
    """@text with another name of the row, and of the functions that are named after it."""
    return re.sub(
        rf'(?<=_){name}\b(?= = \{{)|(?<="){name}(?=")|\b{name}(?=_)', AGAIN, text
    )


def in_front(path, start, line):
    """The change of a file: a line in front of that which begins with @start."""
    text = rows.read(path)
    return path, text, text.replace(start, line + "\n" + start, 1)


def engine_again(name):
    """The changes [(path, old text, new text)] that make an engine once more."""
    file = rows.engines()[name]
    new = file.replace(name, AGAIN)
    sources = os.path.join(os.path.dirname(file), "sources.mk")
    return [
        (new, "", renamed(rows.read(file), name)),
        in_front(rows.ENGINES, f"    X({name})", f"    X({AGAIN}) \\"),
        in_front(sources, f"    {file}", f"    {new} \\"),
    ]


def operation_again(name):
    """The changes that make an operation once more: its part of a file."""
    part = re.compile(rf"^/\* ---- {name} ---- \*/\n.*?(?=^/\* ---- |\Z)", re.M | re.S)
    path = f"{os.path.dirname(rows.OPERATIONS)}/op_choice.c"
    text, row = rows.read(path), f"{name.upper()}, {name})"
    found = part.search(text).group()
    return [
        (path, text, text + "\n" + renamed(found, name)),
        in_front(rows.OPERATIONS, f"    X({row}", f"    X({AGAIN.upper()}, {AGAIN}) \\"),
    ]


def put(changes, wrong=None):
    """Write the files into the copy. @wrong: (old, new), a mistake in the first of them"""
    for path, old, new in changes:
        if wrong:
            at = new.rindex(wrong[0])  # in what is made once more
            new, wrong = new[:at] + wrong[1] + new[at + len(wrong[0]) :], None
        with open(os.path.join(COPY, path), "w", encoding="utf-8") as file:
            file.write(new)


def take_back(changes):
    for path, old, _ in changes:
        if old:
            put([(path, None, old)])
        else:
            os.remove(os.path.join(COPY, path))


def lines_of(changes):
    """How many lines are new: changed ones, and those that are not blank."""
    return sum(
        line[:2] == "+ " and bool(line[2:].strip())
        for _, old, new in changes
        for line in difflib.ndiff(old.splitlines(), new.splitlines())
    )


def mechanism(name, changes, labels, wrong):
    """@labels: tests that go through the rows. @wrong: a mistake, which the first finds"""
    lines = lines_of(changes)
    tap.note(f"{name}: {lines} lines in {len(changes)} files")
    tap.check(len(changes) <= FILES_MAX, f"{name} takes at most {FILES_MAX} files")
    tap.check(lines <= LINES_MAX, f"{name} takes at most {LINES_MAX} lines")
    try:
        put(changes)
        done = sonde("test", *labels)
        if not tap.check(done.returncode == 0, f"{name}: tests that are there pass"):
            tap.note((done.stdout + done.stderr)[-3000:])
        put(changes, wrong)
        done = sonde("test", labels[0])
        tap.check("not ok" in done.stdout, f"{name}: with a mistake, {labels[0]} fails")
    finally:
        take_back(changes)


def an_engine_is_a_row():
    labels = "unit/text_poke", f"kernel/by-{AGAIN}1"
    wrong = "plat_fetches_words() && ", ""
    mechanism("word", engine_again("word"), labels, wrong)


def sampling_is_a_row():
    wrong = "INSN_CC_NS", "INSN_CC_NE"
    mechanism("every", operation_again("every"), ["hosted/program-gcc"], wrong)


def a_condition_is_a_row():
    wrong = "holds_if ^ 1", "holds_if"
    mechanism("if", operation_again("if"), ["hosted/program-gcc"], wrong)


MECHANISMS = an_engine_is_a_row, sampling_is_a_row, a_condition_is_a_row


def main():
    copy_tree()
    tap.run(*[an(name) for name in NAMES], *MECHANISMS)


main()
