"""test_ktap.py - tests of ktap.py: the guest's KTAP becomes flat TAP."""

import tap
from ktap import Flat


def flat(text):
    lines = []
    taker = Flat(lines.append, "2 CPUs, ")
    for line in text.splitlines():
        taker.take(line)
    taker.finish()
    return lines


GOOD = """\
[    0.1] C0: a line of the log
KTAP version 1
1..2
# seed 7, 2 CPUs
    KTAP version 1
    # Subtest: heap.blocks
    ok 1 - they differ
[    0.2] C1: ok 3 - a log line that looks like one
    ok 2 # SKIP no memory to spare
    1..2
ok 1 - heap.blocks
    KTAP version 1
    # Subtest: heap.poison
    not ok 1 - it is seen
    1..1
not ok 2 - heap.poison
"""


def facts_are_counted_once():
    tap.equal(
        flat(GOOD),
        [
            "# seed 7, 2 CPUs",
            "ok 1 - 2 CPUs, heap.blocks: they differ",
            "ok 2 - 2 CPUs, heap.blocks: # SKIP no memory to spare",
            "not ok 3 - 2 CPUs, heap.poison: it is seen",
            "1..3",
        ],
        "one line per fact, log left out, verdicts of tests not counted again",
    )


def a_test_without_facts_fails():
    lines = flat("KTAP version 1\n1..1\n    # Subtest: a.b\nnot ok 1 - a.b\n")
    tap.equal(lines, ["not ok 1 - 2 CPUs, a.b", "1..1"], "its own verdict counts")


def what_is_missing_is_a_failure():
    tap.check(flat("")[0].startswith("not ok 1"), "no KTAP at all")
    lines = flat("KTAP version 1\n1..2\n    # Subtest: x.y\n    ok 1 - a\nok 1 - x.y\n")
    told = "1 of 2 tests ended, the last one begun: x.y"
    tap.check(any(told in line for line in lines), "an early end")
    lines = flat("KTAP version 1\n1..0\nBail out! no test is called x\n")
    tap.check(lines[0].startswith("not ok 1") and "called x" in lines[0], "bail out")
    tap.check(flat("KTAP version 1\n1..0\n")[0].startswith("not ok 1"), "no test at all")


tap.run(facts_are_counted_once, a_test_without_facts_fails, what_is_missing_is_a_failure)
