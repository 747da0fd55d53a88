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

from .take import TraceError

HERE = os.path.dirname(os.path.abspath(__file__))

FETCHED = re.compile(r"[%$@\\]|[+-]u?(0x)?[0-9a-f]+\(")  # an expression of kprobe_events
COMPARISON = re.compile(
    r"(\w+)(?:\.function\s*[!=]=\s*\w[\w.]*|\s*(?:[<>=!]=|[<>&~])\s*"
    r"(?:-?\d\w*|CPUS\{[\d,-]+\}|\"[^\"]*\"|'[^']*'))"
)
ALWAYS = {"func", "cpu", "caller", "comm", "pid", "COMM", "CPU", "common_cpu", "common_pid",
          "common_type", "common_flags", "common_preempt_count"}  # fmt: skip
NAME_MAX = 31
AS_CONDITION = ") != 0"
POINTED = re.compile(r"trace: (.*)\n {7}( *)\^ (.*)")  # how the guest shows a mistake
NO_SYMBOL = re.compile(r'No symbol "(\w+)"')


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


class Answer:
    """An answer is a table that is made of the hits, or the hits themselves, printed."""

    def __init__(self, action):
        self.action = action
        self.args, self.keys = [], []
        self.bounds = ()  # of lhist: MIN, MAX, STEP
        self.top, self.in_percent = None, False

    def add(self, word, text):
        if word == "arg":
            self.args.append(text)
        elif word == "by":
            self.keys.append(text)
        elif word == "bounds":
            self.bounds = tuple(map(int, text.split(",")))
        elif word == "top":
            self.top = int(text)
        elif word == "percent":
            self.in_percent = True

    def counts(self):
        """Return what its histogram has. Answers that count the same share one."""
        action = "sum" if self.action == "avg" else self.action
        return action, self.args, self.keys, self.bounds[2:]

    def __str__(self):
        args = ",".join([*self.args, *map(str, self.bounds)])
        if self.action == "print":
            action = f"print {args}"
        else:
            action = f"{self.action}({args})" if args else self.action
        by = f" by {','.join(self.keys)}" if self.keys else ""
        top = f" top {self.top}" if self.top else ""
        return action + by + top + " percent" * self.in_percent


class Question:
    """What the guest has understood of a question: the reply to `trace -p QUESTION`.

    places: (address, names that are known there)
    """

    def __init__(self, lines):
        parts, self.answers = {}, []
        for line in lines:
            word, _, text = line.partition(" ")
            parts.setdefault(word, []).append(text)
            if word == "action":
                self.answers.append(Answer(text))
            elif self.answers:
                self.answers[-1].add(word, text)
        self.place = parts["place"][0]
        self.kind = parts.get("kind", [""])[0]
        self.filter = parts.get("if", [""])[0]
        self.has_definitions = "with" in parts
        self.typed = list(
            map(str, self.answers)
        )  # with the ARGs and KEYs as they are typed
        for answer in self.answers:
            if answer.action == "count" and not answer.keys and "from" not in parts:
                answer.keys = ["func"]
        places = [text.split() for text in parts.get("at", [])]
        self.places = [(int(address, 16), names) for address, *names in places]

    def line(self, definitions):
        """Return the line that the guest gets. @definitions: the texts behind `with`."""
        place = f"{self.kind} {self.place}".strip()
        with_ = f" with {','.join(definitions)}" if definitions else ""
        condition = f" if {self.filter}" if self.filter else ""
        answers = "; ".join(map(str, self.answers))
        return f"{place}{with_}{condition} {{ {answers} }}"


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


def gdb_compile(elf, address, expressions, is_return):
    """Return the answer of gdb_compile.py for each expression, at a place of an ELF file.
    @is_return: it is for the returns of the function that begins there
    """
    if not shutil.which("gdb"):
        raise TraceError(f"{expressions[0]!r} takes gdb, which is not installed")
    if any("\n" in expression for expression in expressions):
        raise TraceError("a question has one line")
    request = json.dumps(
        {"address": address, "is_return": is_return, "expressions": expressions}
    )
    done = subprocess.run(
        ["gdb", "-nx", "-batch", "-x", os.path.join(HERE, "gdb_compile.py"), elf],
        env={**os.environ, "SONDE_COMPILE": request, "DEBUGINFOD_URLS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise TraceError(f"gdb: {done.stderr.strip()[-500:]}") from None


class Resolver:
    """Finds the parts of a question that gdb has to compile, and replaces them by names.

    known: names that the guest knows at that place     force: gdb compiles also these
    """

    def __init__(self, question, known, force):
        self.question = question
        if force and question.answers[0].args == ["*"]:
            question.answers[0].args = list(known)
        self.known = set(ALWAYS) if force else ALWAYS | set(known)
        if question.kind == "ret":
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
        return f"{self.names.name(f'({text}{AS_CONDITION}', 'condition')} != 0"

    def run(self):
        q = self.question
        for answer in q.answers:
            answer.args = [self.arg(text) for text in answer.args]
            answer.keys = [self.arg(text) for text in answer.keys]
        q.filter = self.condition(q.filter) if q.filter else ""
        return self.names.of


def definition(name, answer):
    if answer["type"] == "string":
        return f"{name}=+0(agent({answer['code']})):string"
    return f"{name}=agent({answer['code']}):{answer['type']}"


def pointed_at(line, expression, why):
    """Return the reason below the part of a line that it is about. `sonde: ` will stand in
    front of the line.
    """
    if expression.endswith(AS_CONDITION):
        expression = expression.removeprefix("(").removesuffix(AS_CONDITION)
        why = why.replace(AS_CONDITION, "")
    unknown = NO_SYMBOL.search(why)
    at = line.find(unknown[1] if unknown else expression, line.find(expression))
    before = " " * (len("sonde: trace: ") + max(at, 0))
    return f"trace: {line}\n{before}^ {why}"


def as_typed(line, said):
    """Return what the guest said of a question, below the question as it was typed: the
    guest may have had it with expressions replaced by names.
    """
    match = POINTED.fullmatch(said)
    if match and match[1] != line:
        part = match[1][len(match[2]) :]
        while part and part not in line:
            part = part[:-1]
        return pointed_at(line, part, match[3])
    return re.sub(r"(?m)^(?= *\^)", " " * len("sonde: "), said)


def resolve(line, question, symbols, force=False):
    """Return a line that the guest can answer. @question: how it has understood @line"""
    if not question.places or question.has_definitions:
        return line
    address, known = question.places[0]
    expressions = Resolver(question, known, force).run()
    if not expressions:
        return line
    first = next(iter(expressions))
    found = symbols.find(address)
    count, why = len(question.places), ""
    if count > 1:
        why = f"this differs at {count} places: choose {question.place}#1"
    elif not found or found[3]:
        why = "there are expressions only for places in the image"
    if why:
        raise TraceError(pointed_at(line, first, why))
    is_return = question.kind == "ret"
    answers = gdb_compile(symbols.elf, address, list(expressions), is_return)
    for expression, answer in zip(expressions, answers):
        if "error" in answer:
            raise TraceError(pointed_at(line, expression, answer["error"]))
    return question.line(
        [definition(name, answer) for name, answer in zip(expressions.values(), answers)]
    )
