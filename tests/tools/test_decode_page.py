#!/usr/bin/env python3
"""test_decode_page.py - the decoder in a browser must print the same as the same code on
the host, where addresses have 64 bits; and the page must show it.

    tests/tools/test_decode_page.py [--shot=FILE]     also keep a picture of the page
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import scratch
import tap
from sonde.guest import BUILD

FOLDER = os.path.join(scratch.ROOT, "probes/insn/page")
PAGE = os.path.join(BUILD, "decode.html")
WASM = os.path.join(BUILD, "page/decode.wasm")
NATIVE = os.path.join(BUILD, "page/native")
ROUNDS = 20000 if tap.LONG else 2000
SEED = int(os.environ.get("SEED", "0")) or random.randrange(1, 1 << 32)

# Reads lines of hexadecimal digits, as native.c does.
CALLER = """
const fs = require('fs');
const { Decoder, bytesOf } = require(process.argv[1] + '/decode.js');
Decoder.load(fs.readFileSync(process.argv[2])).then(decoder => {
  fs.readFileSync(0, 'utf8').trimEnd().split('\\n').forEach(line => {
    process.stdout.write(decoder.text(bytesOf(line).bytes, true) + '\\n');
  });
});
"""
READER = """
const { bytesOf } = require(process.argv[1] + '/decode.js');
const { Decoder } = require(process.argv[1] + '/decode.js');
const fs = require('fs');
Decoder.load(fs.readFileSync(process.argv[2])).then(decoder => {
  console.log(JSON.stringify([
    bytesOf('0x90, 0f;1F\\\\x00'), bytesOf('9'), bytesOf('zz'), bytesOf(''),
    decoder.decode([0x06, 0x90]), decoder.decode([0xb8, 1, 0, 0, 0]),
    decoder.decode(new Array(1000).fill(0x90)).length,
  ]));
});
"""


def run(words, text=""):
    done = subprocess.run(
        words, input=text, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        tap.note(done.stderr)
    return done.stdout


def node(script, text=""):
    return run(["node", "-e", script, FOLDER, WASM], text)


def some_code():
    """Random bytes, and bytes that are frequent in compiled code, as short opcodes."""
    rng = random.Random(SEED)
    likely = bytes.fromhex("4889e55dc3e90f1f8b0183c0ffeb7590cc66f3")
    for _ in range(ROUNDS):
        size = rng.randrange(1, 80)
        yield bytes(
            rng.choice(likely) if rng.random() < 0.5 else rng.randrange(256)
            for _ in range(size)
        ).hex()


def the_same_as_with_64_bits():
    tap.note(f"seed {SEED}")
    text = "\n".join(some_code()) + "\n"
    here, there = run([NATIVE], text), node(CALLER, text)
    plans = len(re.findall(r"\|(?:direct|call|plain|padded|far)\|", here))
    tap.check(plans > ROUNDS, f"{plans} plans of jumps in {ROUNDS} pieces of code")
    for i, (one, other) in enumerate(zip(here.splitlines(), there.splitlines())):
        if one != other:
            tap.note(f"line {i}: {one}\n       {other}")
            break
    tap.check(here == there and here, "all are the same in wasm32")


def what_is_typed_is_read():
    typed, odd, no_digit, empty, bad, jump, most = json.loads(node(READER))
    tap.equal(typed, {"bytes": [0x90, 0x0F, 0x1F, 0]}, "digits, blanks, commas, 0x, \\x")
    tap.check(
        "one digit" in odd["error"] and "z" in no_digit["error"], "mistakes are told"
    )
    tap.equal(empty, {"bytes": []}, "nothing is no mistake")
    tap.equal([one["length"] for one in bad], [0, 1], "a byte that begins no instruction")
    tap.equal(jump[0]["plan"]["rung"], "direct", "five bytes become a jump by themselves")
    tap.equal(most, 256, "no more than there is room for")


def chromium(*words):
    with tempfile.TemporaryDirectory() as home:
        return run(
            [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                f"--user-data-dir={home}",
                "--virtual-time-budget=5000",
                "--window-size=920,900",
                *words,
            ]
        )


def the_page_shows_it():
    dom = chromium("--dump-dom", f"file://{PAGE}#01 f8 c1 c0 03 83 f0 55 06")
    tap.check('data-count="4"' in dom, "three instructions, and a byte that is none")
    for word in (">rol<", ">no instruction<", ">SHIFT<", "it lands on a pad at ffffffff"):
        tap.check(word in dom, f"it shows {word}")
    for option in sys.argv[1:]:
        if option.startswith("--shot="):
            chromium(f"--screenshot={option[7:]}", f"file://{PAGE}")


def it_asks_no_server():
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    for word in ("http:", "https:", " src=", "fetch(", "@import", "url("):
        tap.check(word not in text, f"no {word} in it")


tap.run(
    the_same_as_with_64_bits, what_is_typed_is_read, the_page_shows_it, it_asks_no_server
)
