#!/usr/bin/env python3
"""test_extend.py - tests each example of docs/extend.md: applies it to a copy of the
tree, builds it, and runs it as the document says.
"""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
from sonde.guest import ROOT

COPY = os.path.join(ROOT, "build", "extend")
NAMES = ("way", "operation", "fetch", "command")


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
    env = dict(os.environ, B="build")
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


def main():
    copy_tree()
    tap.run(*[an(name) for name in NAMES])


main()
