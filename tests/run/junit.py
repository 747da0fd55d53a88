"""junit.py - writes a run of tests as JUnit's XML: a suite for each test, a case for each
fact. It reads the TAP that run_tests.py keeps.
"""

import re
from xml.sax.saxutils import escape, quoteattr

from sonde.check import xml_text

FACT = re.compile(r"(ok|not ok) \d+ ?(?:- )?(.*)")
PLAN = re.compile(r"1\.\.(\d+)")
SKIP = re.compile(r"(.*?) *# skip ?(.*)", re.IGNORECASE)


def facts_of(tap, status):
    """Yield (is_right, text, notes) for each fact, and a fact that fails if the test has
    ended too early, or only its status says that it has failed. The notes of a fact stand
    behind it.
    """
    facts, planned = [], None
    for line in tap.splitlines():
        match, plan = FACT.fullmatch(line), PLAN.match(line)
        if match:
            facts.append((match[1] == "ok", match[2], []))
        elif plan:
            planned = int(plan[1])
        elif line.startswith("#") and facts:
            facts[-1][2].append(line[1:].strip())
    yield from facts
    if planned != len(facts):
        yield False, "the test runs to its end", [f"{len(facts)} of {planned} facts"]
    elif status != "0" and all(is_right for is_right, _, _ in facts):
        yield False, "the test ends with status 0", [f"status {status}"]


def case(label, fact):
    is_right, text, notes = fact
    skipped = SKIP.fullmatch(text)
    text = skipped[1] if skipped else text
    yield f"<testcase classname={quoteattr(label)} name={quoteattr(xml_text(text))}>"
    if skipped:
        yield f"<skipped message={quoteattr(xml_text(skipped[2]))}/>"
    elif not is_right:
        yield f"<failure>{escape(xml_text(chr(10).join(notes)))}</failure>"
    yield "</testcase>"


def suite(label, tap, seconds, status):
    facts = list(facts_of(tap, status))
    skipped = sum(bool(SKIP.fullmatch(text)) for _, text, _ in facts)
    failures = sum(
        not is_right and not SKIP.fullmatch(text) for is_right, text, _ in facts
    )
    yield (
        f'<testsuite name={quoteattr(label)} tests="{len(facts)}" '
        f'failures="{failures}" skipped="{skipped}" time="{seconds}">'
    )
    for fact in facts:
        yield from case(label, fact)
    yield "</testsuite>"


def write(path, tests):
    """@tests: (label, its TAP, seconds and status as text) of each test."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>"]
    for test in tests:
        lines += suite(*test)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*lines, "</testsuites>"]) + "\n")
