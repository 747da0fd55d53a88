#!/usr/bin/env python3
"""test_bench.py - tests of the generated text of bench, and of its table of results."""

import importlib.util
import os
import sys
import types

sys.dont_write_bytecode = True
import scratch

sys.path.insert(0, os.path.join(scratch.ROOT, "kernel/debug"))
import elf64

BENCH = os.path.join(scratch.ROOT, "probes/bench/host")
SOURCE = """
int twice(int x) { return 2 * x; }
int more(int x) { return x > 5 ? x * x : twice(x) + 1; }
"""


def bodies(path):
    """The bytes of each function; the order has no meaning."""
    elf = elf64.load(path)
    text = elf.section(".text")
    at = elf.content(text)
    found = [s for s in elf.symbols() if s.type == elf64.STT_FUNC]
    return sorted(at[s.value - text.addr :][: s.size] for s in found)


class GenText(scratch.Scratch):
    def test_every_function_is_there_as_often_as_it_takes(self):
        source = self.write("a.c", SOURCE)
        image, asm, copy = self.path("a"), self.path("b.asm"), self.path("b.o")
        self.run_ok(
            "gcc", "-O1", "-nostdlib", "-static", "-Wl,-e,twice", "-o", image, source
        )
        listing = self.run_ok("objdump", "-d", "-j", ".text", image).splitlines()
        twice_all = 2 * sum(line.count("\t") > 1 for line in listing)
        self.run_ok(
            sys.executable,
            f"{BENCH}/gen_text.py",
            "-o",
            asm,
            "--at-least",
            str(twice_all + 1),
            image,
        )
        self.run_ok("nasm", "-f", "elf64", "-I./", "-o", copy, asm)
        self.assertEqual(len(bodies(image)), 2)
        self.assertEqual(bodies(copy), sorted(bodies(image) * 3))


class Compare(scratch.Scratch):
    def table(self, **files):
        """{(name, run): the columns behind them}, from the first row of each."""
        paths = [
            self.write(name.replace("_", "-") + ".txt", text)
            for name, text in files.items()
        ]
        out = self.run_ok(sys.executable, f"{BENCH}/compare.py", *paths)
        rows = [line.split() for line in out.splitlines()[1:] if line[0] != "#"]
        return {tuple(row[:2]): row[2:] for row in reversed(rows)}

    def test_a_ratio_is_judged_for_each_run(self):
        rows = self.table(
            sonde_smp="sonde.hit.int3_boostable.cycles 600.00 cycles/hit\n",
            sonde_icount="sonde.hit.int3_boostable.cycles 200 cycles/hit\nnoise\n",
            linux_smp="linux.hit.int3_boost_simulated.cycles 1200 cycles/hit\n",
            linux_icount="linux.hit.int3_boost_simulated.cycles 250.00 cycles/hit\n",
        )
        name = "hit.int3_boostable.cycles"
        self.assertEqual(rows[name, "smp"][:5], ["720", "600", "met", "1200", "0.50"])
        self.assertEqual(
            rows[name, "icount"][:5], ["175", "200", "MISSED", "250", "0.80"]
        )

    def test_the_floor_is_taken_without_the_call(self):
        rows = self.table(
            sonde_smp="sonde.hit.opt_count.cycles 40 cycles/hit\n",
            floor_smp="floor.jmp_detour_lahf_count 51\nfloor.call_ret 17\n",
        )
        cells = rows["hit.opt_count.cycles", "smp"]
        self.assertEqual(cells, ["44.2", "40", "met", "-", "-", "34", "1.18"])

    def test_a_limit_is_judged_alone(self):
        rows = self.table(
            sonde_smp4="sonde.mem.per_probe.bytes 201 bytes/probe  goal 200  MISSED\n"
            "sonde.counted.entries.slowdown 1.50 times  goal 2.00\n"
        )
        self.assertEqual(
            rows["mem.per_probe.bytes", "smp4"][:3], ["200", "201", "MISSED"]
        )
        self.assertEqual(
            rows["counted.entries.slowdown", "smp4"][:3], ["2", "1.5", "met"]
        )

    def test_what_was_not_measured_has_no_row_and_no_verdict(self):
        rows = self.table(sonde_smp="sonde.hit.int3_emulated.cycles 7 cycles/hit\n")
        self.assertEqual(list(rows.values()), [["-", "7", *["-"] * 5]])

    def test_the_host_stands_above_the_table(self):
        said = self.run_ok(sys.executable, f"{BENCH}/compare.py", "--host")
        self.assertRegex(said, "host.name .*\nhost.processor ")
        out = self.run_ok(sys.executable, f"{BENCH}/compare.py", self.write("host", said))
        self.assertIn("# processor: ", out.splitlines()[1])


class Icount(scratch.Scratch):
    """Uses the project's own record, and makes the measured values from it."""

    def compare(self, kind=None, more=0, unit="cycles/hit", without="-", part=0.03):
        with open(f"{BENCH}/icount.tsv", encoding="ascii") as file:
            rows = [line.split() for line in file if line[0] != "#"]
        figures = [
            (name, int(value) + more * (name == kind))
            for name, value in rows
            if not name.startswith(without)
        ]
        text = "".join(
            f"sonde.{name}.ns_per_probe {value} {unit.replace('cycles/hit', 'ns/probe')}\n"
            if name.startswith("scale.")
            else f"sonde.hit.{name}.cycles {value + part:.2f} {unit}\n"
            f"sonde.hit.{name}.cycles_min 1.00 {unit}\n"
            for name, value in figures
        )
        return self.run_any(f"{BENCH}/icount.py", self.write("measured", text))

    def test_what_was_recorded_holds(self):
        done = self.compare()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(" 0 not as recorded", done.stdout)

    def test_the_stub_for_gdb_is_not_in_the_output_of_bench_hit(self):
        done = self.compare(without="gdb_")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(" 0 not as recorded", done.stdout)

    def test_one_instruction_more_is_told_and_fails(self):
        done = self.compare("opt_light", 1)
        self.assertEqual(done.returncode, 1)
        self.assertIn("opt_light: ", done.stdout)
        self.assertIn(", 1 MORE than ", done.stdout)

    def test_a_part_of_an_instruction_is_none(self):
        for part in (-0.02, 0.49):
            self.assertIn(" 0 not as recorded", self.compare(part=part).stdout)

    def test_a_stack_takes_some_more_among_other_symbols_and_not_a_tenth_more(self):
        self.assertEqual(self.compare("question_stack", 20).returncode, 0)
        self.assertEqual(self.compare("question_stack", 277).returncode, 1)

    def test_a_probe_among_many_may_take_a_little_more_and_not_twice_as_much(self):
        name = "scale.register_set.37222"
        self.assertEqual(self.compare(name, 100).returncode, 0)
        done = self.compare(name, 20000)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{name}: ", done.stdout)

    def test_one_instruction_fewer_is_told_with_the_command_that_records_it(self):
        done = self.compare("opt", -1)
        self.assertEqual(done.returncode, 0)
        self.assertIn(", 1 fewer than ", done.stdout)
        self.assertIn("icount.py --update", done.stdout)

    def test_a_kind_that_is_not_measured_fails(self):
        path = self.write("measured", "sonde.hit.opt.cycles 1.00 cycles/hit\n")
        done = self.run_any(f"{BENCH}/icount.py", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("and not measured", done.stdout)

    def test_no_figure_at_all_is_an_error(self):
        self.assertEqual(self.compare(unit="seconds").returncode, 2)

    def test_wrong_usage_is_told(self):
        for words in (["--release"], ["--relase", "x"], ["/no/such"], ["--update", "x"]):
            done = self.run_any(f"{BENCH}/icount.py", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, "^icount: .*--release NAME.*\n$", words)


class Profile(scratch.Scratch):
    def test_a_guest_that_has_ended_is_not_waited_for(self):
        sys.path.insert(0, os.path.join(scratch.ROOT, "kernel/host"))
        path = f"{BENCH}/profile.py"
        spec = importlib.util.spec_from_file_location("profile_of_hits", path)
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        guest = types.SimpleNamespace(
            qmp=types.SimpleNamespace(monitor=lambda line: ""),
            ended=lambda: True,
            failure=lambda when, limit: program.SondeError(when),
        )
        with self.assertRaisesRegex(program.SondeError, "while"):
            program.capture(guest, self.path("log"))


scratch.main()
