#!/usr/bin/env python3
"""run_tests.py - run all tests by prove; the last line is `N passed, N failed`.

    tests/run/run_tests.py [--list] [--long | --tools] [NAME...]

The usual run takes some minutes on two CPUs. It leaves out the tests that take longer than
others of their kind, and those that need a large program of another project: --tools runs
these. --long runs all tests, with guests of more CPUs, once with more rounds of everything
(kernel/longN), and passes --long to the tests in Python.

A test has a label TIER/STEM. A NAME is a label, a tier, or a stem; a stem means its tests
in every tier. `kernel/STEM` boots with the tests of one subject. A whole run has these
instead: `kernel/smpN`, many subjects on N CPUs; `kernel/alone1`, on one CPU what is left
out on two, or is different there; `kernel/by-ENGINE1`, those that change text,
with each engine for that; and `kernel/stepped2`, some subjects with one instruction in each
translation block. SMP=N sets the CPUs of kernel/STEM. SEED=N repeats a run with a printed
seed.
"""

import functools
import glob
import marshal
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Where tests find the package sonde, tap.py, and the tree's own folders as packages.
FOLDERS = (os.path.join(ROOT, "kernel/host"), HERE, ROOT)
sys.path[:0] = FOLDERS
import image
import junit
import rows
from sonde import building, errors
from sonde.exits import HOST, USAGE
from sonde.guest import ACCEL, BUILD, die_with_parent
from sonde.suggest import nearest

LAB_TASKS = os.path.join(ROOT, "docs", "labs")

SMP = (1, 2, 4)
SMP_LONG = (
    1,
    3,
    4,
    8,
    16,
    32,
)  # on 2 CPUs kernel/long2 has all tests, with more rounds
# Subjects that change very much, again and again. With more than four CPUs they take
# minutes on the usual host, and find nothing that they do not find on four.
UP_TO_4 = ("conformance", "detour", "detour_return", "everywhere", "jprobe", "jump",
           "kretprobe", "link", "optimize", "preempt", "region",
           "return_point", "returns", "text_poke", "xmc")  # fmt: skip
# Subjects about a single CPU. kernel/smpN has them on one CPU only.
ONE_CPU = ("conformance", "frame", "heap")
# There are other tests for this: in truth/truth each instruction is a breakpoint, and in
# session/probe_all each instruction is a jump.
ELSEWHERE = ("everywhere",)
# NOT_ALONE is left out on one CPU, and NOT_ON_2 on two CPUs. On four the usual run has only
# USUAL_ON_4: where the host has two CPUs, the CPUs of a larger guest mostly wait for
# each other, and mutants are killed on two.
NOT_ALONE = (*ELSEWHERE, "returns.every_function_at_once")
NOT_ON_2 = (
    *ELSEWHERE,
    *ONE_CPU,
    "commands",
    "contain",
    "explain",
    "files.list_is_sorted_by_address",
    "optimize.any_density_in_and_out",
    "preempt",  # in kernel/stepped2
    "region.and_so_they_do_over_branches",
    "region.any_density_in_and_out",
    "work.checksums_depend_on_the_seed_only",
)
# Subjects about many CPUs. The long run has only these on 3, 16 and 32: others would take
# half an hour there, and find nothing new.
MANY = ("clock", "halt", "mutex", "nmi", "program", "quiesce", "smp", "stop_machine")
USUAL_ON_4 = (*MANY, "events", "link", "trace")
# The usual run has these on one CPU. Of conformance it leaves out the families with the most
# values, of which each hard case has a test of its own, and thus that the table is complete;
# kernel/smp1 has all of them.
ALONE = (
    *sorted({*NOT_ON_2, *MANY} - {*NOT_ALONE, "preempt"}),
    "-conformance.addresses_by_base",
    "-conformance.addresses_by_index",
    "-conformance.addresses_only",
    "-conformance.arithmetic",
    "-conformance.bits",
    "-conformance.image_accepts_probes",
    "-conformance.moving",
    "-conformance.setcc_and_cmov_under_all_flags",
    "-conformance.shifting",
    "-conformance.sse",
    "-conformance.table_is_complete",
    "-conformance.x87",
)
# Subjects for one instruction in each translation block. All subjects would take an hour.
STEPPED = ("preempt", "detour", "jump")
STEPPED_LONG = (
    "region.jumps_come_and_go_while_all_cpus_are_there",
    "region.a_thread_that_is_preempted_inside_is_waited_for",
    "optimize.h70_a_second_probe_where_a_jump_reads",
    "optimize.h71_every_order_of_five_operations",
    "return_point.h90_nmis_at_every_instruction",
    "conformance.h06_jcc_under_all_flags",
    "program.all_cpus_count_and_lose_nothing",
)
# Subjects that run once more with each engine that changes text. On one CPU every engine may
# take all its steps.
BY_ENGINE = ("arming", "files.the_patch_engine_is_chosen_by_name", "jump", "marker",
             "optimize.h71_every_order_of_five_operations", "region", "static_key",
             "text_poke", "xmc")  # fmt: skip
# CPUs of the boot of a long run in which all subjects but the storms take more rounds.
MANY_ROUNDS = 2
NOT_LONG = (f"kernel/smp{MANY_ROUNDS}", "kernel/alone1")  # the long run has all of them
STORMS = 4  # CPUs of a boot with storms only: a million hits while modules are loaded

# A boot in Bochs, which runs one CPU after the other and forgives nothing that QEMU's TCG
# forgives: the instructions, changes of text by both engines, jumps, returns, NMIs, watches.
# A read of Bochs's port 0x80 depends on what was written there before; and its CPU lacks
# instructions of the table, as CLAC.
BOCHS = 2  # CPUs
BOCHS_SUBJECTS = ("conformance", "-conformance.port_strings",
                  "-conformance.table_is_complete", "debug_reg", "detour",
                  "detour_return", "jump", "kprobe", "kretprobe", "nesting", "nmi",
                  "return_point", "text_poke", "watch_handlers", "watch_probes",
                  "xmc")  # fmt: skip

HOSTED_VARIANTS = (
    "gcc",
    "clang",
    "asan",
    "tsan",
)  # as tests/hosted/hosted.mk builds them

# Tests that only the long run has.
LONG_ONLY = (
    "hosted/execute-tsan",  # a minute for one thread at a time, mostly
    # These test the processor, so one compiler is enough for the usual run. The engine runs
    # under ASan in hosted/live, too.
    "hosted/execute-asan",
    "hosted/execute-clang",
    "hosted/kretprobe-tsan",
    "hosted/link-clang",
    "hosted/live-clang",
    "hosted/poke-clang",
    "hosted/program-clang",
    "hosted/program-tsan",
    "hosted/toggle-asan",
    "hosted/toggle-clang",
    "kernel/steppedlong2",
    "lint/tidy",
    "pun/plans",  # session/transcripts runs it, as docs/optimize.md shows it
    "session/bench",  # whether each measurement measures; they change seldom
    "session/module_text",  # a large module has the same rules as a small one
    f"kernel/bochs{BOCHS}",  # an hour
    f"kernel/long{MANY_ROUNDS}",
    f"kernel/storm{STORMS}",
    "truth/mass",  # its bounds for the work of each probe are seldom exceeded
)
# Tests of what all labs share, then a test for each lab. They take minutes.
LABS_FRAME = ("class", "frame", "modules")
LABS = (
    *(f"labs/{name}" for name in LABS_FRAME),
    *(
        f"labs/{name}"
        for name in sorted(os.listdir(LAB_TASKS))
        if os.path.exists(os.path.join(LAB_TASKS, name, "rubric"))
    ),
)
# Tests that take longer than others of their kind, which the usual run has. They run with
# TOOLS.
LONGER = (
    "fuzz/console",
    "fuzz/events",
    "fuzz/trace",
    "gdb/editor",  # gdb/commands, session/attach
    "gdb/stub",  # session/gdb_stub
    # The usual run has one test with each sanitizer: hosted/kretprobe-asan, hosted/ring-tsan.
    "hosted/link-asan",
    "hosted/link-tsan",
    "hosted/live-asan",
    "hosted/live-tsan",
    "hosted/poke-asan",
    "hosted/poke-tsan",
    "hosted/program-asan",
    "hosted/ring-asan",
    "hosted/ring-clang",
    "hosted/toggle-tsan",
    "kernel/smp1",  # kernel/alone1
    # What clang, clang-format, black and flake8 say: `make check` has them.
    "lint/clang",
    "lint/format",
    "lint/python",
    "model/model",  # the explorers run the code itself
    "session/boot",
    "session/exits",
    "session/cpu",  # boot/cpu_check.asm and its table change seldom
    "session/extra_objs",
    "session/film",  # unit/text_history, unit/text_phases
    "session/module_loop",  # session/samples
    "session/programs",  # unit/agent..., session/gdb_print, fuzz/agent
    "session/questions_all",  # session/questions
    "session/requests",
    "session/scripting",  # every session is written with this package
    "session/signals",
    "session/smp_start",  # each guest starts its CPUs; kernel/smp2, kernel/smp4
    "session/stop",  # session/console types Ctrl-C
    "session/stacks",  # kernel/jump.a_backtrace_from_each_instruction_of_a_detour...
    "session/trace_command",  # session/trace_host, session/questions
    "session/transcripts",  # session/readme
    "stress/rounds",
    # Tools that only developers use, and makers of tables for names and lines, which unit
    # tests, session/probe, session/questions and gdb/commands read.
    "tools/base",
    "tools/bench",
    "tools/film",
    "tools/gen_frames",
    "tools/gen_inlines",
    "tools/gen_ksyms",
    "tools/gen_lines",
    "tools/mutants",
    "tools/mutate",
    "tools/nasm_dwarf",
    "tools/same_text",
    "truth/count",  # truth/module
    "truth/profile",
    "truth/side_by_side",
    "truth/truth",
)
# Tests that need a large program of another project, and the labs, which change seldom.
# gdb/frames and gdb/replay are for gdb alone: a backtrace at each instruction, and a run
# that is replayed. gdb/trace sends the data of session/gdb_trace byte by byte through a
# serial line.
# session/core builds another kernel; unit/extend_none tests the same on the host. So does
# session/contracts; lint/contexts reads the blocks that it checks.
TOOLS = ("gdb/frames", "gdb/lldb", "gdb/replay", "gdb/suite", "gdb/trace", "hosted/gdb",
         "session/bochs", "session/contracts", "session/core", "session/extend",
         "session/gdb", "session/read_only", "session/trace_tools",
         "session/tracefs_live", "session/web", "session/without_tests",
         "tools/decode_page", *LABS)  # fmt: skip

# Sessions with guests that mostly wait for the test, so that other tests may run as well.
CALM = ("bochs", "boot", "console", "core", "cpu", "documents", "extend", "extra_objs",
        "fatal", "film", "hidden", "init_text", "module_loop", "module_text", "programs",
        "questions", "questions_all", "read_only", "readme", "samples", "terminal",
        "trace_command", "trace_host", "trace_tools", "watch", "web",
        "workloads")  # fmt: skip
# Hosted tests with four threads. In a long run that by gcc takes minutes, and a guest with
# four CPUs beside it takes seven times as long.
THREADED = ("live", "poke", "ring", "toggle")
# Tests that use `./sonde gdb`. They run one at a time.
UNDER_GDB = ("session/attach", "session/exits", "session/gdb", "session/signals",
             "session/transcripts")  # fmt: skip

# Tests that only compute. They leave the CPUs to guests of several CPUs, which waste time in
# loops while one of their CPUs does not run.
COMPUTING = (
    "lint",
    "unit",
    "explore",
    "model",
    "hosted",
    "insn",
    "pun",
    "region",
    "tools",
)
COMPUTING_GUESTS = ("truth/mass", "truth/truth")  # of one CPU, or of several in turns
NICE = 10

# Tests at the same time. The usual host has two CPUs, and many tests wait for timers.
# With four, guests with several CPUs take up to ten times as long: their CPUs wait for each
# other in loops.
JOBS = 3

# These take minutes, so they start early: the run should not wait for them at its end.
LONG_ONES = ("model", "truth")
# Many of these wait for timers and guests, so they start before tests that only compute:
# the run should not end with tests that leave the CPUs idle.
WAITING_ONES = ("session", "run", "gdb")
SHORT_ONES = ("tools", "insn", "pun", "region", "fuzz")
STRESS = ("stress",)
# Tests about ways of QEMU's TCG: one instruction in each translation block, and plugins.
# With KVM they are skipped. Guests that count instructions run by TCG even then.
BY_TCG = ("kernel/stepped", "stress/", "truth/")


def say(text):
    print("sonde: " + text, file=sys.stderr, flush=True)


@functools.cache
def stems(pattern, prefix=""):
    """The stems of the files that match @pattern, in alphabetical order."""
    names = [os.path.basename(path) for path in glob.glob(os.path.join(ROOT, pattern))]
    return sorted(name.removeprefix(prefix).partition(".")[0] for name in names)


def subjects():
    return stems("tests/kernel/test_*.c", "test_") + ["conformance"]


def python_labels(tiers):
    return [
        f"{tier}/{stem}"
        for tier in tiers
        for stem in stems(f"tests/{tier}/test_*.py", "test_")
    ]


def every_label():
    """All labels: first quick tests, then tests that take long or wait, then the rest."""
    labels = ["lint/" + stem for stem in stems("tests/lint/check_*", "check_")]
    labels += ["unit/" + stem for stem in stems("tests/unit/test_*.c", "test_")]
    labels += [
        "explore/" + stem for stem in stems("tests/explore/explore_*.c", "explore_")
    ]
    labels += [f"kernel/smp{n}" for n in sorted({*SMP, *SMP_LONG})]
    labels += [
        "kernel/alone1",
        "kernel/stepped2",
        f"kernel/bochs{BOCHS}",
        f"kernel/long{MANY_ROUNDS}",
        f"kernel/storm{STORMS}",
        "kernel/steppedlong2",
    ]
    labels += [f"kernel/by-{name}{cpus}" for name in rows.engines() for cpus in (1, 2)]
    labels += python_labels(LONG_ONES + STRESS + WAITING_ONES)
    for stem in stems("tests/hosted/test_*.c", "test_"):
        labels += [f"hosted/{stem}-{variant}" for variant in HOSTED_VARIANTS]
    labels += ["hosted/" + stem for stem in stems("tests/hosted/test_*.py", "test_")]
    return labels + python_labels(SHORT_ONES) + list(LABS)


def is_usual(label):
    tier, _, stem = label.partition("/")
    if label in LONG_ONLY + LONGER + TOOLS:
        return False
    if tier == "kernel" and stem.startswith("smp"):
        return int(stem.removeprefix("smp")) in SMP
    if tier == "kernel" and stem.startswith("by-"):
        return stem.endswith("1") and stem != f"by-{next(iter(rows.engines()))}1"
    return True


def all_labels():
    """The labels of a whole run, as LONG and TOOLS in the environment say."""
    if "LONG" in os.environ:
        return [label for label in every_label() if label not in NOT_LONG]
    if "TOOLS" in os.environ:
        return [label for label in every_label() if label in LONGER + TOOLS]
    return [label for label in every_label() if is_usual(label)]


def choose(names, whole):
    """The labels that @names mean. A name without tests in the run @whole means tests of
    other runs. ValueError: there is no such test.
    """
    if not names:
        return whole
    known = whole + ["kernel/" + stem for stem in subjects()]
    chosen = []
    for name in names:
        found = [label for label in whole if label.startswith(name + "/")]
        found = found or [one for one in known if name in (one, *stems_of(one))]
        found = found or [
            one
            for one in every_label()
            if name in (one.partition("/")[0], one, *stems_of(one))
        ]
        if not found:
            near = nearest(name, every_label()) or " (--list shows them)"
            raise ValueError(f"no test is called {name}{near}")
        chosen += [label for label in found if label not in chosen]
    return chosen


def skipped_of(labels):
    """The labels of @labels that an accelerator leaves out."""
    is_kvm = os.environ.get(ACCEL) == "kvm"
    return [label for label in labels if is_kvm and label.startswith(BY_TCG)]


def stems_of(label):
    """The names of a label without its tier: hosted/step-gcc is step-gcc, and step."""
    stem = label.partition("/")[2]
    return stem, stem.partition("-")[0]


def command(label):
    """The command that runs a label, as words."""
    tier, _, stem = label.partition("/")
    is_long = "LONG" in os.environ
    if tier == "lint":
        return [glob.glob(os.path.join(ROOT, "tests", "lint", f"check_{stem}*"))[0]]
    if tier == "unit":
        return [os.path.join(BUILD, "unit", "test_" + stem)]
    if tier == "explore":
        return [os.path.join(BUILD, "tests", "explore", stem)]
    if tier == "hosted" and "-" in stem:
        stem, _, variant = stem.partition("-")
        return [os.path.join(BUILD, "hosted", variant, "test_" + stem)]
    if tier == "kernel":
        program = [sys.executable, os.path.join(HERE, "kernel_test.py")]
        if stem in subjects():
            return program + [stem, os.environ.get("SMP", "2")] + ["long"] * is_long
        if stem == "steppedlong2":
            return program + ["preempt", "2", "stepped", "long"]
        if stem == "stepped2":
            chosen = STEPPED + STEPPED_LONG * is_long
            return program + [",".join(chosen), "2", "stepped"]
        if stem == "alone1":
            return program + [",".join(ALONE), "1"]
        if stem.startswith("by-"):
            option = "text-poke=" + stem[3:-1]
            return program + [",".join(BY_ENGINE), stem[-1], option] + ["long"] * is_long
        if stem.startswith("bochs"):
            program[1] = os.path.join(HERE, "bochs_test.py")
            return program + [",".join(BOCHS_SUBJECTS), stem.removeprefix("bochs")]
        if stem.startswith("storm"):
            return program + ["module_storm", stem.removeprefix("storm"), "long"]
        if stem.startswith("long"):
            return program + ["all,-module_storm", stem.removeprefix("long"), "long"]
        cpus = stem.removeprefix("smp")
        return program + [selection(int(cpus), is_long), cpus]
    if tier == "labs" and stem not in LABS_FRAME:
        return [
            sys.executable,
            os.path.join(ROOT, "tests", "labs", "test_labs.py"),
            stem,
            *["--long"] * is_long,
        ]
    program = [sys.executable, os.path.join(ROOT, "tests", tier, f"test_{stem}.py")]
    return program + ["--long"] * is_long


def selection(cpus, is_long):
    """The kernel's tests on @cpus CPUs, as the value of its boot argument."""
    if cpus == 4 and not is_long:
        return ",".join(USUAL_ON_4)
    if cpus == 3 or cpus > 8:
        return ",".join(MANY)
    left_out = UP_TO_4 if cpus > 4 else ()
    if not is_long:
        left_out += NOT_ALONE if cpus == 1 else NOT_ON_2 if cpus == 2 else ()
    return ",".join(["all", *("-" + name for name in left_out)])


def has_several_cpus(label):
    """Does the test boot guests that execute on several CPUs at the same time, or run as
    many threads?"""
    tier, _, stem = label.partition("/")
    if tier == "kernel":
        if stem.startswith("bochs"):
            return False
        return stem not in ("smp1", "alone1") and not (
            stem.startswith("by-") and stem.endswith("1")
        )
    if tier == "session":
        return stem not in CALM and label not in UNDER_GDB
    if tier == "hosted" and "LONG" in os.environ:
        return stem.partition("-")[0] in THREADED
    several = (
        "fuzz/console",
        "fuzz/events",
        "labs/poke",
        "labs/reenter",
        "truth/module",
        "truth/side_by_side",
    )
    return tier == "stress" or label in several


def only_computes(label):
    tier = label.partition("/")[0]
    return tier in COMPUTING and not has_several_cpus(label) or label in COMPUTING_GUESTS


def rules(labels):
    """Prove's rules: tests with several CPUs run one at a time, from the beginning on, and
    so do tests of some other kinds; the rest runs beside them. (Prove would prefer a rule
    par=** to any sequence.)"""
    busy = [label for label in labels if has_several_cpus(label)]
    under_gdb = [label for label in labels if label in UNDER_GDB]
    rest = [label for label in labels if label not in busy + under_gdb]
    sequences = [f"{{{','.join(those)}}}" for those in (busy, under_gdb) if those]
    sequences += rest
    return [word for sequence in sequences for word in ("--rules", f"seq={sequence}")]


def build(labels):
    """The kernel, and the host programs that the chosen tests need."""
    programs = [
        command(label)[0]
        for label in labels
        if label.startswith(("unit/", "explore/"))
        or label.startswith("hosted/")
        and "-" in label
    ]
    if "insn/decoder" in labels:
        programs.append(os.path.join(BUILD, "insn", "check_zydis"))
    if "tools/decode_page" in labels:
        programs += [os.path.join(BUILD, name) for name in ("decode.html", "page/native")]
    if "tools/program_model" in labels:
        programs.append(os.path.join(BUILD, "hosted", "gcc", "program_ways"))
    if "pun/plans" in labels or "session/transcripts" in labels:  # the second runs it
        programs.append(os.path.join(BUILD, "pun", "check_pun"))
    if "session/module_text" in labels:
        programs.append(os.path.join(BUILD, "bench", "text.o"))
    if "region/plans" in labels or "session/transcripts" in labels:  # so does it this
        programs.append(os.path.join(BUILD, "region", "check_region"))
    for name in ("agent", "gdb", "insn", "module", "trace"):
        if f"fuzz/{name}" in labels:
            programs.append(os.path.join(BUILD, "fuzz", f"fuzz_{name}"))
    if "gdb/suite" in labels:
        programs.append(os.path.join(BUILD, "suite", "whole_xstate.so"))
    if any(label.startswith("truth/") for label in labels):
        programs.append(os.path.join(BUILD, "truth", "exec_count.so"))
    programs += [image.TESTS, image.TRUTH, os.path.join(BUILD, "tests", "sonde.checked")]
    building.build(["all", *map(building.spelled, programs)], say)


def tap_of(label):
    folder = os.environ.get("TAP_FOLDER", os.path.join(BUILD, "tap"))
    return os.path.abspath(os.path.join(folder, label.replace("/", "-")))


def planned(label):
    """What one.py needs to run a label: the words, where its TAP is also kept (in build/tap/,
    or in TAP_FOLDER), the folder, how nice it is, the environment. Of the compilations of a
    hosted test, only that by gcc has the rounds of a long run.
    """
    path = tap_of(label)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb"):
        pass  # what an earlier run has left
    environment = dict(os.environ, PYTHONPATH=":".join(FOLDERS))
    variant = label.startswith("hosted/") and label.partition("-")[2]
    if variant and variant != "gcc":
        environment.pop("LONG", None)
    return command(label), path, ROOT, NICE * only_computes(label), environment


def find_this_python():
    """Let the tests that say `env python3` find the Python that runs this. Else a program
    that chooses among several ones may run before each of them."""
    if shutil.which("python3") != sys.executable:
        folder = os.path.dirname(sys.executable)
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


JUNIT = "--junit="  # FILE: also write JUnit's XML


def main():
    arguments = sys.argv[1:]
    names = [word for word in arguments if not word.startswith("--")]
    for option in ("--long", "--tools"):
        if option in arguments:
            os.environ[option.strip("-").upper()] = "1"
    reports = [word for word in arguments if word.startswith(JUNIT)]
    report = reports[-1].removeprefix(JUNIT) if reports else None
    labels = choose(names, all_labels())
    skipped = skipped_of(labels)
    labels = [label for label in labels if label not in skipped]
    if "--list" in arguments:
        print("\n".join(labels))
        return 0
    if skipped:
        say(f"tests about TCG, which are skipped: {' '.join(skipped)}")
    if not labels:
        return USAGE
    try:
        build(labels)
    except building.HostError as error:
        say(str(error))
        return HOST
    os.environ[building.BUILT] = BUILD
    os.environ["PERL5LIB"] = HERE
    words = ["prove", "--formatter", "Totals", "--timer"]
    if names:
        words += ["--verbose"]
        os.environ["VERBOSE"] = "1"
    else:
        words += ["--jobs", str(JOBS), *rules(labels)]
    # Without site-packages, which only tests may need, Python starts sooner.
    one = f"{sys.executable} -S {os.path.join(HERE, 'one.py')}"
    words += ["--exec", one, *labels]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    # A test that a signal ends leaves its temporary files, which go with this folder.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        times = os.path.join(folder, "times")
        with open(times, "w", encoding="ascii"):
            pass
        find_this_python()
        os.environ.update(TIMES=times, TMPDIR=folder, PLAN=os.path.join(folder, "plan"))
        with open(os.environ["PLAN"], "wb") as file:
            marshal.dump({label: planned(label) for label in labels}, file)
        # The working directory must not contain a folder with the name of a label.
        status = subprocess.run(words, cwd=HERE, preexec_fn=die_with_parent()).returncode
        shutil.copy(times, os.path.join(BUILD, "times.txt"))
        if report:
            with errors.writing(report):
                junit.write(report, outcomes(labels, times))
    if skipped:
        say(f"{len(skipped)} tests about TCG were skipped")
    return status


def outcomes(labels, times):
    """Yield (label, its TAP, seconds, status) of each test. A test that was killed has no
    line in the file @times."""
    with open(times, encoding="ascii") as file:
        ends = {words[2]: words for words in map(str.split, file)}
    for label in labels:
        seconds, _, _, status = ends.get(
            label, ("0", "0", label, "of a test that was killed")
        )
        with open(tap_of(label), encoding="utf-8") as tap:
            yield label, tap.read(), seconds, status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except OSError as error:
        say(errors.words_of(error))
        sys.exit(HOST)
