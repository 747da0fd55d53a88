"""table.py - reads tests/mutants/*.toml, and finds what is wrong with a row.

README.md describes a row.
"""

import ast
import dataclasses
import functools
import glob
import os
import re
import tomllib

import edits
from source import Problem, read, shortened

HOW = ("fails", "panics", "hangs")
TEST = re.compile(
    r"(\w+)/(\w+?)(?:-(gcc|clang|asan|tsan))?(?:\.(\w+))?(?:@(\d+|stepped))?"
)
CPUS = 2  # of a guest, if a test names no number


@dataclasses.dataclass(frozen=True)
class Test:
    """A test that a row names as TIER/STEM[-VARIANT][.NAME][@CPUS]."""

    label: str
    tier: str
    stem: str
    variant: str
    name: str
    cpus: int
    stepped: bool = False

    @property
    def source(self):
        """The file that contains the test."""
        if self.tier == "kernel" and self.stem == "conformance":
            return "tests/conformance/"
        if self.tier == "lint":
            return f"tests/lint/check_{self.stem}"
        if self.tier == "model":
            return f"docs/model/{self.stem}.pml"
        if self.tier == "explore":
            return f"tests/explore/explore_{self.stem}.c"
        ending = "c" if self.tier in ("unit", "hosted", "kernel") else "py"
        return f"tests/{self.tier}/test_{self.stem}.{ending}"


@dataclasses.dataclass(frozen=True)
class Mutant:
    topic: str  # the name of the table
    name: str
    why: str
    function: str
    old: str
    new: str
    tests: tuple
    file: str = None
    any: bool = False
    how: str = "fails"

    @property
    def label(self):
        return f"{self.topic}/{self.name}"


FIELDS = {field.name: field for field in dataclasses.fields(Mutant)}
NEEDED = ("name", "why", "function", "old", "new", "tests")


def test_of(label):
    match = TEST.fullmatch(label)
    if not match:
        raise Problem(f"{label} is not TIER/STEM or TIER/STEM.NAME")
    tier, stem, variant, name, cpus = match.groups()
    if tier == "hosted":
        variant = variant or "gcc"
    stepped = cpus == "stepped"
    return Test(
        label,
        tier,
        stem,
        variant,
        name,
        CPUS if stepped else int(cpus or CPUS),
        stepped,
    )


def mutant_of(topic, row):
    name = row.get("name", "a row without a name")
    unknown = [key for key in row if key not in FIELDS or key == "topic"]
    missing = [key for key in NEEDED if key not in row]
    if unknown or missing:
        raise Problem(f"{topic}/{name}: unknown {unknown}, missing {missing}")
    if row.get("how", "fails") not in HOW:
        raise Problem(f"{topic}/{name}: how is one of {', '.join(HOW)}")
    if not row["tests"] or row["old"].split() == row["new"].split():
        raise Problem(f"{topic}/{name}: names no test, or changes nothing")
    row = dict(row, tests=tuple(test_of(label) for label in row["tests"]))
    return Mutant(topic, **row)


def load(folder):
    """(mutants, problems) of all tables. A row with a problem is no mutant."""
    mutants, problems = [], []
    for path in sorted(glob.glob(os.path.join(folder, "*.toml"))):
        topic = os.path.basename(path).removesuffix(".toml")
        try:
            rows = tomllib.loads(read(path)).get("mutant", [])
        except tomllib.TOMLDecodeError as error:
            problems.append(f"{topic}.toml: {error}")
            continue
        for row in rows:
            try:
                mutants.append(mutant_of(topic, row))
            except Problem as error:
                problems.append(str(error))
    labels = [mutant.label for mutant in mutants]
    problems += [
        f"{label}: two rows have this name"
        for label in sorted(set(labels))
        if labels.count(label) > 1
    ]
    return mutants, problems


def equivalents(folder):
    """{(file, function, its edited lines): why no test can see the edit}."""
    lines = read(os.path.join(folder, "equivalent.tsv")).splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {tuple(row[:3]): row[3] for row in rows}


def needless(known, tree):
    """Rows of equivalents() that are no edits of the tree's text."""
    made = {
        (path, edit.function, edit.lines(tree.files[path]))
        for path in {row[0] for row in known} & set(tree.files)
        for edit in edits.edits_of(path, tree.files[path], 0)
    }
    return [f"equivalent.tsv: no such edit: {' '.join(row)}" for row in known - made]


def problems_of(mutant, tree):
    """The problems of a row that can be found without building anything."""
    try:
        tree.find(mutant.function, mutant.old, mutant.file)
    except Problem as error:
        yield f"{mutant.label}: {error}"
    for test in mutant.tests:
        if not is_there(test, tree.root):
            yield f"{mutant.label}: there is no test {test.label}"


def is_there(test, root):
    path = os.path.join(root, test.source)
    if not os.path.exists(path):
        return False
    if not test.name:
        return True
    if path.endswith(".py"):
        return test.name in functions_of(path)
    files = glob.glob(path + "*.c") if os.path.isdir(path) else [path]
    return any(test.name in words_of(file) for file in files)


@functools.cache
def functions_of(path):
    """Names of the functions of a test in Python, without "test_", as in scratch.py."""
    return {
        node.name.removeprefix("test_")
        for node in ast.walk(ast.parse(read(path)))
        if isinstance(node, ast.FunctionDef)
    }


@functools.cache
def words_of(path):
    return set(re.findall(r"\w+", read(path)))


def choose(mutants, names):
    """Mutants with one of @names: TOPIC, NAME or TOPIC/NAME. No names: all mutants."""
    for name in names:
        if not any(name in (m.topic, m.name, m.label) for m in mutants):
            raise Problem(f"no mutant is called {shortened(name)}")
    return [m for m in mutants if not names or {m.topic, m.name, m.label} & set(names)]
