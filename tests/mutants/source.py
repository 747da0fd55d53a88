"""source.py - finds a function by its name, in any source file, and a text in it.

In a row of a table, a function is one of these:
    C       a function, a #define, a variable with an initialiser
    NASM    proc (or CODE) NAME ... endproc, %macro NAME ... %endmacro
    Promela a proctype, an inline, init
    Python  a function or a method
"""

import ast
import functools
import os
import re
import subprocess

# Patterns for the start and the end of a definition; @ stands for the name.
FORMS = {
    "c": (
        (r"^[a-zA-Z_][^;={}#]*?\b@\([^;{}]*?\)[^;{}]*?\n\{", r"^\}"),
        (r"^#define @\b", r"(?<!\\)\n"),
        (r"^[a-zA-Z_}][^;(){}\n]*\b@(?:\[[^;={}]*\])*[^;={}\n]*=\s*\{", r"^\};"),
    ),
    "asm": (
        (r"^(?:proc|CODE) @\b", r"^endproc @\b"),
        (r"^%i?macro @\b", r"^%endmacro"),
    ),
    "pml": (
        (r"^#define @\b", r"(?<!\\)\n"),
        (r"^(?:active\b.*?\s)?(?:proctype|inline) @\b", r"^\}"),
        (r"^@\b\s*\{", r"^\}"),
    ),
}
LANGUAGES = {
    ".c": "c",
    ".h": "c",
    ".asm": "asm",
    ".inc": "asm",
    ".pml": "pml",
    ".py": "py",
}
WORD = re.compile(r"\w+")
# Where a definition may have its name. Most names that stand elsewhere are calls; to search
# for the patterns of FORMS, or to parse, takes longer.
NAMED_IN = {
    "c": re.compile(r"^[a-zA-Z_}#][^;={}]*", re.M),
    "asm": re.compile(r"^(?:proc|CODE|%i?macro) \w+", re.M),
    "pml": WORD,
    "py": re.compile(r"\bdef \w+"),
}
LAUNCHER = "sonde"  # Python, by its first line


class Problem(Exception):
    """A row of a table is wrong, or the run is impossible."""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Tree:
    """The source files of a tree, read once."""

    def __init__(self, root):
        self.root = root
        self.files = {}  # path: text
        for path in listed(root):
            if language_of(path):
                self.files[path] = read(os.path.join(root, path))

    @functools.cached_property
    def having(self):
        """{word: paths of the files that may define it}"""
        found = {}
        for path, text in self.files.items():
            named = " ".join(NAMED_IN[language_of(path)].findall(text))
            for word in set(WORD.findall(named)):
                found.setdefault(word, []).append(path)
        return found

    @functools.cache
    def definitions(self, name):
        """(path, start, end) of each definition with the name @name."""
        return [
            (path, start, end)
            for path in self.having.get(name, ())
            for start, end in spans(path, self.files[path], name)
        ]

    def find(self, function, old, path=None):
        """(path, start, end) of the text @old in @function. It must be there exactly
        once, in all functions of that name together. @path: search this file only."""
        found = [
            place for place in self.definitions(function) if path in (None, place[0])
        ]
        if not found:
            raise Problem(f"there is no {function}" + (f" in {path}" if path else ""))
        places = [
            (file, match.start(), match.end())
            for file, start, end in found
            for match in pattern(old).finditer(self.files[file], start, end)
        ]
        if not places:
            where = ", ".join(sorted({file for file, _, _ in found}))
            raise Problem(f"{function} ({where}) has no such text: {shortened(old)}")
        if len(places) > 1:
            where = ", ".join(
                f"{file}:{self.line(file, start)}" for file, start, _ in places
            )
            raise Problem(f"{function} has that text {len(places)} times: {where}")
        return places[0]

    def line(self, path, offset):
        return self.files[path].count("\n", 0, offset) + 1


def listed(root):
    """Paths of all files of the tree: all files that git has, or does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return sorted(
        path
        for path in set(run.stdout.split("\n"))
        if os.path.isfile(os.path.join(root, path))
    )


def language_of(path):
    """The language of a file; None: the file is not searched."""
    return "py" if path == LAUNCHER else LANGUAGES.get(os.path.splitext(path)[1])


def spans(path, text, name):
    language = language_of(path)
    if language == "py":
        yield from (
            span for function, *span in python_functions(text) if function == name
        )
        return
    for begin, end in FORMS[language]:
        for match in re.finditer(begin.replace("@", re.escape(name)), text, re.M):
            ends = re.compile(end.replace("@", re.escape(name)), re.M)
            last = ends.search(text, match.end())
            if last:
                yield match.start(), last.end()


def functions(path, text):
    """(name, start, end) of each function of C, and each proc and macro of NASM."""
    language = language_of(path)
    for begin, end in FORMS[language] if language == "asm" else FORMS[language][:1]:
        for match in re.finditer(begin.replace("@", r"(?P<name>\w+)"), text, re.M):
            ends = re.compile(end.replace("@", match["name"]), re.M)
            last = ends.search(text, match.end())
            if last:
                yield match["name"], match.start(), last.end()


@functools.cache
def python_functions(text):
    """(name, start, end) of each function."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return [
        (node.name, starts[node.lineno - 1], starts[node.end_lineno])
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def pattern(old):
    """A pattern for @old with any blanks and ends of lines, not inside a longer word."""
    words = r"\s+".join(re.escape(word) for word in old.split())
    before = r"(?<!\w)" if re.match(r"\s*\w", old) else ""
    behind = r"(?!\w)" if re.search(r"\w\s*$", old) else ""
    return re.compile(before + words + behind)


def shortened(text):
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:57] + "..."
