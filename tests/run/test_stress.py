"""test_stress.py - tests of `make stress` with a fake guest: its lines and its status."""

import os
import re
import subprocess
import sys

import tap
from fake import with_fake_qemu
from sonde.guest import ROOT

STRESS = os.path.join(ROOT, "tests", "stress", "stress.py")


def stress(fake, *options):
    """(status, line of each minute as words, all output) of a run with fake guests."""
    words = [sys.executable, STRESS, "--patience", "1", *options]
    environment = dict(os.environ, FAKE="stress " + fake)
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    lines = done.stdout.splitlines()
    minutes = [line.split() for line in lines if re.match(r" *\d", line)]
    return done.returncode, minutes, "\n".join(lines) + done.stderr


def a_line_a_minute():
    status, minutes, text = stress("same 0", "--minutes", "5", "--seed", "7")
    tap.equal(status, 0, "all minutes are the same")
    tap.equal(
        [" ".join(line[:5]) for line in minutes],
        ["1 1 no no 7", "2 2 no no 8", "3 4 no yes 9", "4 8 no no 10", "5 1 yes no 11"],
        "CPUs in turn, stepped in the second, a debugger in the third, a seed for each",
    )
    tap.equal(
        minutes[0][5:],
        ["2", "20", "40", "6", "8", "10", "12", "same"],
        "and the sums of its rounds",
    )


def the_first_difference_ends_it():
    status, minutes, text = stress("differs 2", "--minutes", "9", "--round", "3")
    tap.equal((status, len(minutes)), (1, 2), "status 1, behind the second minute")
    for line in ("differs: sites 1, not 0", "p0: pre at there", "    hits 7"):
        tap.check(line in text, f"it shows: {line.strip()}")
    again = "make stress MINUTES=1 CPUS=2 SEED=2 ROUND=4 STEPPED=0"
    tap.check(again in text, "how to repeat it")


def a_guest_that_does_not_end_is_a_difference():
    for how, message in (
        ("panic", "panic: asked for"),
        ("hang", "no answer within 1 s"),
        ("reset", "the guest reset itself"),
    ):
        status, _, text = stress(how + " 1", "--classes", "loop")
        tap.check(status == 1 and message in text, f"{how}: {message}")
        again = "SEED=1 ROUND=1 STEPPED=0 DEBUGGER=0 CLASSES=loop"
        tap.check(again in text, "in the round behind the last")


def every_class_is_in_the_docs():
    with open(os.path.join(ROOT, "tests/stress/misbehave.c"), encoding="utf-8") as file:
        known = re.findall(r"\[STRESS_\w+\] = \{ \"(\w+)\"", file.read())
    with open(os.path.join(ROOT, "docs/testing.md"), encoding="utf-8") as file:
        text = file.read().partition("| class |")[2].partition("\n\n")[0]
    cells = [row.split("|")[1] for row in text.splitlines() if "`" in row]
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    tap.equal(sorted(listed), sorted(known), f"{len(known)} classes of misbehaviour")


if __name__ == "__main__":
    with_fake_qemu(
        lambda: tap.run(
            a_line_a_minute,
            the_first_difference_ends_it,
            a_guest_that_does_not_end_is_a_difference,
            every_class_is_in_the_docs,
        )
    )
