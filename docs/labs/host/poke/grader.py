"""grader.py - grades lab 7: runs the student's plans on real text, and checks
them by Spin.
"""

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
)
VALUES = ("old", "int3", "new")


def defines(table):
    """Return the options for Spin that describe the plans. Raises TypeError if a fact is
    not a row of a table.
    """
    steps, traps = [[], [], []], [0, 0, 0]
    for fact in table:
        row = re.fullmatch(r"([012]) (step|trap) (\d)", fact)
        plan, what, number = int(row[1]), row[2], int(row[3])
        if what == "trap":
            traps[plan] = number % TRAPS
        elif number in STEPS and len(steps[plan]) < STEPS_MAX:
            steps[plan].append(STEPS[number])
    # Spin passes the options to a shell, so the steps are in quotes.
    words = [
        f"-DSTEPS_{name}='{'; '.join(those or ['skip'])}'"
        for name, those in zip(PLANS, steps)
    ]
    return words + [f"-DTRAP_{name}={trap}" for name, trap in zip(PLANS, traps)]


def in_words(way):
    for line in way.splitlines():
        for pattern, words in WORDS:
            found = re.search(pattern, line)
            if found:
                yield words.format(VALUES[int(found[1])] if found.groups() else "")
                break


class Workshop(Hosted):
    def spin(self):
        sys.path.insert(0, os.path.join(self.tree, "docs", "model"))
        import spin

        return spin

    def fails(self, words, plans):
        """Does Spin find a way in which the plans fail?"""
        words = words + [f"-DPLAN_{name}" for name in plans]
        verdict = self.spin().check(os.path.join(self.grader, "poke"), words)
        if not verdict.failed and not verdict.holds():
            raise HostError(f"grade: Spin on the plans: {verdict.output}")
        return verdict.failed

    def compare(self, line, seed, case):
        if line not in MODELS:
            return super().compare(line, seed, case)
        table, ended = self.run_case(self.answer, "table", seed, case)
        what, plans, why = MODELS[line]
        try:
            words = [*defines(table[:-1]), f"-D{what}"]
        except TypeError:
            return Difference([], [], Seen(ended.why or "that is no table"))
        if not self.fails(words, plans):
            return None
        bad = next(name for name in plans if self.fails(words, [name]))
        if what != "LIVE":
            self.note_way(words + [f"-DPLAN_{bad}"])
        return Difference([], [], Seen(f"poke_{bad.lower()}: {why}"))

    def note_way(self, words):
        """Keep the shortest way to the error, in words, as the output for --case."""
        way = self.spin().explain(os.path.join(self.grader, "poke"), words)
        self.printed = "".join(text + "\n" for text in in_words(way))

    def how_to_debug(self, line, seed, case):
        return None if line in MODELS else super().how_to_debug(line, seed, case)
