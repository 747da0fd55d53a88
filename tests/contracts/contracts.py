#!/usr/bin/env python3
"""contracts.py - reads the contract blocks of headers, and makes rules of them.

    contracts.py -o contracts_rules.c HEADER...

docs/architecture.md describes the fields `Context:` and `Locks:`. The output has a rule
for each function, and a thunk that has the rule checked; call_thunks.py lets the function
call it.
"""

import re
import sys
from collections import namedtuple

WORDS = "boot thread irq trap nmi held stopped panic".split()
ANY = "any"

# The conditions that a program can check, in the order of enum contract_condition.
CHECKED = (
    "interrupts on",
    "interrupts off",
    "preemptible",
    "preemption off",
    "all CPUs online",
    "one CPU",
    "no handler",
    "interrupts on or off",
)
ELSE_REFUSED = "else refused"
CONDITIONS = (
    *sorted(CHECKED, key=len, reverse=True),
    ELSE_REFUSED,
    r"once(?: on each CPU)?",
    r"one caller at a time",
    r"(?:after|before) \w+\(\)(?: and \w+\(\))?",
)
WORD = rf"(?:{'|'.join((*WORDS, ANY))})"
SOME = rf"{WORD}(?: or {WORD})*(?:, (?:{'|'.join(CONDITIONS)}))*"
AS = r"as @?(\w+)(?:\(\))?(?:, (?:" + "|".join(CONDITIONS) + "))*"
CONTEXT = re.compile(rf"{SOME}(?:; {SOME})*|{AS}")

# A lock that a program can ask, and its place in enum contract_lock.
ASKED = ("PLAT_PROBES", "PLAT_TEXT", "the trace lock", "vfs_mutex", "sched_lock")
SPINLOCKS = ("sched_lock",)
LOCK = r"(?:PLAT_\w+|\w+_mutex|sched_lock|\w+->\w+|the [\w' ]*?lock|its own)"
LIST = rf"{LOCK}(?:(?:,| and|, then) {LOCK})*"
CLAUSE = (
    rf"(?P<held>{LIST}) held",
    rf"(?P<not_held>{LIST}) not held",
    rf"takes (?P<takes>{LIST})",
    rf"may take (?P<may>{LIST})",
    r"(?P<waits>waits for quiescence)",
    r"none",
)
CLAUSES = re.compile("|".join(re.sub(r"\?P<\w+>", "", clause) for clause in CLAUSE))
ONE_CLAUSE = re.compile("|".join(CLAUSE))
LOCKS = re.compile(
    rf"(?:{CLAUSES.pattern})(?:; (?:{CLAUSES.pattern}))*|as @?(\w+)(?:\(\))?"
)

COMMENT = re.compile(r"/\*.*?\*/", re.S)
FIELD = re.compile(
    r"\b(?P<which>Context, Locks|Context|Locks)(?P<all> of all)?:"
    r"(?P<words>.*?)(?:\.(?=\s|$)|\*/|\Z)",
    re.S,
)
NAMES = re.compile(r"^(?:/\*| \*) ((?:[a-z]\w*, )*[a-z]\w*) - ", re.M)

LEGEND = re.compile(r"(?:[A-Za-z]|all) ")  # what letters at the fields of a struct mean
RANGE = re.compile(r"^ \* @(\w+):\s+(-?\w+)\.\.(\w+(?: [-+] \w+)?)(?=[,;.\s]|$)", re.M)

Field = namedtuple("Field", "line names which of_all words")


def fields(text):
    """Each field in the comments of @text, with the names above it in its block."""
    for comment in COMMENT.finditer(text):
        for field in FIELD.finditer(comment[0]):
            above = comment[0][: field.start()]
            names = [n for some in NAMES.findall(above) for n in some.split(", ")]
            line = text.count("\n", 0, comment.start() + field.start()) + 1
            words = " ".join(re.sub(r"\n\s*\*", " ", field["words"]).split())
            if field["which"] == "Locks" and LEGEND.match(words):
                continue
            for which in field["which"].split(", "):
                yield Field(line, names, which, bool(field["all"]), words)


FORMS = {"Context": (CONTEXT, "context"), "Locks": (LOCKS, "list of locks")}


def problems(path, text):
    """What is wrong with the fields of the header @path, in words."""
    for field in fields(text):
        form, what = FORMS[field.which]
        if not form.fullmatch(field.words):
            where = f"{path}:{field.line}"
            yield f'{where}: "{field.words}" is no {what} (docs/architecture.md)'


# ---- rules ----

PROTOTYPE = r"^[a-zA-Z_][\w *]*?[ *]{}\(([^;{{}}]*?)\)[^;{{}}()]*(?:\([^;{{}}]*\))?;"
# From these functions on: contexts of boot are over; nothing is checked any more.
BOOT_ENDS = ("init_text_free",)
CHECKS_END = ("panic", "panic_regs")
TAKES_MUTEX = ("mutex_lock",)
WAITS_FOR_HOST = ("shell_send", "shell_output_flush")
# By enum contract_moment, from 1.
MOMENTS = (BOOT_ENDS, CHECKS_END, TAKES_MUTEX, WAITS_FOR_HOST)
REFUSAL = re.compile(
    r"-EDEADLK(?! the caller itself)"
)  # it finds out itself whether it can wait


ANYWHERE = [((1 << len(WORDS)) - 1, 0)]  # the alternatives of a block that says nothing


class Rule:
    """What the blocks say about one function."""

    def __init__(self, name, where):
        self.name = name
        self.where = where
        self.words = {}
        self.of_all = {}
        self.refuses = False
        self.ranges = []  # (number of the parameter, its name, first, last)


def functions_of(text):
    """(names that begin a block or a prototype, where the comment ends) in order."""
    for comment in COMMENT.finditer(text):
        names = [n for some in NAMES.findall(comment[0]) for n in some.split(", ")]
        yield comment, names


def parameters(text, name):
    """The names of the parameters of @name, or None: @text has no prototype of it."""
    found = re.search(PROTOTYPE.format(name), text, re.M)
    if not found:
        return None
    words = [re.findall(r"\w+", one) for one in re.split(r",(?![^()]*\))", found[1])]
    return [some[-1] if some else "" for some in words]


def rules(texts):
    """{name: Rule} of the functions in @texts, {path: text}."""
    made = {}
    for path, text in texts.items():
        code = re.sub(COMMENT, lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        of_all = []  # (line, which, words)
        said = list(fields(text))
        for field in said:
            if field.of_all:
                of_all.append(field)
        for comment, names in functions_of(text):
            line = text.count("\n", 0, comment.start()) + 1
            for name in names:
                arguments = parameters(code, name)
                if arguments is None:
                    continue
                rule = made.setdefault(name, Rule(name, f"{path}:{line}"))
                rule.of_all = {f.which: f.words for f in of_all if f.line <= line}
                rule.refuses |= bool(REFUSAL.search(comment[0]))
                for found in RANGE.finditer(comment[0]):
                    if found[1] in arguments[:6]:
                        number = arguments.index(found[1])
                        rule.ranges.append((number, *found.groups()))
        for field in said:
            for name in field.names:
                if name in made and not field.of_all:
                    made[name].words.setdefault(field.which, field.words)
    for rule in made.values():
        rule.words = rule.words or rule.of_all
    return made


def source(made, rule, which):
    """The rule that @rule means by `as f()`, or @rule; and the words behind that."""
    form = FORMS[which][0].fullmatch(rule.words.get(which, ""))
    other = form and next((made[g] for g in form.groups() if g in made), None)
    return (other, rule.words[which].partition(", ")[2]) if other else (rule, "")


def resolved(made, rule, which):
    """(the words of a field, behind any `as f()`; is a wrong context refused?)"""
    more = []
    other, rest = source(made, rule, which)
    while other is not rule:
        more += [rest] * bool(rest)
        rule = other
        other, rest = source(made, rule, which)
    words = ", ".join([rule.words.get(which, ""), *more])
    return "" if words.startswith("as ") else words, rule.refuses


def bits(words, table):
    return sum(1 << table.index(word) for word in words if word in table)


def alternatives(words):
    """[(bits of the contexts, bits of the conditions)]; any context has all bits."""
    for some in words.split("; "):
        places, *conditions = some.split(", ")
        places = places.split(" or ")
        yield bits(WORDS if ANY in places else places, WORDS), bits(conditions, CHECKED)


def locks(words):
    """(bits of locks that are held, of locks that are not, does the function wait?)"""
    held = free = 0
    waits = False
    for clause in words.split("; "):
        found = ONE_CLAUSE.fullmatch(clause)
        if not found:
            continue
        split = {
            k: re.split(r",? and |, then |, ", v or "")
            for k, v in found.groupdict().items()
        }
        held |= bits(split["held"], ASKED)
        free |= bits(split["not_held"] + split["takes"], ASKED)
        taken = [lock for lock in split["takes"] if lock in ASKED]
        waits |= bool(found["waits"]) or any(lock not in SPINLOCKS for lock in taken)
    return held, free, waits


def rows(made):
    """(rule, words, alternatives, locks, moment) of rules that can be checked."""
    for _, rule in sorted(made.items()):
        context, refuses = resolved(made, rule, "Context")
        lock, _ = resolved(made, rule, "Locks")
        is_asked = context and not (rule.refuses or refuses or ELSE_REFUSED in context)
        some = list(alternatives(context)) if is_asked else ANYWHERE
        held, free, waits = locks(lock)
        asked = held, free, bool(waits and is_asked)
        moment = sum(n for n, names in enumerate(MOMENTS, 1) if rule.name in names)
        if some == ANYWHERE and not any(asked) and not moment and not rule.ranges:
            continue
        words = [
            f"{which}: {text}."
            for which, text in (("Context", context), ("Locks", lock))
            if text
        ]
        yield rule, "  ".join(words), some, asked, moment


def write(made, out):
    listed = list(rows(made))
    includes = sorted({row[0].where.partition(":")[0] for row in listed if row[0].ranges})
    out.write(
        "/* Made by tests/contracts/contracts.py: the rules of contract blocks. */\n"
    )
    out.write('#include "tests/contracts/contracts.h"\n\n')
    out.writelines(f'#include "{path}"\n' for path in includes)
    out.write("\nconst struct contract contract_rules[] = {\n")
    for rule, words, some, (held, free, waits), moment in listed:
        pairs = ", ".join(f"{{ {places}, {when} }}" for places, when in some)
        stopped = int(
            any(
                places >> WORDS.index("stopped") & 1
                for places, _ in some
                if some != ANYWHERE
            )
        )
        bounds = ", ".join(
            f'{{ "{name}", {number}, {first}, {last} }}'
            for number, name, first, last in rule.ranges
        )
        out.write(
            f'    {{ "{rule.name}", "{rule.where}: {words}", '
            f"{{ {pairs} }}, {{ {bounds} }}, "
            f"{held}, {free}, {int(waits)}, {stopped}, {moment} }},\n"
        )
    out.write("};\n\n")
    out.write('__asm__(".pushsection .text\\n.balign 16\\n.globl contract_thunks\\n"\n')
    out.write('        ".type contract_thunks, @function\\ncontract_thunks:\\n"\n')
    for number, row in enumerate(listed):
        name = row[0].name
        out.write(
            f'        "contract_thunks.{name}: movl ${number}, %r11d\\n"\n'
            '        "jmp contract_enter\\n"\n'
        )
    out.write('        ".size contract_thunks, . - contract_thunks\\n.popsection\\n");\n')
    out.write("extern const char contract_thunks[];\nNOKPROBE(contract_thunks);\n")


def main():
    if len(sys.argv) < 4 or sys.argv[1] != "-o":
        sys.exit("usage: contracts.py -o FILE HEADER...")
    texts = {}
    for path in sys.argv[3:]:
        with open(path, encoding="utf-8") as file:
            texts[path] = file.read()
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        write(rules(texts), out)


if __name__ == "__main__":
    main()
