"""test_insn.py - any bytes through the decoder and what follows it, under libFuzzer.

    tests/run/run_tests.py [--long] fuzz/insn

The inputs of insn.hex, then others that the fuzzer makes of them: always the same 200,000;
--long: a minute of new ones, which begin where the last run on this machine ended. SEED=N
gives a printed seed back.

What it finds belongs into insn.hex, where it is tried ever after.
"""

import os
import random
import re
import subprocess
import tempfile

import tap
from guest import BUILD

HERE = os.path.dirname(os.path.abspath(__file__))
FUZZER = os.path.join(BUILD, "fuzz", "fuzz_insn")
CORPUS = os.path.join(BUILD, "fuzz", "insn-corpus")

RUNS = 200000
SECONDS = 60
BYTES_MAX = 16  # an instruction, and one more


def samples():
    """The inputs of insn.hex: bytes in hex, then what they are about."""
    with open(os.path.join(HERE, "insn.hex"), encoding="ascii") as file:
        lines = [line.partition("#")[0].strip() for line in file]
    return [bytes.fromhex(line) for line in lines if line]


def run_fuzzer(directory, *words):
    """Run it. What it found (bytes, or None), and what it said."""
    words = [FUZZER, f"-artifact_prefix={directory}/", f"-max_len={BYTES_MAX}", *words]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace")
    for name in os.listdir(directory):
        if name.startswith(("crash-", "timeout-", "oom-", "leak-", "slow-unit-")):
            with open(os.path.join(directory, name), "rb") as file:
                return file.read(), done.stderr
    return (b"" if done.returncode else None), done.stderr


def tell(found, said):
    tap.note(f"input: {found.hex(' ')}")
    tap.note(said[-4000:])


def store(directory, inputs):
    os.makedirs(directory, exist_ok=True)
    for number, data in enumerate(inputs):
        with open(os.path.join(directory, f"{number:03}"), "wb") as file:
            file.write(data)


def samples_pass():
    inputs = samples()
    with tempfile.TemporaryDirectory() as directory:
        first = os.path.join(directory, "first")
        store(first, inputs)
        paths = [os.path.join(first, name) for name in sorted(os.listdir(first))]
        found, said = run_fuzzer(directory, *paths)
    if not tap.check(found is None and inputs, f"{len(inputs)} samples hold the rules"):
        tell(inputs[said.count("Running:") - 1], said)


def mutants_pass():
    seed = int(os.environ.get("SEED", random.randrange(1, 1 << 31) if tap.LONG else 1))
    tap.note(f"seed {seed}")
    limit = f"-max_total_time={SECONDS}" if tap.LONG else f"-runs={RUNS}"
    with tempfile.TemporaryDirectory() as directory:
        first = os.path.join(directory, "first")
        store(first, samples())
        kept = CORPUS if tap.LONG else os.path.join(directory, "new")
        os.makedirs(kept, exist_ok=True)
        found, said = run_fuzzer(directory, f"-seed={seed}", limit, kept, first)
    runs = re.search(r"Done (\d+) runs|$", said)[1]
    if not tap.check(found is None and runs, f"{runs} inputs hold the rules"):
        tell(found or b"", said)


tap.run(samples_pass, mutants_pass)
