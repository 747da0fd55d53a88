"""ktap.py - turns the guest's KTAP into flat TAP: a line for each fact of each test.

In KTAP the facts of a test are indented by four blanks, in front of the verdict of the
test. All other lines, such as the log on the same line, are left out.
"""

import re
import time

SLOW = 5  # seconds; a test that takes longer is reported

RESULT = re.compile(r"( {4})?(ok|not ok) \d+ ?(?:- )?(.*)")
PLAN = re.compile(r"1\.\.(\d+)")
SUBTEST = re.compile(r" {4}# Subtest: (.*)")
BAIL = re.compile(r"Bail out! ?(.*)")


class Flat:
    """Takes KTAP line by line, and calls print_line with the TAP."""

    def __init__(self, print_line, prefix=""):
        self.print_line = print_line
        self.prefix = prefix
        self.number = 0  # TAP lines printed
        self.planned = None  # tests the guest announced
        self.tests = 0  # tests that have a verdict
        self.subtest = ""  # the test that runs, or ran last
        self.begun = time.monotonic()
        self.facts = self.failed = 0  # of the running test

    def take(self, line):
        line = line.rstrip("\r\n")
        match = RESULT.fullmatch(line)
        if match:
            nested, verdict, what = match.groups()
            if nested:
                self._fact(verdict, what)
            else:
                self._verdict(verdict, what)
            return
        for pattern, function in ((SUBTEST, self._start), (BAIL, self._bail)):
            match = pattern.fullmatch(line)
            if match:
                function(match.group(1))
                return
        match = PLAN.fullmatch(line)
        if match:
            self.planned = int(match.group(1))
        elif line.startswith(("# ", "    # ")):
            self.print_line(line.strip())

    def result(self, verdict, what):
        self.number += 1
        self.print_line(f"{verdict} {self.number} - {self.prefix}{what}")

    def _start(self, name):
        self.subtest = name
        self.begun = time.monotonic()
        self.facts = self.failed = 0

    def _fact(self, verdict, what):
        self.facts += 1
        self.failed += verdict == "not ok"
        self.result(verdict, f"{self.subtest}: {what}")

    def _verdict(self, verdict, what):
        self.tests += 1
        took = time.monotonic() - self.begun
        if took > SLOW:
            self.print_line(f"# {took:.1f} s: {self.subtest}")
        if verdict == "not ok" and not self.failed:
            self.result(verdict, what)  # it has no facts, or none of them failed
        self.facts = self.failed = 0

    def _bail(self, why):
        self.result("not ok", f"the guest gave up: {why}")

    def finish(self):
        """Report what is missing, and print the plan."""
        if self.planned is None:
            self.result("not ok", "the guest did not begin its tests")
        elif self.tests != self.planned or not self.number:
            what = f"{self.tests} of {self.planned} tests ended, the last one begun"
            self.result("not ok", f"{what}: {self.subtest or 'none'}")
        self.print_line(f"1..{self.number}")
