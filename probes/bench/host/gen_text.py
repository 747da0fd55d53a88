#!/usr/bin/env python3
"""gen_text.py - makes a large text that is never executed, in which very many probes can
be registered.

    gen_text.py -o text.asm --at-least N IMAGE

The text has copies of the functions of IMAGE, byte by byte, under new names, so many that
it has at least N instructions. They can be decoded and moved like those of the image.
Their branches lead to useless addresses.
"""

import argparse
import os
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../..")
sys.path.insert(0, os.path.join(ROOT, "kernel/debug"))

import elf64

HEAD = """\
; text.asm - made by probes/bench/host/gen_text.py: functions that no code calls.

%include "kernel/base/proc.inc"

section .text
"""


def functions(elf):
    """The functions of .text that have a size and do not lie inside of another one:
    (offset in the file, size).
    """
    text = elf.section(".text")
    found = {
        (s.value, s.size)
        for s in elf.symbols()
        if s.type == elf64.STT_FUNC and s.section == text and s.size
    }
    behind = 0
    for start, size in sorted(found, key=lambda f: (f[0], -f[1])):
        if start >= behind:
            behind = start + size
            yield elf.file_offset(start, size), size


def count_instructions(path):
    done = subprocess.run(
        ["objdump", "-d", "-j", ".text", "--no-show-raw-insn", path],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = (line.split("\t") for line in done.stdout.splitlines())
    return sum(1 for line in lines if len(line) > 1 and line[1].strip() != "int3")


def write(out, path, copies):
    image = os.path.abspath(path)
    pieces = list(functions(elf64.load(path)))
    out.write(HEAD)
    for copy in range(copies):
        for i, (offset, size) in enumerate(pieces):
            name = f"bench_text_{copy}_{i}"
            out.write(
                f"proc {name}\n    incbin '{image}', {offset}, {size}\n"
                f"endproc {name}\n"
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", dest="output", required=True)
    parser.add_argument("--at-least", type=int, required=True, metavar="N")
    parser.add_argument("image")
    options = parser.parse_args()
    copies = -(-options.at_least // count_instructions(options.image))
    with open(options.output, "w") as out:
        write(out, options.image, copies)


main()
