#!/usr/bin/env python3
"""test_gen_inlines.py - tests of kernel/debug/gen_inlines.py with a small program, the
kernel, and debug data that it cannot read.
"""

import os
import re
import struct
import sys

sys.dont_write_bytecode = True
import scratch

sys.path.insert(0, os.path.join(scratch.ROOT, "kernel/debug"))
import elf64
import gen_inlines

TOOL = os.path.join(scratch.ROOT, "kernel/debug/gen_inlines.py")
KERNEL = os.path.join(scratch.ROOT, os.environ.get("B", "build"), "sonde.elf")

# small is inlined twice, once inside middle; split has a cold part; gone has no code.
SOURCE = """
#define NOINLINE __attribute__((noinline))
extern volatile int world;
extern void far_away(void) __attribute__((cold));
static inline __attribute__((always_inline)) int small(int x) { world += x; return x * 3; }
static inline __attribute__((always_inline)) int middle(int x) { return small(x) + world; }
static inline __attribute__((always_inline)) void split(int x)
{
    world++;
    if (__builtin_expect(x == 77, 0)) {
        far_away();
        world = 5;
    }
    world++;
}
static inline int gone(int x) { return x; }
NOINLINE static int solid(int x) { world *= x; return x; }
NOINLINE int first(int x) { return small(x) + 1; }
NOINLINE int second(int x) { return middle(x) + solid(x); }
NOINLINE int third(int x) { split(x); return x; }
volatile int world;
void far_away(void) { world = 9; }
void _start(void) { first(1); second(2); third(3); }
"""


class GenInlines(scratch.Scratch):
    def image(self, *flags, compiler="gcc"):
        return self.small_image(SOURCE, "-O2", *flags, compiler=compiler)

    def places(self, image):
        """{name of an inlined function: the functions that contain it}"""
        elf = elf64.load(image)
        found = gen_inlines.places_of(elf)
        return {
            name: [elf.symbol_at(place).partition("+")[0] for place in places]
            for name, places in found.items()
        }

    def check_small_program(self, image):
        places = self.places(image)
        self.assertEqual(sorted(places["small"]), ["first", "second"])
        self.assertEqual(places["middle"], ["second"])
        self.assertEqual(places["split"], ["third"])
        for name in ("gone", "solid", "first"):
            self.assertNotIn(name, places)

    def test_places_are_in_the_callers(self):
        self.check_small_program(self.image())

    def test_clang_says_the_same(self):
        self.check_small_program(self.image(compiler="clang"))

    def test_other_formats_and_none_have_no_places(self):
        self.assertEqual(self.places(self.image("-gdwarf-5")), {})
        self.assertEqual(self.places(self.image("-g0")), {})

    def test_damaged_data_is_no_error(self):
        with open(self.image(), "rb") as file:
            data = bytearray(file.read())
        section = elf64.Elf(data).section(".debug_info")
        for offset in range(section.offset + 11, section.offset + section.size, 3):
            damaged = bytearray(data)
            damaged[offset] ^= 0x5A
            gen_inlines.places_of(elf64.Elf(damaged))

    def test_the_table_holds_what_was_found(self):
        image = self.image()
        self.run_ok(sys.executable, TOOL, "-o", self.path("table.asm"), image)
        elf = elf64.load(self.assemble(self.path("table.asm"), "table.o", "-Werror"))
        data = elf.content(elf.section(".ksyms"))
        at = {s.name: s for s in elf.symbols()}

        def part(name):
            return data[at[name].value : at[name].value + at[name].size]

        names, places = part("inlines_names"), part("inlines_places")
        found = {}
        for name, first, count in struct.iter_unpack("<III", part("inlines_table")):
            text = names[name : names.index(b"\0", name)].decode()
            found[text] = list(struct.unpack_from(f"<{count}I", places, first * 4))
        self.assertEqual(list(found), sorted(found))
        self.assertEqual(struct.unpack("<I", part("inlines_total")), (len(found),))
        self.assertEqual(found, gen_inlines.places_of(elf64.load(image)))

    def test_the_empty_table_is_empty(self):
        self.run_ok(sys.executable, TOOL, "--empty", "-o", self.path("table.asm"))
        self.assertIn("inlines_total:\ndd 0\n", self.read("table.asm").decode())

    def test_a_missing_file_is_an_error(self):
        self.assert_one_line_error(
            self.run_any(sys.executable, TOOL, "/nosuch"), "/nosuch"
        )

    def test_as_many_in_the_kernel_as_readelf_sees(self):
        found = gen_inlines.places_of(elf64.load(KERNEL))
        listing = self.run_ok("readelf", "--debug-dump=info", KERNEL)
        inlined = listing.count("(DW_TAG_inlined_subroutine)")
        places = sum(map(len, found.values()))
        self.assertGreater(places, 1000)
        # Two inlined calls of one function may begin at the same address.
        self.assertTrue(inlined * 0.98 <= places <= inlined, (inlined, places))

    def test_places_in_the_kernel_are_instructions(self):
        found = gen_inlines.places_of(elf64.load(KERNEL))
        listing = self.run_ok("objdump", "-d", "--no-show-raw-insn", KERNEL)
        starts = {int(m, 16) for m in re.findall(r"^([0-9a-f]{16}):\t", listing, re.M)}
        starts |= {int(m, 16) for m in re.findall(r"^([0-9a-f]{16}) <", listing, re.M)}
        lost = {name for name, places in found.items() if not starts.issuperset(places)}
        self.assertEqual(lost, set())


if __name__ == "__main__":
    scratch.main()
