"""edits.py - small edits of formatted C and NASM, as a careless author might make them.

    condition  a condition is negated, or a comparison shifted by one
    call       a call that is a statement, or a change of a count, is removed
    order      two stores in a row are exchanged, the second of which is an ordered one
    constant   a number becomes the next one, true becomes false
    return     a statement becomes a return

A pattern over formatted source finds each place; what does not compile is skipped later.
The lot of an edit depends only on the seed, the function's text and the edit. So a change
elsewhere leaves the choice of edits as it is.
"""

import dataclasses
import hashlib
import itertools
import re

from source import functions, language_of

KINDS = ("condition", "call", "order", "constant", "return")
FILLER = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^\#(?:\\\n|[^\n])*""",
    re.S | re.M,
)
FILLER_NASM = re.compile(r""";[^\n]*|"[^"\n]*"|'[^'\n]*'|^%[^\n]*|^\s+%[^\n]*""", re.M)

# A statement of C with its lines: none begins with a word that takes a statement.
STATEMENT = re.compile(
    r"^( +)(?!(?:if|for|while|else|switch|do|case|default)\b)"
    r"([^\s;{}\x01][^\n;{}]*(?:\n\1 {4}[^\n;{}]*)*);[ \x01]*$",
    re.M,
)
DECLARATION = re.compile(r"(?:static |const |struct |union |enum )*\w+[ *]+\w+(?:\W|$)")
CHECKS = re.compile(
    r"\w*(?:assert|ASSERT|BUG|bug\b|panic)"
)  # their removal changes no result
COUNT = re.compile(r"(?:\+\+|--)[^=(]+$|[^=(]+(?:\+\+|--)$|[^=(]+ [-+|&]= [^=]+$")
# Stores. The compiler itself may exchange two ordinary ones.
ORDERED = re.compile(r"(?:WRITE_ONCE|(?:__)?atomic_store\w*)\(")
STORE = re.compile(ORDERED.pattern + r"|[*\w][^=(]* = (?!=)")
LEAVES = re.compile(r"(?:return|break|continue|goto)\b")
COMPARISON = re.compile(r" (<|<=|>|>=|==|!=|&&|\|\|)(?=\s)")
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
OTHER.update({"&&": "||", "||": "&&", "true": "false", "false": "true"})
NUMBER = re.compile(r"(?<![\w.%])(?:(0x[0-9a-f]+|\d+)(?=[uUlL]*\b)|(true|false)\b)")

INSTRUCTION = re.compile(
    r"^( +)(?!\w+:|times\b|align\b|d[bwdq]\b)([a-z][^\n]*?) *$", re.M
)
JCC = re.compile(r"\b(j|set|cmov)(n?)(z|e|c|b|a|ae|be|s|o|p|l|le|g|ge)\b(?= )")
ONE_OFF = {"nb": "be", "b": "be", "be": "b", "a": "ae", "ae": "a"}
ONE_OFF.update({"l": "le", "le": "l", "g": "ge", "ge": "g"})
REMOVED = re.compile(
    r"(?:call|lock|inc|dec|cli|sti|cld|clac|stac|swapgs|[lms]fence|lfence)\b"
)
REMOVED_TOO = re.compile(r"(?:add|sub|and|or|xor|xchg) (?:\w+ )?\[")
NASM_STORE = re.compile(r"mov (?:\w+ )?\[(?!rsp)")  # what others may see


@dataclasses.dataclass(frozen=True)
class Edit:
    path: str
    function: str
    kind: str
    start: int  # in the text of the file
    old: str
    new: str
    lot: str  # the edit has this name in the file of results, too

    def apply(self, text):
        return text[: self.start] + self.new + text[self.start + len(self.old) :]

    def lines(self, text):
        """The lines that are edited, as they are then, with single blanks."""
        start = text.rfind("\n", 0, self.start) + 1
        end = (text + "\n").index("\n", self.start + len(self.old))
        before, behind = text[start : self.start], text[self.start + len(self.old) : end]
        return " ".join((before + self.new + behind).split())


def edits_of(path, text, seed):
    """All edits of the functions of a file."""
    is_c = language_of(path) == "c"
    filler = FILLER if is_c else FILLER_NASM
    mask = filler.sub(lambda found: re.sub(r"[^\n]", "\x01", found[0]), text)
    for name, start, end in functions(path, text):
        body = mask.index("{" if is_c else "\n", start)
        found = in_c(mask, start, body, end) if is_c else in_nasm(mask, body, end)
        for kind, at, length, new in found:
            old = text[at : at + length]
            new = new(old) if callable(new) else new
            what = f"{seed} {path} {text[start:end]} {at - start} {length} {new}"
            lot = hashlib.sha256(what.encode()).hexdigest()[:16]
            yield Edit(path, name, kind, at, old, new, lot)


def in_c(mask, head, body, end):
    """(kind, start, length, new text) of each edit of a function."""
    leave = "return" if re.search(r"\bvoid \w+\(", mask[head:body]) else "return 0"
    for found in re.finditer(r"\b(?:if|while) \(", mask[body:end]):
        start = body + found.end()
        yield "condition", start, closing(mask, start) - start, "!({})".format
    for found in COMPARISON.finditer(mask, body, end):
        yield "condition", found.start(1), len(found[1]), OTHER[found[1]]
    for found in NUMBER.finditer(mask, body, end):
        new = OTHER.get(found[2]) or successor(found[1])
        yield "constant", found.start(), found.end() - found.start(), new
    statements = [s for s in STATEMENT.finditer(mask, body, end) if is_whole(s[2])]
    for one in statements:
        place = one.start(2), len(one[2])
        if is_call(one[2]) or COUNT.match(one[2]):
            yield "call", *place, "(void)0"
        if not any(p.match(one[2]) for p in (LEAVES, CHECKS, DECLARATION)):
            yield "return", *place, leave
    for one, two in itertools.pairwise(statements):
        both = one[2], two[2]
        is_next = not mask[one.end() : two.start(2)].strip(" \n\x01")
        if is_next and one[1] == two[1] and all(map(is_store, both)):
            if ORDERED.match(two[2]):  # it tells other CPUs of the first
                yield "order", one.start(2), two.end(2) - one.start(2), exchange(one, two)


def in_nasm(mask, body, end):
    lines = list(INSTRUCTION.finditer(mask, body, end))
    for found in JCC.finditer(mask, body, end):
        prefix, no, condition = found.groups()
        place = found.start(), found.end() - found.start()
        yield "condition", *place, prefix + ("" if no else "n") + condition
        if no + condition in ONE_OFF:
            yield "condition", *place, prefix + ONE_OFF[no + condition]
    for one in lines:
        place = one.start(2), len(one[2])
        if REMOVED.match(one[2]) or REMOVED_TOO.match(one[2]):
            yield "call", *place, ""
        for found in NUMBER.finditer(mask, one.start(2), one.end(2)):
            if found[1]:
                yield "constant", found.start(1), len(found[1]), successor(found[1])
        if not one[2].startswith(("ret", "jmp", "iret")):
            yield "return", *place, "ret"
    for one, two in itertools.pairwise(lines):
        if NASM_STORE.match(one[2]) and NASM_STORE.match(two[2]):
            if two.start() == one.end() + 1:
                yield "order", one.start(2), two.end(2) - one.start(2), exchange(one, two)


def closing(mask, start):
    """Where the parenthesis ends that opens before @start."""
    depth = 1
    for found in re.compile(r"[()]").finditer(mask, start):
        depth += 1 if found[0] == "(" else -1
        if not depth:
            return found.start()
    return start


def is_whole(statement):
    return statement.count("(") == statement.count(")")


def is_call(statement):
    called = re.match(r"(\w+)\(", statement)
    if not called or CHECKS.match(called[1]):
        return False
    return closing(statement, called.end()) == len(statement) - 1


def is_store(statement):
    return STORE.match(statement) and not DECLARATION.match(statement)


def exchange(one, two):
    """The text with two matches exchanged; what stands between them stays."""
    first, second = len(one[2]), two.start(2) - one.start(2)
    return lambda old: old[second:] + old[first:second] + old[:first]


def successor(number):
    return hex(int(number, 16) + 1) if number.startswith("0x") else str(int(number) + 1)


def draw(edits):
    """The edits in the order of their lots, one of each kind in turns."""
    piles = [
        sorted((e for e in edits if e.kind == k), key=lambda e: e.lot) for k in KINDS
    ]
    for row in itertools.zip_longest(*piles):
        yield from filter(None, row)
