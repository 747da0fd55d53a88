"""test_agent.py - try any bytes as a program of gdb, with libFuzzer.

    tests/run/run_tests.py [--long] fuzz/agent

First the programs of agent.hex are tried, then programs that the fuzzer makes from them
(fuzzer.py, fuzz_agent.c). An input that fails belongs into agent.hex.
"""

import os

import tap
from fuzzer import Fuzzer

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES_MAX = 96
ANYTHING = 0x0E  # it may collect, print and use variables, and need not leave a value


def samples():
    with open(os.path.join(HERE, "agent.hex"), encoding="utf-8") as file:
        lines = [line.split("#")[0].strip() for line in file]
    return [
        bytes([use]) + bytes.fromhex(line)
        for line in lines
        if line
        for use in (ANYTHING, 1)
    ]


fuzzer = Fuzzer("agent", samples(), BYTES_MAX)


def samples_hold_the_rules():
    fuzzer.samples_pass()


def other_programs_hold_the_rules():
    fuzzer.mutants_pass()


tap.run(samples_hold_the_rules, other_programs_hold_the_rules)
