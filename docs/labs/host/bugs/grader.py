"""grader.py - grades lab 10: runs the student's tests on correct tracers and on tracers
with one bug each, and runs our tests on the student's tracer.
"""

import glob
import os
import random
import shutil
import subprocess
import tempfile

from docs.labs.host.grade import Difference
from docs.labs.host.grade import Workshop as Hosted
from docs.labs.host.in_guest import Seen

RIGHT = ("right", "right-batch")
FALSE = "this does not hold"


class Workshop(Hosted):
    """The student's tests cannot know which tracer they test, but by what it does: their
    programs have names that say nothing, no text about the source of the tracer, and a
    random number of nops at the head of each of its functions.
    """

    def link_ours(self, lab):
        self.frame = self.ours("docs/labs/host/grader*.[ca]*") + self.ours(
            lab + "/grader.c"
        )
        tracer = os.path.join(self.grader, "solution", "tracer.c")
        self.tracers = {"right": self.compile_blind(tracer, "right")}
        for patch in sorted(glob.glob(os.path.join(self.grader, "bugs", "*.patch"))):
            name = os.path.basename(patch).removesuffix(".patch")
            patched = self.patched(name, tracer, patch)
            self.tracers[name] = self.compile_blind(patched, name)
        self.tests = self.ours(lab + "/solution/tests.c")
        right = self.link("truth", [*self.frame, *self.tests, self.tracers["right"]])
        self.checks = {
            line: self.run_ours(right, line, 0, 0, None) for line in ("run", "count")
        }

    def compile_blind(self, source, name):
        target = self.path(name + ".o")
        words = [*self.to_compile(source, target), "-g0"]
        nops = random.SystemRandom().randrange(1, 32)
        words.append(f"-fpatchable-function-entry={nops}")
        self.run(words, self.folder, ("/",))
        return target

    def patched(self, name, source, patch):
        folder = self.path("bug-" + name)
        os.makedirs(folder, exist_ok=True)
        shutil.copy(source, folder)
        subprocess.run(["git", "apply", patch], cwd=folder, check=True)
        return os.path.join(folder, os.path.basename(source))

    def build_answer(self, handed_in):
        tests = self.compile_theirs(self.taken(handed_in, "tests.c"))
        tracer = self.compile_theirs(self.taken(handed_in, "tracer.c"))
        self.programs = {
            name: self.link_nameless([tests], [*self.frame, object])
            for name, object in self.tracers.items()
        }
        self.programs["fixed"] = self.link_nameless([tracer], [*self.frame, *self.tests])
        self.seen = {}

    def link_nameless(self, theirs, ours):
        folder = tempfile.mkdtemp(dir=self.folder)
        return self.link_both(os.path.join(folder, "answer"), theirs, ours)

    def run_line(self, name, line):
        """Run a line of a program. Return (checks that failed, number that passed)."""
        facts, ended = self.run_case(self.programs[name], line, 0, 0)
        failed = [
            fact.removeprefix("failed ") for fact in facts if fact.startswith("failed ")
        ]
        if ended.why or facts[-1:] != ["the case has ended"]:
            why = ended.why or "it ended before it was done"
            failed.append(f"the tests reach their end ({why})")
        elif name == "fixed" and not failed and facts != self.checks[line]:
            failed.append("each of them is executed")
        return failed, sum(fact.startswith("ok ") for fact in facts)

    def run_tests(self, name):
        """Run a program once. Return (the checks that failed, the number that passed)."""
        if name not in self.seen:
            self.seen[name] = self.run_line(name, "run")
        if name == "fixed" and not self.seen[name][0]:
            self.seen[name] = self.run_line(name, "count")
        return self.seen[name]

    def verdict(self, line, case):
        """Return the reason why a case is lost; None or False: it is passed."""
        if line == "fixed":
            failed = self.run_tests("fixed")[0]
            return failed and f"our tests find in your tracer that {FALSE}: {failed[0]}"
        for name in RIGHT:
            failed, count = self.run_tests(name)
            if failed:
                return f"your tests say of a right tracer that {FALSE}: {failed[0]}"
            if not count:
                return "your tests check nothing"
        if line != "right":
            name = [name for name in self.tracers if name.startswith(line)][case]
            return (
                not self.run_tests(name)[0]
                and "your tests find nothing wrong with one of them"
            )
        return None

    def compare(self, line, seed, case):
        why = self.verdict(line, case)
        return Difference([], [], Seen(why)) if why else None

    def how_to_debug(self, line, seed, case):
        name = "fixed" if line == "fixed" else "right"
        return f"gdb --args {self.programs[name]} run 0 0"
