#!/usr/bin/env python3
"""test_marker.py - count the instructions of a marker that is off, with objdump: in a
loop that is compiled with and without the marker, and in the built image.
"""

import collections
import os
import re
import shlex
import sys

sys.dont_write_bytecode = True
import scratch

ELF = os.path.join(scratch.ROOT, os.environ.get("B", "build"), "sonde.elf")
LINE = re.compile(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t?(\S+)?\s*(.*)$")

SOURCE = """
#include "kernel/debug/marker.h"

unsigned long loop(unsigned long n, const unsigned long *from);
unsigned long loop(unsigned long n, const unsigned long *from)
{
    unsigned long sum = 1;

    while (n--) {
        sum += sum / n + from[n];
        MARKER;
    }
    return sum;
}
"""
MARKERS = (
    "MARK(test, sum_and_n, sum, n)",
    "MARK(test, where, from)",
    "MARK(test, nothing)",
    "MARK(test, eight, 1, 2, n, sum, from, 3, 4, 5)",
)
FORMATS = {
    "sum_and_n": '"sum %lu n %lu"',
    "where": '"from %p"',
    "nothing": '"nothing"',
    "eight": '"%d %d %lu %lu %p %d %d %d"',
}
NOPS = re.compile("nop|data16|cs|xchg")  # padding that aligns loops


Insn = collections.namedtuple("Insn", "at code name operands")


def instructions(text):
    """The instructions in the output of objdump."""
    found = [match.groups("") for match in map(LINE.match, text.splitlines()) if match]
    return [
        Insn(int(at, 16), code.strip(), name, operands)
        for at, code, name, operands in found
        if name
    ]


class Marker(scratch.Scratch):
    def loop_with(self, marker):
        """The instructions of the loop: from the target of the conditional jump backwards
        up to that jump. The cold part is behind the loop, and ends with another jump."""
        flags = shlex.split(self.run_ok("make", "-s", "print-CFLAGS"))
        source = self.write("loop.c", SOURCE)
        defines = [f"-D{name}={text}" for name, text in FORMATS.items()]
        self.run_ok(
            "gcc",
            *flags,
            *defines,
            f"-DMARKER={marker}",
            "-c",
            source,
            "-o",
            self.path("loop.o"),
        )
        found = instructions(self.run_ok("objdump", "-d", "-j.text", self.path("loop.o")))
        back = [
            (insn, int(insn.operands.split()[0], 16))
            for insn in found
            if re.match("j(?!mp)", insn.name) and "<loop+" in insn.operands
        ]
        last, target = max((insn, to) for insn, to in back if to < insn.at)
        return [
            insn
            for insn in found
            if target <= insn.at <= last.at and not NOPS.match(insn.name)
        ]

    def test_a_loop_has_three_instructions_more(self):
        plain = self.loop_with("")
        self.assertGreater(len(plain), 4)
        for marker in MARKERS:
            marked = self.loop_with(marker)
            self.assertEqual(len(marked) - len(plain), 3, (marker, plain, marked))
            first = next(i for i, insn in enumerate(marked) if insn.code == "b0 00")
            three = marked[first : first + 3]
            self.assertEqual([insn.name for insn in three], ["mov", "test", "jne"])
            self.assertFalse([insn for insn in three if "(" in insn.operands])

    def test_each_in_the_image_is_called_and_jumped_to_by_none(self):
        """After a tail call, the stack would not show which module the marker is in."""
        text = self.run_ok("objdump", "-d", ELF)
        calls = re.findall(r"\t(\w+)\s+[0-9a-f]+ <marker_enter>$", text, re.M)
        self.assertGreater(len(calls), 10)
        self.assertEqual(set(calls), {"call"})


if __name__ == "__main__":
    scratch.main()
