"""test_trace.py - lines for the files of the tracer, right and wrong ones, under libFuzzer.

    tests/run/run_tests.py [--long] fuzz/trace

The lines of trace.txt, then others that the fuzzer makes of them (fuzzer.py): of characters,
and of whole words of the grammar, each of which is one byte for the fuzzer (fuzz_trace.c).
What it finds belongs into trace.txt.
"""

import os

import tap
from fuzzer import Fuzzer

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES_MAX = 200  # of which each may be a word


def samples():
    """The lines of trace.txt, but for comments."""
    with open(os.path.join(HERE, "trace.txt"), "rb") as file:
        lines = file.read().split(b"\n")
    return [line for line in lines if line and not line.startswith(b"#")]


fuzzer = Fuzzer("trace", samples(), BYTES_MAX)
tap.run(fuzzer.samples_pass, fuzzer.mutants_pass)
