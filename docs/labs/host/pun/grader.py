"""grader.py - grades lab 9. A program without the student's files checks the student's
plans. In the line `run`, the plans are written and executed, and the effect is compared.
"""

import re

from docs.labs.host.grade import Difference, file_in_memory
from docs.labs.host.grade import Workshop as Hosted
from docs.labs.host.in_guest import Seen

ENOUGH = re.compile(r"enough: (\d+) of (\d+)")


class Workshop(Hosted):
    def build_answer(self, handed_in):
        super().build_answer(handed_in)
        # {line: the least percentage of the engine's plans in its cases}, of this student
        self.least = {}

    def note(self, line):
        return f"{self.least[line]} % of the engine's plans" if line in self.least else ""

    def link_ours(self, lab):
        super().link_ours(lab)
        planner = self.ours("probes/jump/pun*.c") + self.ours("probes/insn/*.c")
        self.judge = self.link(
            "judge",
            self.frame
            + self.ours(lab + "/judge.c")
            + self.ours(lab + "/shared.c")
            + planner,
        )

    def compare(self, line, seed, case):
        if line == "run":
            return super().compare(line, seed, case)
        with self.make_input(line, seed, case) as given:
            plans, ended = self.run_case(self.answer, line, seed, case, self.again(given))
            if ended.why:
                return Difference([], [], ended)
            with file_in_memory() as both:
                both.write(self.again(given).read())
                both.write("\n".join(plans).encode())
                facts, ended = self.run_case(
                    self.judge, line, seed, case, self.again(both)
                )
        if ended.why:
            return Difference([], [], Seen("these are no plans"))
        enough = ENOUGH.fullmatch(facts[0])
        if not enough:
            return Difference([], [], Seen(facts[0]))
        found, of = map(int, enough.groups())
        percentage = 100 * found // of if of else 100
        self.least[line] = min(percentage, self.least.get(line, percentage))
        return None
