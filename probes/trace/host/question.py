"""question.py - rewrites a question that has C expressions which the guest cannot
resolve: gdb compiles them to agent bytecode, and the guest gets them behind `with`.

    vfs.c:152 if count > left { hist(left) by file->node->name }

The guest itself knows only the parameters at the entry of a function. Any other ARG or
condition is C, with the meaning that it has at that place.
"""

import json
import os
import re
import shutil
import subprocess

from sonde.guest import ELF

from .take import TraceError

HERE = os.path.dirname(os.path.abspath(__file__))

QUESTION = re.compile(
    r"\s*(ret\s+)?([^\s{]+)\s*(?:if\s+([^{]*?))?\s*\{\s*(.*?)\s*\}\s*", re.S
)
ACTION = re.compile(r"(\w+)\s*(.*)", re.S)
PATTERN = re.compile(r"[*?\[]")
DEFINED = re.compile(r"echo '[pr]:\S+ (\S+)(.*)' >> \S+/kprobe_events")
FETCHED = re.compile(r"[%$@\\]|[+-]u?(0x)?[0-9a-f]+\(")  # an expression of kprobe_events
COMPARISON = re.compile(r"(\w+)\s*(?:[<>=!]=|[<>&~])\s*(?:-?\d\w*|\"[^\"]*\"|'[^']*')")
ALWAYS = {"func", "cpu", "caller", "comm", "COMM", "CPU", "common_cpu", "common_pid",
          "common_type", "common_flags", "common_preempt_count"}  # fmt: skip
NAME_MAX = 31


def split_outside(text, mark):
    """Split @text at each @mark that is not within parentheses or quotes."""
    pieces, start, depth, quote, i = [], 0, 0, "", 0
    while i < len(text):
        if quote or text[i] in "\"'":
            quote = "" if quote == text[i] else quote or text[i]
        elif text[i] in "([":
            depth += 1
        elif text[i] in ")]":
            depth -= 1
        elif not depth and text.startswith(mark, i):
            pieces.append(text[start:i].strip())
            i += len(mark) - 1
            start = i + 1
        i += 1
    return [*pieces, text[start:].strip()]


def closing(text):
    """Return the index where the parenthesis at the start of @text is closed, or -1."""
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return i
    return -1


class Question:
    """The parts of the question @line. `action` is None if it cannot be rewritten."""

    def __init__(self, line):
        match = QUESTION.fullmatch(line)
        self.action = None
        if not match or PATTERN.search(match[2]):
            return
        self.place = (match[1] or "") + match[2]
        self.is_return = bool(match[1])
        self.filter = (match[3] or "").strip()
        action = ACTION.fullmatch(match[4])
        rest = action[2] if action else ""
        self.args, self.keys = [], []
        if action and action[1] == "print":
            self.args = split_outside(rest, ",") if rest else []
            rest = ""
        elif rest.startswith("("):
            end = closing(rest)
            self.args, rest = [rest[1:end].strip()], rest[end + 1 :].strip()
        if rest.startswith("by "):
            self.keys = split_outside(rest[3:], ",")
        elif rest:
            return
        self.action = action and action[1]

    def line(self, definitions):
        """Return the line that the guest gets. @definitions: the texts behind `with`."""
        with_ = f" with {','.join(definitions)}" if definitions else ""
        condition = f" if {self.filter}" if self.filter else ""
        args = ",".join(self.args)
        if self.action == "print":
            action = f"print {args}"
        else:
            action = f"{self.action}({args})" if self.args else self.action
        by = f" by {','.join(self.keys)}" if self.keys else ""
        return f"{self.place}{with_}{condition} {{ {action}{by} }}"


class Names:
    """Gives each expression a name that the guest accepts and that is not taken yet."""

    def __init__(self, taken):
        self.taken = set(taken)
        self.of = {}  # expression: name

    def name(self, expression, wanted=""):
        if expression not in self.of:
            plain = wanted or re.sub(r"\W+", "_", expression).strip("_")[: NAME_MAX - 3]
            plain = plain or "value"
            plain = f"v{plain}" if plain[0].isdigit() else plain
            name, number = plain, 0
            while name in self.taken:
                number += 1
                name = f"{plain}_{number}"
            self.taken.add(name)
            self.of[expression] = name
        return self.of[expression]


def gdb_compile(address, expressions):
    """Return the answer of gdb_compile.py for each expression."""
    if not shutil.which("gdb"):
        raise TraceError(f"{expressions[0]!r} takes gdb, which is not installed")
    if any("\n" in expression for expression in expressions):
        raise TraceError("a question has one line")
    request = json.dumps({"address": address, "expressions": expressions})
    done = subprocess.run(
        ["gdb", "-nx", "-batch", "-x", os.path.join(HERE, "gdb_compile.py"), ELF],
        env={**os.environ, "SONDE_COMPILE": request, "DEBUGINFOD_URLS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise TraceError(f"gdb: {done.stderr.strip()[-500:]}") from None


def address_of(place, symbols):
    if place.startswith("0x"):
        return int(place, 16)
    name, _, offset = place.partition("+")
    if name not in symbols.objects:
        raise TraceError(f"{place} is not in the image: there are no expressions for it")
    return symbols.objects[name] + int(offset or "0", 0)


class Resolver:
    """Finds the parts of a question that gdb has to compile, and replaces them by names.

    known: names that the guest knows at that place     force: gdb compiles also these
    """

    def __init__(self, question, known, force):
        self.question = question
        if force and question.args == ["*"]:
            question.args = list(known)
        self.known = set(ALWAYS) if force else ALWAYS | set(known)
        if question.is_return:
            self.known |= {"retval", "ns", *known}
        self.names = Names({"retval", "ns", *(() if force else known), *ALWAYS})

    def arg(self, text):
        if text in self.known or text == "*" or not text or FETCHED.match(text):
            return text
        return self.names.name(text)

    def is_filter(self, text):
        """Can the condition be a filter of the guest?"""
        for piece in re.split(r"&&|\|\|", re.sub(r"[()]|!(?!=)", " ", text)):
            match = COMPARISON.fullmatch(piece.strip())
            if not match or match[1] not in self.known:
                return False
        return True

    def condition(self, text):
        if self.is_filter(text):
            return text
        if len(split_outside(text, "||")) == 1:
            parts = split_outside(text, "&&")
            if len(parts) > 1:
                return " && ".join(self.condition(part) for part in parts)
        return f"{self.names.name(f'({text}) != 0', 'condition')} != 0"

    def run(self):
        q = self.question
        q.args = [self.arg(text) for text in q.args]
        q.keys = [self.arg(text) for text in q.keys]
        q.filter = self.condition(q.filter) if q.filter else ""
        return self.names.of


def definition(name, answer):
    if "error" in answer:
        raise TraceError(answer["error"])
    if answer["type"] == "string":
        return f"{name}=+0(agent({answer['code']})):string"
    return f"{name}=agent({answer['code']}):{answer['type']}"


def resolve(line, ask, symbols, force=False):
    """Return a line that the guest can answer. @ask: returns the guest's reply to
    `trace -n QUESTION`.
    """
    question = Question(line)
    if not question.action:
        return line
    if not question.filter and set(question.args + question.keys) <= ALWAYS:
        return line  # the guest knows all names in it at any place
    reply = ask(f"{question.place} {{ print * }}")
    places = [match for match in map(DEFINED.fullmatch, reply.lines) if match]
    if reply.errno or not places:
        return line  # the guest will refuse the line and say why
    known = re.findall(r" (\w+)=", places[0][2])
    expressions = Resolver(question, known, force).run()
    if not expressions:
        return line
    if len(places) > 1:
        raise TraceError(
            f"{question.place} is compiled to {len(places)} places, and "
            f"{next(iter(expressions))} differs: choose {question.place}#1"
        )
    if question.is_return:
        named = next(iter(expressions))
        raise TraceError(f"{named}: in a ret there are parameters, retval and ns")
    answers = gdb_compile(address_of(places[0][1], symbols), list(expressions))
    return question.line(
        [definition(name, answer) for name, answer in zip(expressions.values(), answers)]
    )
