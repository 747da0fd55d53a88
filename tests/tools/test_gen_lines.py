#!/usr/bin/env python3
"""test_gen_lines.py - tests of kernel/debug/gen_lines.py with a small program and the
kernel: the result is compared with what objdump and gdb read from the same debug data.
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict

sys.dont_write_bytecode = True
import scratch

sys.path.insert(0, os.path.join(scratch.ROOT, "kernel/debug"))
import dwarf
import elf64
import gen_lines

TOOL = os.path.join(scratch.ROOT, "kernel/debug/gen_lines.py")
BUILD = os.path.join(scratch.ROOT, os.environ.get("B", "build"))
KERNEL = os.path.join(BUILD, "link/1.elf")
BYTES_MAX = 200 * 1000

SOURCE = """static inline __attribute__((always_inline)) int twice(int a)
{
    return a * 2 + 3;
}

int _start(int a, int b)
{
    if (a > 5)
        return twice(a) * b;
    return twice(b) - a;
}
"""

ROW = re.compile(r"^(\S+)\s+(\d+)\s+(0x[0-9a-f]+)(?:\s+\d+)?\s+x$", re.M)


def by_objdump(image):
    """{(file's name, line): addresses} of the statements."""
    done = subprocess.run(
        ["objdump", "--dwarf=decodedline", "-w", image],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = defaultdict(set)
    for name, line, address in ROW.findall(done.stdout):
        rows[os.path.basename(name), int(line)].add(int(address, 16))
    return rows


def by_gdb(image, path, lines):
    """{line: addresses} at which gdb would stop for lines of one file."""
    script = (
        "import gdb, json\nfound = {}\n"
        f"for line in {lines}:\n"
        f"    places = gdb.decode_line('{path}:%d' % line)[1]\n"
        "    found[line] = [p.pc for p in places if p.line == line]\n"
        "print(json.dumps(found))"
    )
    done = subprocess.run(
        [
            "gdb",
            "-nx",
            "-batch",
            "-ex",
            "set breakpoint pending off",
            image,
            "-ex",
            "python exec(%r)" % script,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        int(line): pcs for line, pcs in json.loads(done.stdout.splitlines()[-1]).items()
    }


class GenLines(scratch.Scratch):
    def image(self, *flags):
        return self.small_image(SOURCE, "-O1", *flags)

    def lines(self, image):
        (places,) = gen_lines.lines_of(elf64.load(image)).values()
        return places

    def test_a_line_that_is_inlined_twice_has_two_places(self):
        lines = [line for line, _ in self.lines(self.image())]
        self.assertEqual(lines.count(3), 2)
        self.assertEqual({line for line in lines if line > 4}, {7, 8, 9, 10})

    def test_versions_2_and_3(self):
        for version in (2, 3):
            image = self.image(f"-gdwarf-{version}", "-gstrict-dwarf")
            self.assertEqual(
                {("one.c", line) for line, _ in self.lines(image)}, set(by_objdump(image))
            )

    def test_no_debug_data_no_lines(self):
        image = self.image()
        self.run_ok("strip", "--strip-debug", image)
        self.run_ok(sys.executable, TOOL, "-o", self.path("out"), image)
        with open(self.path("out"), encoding="ascii") as file:
            self.assertIn("dd 0", file.read())

    def test_damaged_debug_data_is_passed_over(self):
        image = self.image()
        elf = elf64.load(image)
        section = elf.section(".debug_line")
        for size in range(0, section.size, 7):
            lines = elf.content(section)[:size]
            for unit in dwarf.units(elf):
                try:
                    list(gen_lines.places(unit, lines))
                except dwarf.DAMAGE:
                    pass

    def test_the_kernel_as_objdump_reads_it(self):
        rows, places = by_objdump(KERNEL), defaultdict(set)
        for path, found in gen_lines.lines_of(elf64.load(KERNEL)).items():
            for line, address in found:
                places[os.path.basename(path), line].add(address)
        self.assertGreater(len(places), 20000)
        self.assertEqual({key for key in rows if key[1]}, set(places))
        wrong = [key for key in places if not places[key] <= rows[key]]
        self.assertEqual(wrong, [])

    def test_the_kernel_as_gdb_stops_in_it(self):
        path = "kernel/fs/vfs.c"
        places = defaultdict(list)
        for line, address in gen_lines.lines_of(elf64.load(KERNEL))[path]:
            places[line].append(address)
        stops = by_gdb(KERNEL, path, sorted(places))
        self.assertGreater(len(places), 50)
        other = {
            line: (places[line], stops[line])
            for line in places
            if not set(places[line]) <= set(stops[line])
        }
        self.assertEqual(other, {})

    def test_the_table_is_small(self):
        elf = elf64.load(os.path.join(BUILD, "sonde.elf"))
        tables = {"lines_files", "lines_total", "lines_names", "lines_places"}
        sizes = {s.name: s.size for s in elf.symbols() if s.name in tables}
        self.assertEqual(set(sizes), tables)
        self.assertGreater(min(sizes.values()), 0)
        self.assertLess(sum(sizes.values()), BYTES_MAX)


if __name__ == "__main__":
    scratch.main()
