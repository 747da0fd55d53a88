"""test_trace.py - try right and wrong lines for the files of the tracer, with libFuzzer.

    tests/run/run_tests.py [--long] fuzz/trace

First the lines of trace.txt are tried, then lines that the fuzzer makes from them
(fuzzer.py): from characters, and from whole words of the grammar, each of which is one
byte for the fuzzer (fuzz_trace.c). An input that fails belongs into trace.txt.
"""

import os

import tap
from fuzzer import Fuzzer

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES_MAX = 200  # each byte may stand for a word


def samples():
    """The lines of trace.txt without comments."""
    with open(os.path.join(HERE, "trace.txt"), "rb") as file:
        lines = file.read().split(b"\n")
    return [line for line in lines if line and not line.startswith(b"#")]


fuzzer = Fuzzer("trace", samples(), BYTES_MAX)
tap.run(fuzzer.samples_pass, fuzzer.mutants_pass)
