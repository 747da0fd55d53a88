#!/usr/bin/env python3
"""test_base.py - check that the kernel's own code uses only instructions that every
64-bit CPU has, or that boot/cpu_check.asm has asked for.
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import scratch

BUILD = os.path.join(scratch.ROOT, os.environ.get("B", "build"))
FOLDERS = ("kernel", "probes", "drivers", "libc", "boot")
LINE = re.compile(r"^ *([0-9a-f]+):\t(?:[0-9a-f]{2} )+ *\t(.*)$")
PREFIXES = set("lock rep repz repnz data16 cs ds es ss rex.W rex.X".split())
SIZED = re.compile("[bwlq]$")  # AT&T's suffix

# objdump shows `rep bsf` as tzcnt. Compilers use it if the operand is not 0: then both do
# the same. lfence and mfence are instructions of SSE2, which each processor with long
# mode has.
BASE = set(
    """
    adc add and bsf bsr bswap bt btc btr bts call clc cld cli cltd cltq cmp cmps cmpxchg
    cpuid cqto cwtl dec div hlt idiv imul in inc int int3 invlpg iret jmp lahf lea leave lgdt
    lidt lldt lods loop loope loopne lret ltr mov movabs movs movsb movslq movsw movz
    movzb movzw mul neg nop not or out outs pause pop popf push pushf rcl rcr rdmsr rdtsc
    ret rol ror sahf sar sbb scas shl shld shr shrd std sti stos str sub test tzcnt ud1
    ud2 wrmsr xadd xchg xor
    cmpxchg16b lfence mfence wbinvd
""".split()
)
FAMILIES = re.compile("(j|set|cmov)(n?([abglcoszpe]|[abgl]e)|p[eo]|[er]?cxz)$")


def mnemonic(text):
    words = [word for word in text.split() if word not in PREFIXES]
    return words[0].strip("(),") if words else "nop"


def is_base(name):
    return name in BASE or SIZED.sub("", name) in BASE or FAMILIES.match(name)


def objects():
    for folder in FOLDERS:
        for path, _, names in os.walk(os.path.join(BUILD, folder)):
            yield from (os.path.join(path, name) for name in names if name.endswith(".o"))


def strangers(path):
    """The instructions of an object that a CPU may lack. Sections of 32-bit code and its
    texts are left out, because objdump would decode them wrongly.
    """
    words = ["objdump", "-d", path]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    section, seen = "", 0
    for line in done.stdout.splitlines():
        if line.startswith("Disassembly of section "):
            section = line.split()[-1].rstrip(":")
        match = LINE.match(line)
        if not match or section.startswith(".boot"):
            continue
        seen += 1
        if not is_base(mnemonic(match[2])):
            yield f"{os.path.relpath(path, BUILD)}: {line.strip()}"
    COUNTS.append(seen)


COUNTS = []


class Base(scratch.Scratch):
    def test_nothing_is_used_that_a_cpu_may_lack(self):
        found = [line for path in objects() for line in strangers(path)]
        self.assertEqual(found, [])
        self.assertGreater(sum(COUNTS), 10000)

    def test_what_a_cpu_may_lack_is_noticed(self):
        source = self.write(
            "new.asm",
            """
            section .text
            bits 64
            popcnt rax, rbx
            rdtscp
            cmpxchg16b [rax]
            movaps xmm0, xmm1
            lzcnt ecx, edx
            lock cmpxchg [rax], rbx
            cmovae eax, ebx
            """,
        )
        self.assemble(source, "new.o")
        names = [
            line.split("\t")[-1].split()[0] for line in strangers(self.path("new.o"))
        ]
        self.assertEqual(names, ["popcnt", "rdtscp", "movaps", "lzcnt"])


if __name__ == "__main__":
    scratch.main()
