"""test_readme.py - what README.md and docs/ show is what happens.

A fenced block of the kind `console` is a transcript: each line `$ ./sonde exec ...` is run,
and what follows is its output. Numbers may differ, and a line of three dots stands for
any lines.
"""

import glob
import os
import re
import shlex

import tap
from guest import ROOT
from session import sonde

FENCE = re.compile(r"^```console\n(.*?)^```", re.M | re.S)


def transcripts(text):
    """(command line, shown output) of all examples in a document."""
    for block in FENCE.findall(text):
        parts = re.split(r"^\$ (\./sonde exec .*)\n", block, flags=re.M)
        yield from zip(parts[1::2], parts[2::2])


def general(line):
    """A line without what may differ from run to run: numbers, and the width they take."""
    line = re.sub(r"\b(0x)?[0-9a-f]*[0-9][0-9a-f]*\b", "N", line)
    return re.sub(r"\s+", " ", line).strip()


def as_pattern(shown):
    rows = [general(line) for line in shown.rstrip("\n").split("\n")]
    return "\n".join(
        r"(?:.*\n)*?.*" if row == "..." else re.escape(row) for row in rows
    )


def documents():
    """(path, text) of every document."""
    patterns = ("*.md", "docs/**/*.md", "probes/*.md", "tests/*.md")
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True)):
            with open(path, encoding="utf-8") as file:
                yield path, file.read()


def links_lead_somewhere():
    for path, text in documents():
        links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text)
        folder = os.path.dirname(path)
        lost = [link for link in links if not os.path.exists(os.path.join(folder, link))]
        tap.equal(lost, [], f"{os.path.relpath(path, ROOT)}: links")


def examples_are_true():
    count = 0
    for path, text in documents():
        for command, shown in transcripts(text):
            count += 1
            status, out, err = sonde(*shlex.split(command)[1:])
            got = "\n".join(general(line) for line in out.rstrip("\n").split("\n"))
            same = re.fullmatch(as_pattern(shown), got) is not None
            name = os.path.relpath(path, ROOT)
            if not tap.check(status == 0 and same, f"{name}: {command}"):
                tap.note(f"status {status}\n{out}{err}")
    tap.check(count > 0, "there are examples")


tap.run(links_lead_somewhere, examples_are_true)
