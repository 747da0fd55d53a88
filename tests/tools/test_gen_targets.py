#!/usr/bin/env python3
"""test_gen_targets.py - tests of probes/region/gen_targets.py with small programs for
every kind of jump, and with the kernel: the result is compared with the output of
objdump.
"""

import os
import re
import struct
import sys

sys.dont_write_bytecode = True
import scratch

sys.path.insert(0, os.path.join(scratch.ROOT, "kernel/debug"))
sys.path.insert(0, os.path.join(scratch.ROOT, "probes/region"))
import elf64
import gen_targets

TOOL = os.path.join(scratch.ROOT, "probes/region/gen_targets.py")
BUILD = os.path.join(scratch.ROOT, os.environ.get("B", "build"))
FINDER = os.path.join(BUILD, "link", "gen_targets")
KERNEL = os.path.join(BUILD, "sonde.elf")

LEAPS = os.path.join(scratch.ROOT, "tests/kernel/modules/leaps.asm")
# retry.cold jumps into the middle of retry.
COLD_C = os.path.join(scratch.ROOT, "tests/region/cold.c")

SWITCH = f"volatile int world;{scratch.WEIGH}int _start(int x) {{ return weigh(x); }}\n"
# run has a table of addresses. leap has a table of offsets from an address in its code.
GOTO = """
int run(const unsigned char *p, int x)
{
    static void *const table[] = { &&up, &&down, &&out };
    goto *table[*p++];
up:
    x += 3;
    goto *table[*p++];
down:
    x *= 5;
    goto *table[*p++];
out:
    return x;
}
int leap(const unsigned char *p, int x)
{
    static const int table[] = { &&up - &&up, &&down - &&up, &&out - &&up };
    goto *(&&up + table[*p++]);
up:
    x += 3;
    goto *(&&up + table[*p++]);
down:
    x *= 5;
    goto *(&&up + table[*p++]);
out:
    return x;
}
int _start(const unsigned char *p) { return run(p, 1) + leap(p, 2); }
"""
ASM = """
section .text
global short_branches:function (short_branches.end - short_branches)
short_branches:
    jecxz .a
    nop
.a: loop .b
    nop
.b: jrcxz .c
    nop
.c: xbegin .d
    nop
.d: jmp short .e
    nop
.e: jnz near .f
    nop
.f: call .g
    nop
.g: ret
.end:
    dq 0x0606060606060606               ; no instructions, and nobody's
global behind_data:function (behind_data.end - behind_data)
behind_data:
    jmp .go_on
.words:
    db 0x48, 0xb8, 0x06                 ; swallows what is behind it
.go_on:
    jz .there
    nop
.there:
    ret
.end:
global table:data (table.end - table)
table:
    dq 5, behind_data.there
.end:
global fixed:function (fixed.end - fixed)
fixed:
    nop
.insn:
    mov rax, [rdi]
    ret
.bad:
    mov eax, 1
    ret
.end:
section .extable
extable_start:
    dd fixed.insn - $
    dd fixed.bad - $
extable_end:
section .rodata
pointer: dq fixed.insn
difference: dd fixed.bad - $
"""


# stray jumps into an operand, which is the address of a variable.
STRAY = """
section .text
global reads:function 8
reads: mov eax, [abs word_of_data]
    ret
global stray:function 2
stray: jmp short reads + 3
section .data
word_of_data: dd 1
"""


class GenTargets(scratch.Scratch):
    def image(self, source, *flags, compiler="gcc"):
        self.run_ok(
            compiler,
            "-O2",
            "-ffreestanding",
            "-fno-pic",
            "-fno-pie",
            "-fcf-protection=none",
            "-fno-asynchronous-unwind-tables",
            *flags,
            "-c",
            self.write("one.c", source),
            "-o",
            self.path("one.o"),
        )
        return self.link()

    def asm_image(self, source=ASM, *flags):
        source = self.write("one.asm", source)
        self.assemble(source, "one.o", *scratch.WITH_LINES, f"-I{scratch.ROOT}/")
        return self.link(*flags)

    def link(self, *flags):
        self.run_ok(
            "ld",
            "--emit-relocs",
            "-e",
            "0",
            *flags,
            self.path("one.o"),
            "-o",
            self.path("image"),
        )
        return self.path("image")

    def found(self, image):
        return gen_targets.targets_of(image, FINDER)

    def function(self, image, name):
        symbol = next(s for s in elf64.load(image).symbols() if s.name == name)
        return symbol.value, symbol.value + symbol.size

    def addresses(self, image):
        return {s.name: s.value for s in elf64.load(image).symbols()}

    def lines(self, image, function):
        """[(address, mnemonic and operands)] as objdump has them."""
        listing = self.run_ok(
            "objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", image
        )
        return [
            (int(at, 16), what)
            for at, what in re.findall(r"^ *([0-9a-f]+):\t(.*)$", listing, re.M)
        ]

    def is_opaque(self, found, addr):
        return any(start <= addr < end for start, end in found.opaque)

    def test_each_kind_of_branch_is_seen(self):
        image = self.asm_image()
        at, found = self.addresses(image), self.found(image)
        for label in "abcdefg":
            self.assertIn(at[f"short_branches.{label}"], found.targets, label)
        self.assertIn(at["short_branches"], found.targets)
        self.assertNotIn(at["short_branches.a"] + 2, found.targets)

    def test_a_branch_behind_data_is_seen(self):
        image = self.asm_image()
        self.assertIn(
            self.addresses(image)["behind_data.there"], self.found(image).targets
        )

    def test_data_are_opaque_and_what_they_point_to_is_a_target(self):
        image = self.asm_image()
        at, found = self.addresses(image), self.found(image)
        self.assertTrue(self.is_opaque(found, at["table"]))
        self.assertTrue(self.is_opaque(found, at["table"] + 15))
        self.assertFalse(self.is_opaque(found, at["short_branches"]))
        self.assertTrue(self.is_opaque(found, at["short_branches.end"] + 3))

    def test_addresses_of_data_make_no_difference(self):
        found = [
            self.found(self.asm_image(STRAY, f"-Tdata={addr}"))
            for addr in ("0x06060606", "0x10909090")
        ]
        self.assertEqual(*found)

    def test_faults_go_on_at_fixups(self):
        image = self.asm_image()
        at, found = self.addresses(image), self.found(image)
        self.assertIn(at["fixed.bad"], found.targets)
        self.assertIn(at["fixed.insn"], found.targets)

    def test_what_a_difference_may_mean_is_opaque(self):
        image = self.asm_image()
        at, found = self.addresses(image), self.found(image)
        self.assertTrue(self.is_opaque(found, at["fixed.bad"]))
        self.assertFalse(self.is_opaque(found, at["fixed"]))

    def check_switch(self, *flags, compiler="gcc"):
        image = self.image(SWITCH, *flags, compiler=compiler)
        found = self.found(image)
        lines = self.lines(image, "weigh")
        self.assertTrue(any(re.match(r"jmp.*\*", what) for _, what in lines), lines)
        behind = {
            at
            for (_, before), (at, _) in zip(lines, lines[1:])
            if re.match("jmp|ret", before)
        }
        padding = {
            at for at, what in lines if re.match("nop|xchg|cs nop|data16|int3", what)
        }
        for at in behind - padding:
            self.assertTrue(at in found.targets or self.is_opaque(found, at), hex(at))
        return found

    def test_jump_tables(self):
        for compiler in ("gcc", "clang"):
            found = self.check_switch(compiler=compiler)
            self.assertFalse(found.opaque, compiler)

    def test_jump_tables_of_differences(self):
        self.check_switch("-fpic")

    def test_computed_gotos_by_addresses_are_known(self):
        image = self.image(GOTO)
        found, (start, end) = self.found(image), self.function(image, "run")
        self.assertFalse(any(self.is_opaque(found, at) for at in range(start, end)))
        self.assertGreaterEqual(sum(start < at < end for at in found.targets), 3)

    def test_computed_gotos_by_differences_are_opaque(self):
        image = self.image(GOTO)
        found, (start, end) = self.found(image), self.function(image, "leap")
        self.assertTrue(all(self.is_opaque(found, at) for at in range(start, end)))

    def test_code_that_computes_a_target_is_opaque(self):
        with open(LEAPS, encoding="utf-8") as file:
            image = self.asm_image(file.read(), "--unresolved-symbols=ignore-all")
        found = self.found(image)
        for name in ("jump_leap", "return_leap", "call_leap", "table_leap", "entry_land"):
            for at in range(*self.function(image, name)):
                self.assertTrue(self.is_opaque(found, at), name)

    def test_cold_parts_jump_back_into_the_middle(self):
        with open(COLD_C, encoding="utf-8") as file:
            image = self.image(file.read(), "-I", scratch.ROOT)
        found = self.found(image)
        cold = self.function(image, "retry.cold")
        hot = self.function(image, "retry")
        back = {
            int(what.split()[1], 16)
            for at, what in self.lines(image, "retry.cold")
            if what.startswith("jmp") and cold[0] <= at < cold[1]
        }
        inside = {to for to in back if hot[0] < to < hot[1]}
        self.assertLessEqual(inside, set(found.targets))
        own = {
            int(what.split()[1], 16)
            for at, what in self.lines(image, "retry")
            if what.startswith("j") and hot[0] <= at < hot[1]
        }
        starts = [at for at, _ in self.lines(image, "retry") if hot[0] <= at < hot[1]]
        unseen = [to for to in inside - own if any(0 < to - at < 5 for at in starts)]
        self.assertTrue(unseen, "no probe would be hurt by looking at the function alone")

    def test_the_table_holds_what_was_found(self):
        image = self.asm_image()
        self.run_ok(
            sys.executable,
            TOOL,
            "--finder",
            FINDER,
            "-o",
            self.path("table.asm"),
            image,
        )
        elf = elf64.load(self.assemble(self.path("table.asm"), "table.o", "-Werror"))
        data = elf.content(elf.section(".ksyms"))
        at = {s.name: s for s in elf.symbols()}

        def part(name):
            symbol = at[name]
            words = data[symbol.value : symbol.value + symbol.size]
            return list(struct.unpack(f"<{len(words) // 4}I", words))

        found = self.found(image)
        self.assertEqual(part("targets_table"), found.targets)
        self.assertEqual(part("targets_total"), [len(found.targets)])
        self.assertEqual(
            part("targets_opaque_table"), [n for r in found.opaque for n in r]
        )
        self.assertEqual(part("targets_opaque_total"), [len(found.opaque)])

    def test_the_empty_table_is_empty(self):
        self.run_ok(sys.executable, TOOL, "--empty", "-o", self.path("table.asm"))
        self.assertIn("targets_total:\ndd 0\n", self.read("table.asm").decode())

    def test_a_missing_file_is_an_error(self):
        self.assert_one_line_error(
            self.run_any(sys.executable, TOOL, "--finder", FINDER, "/nosuch"),
            "/nosuch",
        )

    def test_every_branch_that_objdump_sees_in_the_kernel(self):
        targets = set(self.found(KERNEL).targets)
        text = elf64.load(KERNEL).section(".text")
        listing = self.run_ok(
            "objdump", "-d", "-j", ".text", "--no-show-raw-insn", KERNEL
        )
        branches = re.findall(
            r"^ *[0-9a-f]+:\t(?:bnd )?(?:j[a-z]+|loop[a-z]*|call|xbegin)(?:,p[nt])? +"
            r"([0-9a-f]{16}) ",
            listing,
            re.M,
        )
        self.assertGreater(len(branches), 10000)
        missing = {
            to
            for to in (int(b, 16) for b in branches)
            if text.addr <= to < text.addr + text.size
        } - targets
        self.assertEqual(sorted(map(hex, missing)), [])

    def test_little_of_the_kernel_is_opaque(self):
        text = elf64.load(KERNEL).section(".text")
        total = sum(end - start for start, end in self.found(KERNEL).opaque)
        self.assertLess(total, text.size // 50)


scratch.main()
