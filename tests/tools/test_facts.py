#!/usr/bin/env python3
"""test_facts.py - tests of facts.py with small runs."""

import os
import sys

sys.dont_write_bytecode = True
import scratch

FACTS = os.path.join(scratch.ROOT, "tests/tools/facts.py")


class Facts(scratch.Scratch):
    def run_of(self, name, **tests):
        """Make a folder of TAP. @tests: the facts of each test, by its name."""
        os.mkdir(self.path(name))
        for test, facts in tests.items():
            lines = [
                f"ok {i} - {fact}"
                if not fact.startswith("not ")
                else f"not ok {i} - {fact[4:]}"
                for i, fact in enumerate(facts, 1)
            ]
            self.write(f"{name}/{test}", "\n".join(lines) + f"\n1..{len(facts)}\n")
        return self.path(name)

    def compare(self, fewer, more, *options):
        done = self.run_any(
            sys.executable,
            FACTS,
            *options,
            self.run_of("fewer", **fewer),
            self.run_of("more", **more),
        )
        return done.returncode, done.stdout.splitlines()

    def test_a_run_has_all_of_its_own_facts(self):
        run = {"a": ["one", "2 are seen"], "b": ["three"]}
        self.assertEqual(
            self.compare(run, run), (0, ["3 facts, 3 facts: 0 are left out, 0 are lost"])
        )

    def test_what_is_left_out_is_counted(self):
        status, lines = self.compare(
            {"a": ["one"]}, {"a": ["one", "two"], "b": ["three"]}
        )
        self.assertEqual(
            (status, lines[:2]),
            (0, ["a: 1 of 2 facts are left out", "b: all 1 facts are left out"]),
        )

    def test_and_can_be_named(self):
        _, lines = self.compare({"a": ["one"]}, {"a": ["one", "two"]}, "--list")
        self.assertEqual(lines[0], "a: two")

    def test_a_lost_fact_is_named(self):
        status, lines = self.compare({"a": ["one", "two"]}, {"a": ["two", "three"]})
        self.assertEqual((status, lines[1]), (1, "LOST a: one"))

    def test_a_fact_belongs_to_its_test(self):
        self.assertEqual(self.compare({"a": ["one"]}, {"b": ["one"]})[0], 1)

    def test_numbers_may_differ(self):
        status, _ = self.compare(
            {"a": ["1,234 of 5 at 0x0, in h91_it"]},
            {"a": ["7 of 10.5 at 0xff, in h91_it"]},
        )
        self.assertEqual(status, 0)

    def test_addresses_and_temporary_files_may_differ(self):
        status, _ = self.compare(
            {"a": ["Z0,ffffffff8026f930,1 in /tmp/tmpl90vmrjw/socket"]},
            {"a": ["Z0,ffffffff8026f940,1 in /tmp/tmp7yjjregk/socket"]},
        )
        self.assertEqual(status, 0)

    def test_addresses_of_memory_packets_may_differ(self):
        status, _ = self.compare(
            {"a": ["mffffffff8026f930,8", "Mffffffff8026f930,1:cc"]},
            {"a": ["mffffffff8026f940,8", "Mffffffff8026f940,1:cc"]},
        )
        self.assertEqual(status, 0)

    def test_but_not_those_of_cpus(self):
        status, lines = self.compare(
            {"a": ["2 CPUs, x: 3 hits"]}, {"a": ["4 CPUs, x: 3 hits"]}
        )
        self.assertEqual((status, lines[1]), (1, "LOST a: 2 CPUs, x: N hits"))

    def test_a_failure_and_a_skip_are_not_there(self):
        more = {"a": ["not one", "two # SKIP no clang", "three"]}
        status, lines = self.compare({"a": ["one", "two", "three"]}, more)
        self.assertEqual((status, lines[-3:-1]), (1, ["LOST a: one", "LOST a: two"]))

    def test_an_empty_run_is_an_error(self):
        os.mkdir(self.path("empty"))
        done = self.run_any(sys.executable, FACTS, self.path("empty"), self.path("empty"))
        self.assertEqual(done.returncode, 2)
        self.assert_one_line_error(done, "has no facts")


scratch.main()
