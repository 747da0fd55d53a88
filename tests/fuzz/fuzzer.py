"""fuzzer.py - runs a libFuzzer program: with its samples, and with inputs made from them.

The program is build/fuzz/fuzz_NAME of tests/fuzz/fuzz_NAME.c. A usual run always tries
the same inputs, 60,000 for most programs. With --long it tries new inputs for half a
minute, and goes on where the last run on this machine ended. A run prints its seed;
SEED=N repeats that run.
"""

import os
import random
import re
import subprocess
import sys
import tempfile

import tap
from sonde.guest import BUILD

LONG = "--long" in sys.argv
RUNS = 60000
SECONDS = 30


def store(directory, inputs):
    os.makedirs(directory, exist_ok=True)
    for number, data in enumerate(inputs):
        with open(os.path.join(directory, f"{number:03}"), "wb") as file:
            file.write(data)


class Fuzzer:
    """A program. @samples: a list of inputs, each of at most @longest bytes. @runs: the
    number of inputs in a usual run."""

    def __init__(self, name, samples, longest, runs=RUNS):
        self.program = os.path.join(BUILD, "fuzz", f"fuzz_{name}")
        self.corpus = os.path.join(BUILD, "fuzz", f"{name}-corpus")
        self.samples = samples
        self.longest = longest
        self.runs = runs

    def run(self, directory, *words):
        """Run the program. Return the input that has failed (bytes, or None), and the
        output."""
        words = [
            self.program,
            f"-artifact_prefix={directory}/",
            f"-max_len={self.longest}",
            *words,
        ]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace")
        for name in os.listdir(directory):
            if name.startswith(("crash-", "timeout-", "oom-", "leak-", "slow-unit-")):
                with open(os.path.join(directory, name), "rb") as file:
                    return file.read(), done.stderr
        return (b"" if done.returncode else None), done.stderr

    @staticmethod
    def tell(found, said):
        tap.note(f"input: {found.hex(' ')}")
        tap.note(said[-4000:])

    def samples_pass(self):
        with tempfile.TemporaryDirectory() as directory:
            first = os.path.join(directory, "first")
            store(first, self.samples)
            paths = [os.path.join(first, name) for name in sorted(os.listdir(first))]
            found, said = self.run(directory, *paths)
        if not tap.check(
            found is None and self.samples, f"{len(self.samples)} samples hold the rules"
        ):
            self.tell(self.samples[said.count("Running:") - 1], said)

    def mutants_pass(self):
        seed = int(os.environ.get("SEED", random.randrange(1, 1 << 31) if LONG else 1))
        tap.note(f"seed {seed}")
        limit = f"-max_total_time={SECONDS}" if LONG else f"-runs={self.runs}"
        with tempfile.TemporaryDirectory() as directory:
            first = os.path.join(directory, "first")
            store(first, self.samples)
            kept = self.corpus if LONG else os.path.join(directory, "new")
            os.makedirs(kept, exist_ok=True)
            found, said = self.run(directory, f"-seed={seed}", limit, kept, first)
        runs = re.search(r"Done (\d+) runs|$", said)[1]
        if not tap.check(found is None and runs, f"{runs} inputs hold the rules"):
            self.tell(found or b"", said)
