"""test_contracts.py - builds the kernel in which functions check their contract blocks
(tests/contracts), and lets it work: a broken contract is a panic.

The usual run has the kernel's tests of some subjects, and a call that breaks a contract.
--long: all subjects but some slow ones, and sessions with the kernel's own stub for gdb.
"""

import functools
import os
import re
import subprocess
import sys

import tap
from sonde import building
from sonde.guest import BUILD, ROOT

sys.path.append(os.path.join(ROOT, "tests", "lint"))
import nokprobe

CPUS = "2"
SUBJECTS = "kprobe,kretprobe,marker,module,nmi,smp,text_poke,trace,watch"
# Most of these hit each instruction of the kernel, also where contracts are checked.
SLOW = ("conformance", "everywhere", "optimize.any_density_in_and_out",
        "region.any_density_in_and_out", "returns.every_function_at_once")  # fmt: skip
SESSIONS = ("gdb/stub", "session/gdb_held", "session/gdb_print", "session/gdb_registers",
            "session/gdb_stub", "session/gdb_trace", "session/pairs", "session/probe",
            "session/questions", "session/trace_events", "session/tracefs",
            "session/watch")  # fmt: skip
WRONG = "smp.a_function_of_threads_is_called_in_an_interrupt"
WRONG_ORDER = "mutex.two_are_taken_in_the_other_order"
FOLDER = building.spelled(os.path.join(BUILD, "contracts"))


def run(words, **more):
    environment = dict(building.make_environment(), CHECK="contracts", B=FOLDER)
    environment.pop(building.BUILT, None)
    return subprocess.run(words, cwd=ROOT, env=environment, text=True, **more)


@functools.cache
def built():
    words = ["make", "-s", "-j2", "all", f"{FOLDER}/tests/sonde.elf"]
    return run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def it_is_built():
    if not tap.check(not built().returncode, "make CHECK=contracts"):
        tap.note(built().stdout[-3000:])


def tests_of_the_kernel(selection):
    """Run them in a boot. Return (how many facts hold, the other lines)."""
    built()
    program = os.path.join(ROOT, "tests", "run", "kernel_test.py")
    words = [sys.executable, program, selection, CPUS]
    lines = run(words, stdout=subprocess.PIPE).stdout.splitlines()
    right = sum(line.startswith("ok ") for line in lines)
    return right, [line for line in lines if not line.startswith("ok ")]


def what_blocks_say_is_so():
    chosen = ",".join(["all", *(f"-{name}" for name in SLOW)]) if tap.LONG else SUBJECTS
    right, others = tests_of_the_kernel(chosen)
    wrong = [line for line in others if line.startswith("not ok")]
    if not tap.check(right and not wrong, f"{right} facts, and no contract is broken"):
        tap.note("\n".join(others[-40:]))


def the_check_carries_no_probe():
    """A hit of a probe in the check would come before the check of that hit, without end."""
    built()
    image = nokprobe.Image(os.path.join(ROOT, FOLDER, "sonde.elf"))
    reached = nokprobe.walk(image.calls, ["contract_enter"], {"contract_broken"})
    tap.equal(sorted(set(reached) - image.marked), [], "all that it calls is marked")


def a_broken_one_is_named():
    report = "\n".join(tests_of_the_kernel(WRONG)[1])
    pattern = (
        r"contract: kfree\(\) called by \w+\+0x[0-9a-f]+: its context is wrong\.\n"
        r"# \| kernel/mm/heap\.h:\d+: Context: thread or boot or held, .*\n"
        r"# \| Now: irq trap, interrupts off"
    )
    if not tap.check(re.search(pattern, report), "a broken one: function, words, caller"):
        tap.note(report)


def mutexes_have_one_order():
    report = "\n".join(tests_of_the_kernel(WRONG_ORDER)[1])
    pattern = (
        r"contract: mutex_lock\(\) called by counter_total\+0x\w+: a mutex is held that"
    )
    if not tap.check(re.search(pattern, report), "another order is a panic"):
        tap.note(report)


def sessions_break_none():
    done = run([os.path.join(ROOT, "sonde"), "test", *SESSIONS], stdout=subprocess.PIPE)
    if not tap.check(not done.returncode, f"{len(SESSIONS)} sessions break none"):
        tap.note("\n".join(x for x in done.stdout.splitlines() if x.startswith("not ok")))


tap.run(
    it_is_built,
    the_check_carries_no_probe,
    what_blocks_say_is_so,
    a_broken_one_is_named,
    mutexes_have_one_order,
    *[sessions_break_none] * tap.LONG,
)
