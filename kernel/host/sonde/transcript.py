"""transcript.py - reads transcripts, and compares output with what they show.

It works on text only. check.py runs the commands. docs/testing.md has the rules.

A command follows a prompt at the beginning of a line, `sonde> ` or `$ `. The lines up to
the next prompt are its output. In the output, three dots or more stand for anything: on a
line of their own for any lines, in a word for any characters. A..B in a word is a number
from A to B.
"""

import dataclasses
import itertools
import re
import shlex

GUEST, HOST = "sonde>", "$"

# The name of a host or a folder may stand before the host's prompt.
PROMPT = re.compile(r"(sonde>|\S*\$)(?:\s+(.*))?$")
UNMARKED = re.compile(r"sonde>\s+\S|\S*\$\s+\./sonde\b")  # a transcript without a mark
FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*(\S*)")
INDENTED = re.compile(r" {4}|\t")

CONTROL = re.compile(r"\x1b\[[0-9;=?]*[A-Za-z]|\r+$", re.M)  # what only a terminal needs
REDRAWN = re.compile(r"^.*\r", re.M)  # the part of a line that was overwritten
DOTS = re.compile(r"\.{3,}")
MARK = re.compile(r"\.{3,}|(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)")
LOG = re.compile(r"\[ *[\d.]+\] C[\d.]+: ")  # how a line of the guest's log begins

OPERATORS = set("();<>|&")

# What a transcript may ask of ./sonde. Nothing here lets it choose a program outside this
# tree, or a file outside build/ to write: it may be the transcript of a stranger.
COMMANDS = ("run", "exec", "module", "trace", "film", "test", "help")
OPTIONS = set(
    "-- --smp --boot --accel --icount --append --memory --timeout "
    "--json -k --keep-going -v --verbose --live -w --watch --buffer "
    "--list --long --tools --frames".split()
)


@dataclasses.dataclass
class Step:
    """A command of a transcript, and the output that the transcript shows."""

    path: str
    line: int
    prompt: str  # GUEST or HOST
    command: str
    first: int  # line of the first row
    rows: list  # the output, line by line

    @property
    def place(self):
        return f"{self.path}:{self.line}"

    @property
    def name(self):
        return f"{self.place}: {self.prompt} {self.command}"


# ---- reading ----


def steps(path, text):
    """The steps of all transcripts in a file."""
    rows = as_rows(text)
    found = []
    for number, _, block in blocks(rows) if is_markdown(path, rows) else [(1, "", rows)]:
        found += block_steps(path, number, block)
    return found


def is_markdown(path, rows):
    return path.endswith((".md", ".markdown")) or any(
        row.startswith("```") for row in rows
    )


def blocks(rows):
    """The blocks that are transcripts, without those of gdb: tests/gdb runs these."""
    for number, mark, block in all_blocks(rows):
        if mark == "gdb":
            continue
        if mark == "console" or any(UNMARKED.match(row) for row in block):
            yield number, mark, block


def all_blocks(rows):
    """(number of its first line, mark, lines) of each fenced or indented block."""
    fenced = list(fenced_blocks(rows))
    inside = {
        number + i for number, _, block in fenced for i in range(-1, len(block) + 1)
    }
    return sorted([*fenced, *indented_blocks(rows, inside)])


def fenced_blocks(rows):
    numbered = enumerate(rows, 1)
    for number, row in numbered:
        fence = FENCE.match(row)
        if fence:
            end = re.compile(r"\s*" + re.escape(fence[2]) + r"\s*$")
            inside = itertools.takewhile(lambda pair: not end.match(pair[1]), numbered)
            yield number + 1, fence[3], [
                line.removeprefix(fence[1]) for _, line in inside
            ]


def indented_blocks(rows, fenced):
    """fenced: numbers of lines that belong to fenced blocks."""
    block = []
    for number, row in enumerate(rows + [""], 1):
        if number not in fenced and INDENTED.match(row):
            block.append(INDENTED.sub("", row, count=1))
        elif block:
            yield number - len(block), "", block
            block = []


def block_steps(path, number, rows):
    """The steps of one block. Lines in front of its first prompt belong to no step."""
    found = []
    numbered = enumerate(rows, number)
    for line, row in numbered:
        prompt = PROMPT.match(row)
        if not prompt:
            if found:
                found[-1].rows.append(row.rstrip())
            continue
        command, first = (prompt[2] or "").strip(), line + 1
        while command.endswith("\\"):
            first, row = next(numbered, (line, ""))
            command = command[:-1] + row.lstrip("> ").strip()
            first += 1
        kind = GUEST if prompt[1] == GUEST else HOST
        found.append(Step(path, line, kind, command, first, []))
    for step in found:
        step.rows = without_empty_end(step.rows)
    return [step for step in found if step.command]  # the last prompt has no command


def without_empty_end(rows):
    while rows and not rows[-1].strip():
        rows = rows[:-1]
    return rows


def sonde_words(command):
    """The words behind ./sonde in a command of the host. ValueError: the reason why the
    command cannot be run.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    if not words or words[0] not in ("./sonde", "sonde"):
        raise ValueError("not a command of ./sonde")
    if any(set(word) <= OPERATORS for word in words if word):
        raise ValueError("it needs the host's shell")
    if words[1:2] and words[1] not in COMMANDS:
        raise ValueError(f"./sonde {words[1]} is not for transcripts")
    for word in words[2:]:
        if word.startswith("-") and word.partition("=")[0] not in OPTIONS:
            raise ValueError(f"{word} is not for transcripts")
    return words[1:]


# ---- comparing ----


def is_dots(row):
    return DOTS.fullmatch(row.strip()) is not None


def word_agrees(shown, got):
    if shown == got:
        return True
    pattern, ranges, end = "", [], 0
    for mark in MARK.finditer(shown):
        pattern += re.escape(shown[end : mark.start()])
        pattern += r"(\d+(?:\.\d+)?)" if mark[1] else ".*"
        ranges += [(float(mark[1]), float(mark[2]))] if mark[1] else []
        end = mark.end()
    match = re.fullmatch(pattern + re.escape(shown[end:]), got)
    return match is not None and all(
        low <= float(number) <= high
        for number, (low, high) in zip(match.groups(), ranges)
    )


def row_agrees(shown, got):
    """Do two lines agree, without blanks, and without time and CPU of a log line?"""
    if LOG.match(shown) and LOG.match(got):
        shown, got = LOG.sub("", shown, count=1), LOG.sub("", got, count=1)
    shown, got = shown.split(), got.split()
    return len(shown) == len(got) and all(map(word_agrees, shown, got))


def difference(shown, got):
    """(i, j): line i of @shown does not agree with line j of @got. None: all lines agree.

    If there are dots, the pair is behind the longest beginning that agrees.
    """
    i = j = 0
    dots, furthest = None, (0, 0)
    while i < len(shown) or j < len(got):
        if i < len(shown) and is_dots(shown[i]):
            dots, i = (i + 1, j), i + 1
        elif i < len(shown) and j < len(got) and row_agrees(shown[i], got[j]):
            i, j = i + 1, j + 1
        else:
            furthest = max(furthest, (i, j))
            if dots is None or dots[1] == len(got):
                return furthest
            i, j = dots = dots[0], dots[1] + 1  # let the dots stand for one more line
    return None


def as_rows(output):
    """The lines that a terminal finally shows for @output."""
    return without_empty_end(REDRAWN.sub("", CONTROL.sub("", output)).split("\n"))


def explain(step, got):
    """The difference between the output and the transcript, as lines; []: none."""
    at = difference(step.rows, got)
    if at is None:
        return []
    i, j = at
    place = f"{step.path}:{step.first + i}"
    expected = step.rows[i] if i < len(step.rows) else "nothing more"
    came = got[j] if j < len(got) else "nothing more"
    return [
        f"expected, {place}: {expected}",
        f"got: {came}",
        "all that came:",
        *("| " + row for row in got),
    ]
