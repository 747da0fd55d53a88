"""test_gdb.py - try any bytes as input of the kernel's stub for gdb, with libFuzzer.

    tests/run/run_tests.py [--long] fuzz/gdb

First the streams of gdb.txt are tried, then streams that the fuzzer makes from them
(fuzzer.py, fuzz_gdb.c). An input that fails belongs into gdb.txt.
"""

import ast
import os

import tap
from fuzzer import Fuzzer

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES_MAX = 128
RUNS = 2000  # few, because some inputs become very long streams


def samples():
    with open(os.path.join(HERE, "gdb.txt"), encoding="ascii") as file:
        lines = [line.strip() for line in file]
    return [ast.literal_eval(f"b'{line}'") for line in lines if line and line[0] != ";"]


fuzzer = Fuzzer("gdb", samples(), BYTES_MAX, RUNS)


def samples_hold_the_rules():
    fuzzer.samples_pass()


def other_streams_hold_the_rules():
    fuzzer.mutants_pass()


tap.run(samples_hold_the_rules, other_streams_hold_the_rules)
