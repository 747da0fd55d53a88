"""test_insn.py - any bytes through the decoder and what follows it, under libFuzzer.

    tests/run/run_tests.py [--long] fuzz/insn

The inputs of insn.hex, then others that the fuzzer makes of them (fuzzer.py). What it finds
belongs into insn.hex, where it is tried ever after.
"""

import os

import tap
from fuzzer import Fuzzer

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES_MAX = 16  # an instruction, and one more


def samples():
    """The inputs of insn.hex: bytes in hex, then what they are about."""
    with open(os.path.join(HERE, "insn.hex"), encoding="ascii") as file:
        lines = [line.partition("#")[0].strip() for line in file]
    return [bytes.fromhex(line) for line in lines if line]


fuzzer = Fuzzer("insn", samples(), BYTES_MAX)
tap.run(fuzzer.samples_pass, fuzzer.mutants_pass)
