"""grader.py - grades lab 7: runs the student's plans on real text, and checks
them by Spin.
"""

import concurrent.futures
import os
import re
import sys

from sonde.building import HostError
from docs.labs.host.grade import Difference
from docs.labs.host.grade import Workshop as Hosted
from docs.labs.host.in_guest import Seen

STEPS = {
    1: "guard()",
    2: "tail()",
    3: "first_byte()",
    4: "all_bytes()",
    5: "sync()",
    6: "drain()",
}
PLANS = ("ONE", "TWO", "BACK")
NAMES = ("", "POKE_GUARD", "POKE_TAIL", "POKE_FIRST", "POKE_ALL", "POKE_SYNC",
         "POKE_DRAIN")  # fmt: skip
# The faults of plans that lack a step: the name in poke.h, the fact that Spin checks.
WHY = {
    1: ("POKE_MIXTURE", "WHOLE"),
    2: ("POKE_STALE", "AFTER"),
    3: ("POKE_ENDLESS", "LIVE"),
}
STEPS_MAX = 24
TRAPS = 4

# Line of the rubric: (the fact, the plans that must have it, the words if it
# does not hold).
MODELS = {
    "fetch": ("WHOLE", PLANS[:1], "a CPU executes a mixture of old and new bytes"),
    "two": ("WHOLE", PLANS[1:], "a CPU executes a mixture of old and new bytes"),
    "after": ("AFTER", PLANS, "it is over, and a CPU has still fetched something else"),
    "ends": ("LIVE", PLANS, "it never ends"),
}

# (line of the way that Spin prints, the same for a reader who does not know the model)
WORDS = (
    (r"byte 0 becomes (\d)", "stored: the first byte becomes {0}"),
    (r"byte 1 becomes (\d)", "stored: the bytes behind it become {0}"),
    (r"CPU \d serialises", "the CPU serialises"),
    (r"context 0 .* executes byte 0 as (\d)", "the thread executes the first byte: {0}"),
    (r"context 1 .* executes byte 0 as (\d)", "an NMI executes the first byte: {0}"),
    (r"context 0 .* executes byte 1", "the thread executes the second instruction"),
    (r"context 1 .* executes byte 1", "an NMI executes the second instruction"),
    (r"context 0 .* is in the trap", "the thread is in the trap"),
    (r"context 1 .* is in the trap", "the NMI is in the trap"),
    (r"START OF CYCLE", "from here on, the same for ever:"),
)
VALUES = ("old", "int3", "new")


class Table:
    """The plans: lists of steps, what a trap does, and what goes wrong without a step."""

    def __init__(self, facts):
        """Raises TypeError if a fact is not a row of a table, and KeyError if a number has
        no name in poke.h.
        """
        self.steps, self.whys, self.traps = [[], [], []], [[], [], []], [0, 0, 0]
        for fact in facts:
            row = re.fullmatch(r"([012]) (step|trap|why) (\d{1,10})", fact)
            plan, what, number = int(row[1]), row[2], int(row[3])
            if what == "trap" and number < TRAPS:
                self.traps[plan] = number
            elif what == "why":
                self.whys[plan].append(number)
            elif what == "trap" or number not in STEPS:
                raise KeyError(
                    f"poke_{PLANS[plan].lower()}: poke.h has no {what} {number}"
                )
            elif len(self.steps[plan]) < STEPS_MAX:
                self.steps[plan].append(number)

    def defines(self, without=None):
        """Return the options for Spin that describe the plans.
        @without: the number of a step of poke_two that is left out
        """
        words = []
        for name, steps, trap in zip(PLANS, self.steps, self.traps):
            left_out = without if name == "TWO" else None
            code = [STEPS[step] for i, step in enumerate(steps) if i != left_out]
            # Spin passes the options to a shell, so the steps are in quotes.
            words.append(f"-DSTEPS_{name}='{'; '.join(code or ['skip'])}'")
            words.append(f"-DTRAP_{name}={trap}")
        return words


def in_words(way):
    for line in way.splitlines():
        for pattern, words in WORDS:
            found = re.search(pattern, line)
            if found:
                yield words.format(VALUES[int(found[1])] if found.groups() else "")
                break


class Workshop(Hosted):
    found = {}  # {options: does Spin find a way in which the plans fail?}

    def spin(self):
        sys.path.insert(0, os.path.join(self.tree, "docs", "model"))
        import spin

        return spin

    def fails(self, words, plans):
        """Does Spin find a way in which the plans fail?"""
        words = tuple(words) + tuple(f"-DPLAN_{name}" for name in plans)
        if words not in self.found:
            verdict = self.spin().check(os.path.join(self.grader, "poke"), words)
            if not verdict.failed and not verdict.holds():
                raise HostError(f"grade: Spin on the plans: {verdict.output}")
            self.found[words] = verdict.failed
        return self.found[words]

    def compare(self, line, seed, case):
        if line not in MODELS and line != "smallest":
            return super().compare(line, seed, case)
        facts, ended = self.run_case(self.answer, "table", seed, case)
        self.printed = ""
        try:
            table = Table(facts[:-1])
        except TypeError:
            return Difference([], [], Seen(ended.why or "that is no table"))
        except KeyError as error:
            return Difference([], [], Seen(error.args[0]))
        why = self.too_much(table) if line == "smallest" else self.wrong(table, line)
        return Difference([], [], Seen(why)) if why else None

    def wrong(self, table, line):
        """Return words for a plan that breaks the rule of a line, or None."""
        what, plans, why = MODELS[line]
        words = [*table.defines(), f"-D{what}"]
        if not self.fails(words, plans):
            return None
        bad = next(name for name in plans if self.fails(words, [name]))
        self.note_way(words + [f"-DPLAN_{bad}"])
        return f"poke_{bad.lower()}: {why}"

    def too_much(self, table):
        """Return words for a step that may be left out, or for a wrong reason; or None."""
        if any(
            self.fails([*table.defines(), f"-D{what}"], plans)
            for what, plans, _ in MODELS.values()
        ):
            return "first your plans must keep all rules: see the lines above"
        right = Table(self.run_ours(self.truth, "table", 0, 0, None)[:-1])
        for name, ours, theirs in zip(PLANS, right.steps, table.steps):
            if len(theirs) > len(ours):
                return (
                    f"poke_{name.lower()} has {len(theirs)} steps, and {len(ours)} "
                    "suffice: which step may be left out?"
                )
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            said = pool.map(
                lambda i: self.no_reason(table, i), range(len(right.steps[1]))
            )
        return next(filter(None, said), None)

    def no_reason(self, table, i):
        """Return words if Spin finds that poke_two.why[i] is not so, or None."""
        rows = table.steps[1], table.whys[1]
        step, number = ((row[i : i + 1] or [0])[0] for row in rows)  # it may be shorter
        place = f"poke_two.why[{i}], for {NAMES[step]}"
        if number not in WHY:
            return f"{place}: say what goes wrong without this step"
        name, what = WHY[number]
        if not self.fails([*table.defines(i), f"-D{what}"], ["TWO"]):
            return f"{place}: {name} does not happen without this step"
        return None

    def note_way(self, words):
        """Keep the shortest way to the error, in words, as the output for --case."""
        way = self.spin().explain(os.path.join(self.grader, "poke"), words)
        told = []
        for words in in_words(way):
            told.append(words)
            if told[-2:] == told[-4:-2]:  # the same once more
                del told[-2:]
        self.printed = "".join(words + "\n" for words in told)

    def how_to_debug(self, line, seed, case):
        return (
            None
            if line in (*MODELS, "smallest")
            else super().how_to_debug(line, seed, case)
        )
