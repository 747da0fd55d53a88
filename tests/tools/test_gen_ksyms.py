#!/usr/bin/env python3
"""test_gen_ksyms.py - tests of kernel/debug/gen_ksyms.py with small images, and of all
steps together: table, two links, lookup.
"""

import os
import struct
import sys
from collections import namedtuple

sys.dont_write_bytecode = True
import scratch

sys.path.insert(0, os.path.join(scratch.ROOT, "kernel/debug"))
import elf64

TOOL = os.path.join(scratch.ROOT, "kernel/debug/gen_ksyms.py")
NONE = 0xFFFFFFFF

C_SOURCE = """
int data_global = 1;
static int data_local = 2;
int zeroed_global;
static int zeroed_local;
const int fixed_global = 3;
static const int fixed_local = 4;
static __attribute__((noinline)) int twin(int x) { return x + data_local + zeroed_local; }
int first(int x);
static int zz_first(int x) __attribute__((alias("first"), used));
int first(int x) { static int calls; zeroed_local += ++calls; return twin(x); }
__attribute__((weak)) int maybe(int x) { data_local = x; return *(&fixed_local + x); }
"""
SECOND_C_SOURCE = """
static __attribute__((noinline)) int twin(int x) { return x * 7; }
int second(int x) { return twin(x); }
"""
# sized is a routine with labels inside. Behind it are the labels bare and bare_too, and
# another sized routine.
ASM_SOURCE = """
NUMBER equ 5
section .text
global sized:function (sized.end - sized)
sized:
    nop
.loop:
    jmp .loop
global inside
inside:
    nop
    nop
sized.end:
    times 7 db 0xcc
bare:
bare_too:
    times 20 nop
tail_start:
global tail:function 4
tail:
    times 4 nop
    times 12 int3
global text_end
text_end:
"""
LINKER_SCRIPT = """
VMA = 0xffffffff80200000;
SECTIONS {
    . = 1M;
    .boot : { boot_label = .; LONG(0) }
    . = VMA;
    .text : { text_start = .; *(.text*) }
    .rodata : { *(.rodata*) }
    .data : { *(.data*) }
    .bss : { *(.bss*) *(COMMON) bss_end = .; }
    .ksyms : { *(.ksyms) }
    . = ALIGN(4096);
    image_end = .;
    /DISCARD/ : { *(.eh_frame) *(.note*) }
}
"""
# Looks up its own symbols in its table. Exit code: the number of the first false fact.
PROGRAM = """
#include "kernel/base/err.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/ksyms_table.h"
#include <string.h>

static __attribute__((noinline)) int local_function(int x) { return x * 3; }
int lucky_number = 7;

static int is_right(const char *name, const void *addr, char type)
{
    struct ksym found, at;
    uintptr_t start = (uintptr_t)addr;

    return ksyms_find(name, &found) == 0 && found.start == start && found.type == type
        && found.size > 0 && ksyms_at(start + found.size - 1, &at) == 0
        && strcmp(at.name, name) == 0 && at.offset == found.size - 1;
}

int main(int argc, char **argv)
{
    struct ksym sym;

    (void)argv;
    if (!is_right("main", (void *)main, 'T'))
        return 1;
    if (!is_right("local_function", (void *)local_function, 't'))
        return 2;
    if (!is_right("lucky_number", &lucky_number, 'D'))
        return 3;
    if (ksyms_find("ksyms_names", &sym) != -ENOENT) /* of the tables themselves */
        return 4;
    if (ksyms_find("no_such_function", &sym) != -ENOENT)
        return 5;
    if (ksyms_count() < 20 || !ksyms_get(ksyms_count() - 1, &sym))
        return 6;
    return local_function(argc) - 3;
}
"""

Entry = namedtuple("Entry", "start size name type outer")


class GenKsyms(scratch.Scratch):
    def gcc(self, name, text, *flags):
        self.run_ok(
            "gcc",
            "-O1",
            "-ffreestanding",
            "-fno-pic",
            "-fno-pie",
            *flags,
            "-c",
            self.write(name + ".c", text),
            "-o",
            self.path(name + ".o"),
        )
        return self.path(name + ".o")

    def nasm(self, name, text=None):
        source = (
            self.path(name + ".asm") if text is None else self.write(name + ".asm", text)
        )
        return self.assemble(source, name + ".o", *scratch.WITH_LINES, "-Werror")

    def image(self):
        """A small image laid out like the kernel's."""
        objects = [
            self.gcc("one", C_SOURCE, "-mcmodel=kernel"),
            self.gcc("two", SECOND_C_SOURCE, "-mcmodel=kernel"),
            self.nasm("asm", ASM_SOURCE),
        ]
        script = self.write("image.ld", LINKER_SCRIPT)
        self.run_ok("ld", "-T", script, "-e", "first", *objects, "-o", self.path("image"))
        return self.path("image")

    def generate(self, *args, output="table.asm"):
        self.run_ok(sys.executable, TOOL, "-o", self.path(output), *args)
        return self.read(output)

    def table(self, *args):
        """The entries as the kernel would see them, and the name index."""
        self.generate(*(args or (self.image(),)))
        elf = elf64.load(self.nasm("table"))
        data = elf.content(elf.section(".ksyms"))
        at = {s.name: s for s in elf.symbols()}

        def part(name):
            return data[at[name].value : at[name].value + at[name].size]

        names = part("ksyms_names")
        entries = []
        for start, size, name, outer, kind in struct.iter_unpack(
            "<QIIIc3x", part("ksyms_table")
        ):
            text = names[name : names.index(b"\0", name)].decode()
            entries.append(Entry(start, size, text, kind.decode(), outer))
        (total,) = struct.unpack("<I", part("ksyms_total"))
        self.assertEqual(total, len(entries))
        self.by_name = [i for (i,) in struct.iter_unpack("<I", part("ksyms_by_name"))]
        self.names = names
        return entries

    def one(self, entries, name):
        found = [e for e in entries if e.name == name]
        self.assertEqual(len(found), 1, name)
        return found[0]

    def test_addresses_and_letters_are_those_of_nm(self):
        entries = self.table()
        want = set()
        for line in self.run_ok("nm", self.path("image")).splitlines():
            addr, letter, name = line.split()
            if letter in "aA" or name in ("sized.loop", "sized.end"):
                continue
            letter = "T" if letter == "W" else letter
            want.add((int(addr, 16), letter, name))
        self.assertEqual({(e.start, e.type, e.name) for e in entries}, want)
        self.assertEqual({e.type for e in entries}, set("TtDdBbRr"))

    def test_sizes_are_those_of_nm(self):
        entries = {(e.start, e.name): e.size for e in self.table()}
        lines = [
            line.split()
            for line in self.run_ok("nm", "-S", self.path("image")).splitlines()
        ]
        sized = [line for line in lines if len(line) == 4 and line[3] != "sized.end"]
        self.assertGreater(len(sized), 12)
        for addr, size, _, name in sized:
            self.assertEqual(entries[int(addr, 16), name], int(size, 16), name)

    def test_numbers_and_local_labels_are_left_out(self):
        names = {e.name for e in self.table()}
        for name in ("NUMBER", "VMA", "sized.loop", "sized.end", "one.c", ".text", ""):
            self.assertNotIn(name, names)
        self.assertTrue(
            any(name.startswith("calls.") for name in names), "static int calls"
        )

    def test_names_of_copies_and_parts_are_kept(self):
        source = 'void f_isra_0(void) __asm__("f.isra.0"); void f_isra_0(void) {}'
        entries = self.table(self.gcc("copy", source))
        self.assertEqual([e.name for e in entries], ["f.isra.0"])

    def test_data_between_functions_are_no_function(self):
        source = """
section .text
global before:function 1
before: ret
global words:data 16
words: dq 1, 2
own_words: dq 3
global behind:function 1
behind: ret
"""
        types = {e.name: e.type for e in self.table(self.nasm("data", source))}
        self.assertEqual(
            types, {"before": "T", "words": "R", "own_words": "r", "behind": "T"}
        )

    def test_entries_are_sorted_by_address(self):
        entries = self.table()
        self.assertEqual(entries, sorted(entries, key=lambda e: e.start))

    def test_the_name_index_is_sorted_and_complete(self):
        entries = self.table()
        self.assertEqual(sorted(self.by_name), list(range(len(entries))))
        keys = [(entries[i].name.encode(), i) for i in self.by_name]
        self.assertEqual(keys, sorted(keys))

    def test_a_name_used_twice_is_stored_once(self):
        entries = self.table()
        self.assertEqual(len([e for e in entries if e.name == "twin"]), 2)
        self.assertEqual(self.names.split(b"\0").count(b"twin"), 1)

    def test_a_label_inside_a_routine_knows_the_routine(self):
        entries = self.table()
        inside = self.one(entries, "inside")
        self.assertEqual(inside.size, 0)
        self.assertEqual(entries[inside.outer].name, "sized")
        self.assertEqual(self.one(entries, "sized").outer, NONE)

    def test_a_label_at_the_start_of_a_function_knows_the_function(self):
        entries = self.table()
        start = self.one(entries, "text_start")
        self.assertEqual(start.size, 0)
        self.assertEqual(entries[start.outer].start, start.start)
        self.assertEqual(entries[start.outer].type.upper(), "T")

    def test_a_label_between_symbols_reaches_to_the_next_one(self):
        entries = self.table()
        self.assertEqual(self.one(entries, "bare").size, 20)
        self.assertEqual(self.one(entries, "bare_too").size, 20)
        self.assertEqual(self.one(entries, "bare").outer, NONE)
        self.assertEqual(
            self.one(entries, "boot_label").size, 4, "the end of its section"
        )

    def test_of_two_names_of_one_place_the_global_one_comes_last(self):
        names = [e.name for e in self.table()]
        self.assertEqual(names.index("first"), names.index("zz_first") + 1)

    def test_a_label_at_the_end_of_a_section_has_nothing(self):
        entries = self.table()
        for name in ("bss_end", "text_end", "image_end"):
            self.assertEqual(self.one(entries, name).size, 0)
        self.assertEqual(self.one(entries, "bss_end").outer, NONE)

    def test_odd_names_survive_nasm(self):
        odd = [
            'quo"te',
            "apo'strophe",
            "back\\slash",
            "per%cent",
            "semi;colon",
            "tick`",
            "gr\u00fcn",
            "tab\there",
        ]
        image = self.gcc(
            "odd", "".join(f"void f{i}(void) {{}}\n" for i in range(len(odd)))
        )
        for i, name in enumerate(odd):
            self.run_ok("objcopy", "--redefine-sym", f"f{i}={name}", image)
        self.assertEqual({e.name for e in self.table(image)}, set(odd))

    def test_the_empty_table_is_empty(self):
        self.assertEqual(self.table("--empty"), [])
        self.assertEqual(self.by_name, [])

    def link_program(self, table):
        self.nasm(table)
        self.run_ok(
            "gcc",
            "-no-pie",
            "-Wl,--section-start=.ksyms=0x10000000",  # last, as in the kernel
            self.path("program.o"),
            self.path("ksyms.o"),
            self.path(table + ".o"),
            "-o",
            self.path(table + ".elf"),
        )
        return self.path(table + ".elf")

    def test_two_links_make_a_table_that_describes_its_own_image(self):
        self.gcc("program", PROGRAM, "-fno-toplevel-reorder", "-I.")
        self.run_ok(
            "gcc",
            "-O1",
            "-fno-pie",
            "-I.",
            "-c",
            "kernel/debug/ksyms.c",
            "-o",
            self.path("ksyms.o"),
        )
        self.generate("--empty", output="empty.asm")
        table = self.generate(self.link_program("empty"), output="full.asm")
        proof = self.generate(self.link_program("full"), output="proof.asm")
        self.assertEqual(table, proof, "the table moved nothing")
        self.run_ok(self.path("full.elf"))

    def test_damaged_files_are_an_error(self):
        whole_path = self.image()
        whole = self.read("image")
        for end in (0, 4, 63, 64, 300, len(whole) // 2, len(whole) - 1):
            with open(whole_path, "wb") as file:
                file.write(whole[:end])
            self.assert_one_line_error(
                self.run_any(sys.executable, TOOL, whole_path), "gen_ksyms: "
            )

    def test_a_missing_file_is_an_error(self):
        self.assert_one_line_error(
            self.run_any(sys.executable, TOOL, self.path("none")), "No such file"
        )


if __name__ == "__main__":
    scratch.main()
