"""test_driver.py - tests of run_tests.py: the tests of a run, and its last lines."""

import glob
import marshal
import os
import re
import subprocess
import sys
import tempfile
from unittest import mock
from xml.etree import ElementTree

import junit
import run_tests
import tap
from sonde.guest import ROOT, Setup, cpu_words


def labels_of(*options):
    words = [sys.executable, run_tests.__file__, "--list", *options]
    environment = {k: v for k, v in os.environ.items() if k not in ("LONG", "TOOLS")}
    return subprocess.check_output(words, text=True, env=environment).split()


def every_test_is_in_a_run():
    usual, tools, long = labels_of(), labels_of("--tools"), labels_of("--long")
    left = set(usual + tools) - set(long)
    tap.equal(left, set(run_tests.NOT_LONG), "the long run has all tests")
    tap.equal(
        sorted(set(usual) & set(tools)), [], "the usual run leaves out those of tools"
    )
    wanted = sorted(run_tests.LONGER + run_tests.TOOLS)
    tap.equal(sorted(tools), wanted, "which are there")
    tap.equal(set(run_tests.LONG_ONLY) - set(long), set(), "what is left to it is there")
    tap.check(len(usual) > 100, f"{len(usual)} tests are usual")


def with_kvm_tests_of_tcg_are_skipped():
    chosen = run_tests.every_label()
    tap.equal(run_tests.skipped_of(chosen), [], "with TCG no test is skipped")
    os.environ[run_tests.ACCEL] = "kvm"
    skipped = run_tests.skipped_of(chosen)
    words = cpu_words(Setup()), cpu_words(Setup(icount=True))
    del os.environ[run_tests.ACCEL]
    tap.check("truth/truth" in skipped and "kernel/stepped2" in skipped, "with KVM some")
    tap.check("kernel/smp4" not in skipped, "the others are not")
    tap.check("kvm" in words[0], "their guests run by KVM")
    tap.check("kvm" not in words[1], "but not to count instructions")


def kernel_tests():
    """Subjects, and SUBJECT.NAME of each test."""
    found = set(run_tests.subjects())
    for path in glob.glob(os.path.join(ROOT, "tests", "[kc]*", "*.c")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        tests = re.findall(r"^(?:KTEST\((\w+), |CONFORMS\()(\w+)", text, re.M)
        found.update(f"{subject or 'conformance'}.{test}" for subject, test in tests)
    return found


def what_boots_choose_exists():
    known = {"all", *kernel_tests()}
    labels = [label for label in run_tests.every_label() if label.startswith("kernel/")]
    for run in ({}, {"LONG": "1"}):
        with mock.patch.dict(os.environ, run):
            boots = [run_tests.command(label)[2].split(",") for label in labels]
        words = {word.removeprefix("-") for boot in boots for word in boot}
        tap.equal(words - known, set(), f"the words of {len(boots)} boots name tests")


def chosen_on(cpus, is_long=False):
    """The kernel's tests that selection() chooses, by the rules of ktest.h."""
    words = run_tests.selection(cpus, is_long).split(",")
    out = {word[1:] for word in words if word.startswith("-")}
    tests = {name for name in kernel_tests() if "." in name}
    return {
        t
        for t in tests
        if ("all" in words or t.partition(".")[0] in words)
        and t not in out
        and t.partition(".")[0] not in out
    }


def each_kernel_test_runs_somewhere():
    """In the usual run or in that of tools, which has kernel/smp1."""
    tests = {name for name in kernel_tests() if "." in name}
    usual = [chosen_on(n) for n in run_tests.SMP]
    left = tests - set().union(*usual)
    elsewhere = {name for name in tests if name.partition(".")[0] in run_tests.ELSEWHERE}
    tap.equal(left, elsewhere, "on one number of CPUs at least")
    long = {n: chosen_on(n, is_long=True) for n in run_tests.SMP}
    left = {n for n, chosen in zip(run_tests.SMP, usual) if not chosen <= long[n]}
    tap.equal(left, set(), "and in the long run on the same")


def a_name_may_mean_other_runs():
    whole = labels_of()
    for name, run in (("session/bochs", "tools"), ("kernel/smp16", "long")):
        tap.equal(run_tests.choose([name], whole), [name], run)
    labs = list(run_tests.LABS)
    tap.equal(run_tests.choose(["labs"], whole), labs, "a tier of tools")
    try:
        run_tests.choose(["no_such"], whole)
        tap.check(False, "an unknown name is refused")
    except ValueError:
        tap.check(True, "an unknown name is refused")


def the_last_lines():
    """Totals.pm shows the slowest ten of twelve tests, and counts a failure."""
    with tempfile.TemporaryDirectory() as folder:
        times = os.path.join(folder, "times")
        with open(times, "w", encoding="ascii") as file:
            file.writelines(f"{n}.0 {n}.5 some/test{n} 0\n" for n in range(1, 13))
        texts = {"good": "ok 1 - a\nok 2 - b\n1..2\n", "bad": "not ok 1\n1..1\n"}
        for name, text in texts.items():
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(text)
        env = dict(os.environ, PERL5LIB=os.path.dirname(run_tests.__file__), TIMES=times)
        words = ["prove", "--formatter", "Totals", "--exec", "cat", "good", "bad"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=env)
    lines = done.stdout.splitlines()[-12:]
    tap.equal(lines[0], "12 tests took 84 s of CPU; the slowest:", "how many tests ran")
    tap.equal(
        [line.split()[-1] for line in lines[1:11]],
        [f"some/test{n}" for n in range(12, 2, -1)],
        "the slowest ten",
    )
    tap.equal(lines[1].split()[:3], ["12.0", "s", "12.5"], "seconds, and seconds of CPU")
    tap.equal(lines[11], "2 passed, 1 failed", "the last line")


TAP = """ok 1 - it <works>
# of it
not ok 2 - it "fails"
# got & want
ok 3 - it is left out # SKIP no gdb
1..4
"""


def a_report_for_ci():
    with tempfile.NamedTemporaryFile() as file:
        good = "ok 1\n1..1\n"
        tests = [("run/x", TAP, "1.5", "1"), ("run/y", good, "0.1", "0")]
        junit.write(file.name, [*tests, ("run/z", good, "0.1", "66")])
        suites = ElementTree.parse(file.name).getroot()
    first, second, third = suites
    tap.equal(
        first.attrib,
        {"name": "run/x", "tests": "4", "failures": "2", "skipped": "1", "time": "1.5"},
        "a suite counts its facts, and a test that ends too early",
    )
    names = [case.get("name") for case in first]
    tap.equal(names[:2], ["it <works>", 'it "fails"'], "each fact is a case")
    tap.equal(first[1].find("failure").text, "got & want", "with its notes")
    tap.equal(first[2].find("skipped").get("message"), "no gdb", "and why it is left out")
    tap.equal(second.get("failures"), "0", "a test that passes")
    tap.equal(third[-1].find("failure").text, "status 66", "one that fails at its end")


def a_report_has_each_status():
    """That of a test as one.py notes it, and of a test whose one.py was killed."""
    folder = tempfile.TemporaryDirectory()
    names = {name: os.path.join(folder.name, name) for name in ("PLAN", "TIMES")}
    with folder, mock.patch.dict(os.environ, names, TAP_FOLDER=folder.name):
        words = ["sh", "-c", "exit 66"]
        paths = [run_tests.tap_of(label) for label in ("a/b", "a/killed")]
        with open(names["PLAN"], "wb") as file, open(paths[1], "wb"):
            marshal.dump(
                {"a/b": (words, paths[0], folder.name, 0, dict(os.environ))}, file
            )
        subprocess.run([sys.executable, run_tests.HERE + "/one.py", "a/b"])
        found = list(run_tests.outcomes(["a/b", "a/killed"], names["TIMES"]))
    tap.equal(found[0][3], "66", "the status of a test whose facts are all right")
    tap.check("killed" in found[1][3], "a test that was killed is one of the report")


tap.run(
    every_test_is_in_a_run,
    with_kvm_tests_of_tcg_are_skipped,
    what_boots_choose_exists,
    each_kernel_test_runs_somewhere,
    a_name_may_mean_other_runs,
    the_last_lines,
    a_report_for_ci,
    a_report_has_each_status,
)
