#!/usr/bin/env python3
"""test_mutate.py - tests of tests/mutants/mutate.py on a small tree: which edits it makes,
which tests notice them, and that a run that was stopped goes on."""

import collections
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import scratch

MUTANTS = os.path.join(scratch.ROOT, "tests/mutants")
sys.path.insert(0, MUTANTS)
import edits

MAKEFILE = """
all build/tests/sonde.elf:
build/unit.stamp: ; @mkdir -p build/unit; echo small: room/small.c >$@
print-%: ; @echo
build/room/%.c.o: room/%.c
\t@mkdir -p build/room
\t@gcc $(WARNINGS) -O2 -g -c -o $@ $<
build/unit/test_small: tests/unit/test_small.c room/small.c
\t@gcc $(WARNINGS) -o $@ $^
.PHONY: build/unit.stamp build/tests/sonde.elf all
"""
SMALL = """
int limit;
int grown(int x)
{
    if (x > limit) /* if (x > 8) */
        return limit;
    return x;
}

int same(int x)
{
    x = 30;
    x = 10;
    return x;
}

int seen_in_a_guest(void)
{
    return 50;
}

int seen_at_last(void)
{
    return 60;
}

int never_seen(void)
{
    return 70;
}
"""
UNIT = """
#include <stdio.h>
int grown(int x);
int main(void)
{
    int holds = grown(-1) == -1 && grown(1) == 0;

    printf("%s 1 - grown\\n1..1\\n", holds ? "ok" : "not ok");
    return !holds;
}
"""
SESSION = """
print("ok 1 - fine" if "return 50" in open("room/small.c").read() else "not ok 1 - bad")
print("1..1")
"""
ALL = """
import sys
if "--list" in sys.argv:
    print("lint/x session/b")
elif "return 60" not in open("room/small.c").read():
    print("[10:20:30] session/a .. \\nok 1 - good")
    print("[10:20:31] session/b .. \\nnot ok 1 - bad")
    sys.exit(1)
"""
ROW = """
[[mutant]]
name = "m"
why = "Why."
function = "seen_in_a_guest"
old = "50"
new = "1"
tests = ["session/see.it"]
"""


class Small(scratch.Scratch):
    def setUp(self):
        super().setUp()
        for name, text in (
            ("Makefile", MAKEFILE),
            ("room/small.c", SMALL),
            (".gitignore", "build/\nlanes/\n"),
            ("tables/t.toml", ROW),
            ("tables/equivalent.tsv", "# nothing\n"),
            ("tests/unit/test_small.c", UNIT),
            ("tests/session/test_see.py", SESSION),
            ("tests/run/run_tests.py", ALL),
        ):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            self.write(name, text)
        subprocess.run(["git", "init", "-q"], cwd=self.path("."), check=True)

    def start(self, *words):
        command = [
            sys.executable,
            os.path.join(MUTANTS, "mutate.py"),
            *("--root", self.path("."), "--tables", self.path("tables")),
            *("--folder", self.path("lanes"), *words, "room"),
        ]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command,
            stdout=pipe,
            stderr=pipe,
            text=True,
            # A script's background ignores it, and so would the tool.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def mutate(self, *words):
        """Run it to its end. Return the results, and the output."""
        said = self.start(*words).communicate()[0]
        with open(self.path("lanes/lane/room/small.c"), encoding="utf-8") as file:
            self.assertEqual(file.read(), SMALL, "the change is taken back")
        return self.rows(), said

    def rows(self):
        """The lines of the file of results: lists of words."""
        with open(self.path("lanes/room.tsv"), encoding="utf-8") as file:
            return [line.split("\t") for line in file.read().splitlines()]

    def verdict(self, rows, edit):
        found = [row[1:4] for row in rows if row[-1] == edit]
        self.assertEqual(len(found), 1, edit)
        return found[0]

    def test_each_stage_kills(self):
        rows, said = self.mutate("--count", "99")
        negated = "x > limit -> !(x > limit)"
        self.assertEqual(self.verdict(rows, negated), ["killed", "host", "unit/small"])
        self.assertEqual(self.verdict(rows, "> -> >="), ["equivalent", "", ""])
        self.assertEqual(
            self.verdict(rows, "50 -> 51"), ["killed", "named", "session/see"]
        )
        self.assertEqual(self.verdict(rows, "60 -> 61"), ["killed", "all", "session/b"])
        self.assertEqual(self.verdict(rows, "70 -> 71"), ["survived", "all", ""])
        self.assertEqual(self.verdict(rows, "30 -> 31"), ["equivalent", "", ""])
        counts = collections.Counter(row[1] for row in rows)
        total = [counts[word] for word in ("killed", "survived", "equivalent", "skipped")]
        self.assertEqual(said.splitlines()[-1].split(), ["all", *map(str, total)])

    def test_a_hang_at_last_kills(self):
        hangs = "import time; print('[1:2:3] session/b ..', flush=1); time.sleep(60)"
        when = "elif 'return 70' not in open('room/small.c').read(): "
        self.write("tests/run/run_tests.py", ALL + when + hangs)
        rows, _ = self.mutate("--count", "99", "--limit", "4")
        self.assertEqual(self.verdict(rows, "70 -> 71")[2], "hangs in session/b")
        self.write("tests/run/run_tests.py", ALL + "else: " + hangs)
        run = self.start("--count", "99", "--limit", "4", "--again")
        self.assertIn("no end", run.communicate()[1])

    def test_a_later_run_goes_on(self):
        run = self.start("--count", "99", "--last", "host")
        for line in run.stdout:
            if line.startswith(("killed", "survived", "equivalent")):
                run.send_signal(signal.SIGINT)
                break
        run.communicate()
        self.assertEqual(run.returncode, 130)
        before = self.rows()
        after = self.mutate("--count", "99", "--last", "host")[0]
        self.assertEqual(after[: len(before)], before)
        self.assertGreater(len(after), len(before))
        self.assertEqual(
            len({row[0] for row in after}), len(after), "none is tried again"
        )
        self.assertEqual(self.mutate("--count", "99", "--last", "host")[0], after)
        later = self.mutate("--count", "99")[0][len(after) :]
        tried = {row[0] for row in after if row[1] == "survived"}
        self.assertEqual(
            {row[0] for row in later}, tried, "only survivors, by later tests"
        )

    def test_survivors_can_be_tried_again(self):
        before = self.mutate("--count", "99", "--last", "host")[0]
        self.write("tests/unit/test_small.c", UNIT.replace("grown(-1)", "0 * grown(-1)"))
        after = self.mutate("--count", "99", "--last", "host", "--again")[0]
        tried = [row[0] for row in before if row[1] == "survived"]
        self.assertEqual([row[0] for row in after[len(before) :]], tried)

    def test_a_test_that_fails_anyway_kills_nothing(self):
        self.write("tests/unit/test_small.c", UNIT.replace("grown(1) == 0", "0"))
        rows, said = self.mutate("--count", "1", "--last", "host")
        self.assertIn("without the edit it fails, too", said)
        self.assertNotIn("killed", [row[1] for row in rows])

    def test_a_tree_that_does_not_build_is_no_result(self):
        self.write("tests/unit/test_small.c", "no C")
        run = self.start("--count", "1", "--last", "host")
        run.communicate()
        self.assertEqual((run.returncode, self.rows()), (2, []))

    def test_the_choice_is_the_same_each_time(self):
        first = [e.new for e in edits.draw(edits.edits_of("a.c", SMALL, 1))]
        more = "int more(int x)\n{\n    return x + 80;\n}\n" + SMALL
        again = [e.new for e in edits.draw(edits.edits_of("a.c", more, 1))]
        self.assertEqual([new for new in again if new in first], first)
        other = [e.new for e in edits.draw(edits.edits_of("a.c", SMALL, 2))]
        self.assertNotEqual(other, first)
        self.assertEqual(sorted(other), sorted(first))


class Edits(scratch.Scratch):
    def test_in_c(self):
        text = (
            "static void f(int x)\n{\n    int y = 1;\n\n"
            "    if (x < 3 &&\n        g(x))\n        lock(a,\n             b);\n"
            "    WRITE_ONCE(p, 1); /* 2 */\n    q->n++;\n    q->r = x;\n"
            '    plat_assert(x);\n    puts("3 < 4");\n}\n'
        )
        kinds = collections.Counter(
            (e.kind, " ".join(e.old.split()), " ".join(e.new.split()))
            for e in edits.edits_of("a.c", text, 1)
        )
        expected = [
            ("call", "lock(a, b)", "(void)0"),
            ("call", "WRITE_ONCE(p, 1)", "(void)0"),
            ("call", "q->n++", "(void)0"),
            ("call", 'puts("3 < 4")', "(void)0"),
            ("condition", "&&", "||"),
            ("condition", "<", "<="),
            ("condition", "x < 3 && g(x)", "!(x < 3 && g(x))"),
            ("constant", "1", "2"),
            ("constant", "3", "4"),
            ("return", "lock(a, b)", "return"),
            ("return", "WRITE_ONCE(p, 1)", "return"),
            ("return", "q->n++", "return"),
            ("return", "q->r = x", "return"),
            ("return", 'puts("3 < 4")', "return"),
        ]
        self.assertEqual(set(kinds), set(expected))
        self.assertEqual(kinds["constant", "1", "2"], 2)

    def test_stores_are_exchanged(self):
        text = "int f(void)\n{\n    a->b = 1;\n    /* x */\n    WRITE_ONCE(c, 2);\n}\n"
        found = [e for e in edits.edits_of("a.c", text, 1) if e.kind == "order"]
        self.assertEqual(
            [e.apply(text) for e in found],
            ["int f(void)\n{\n    WRITE_ONCE(c, 2);\n    /* x */\n    a->b = 1;\n}\n"],
        )

    def test_in_nasm(self):
        text = (
            "proc a\n    cmp rax, 8              ; 9\n    jae .end\n    call b\n"
            "    mov [c], rax\n    mov [d], rbx\n.end:\n    ret\nendproc a\n"
        )
        found = edits.edits_of("a.asm", text, 1)
        made = {(e.kind, e.old, e.new) for e in found}
        for one in (
            ("condition", "jae", "jnae"),
            ("condition", "jae", "ja"),
            ("constant", "8", "9"),
            ("call", "call b", ""),
            ("return", "call b", "ret"),
            ("order", "mov [c], rax\n    mov [d], rbx", "mov [d], rbx\n    mov [c], rax"),
        ):
            self.assertIn(one, made)
        self.assertNotIn(("constant", "9", "10"), made)


scratch.main()
