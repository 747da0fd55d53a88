"""test_insn.py - try any bytes as an instruction, with libFuzzer.

    tests/run/run_tests.py [--long] fuzz/insn

First the inputs of insn.hex are tried, then inputs that the fuzzer makes from them
(fuzzer.py, fuzz_insn.c). An input that fails belongs into insn.hex: then each run tries
it.
"""

import os

import tap
from fuzzer import Fuzzer

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES_MAX = 16  # one more than the longest instruction


def samples():
    """The inputs of insn.hex: in each line bytes in hex, then a comment."""
    with open(os.path.join(HERE, "insn.hex"), encoding="ascii") as file:
        lines = [line.partition("#")[0].strip() for line in file]
    return [bytes.fromhex(line) for line in lines if line]


fuzzer = Fuzzer("insn", samples(), BYTES_MAX)
tap.run(fuzzer.samples_pass, fuzzer.mutants_pass)
