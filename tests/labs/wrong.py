"""wrong.py - wrong solutions of a lab: small edits of the reference solution.

LAB.toml has the rows that people wrote, [[wrong]]: for each sentence and each hint of the
task a solution that breaks it. of_machine() makes others by rules; those that are right
stand under [[same]], with the reason. The rules: a number or a comparison off
by one, a statement left out, two statements exchanged, a mask dropped, a row of a table
left out, a type of half the width.
"""

import os
import re
import tomllib

from docs.labs.host import labs
from sonde.guest import ROOT

HERE = os.path.dirname(os.path.abspath(__file__))


class Wrong:
    """A wrong solution. loses: the lines of the rubric that show it; files: {name: text},
    all files of the solution; says, shows: regular expressions for what the student reads
    after the grading, and of the first case that is lost
    """

    def __init__(self, name, loses, files, says=(), shows=()):
        self.name, self.loses, self.files = name, loses, files
        self.says, self.shows = says, shows

    @property
    def edit(self):
        """The edit of a solution made by rules, without the number of its line."""
        return self.name.split(": ", 1)[1]


def solution(lab):
    """Return the reference solution of a lab: {file: text}."""
    folder, found = os.path.join(ROOT, labs.GRADERS, lab, "solution"), {}
    for name in sorted(os.listdir(folder)):
        if name.endswith((".c", ".asm", ".py")):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found[name] = file.read()
    return found


def table(lab):
    with open(os.path.join(HERE, lab + ".toml"), "rb") as file:
        return tomllib.load(file)


def of_people(lab):
    """Return the rows of LAB.toml. The old text of an edit is in one file, once."""
    for row in table(lab)["wrong"]:
        files = solution(lab)
        for old, new in row.get("edits") or [[row["old"], row["new"]]]:
            there = [name for name, text in files.items() if text.count(old) == 1]
            if len(there) != 1:
                raise ValueError(f"{lab}: {row['name']}: not there once: {old}")
            files[there[0]] = files[there[0]].replace(old, new)
        words = row.get("says", ()), row.get("shows", ())
        yield Wrong(row["name"], row["loses"], files, *words)


def harmless(lab):
    """Return the edits by machine that LAB.toml calls harmless: the solution is right."""
    return {
        edit
        for row in table(lab).get("same", ())
        for edit in row.get("edits") or [row["edit"]]
    }


# ---- by machine

TYPES = {"uint64_t": "uint32_t", "int64_t": "int32_t", "int32_t": "int16_t"}
EXCHANGED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
             "&&": "||", "||": "&&", "+": "-", "-": "+", "<<": ">>", ">>": "<<"}  # fmt: skip
STATEMENT = re.compile(
    r"( +)(?!return|static|unsigned|u?int|struct|const|bool)[^{}]*;\s*"
)
ENTRY = re.compile(r"\b(?!NO\b)[A-Z](?:[A-Z_0-9]*)\b(?: \| [A-Z]\b)*(?=,| })")


def off_by_one(line):
    for found in re.finditer(r"(?<![\w\"%])(0x[0-9a-f]+|\d+)\b(?!\")", line):
        number = int(found[0], 0)
        for other in (number + 1, number - 1) if number else (1,):
            yield line[: found.start()] + str(other) + line[found.end() :]


def operators(line):
    for found in re.finditer(r" (<=|>=|<<|>>|<|>|==|!=|&&|\|\||\+|-) ", line):
        yield (line[: found.start(1)] + EXCHANGED[found[1]] + line[found.end(1) :])


def masks(line):
    for found in re.finditer(r" & ~?(\([^()]*\)\w+|\w+)", line):
        yield line[: found.start()] + line[found.end() :]


def widths(line):
    for found in re.finditer(r"\bu?int(?:64|32)_t\b", line):
        other = TYPES.get(found[0])
        if other:
            yield line[: found.start()] + other + line[found.end() :]


def entries(line):
    """Leave out entries of a table of names."""
    if line.startswith("#define ALU") or not re.search(r"[(;]", line.split("/*")[0]):
        for found in re.finditer(ENTRY, line.split("/*")[0].rstrip("\\")):
            yield line[: found.start()] + "0" + line[found.end() :]


def statements(line):
    if STATEMENT.fullmatch(line):
        yield re.match(" +", line)[0] + ";"
    if re.match(r" +(case .*|default):$", line) or re.match(r" +break;$", line):
        yield ""


def conditions(line):
    found = re.match(r"( +(?:\} else )?(?:if|while) )\((.*)\)( \{)?$", line)
    if found:
        yield f"{found[1]}(!({found[2]})){found[3] or ''}"


def threads(line):
    """Share what belongs to a thread, and count without an atomic instruction."""
    if "static __thread " in line:
        yield line.replace("static __thread ", "static ")
    found = re.fullmatch(
        r"( +)__atomic_add_fetch\((.*), (\w+), __ATOMIC_RELAXED\);", line
    )
    if found:
        yield f"{found[1]}*({found[2]}) += {found[3]};"


RULES = (off_by_one, operators, masks, widths, entries, statements, conditions, threads)


def exchanges(lines):
    """Yield (number of the first line, two new lines) for neighbours that are
    statements and use a name in common."""
    for i, (one, two) in enumerate(zip(lines, lines[1:])):
        a, b = STATEMENT.fullmatch(one), STATEMENT.fullmatch(two)
        names = [set(re.findall(r"[a-z]\w+", line)) for line in (one, two)]
        if a and b and a[1] == b[1] and one != two and names[0] & names[1]:
            yield i, (two, one)


def without_comments(text):
    """Return @text without comments; all lines keep their numbers."""
    return re.sub(
        r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.S
    )


def edits_of(text):
    """Yield (description, new text) for each edit by rule."""
    lines = [line.rstrip() for line in without_comments(text).splitlines()]
    for i, line in enumerate(lines):
        if line.startswith(("#include", "#pragma")) or "_GNU_SOURCE" in line:
            continue
        for rule in RULES:
            for new in rule(line):
                yield f"{i + 1}: {line.strip()} -> {new.strip() or '(nothing)'}", (
                    lines[:i] + [new] + lines[i + 1 :]
                )
    for i, pair in exchanges(lines):
        yield f"{i + 1}: {lines[i].strip()} <-> {lines[i + 1].strip()}", (
            lines[:i] + list(pair) + lines[i + 2 :]
        )


def of_asm(text):
    lines = [line.split(";")[0].rstrip() for line in text.splitlines()]
    inside = [i for i, line in enumerate(lines) if line.startswith("    ") and i > 5]
    for i in inside:
        if not re.match(r" +(bits|section|extern|global)", lines[i]):
            yield f"{i + 1}: without {lines[i].strip()}", lines[:i] + lines[i + 1 :]
            for found in re.finditer(r"\b\d+\b", lines[i]):
                other = str(int(found[0]) + 1)
                new = lines[i][: found.start()] + other + lines[i][found.end() :]
                yield f"{i + 1}: {new.strip()}", lines[:i] + [new] + lines[i + 1 :]


def of_machine(lab):
    """Yield wrong solutions made by rules from the reference solution."""
    files, seen = solution(lab), set()
    for name, text in files.items():
        if name.endswith(".py") or name == "tests.c":
            continue
        for what, lines in of_asm(text) if name.endswith(".asm") else edits_of(text):
            new = "\n".join(lines) + "\n"
            if new not in seen:
                seen.add(new)
                yield Wrong(f"{name}:{what}", [], {**files, name: new})
