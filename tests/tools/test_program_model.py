#!/usr/bin/env python3
"""test_program_model.py - programs of hits do what a model of them does, in C and as code.

    tests/tools/test_program_model.py                          random programs; SEED=N
    tests/tools/test_program_model.py live 5 get,7 sum,16      one case

program_ways.c runs a case both ways, and program_model.py says what it must leave. A case
that differs is made as short as possible, and printed as words for the second line.
"""

import os
import random
import subprocess
import sys

import program_model as model
import tap
from sonde import building
from sonde.guest import BUILD

PROGRAM = os.path.join(BUILD, "hosted", "gcc", "program_ways")
WAYS = ("trap", "jump")
PROGRAMS = 1000000 if tap.LONG else 1500
AT_ONCE = 32  # cases; as many places as program_ways.c has of each kind
SIMPLE = (0, 1)


class Ways:
    """The program that runs cases; it is started again if a case has ended it."""

    def __init__(self):
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            PROGRAM, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.machine = model.Machine(self.process.stdout.readline())

    def run(self, cases):
        """For each case its answers by both ways; "" where there was none."""
        try:
            self.process.stdin.write("".join(f"{case}\n" for case in cases))
            self.process.stdin.write("" if len(cases) == AT_ONCE else "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        lines = [self.process.stdout.readline().strip() for _ in range(2 * len(cases))]
        if not lines[-1]:
            self.process.wait()
            self.start()
        return list(zip(lines[: len(cases)], lines[len(cases) :]))


def difference(answers, want):
    """How the @answers for a case differ from the model; None: they do not."""
    if answers[0].startswith("refused"):
        return None
    for way, answer in zip(WAYS, answers):
        if answer != f"{way} {want}":
            return f"by a {way}", answer or "it has ended", f"{way} {want}"
    return None


def fails(ways, case):
    try:
        want = model.expect(ways.machine, case, 0)
    except model.Unknown:
        return None
    return difference(ways.run([case])[0], want)


# ---- a shorter case ----


def without(ops, i):
    """@ops without operation @i; skips over it get shorter."""
    return [
        op.changed(skip=op.skip - (k < i <= k + op.skip))
        for k, op in enumerate(ops)
        if k != i
    ]


def shorter(case):
    """Cases that are a little shorter or simpler than @case, the shortest first."""
    programs = case.programs
    for i in range(len(programs) if len(programs) > 1 else 0):
        yield programs[:i] + programs[i + 1 :]
    for i, ops in enumerate(programs):
        for k in range(len(ops) if len(ops) > 1 else 0):
            yield programs[:i] + [without(ops, k)] + programs[i + 1 :]
    for i, ops in enumerate(programs):
        for k, op in enumerate(ops):
            for field in ("skip", "imm", "at", "sub", "source"):
                for simple in SIMPLE:
                    if getattr(op, field) > simple:
                        changed = ops[:k] + [op.changed(**{field: simple})] + ops[k + 1 :]
                        yield programs[:i] + [changed] + programs[i + 1 :]


def shortest(case, fails_still):
    """The shortest case found from @case with which @fails_still."""
    for programs in shorter(case):
        candidate = model.Case(case.kind, case.seed, programs)
        if fails_still(candidate):
            return shortest(candidate, fails_still)
    return case


# ---- facts ----


def the_wrong_one(ways, cases, case):
    """@case; or if it is right when it runs alone, that of @cases which has ended it."""
    return next((one for one in (case, *cases) if fails(ways, one)), case)


def tell(ways, case):
    why = fails(ways, case)
    print("# to repeat it: tests/tools/test_program_model.py " + str(case))
    if why:
        tap.note(f"{why[0]}\n  got  {why[1]}\n  want {why[2]}")


def programs_do_what_the_model_does():
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    tap.note(f"seed {seed}")
    ways = Ways()
    maker = model.Maker(ways.machine, seed)
    done = refused = jumps = 0
    seen, wrong = set(), None
    while done < PROGRAMS and not wrong:
        cases, wants = zip(*map(maker.case, range(AT_ONCE)))
        for case, want, answers in zip(cases, wants, ways.run(cases)):
            if answers[0].startswith("refused"):
                refused += 1
                continue
            done += len(case.programs)
            jumps += answers[1].startswith("jump") * len(case.programs)
            seen |= {op.name for ops in case.programs for op in ops}
            if not wrong and difference(answers, want):
                wrong = the_wrong_one(ways, cases, case)
    tap.note(f"{done} programs, {jumps} of them jumps; {refused} cases refused")
    if not tap.check(not wrong, "each leaves what the model says, in C and as code"):
        tell(ways, shortest(wrong, lambda case: fails(ways, case)))
    tap.equal(sorted(set(model.RUN) - seen), [], "each operation was in one of them")
    tap.check(jumps == done, "each was code in a detour")


def a_case_is_made_as_short_as_possible():
    """It fails as long as a sum of the value comes behind a load."""

    def fails_still(case):
        names = [op.name for ops in case.programs for op in ops]
        return "load" in names and "sum" in names[names.index("load") :]

    maker = model.Maker(Ways().machine, 7)
    long = next(case for case, _ in iter(maker.case, None) if fails_still(case))
    short = shortest(long, fails_still)
    tap.note(f"{sum(map(len, long.programs))} operations: {short}")
    tap.equal(sum(map(len, short.programs)), 2, "two operations are left of it")
    ops = model.Op("if", 7, 5, 3), model.Op("end"), model.Op("count"), model.Op("end")
    tap.equal([op.skip for op in without(list(ops), 2)], [2, 0, 0], "skips get shorter")


def one_case(words):
    line = " ".join(words)
    names = ("source", "sub", "skip", "at", "imm")
    programs = [
        [
            model.Op(name, **dict(zip(names, (int(number, 0) for number in numbers))))
            for name, *numbers in (op.split(",") for op in text.split())
        ]
        for text in line.split(maxsplit=2)[2].split("+")
    ]
    case = model.Case(words[0], int(words[1]), programs)
    ways = Ways()
    for answer in ways.run([case])[0]:
        print(answer or "it has ended")
    print("model " + model.expect(ways.machine, case, 0))
    return 1 if fails(ways, case) else 0


building.build([building.spelled(PROGRAM)], tap.note)
if sys.argv[1:2] and sys.argv[1] in model.KINDS:
    sys.exit(one_case(sys.argv[1:]))
tap.run(programs_do_what_the_model_does, a_case_is_made_as_short_as_possible)
