"""test_fatal.py - runs tests of the kernel that end in a panic, and checks the report."""

import os
import re
import tempfile

import image
import tap
from sonde.exits import PANICKED
from sonde.guest import EXIT_PANIC, Guest, Setup
from sonde.machine import Gone
from session import LIMIT, sonde


def report_of(test, smp):
    """Run a KTEST_FATAL test. Return the report of its panic; "": it is not complete."""
    with Guest(Setup(elf=image.TESTS, append=f"tests={test}", smp=smp)) as guest:
        status = guest.wait_end(LIMIT)
        guest.console.wait_closed(5)
        text = guest.console.text.decode("utf-8", "replace").replace("\r", "")
    tap.equal(status, EXIT_PANIC, f"{test}, {smp} CPUs: it panics")
    report = re.search(r"^panic: .*?^end of panic$", text, re.M | re.S)
    if not tap.check(report, "with a whole report"):
        tap.note(text[-3000:])
        return ""
    tap.equal(text.count("panic: "), 1, "and one only")
    return report[0]


def check_line(pattern, report, what):
    if not tap.check(re.search(pattern, report, re.M), what):
        tap.note(report[:1500])


def overflows_are_named():
    for smp in (1, 2):
        for test in ("an_overflow_is_named", "an_overflow_is_named_by_probed_code"):
            report = report_of("stack." + test, smp)
            check_line(
                r"^panic: stack overflow: the stack that begins at 0x[0-9a-f]+ is"
                " full$",
                report,
                "as a stack overflow",
            )
            check_line(
                r"(?m)^  0x[0-9a-f]+ dig\+0x.*\n  0x[0-9a-f]+ dig\+0x",
                report,
                "with the function that did it and its callers",
            )
            cpus = re.findall(r"^CPU \d(?:[:,]| did not stop)", report, re.M)
            tap.equal(len(cpus), smp, "on every CPU")


def handlers_are_named():
    for smp in (1, 2):
        report = report_of("stack.a_handler_that_takes_its_functions_lock_is_named", smp)
        check_line(
            r"^CPU \d: in a hit of dig(#\d+)?\+0x0, in its pre-handler lock_again\+0x0$",
            report,
            "the handler and the probe are named",
        )


def locks_are_named():
    for smp in (1, 2):
        report = report_of("contain.a_spinlock_that_is_left_taken_is_named", smp)
        check_line(
            r"^panic: spinlock: CPU \d waits for ever for CPU \d: taken at "
            r"fault_with_a_lock\+0x[0-9a-f]+, by the handler of the probe at "
            r"way_moved\+0x0, which was given up$",
            report,
            "the lock, its taker and the probe are named",
        )
        report = report_of("contain.a_spinlock_that_is_taken_twice_is_named", smp)
        check_line(
            r"^panic: spinlock: CPU (\d) waits for ever for CPU \1: taken at "
            r"ktest_contain_a_spinlock_that_is_taken_twice_is_named\+0x[0-9a-f]+$",
            report,
            "the place is named where it was taken",
        )


def functions_of_markers_are_named():
    for test, panic, function in (
        ("faults", "#UD invalid opcode", "fault_always"),
        ("sleeps", ".*preempt_is_off", "sleep_inside"),
        ("takes_the_lock_around_it", "spinlock: CPU .* waits for ever", "take_lock"),
    ):
        report = report_of(f"marker_misuse.a_function_that_{test}_is_named", 2)
        check_line(f"^panic: {panic}", report, f"{test}: it is said why")
        check_line(
            rf"\b{function}\+0x(?s:.*)^  0x[0-9a-f]+ marker_run\+0x(?s:.*)"
            r"^  0x[0-9a-f]+ marked\+0x",
            report,
            "in which function, and where",
        )


def probed_ud2_is_named():
    for smp in (1, 2):
        report = report_of("halt.a_probed_ud2_is_named", smp)
        check_line(r"^panic: #UD invalid opcode", report, "for what it is")
        check_line(
            r"^ip  0x[0-9a-f]+ undefined_here\+0x0/",
            report,
            "in its place, not in its copy",
        )


def callers_are_seen_through_returns():
    for smp in (1, 2):
        report = report_of("returns.a_panic_shows_the_real_callers", smp)
        check_line(
            r"(?m)^  0x[0-9a-f]+ panic_here\+0x.*\n(?:.*\n)*?  0x[0-9a-f]+ middle\+0x"
            r".*\n  0x[0-9a-f]+ outer\+0x",
            report,
            "which calls would have returned, and to where",
        )
        check_line(
            r"in a hit of inner(#\d+)?\+0x0, in its return handler panic_here\+0x0$",
            report,
            "and which handler it was",
        )
        tap.equal(report.count("trampoline"), 0, "as if nothing had been exchanged")


def nmis_wait():
    """A debugger that stops all CPUs would let the one stand that panics."""
    report = report_of("smp.a_panic_is_not_stopped_by_an_nmi", 2)
    if not tap.check("handler of NMIs" not in report, "no handler of NMIs comes between"):
        tap.note(report)


def the_log_is_whole():
    test = "smp.a_panic_prints_the_log_that_is_held"
    with Guest(Setup(elf=image.TESTS, append=f"tests={test}", smp=1)) as guest:
        guest.wait_end(LIMIT)
        guest.console.wait_closed(5)
        text = guest.console.text.decode("utf-8", "replace")
    found = re.search(r": the cause\r\n\s*^panic: while", text, re.M)
    if not tap.check(found, "the lines that are held come before the report"):
        tap.note(text[-1500:])


def modules_are_named():
    report = report_of("module_init.a_constructor_that_faults_is_named", 2)
    check_line(
        r"^ip  0x\w+ acts_fault\+0x\w+/0x\w+ \[acts\]  flags",
        report,
        "a constructor that faults is named, and its module",
    )
    check_line(r"^  0x\w+ run_tests\+0x", report, "with its callers")
    report = report_of("module_init.what_has_gone_is_named", 2)
    check_line(
        r"^ip  0x\w+ \[guest\]\+0x\w+  flags",
        report,
        "of a function that has gone it is said whose it was",
    )


def text_is_restored():
    """With panic=unprobe, a panic restores the text under jumps and breakpoints. The
    report then compares checksums of the text with those that were computed at boot.
    """
    commands = ("probe add vfs_read", "probe add --post vfs_write", "probe all vfs_*")
    found = {}
    for word in ("panic=unprobe", ""):
        with Guest(Setup(append=word)) as guest:
            guest.wait_prompt(LIMIT)
            for command in commands:
                guest.machine.request(command, LIMIT, may_fail=True)
            try:
                guest.machine.request("panic asked", LIMIT)
            except Gone:
                pass
            guest.wait_end(LIMIT)
            guest.console.wait_closed(5)
            text = guest.console.text.decode("utf-8", "replace")
        found[word] = re.search(r"unprobe: (\d+) bytes .* in \d+ lines; 0 lines", text)
        if word and not found[word]:
            tap.note(text[-2000:])
    tap.check(
        found["panic=unprobe"] and int(found["panic=unprobe"][1]) > 100,
        "panic=unprobe: text is restored, and the report says so",
    )
    tap.check(not found[""], "without it text stays")


def machine_checks_are_named():
    """The processor's own report of an error that it cannot correct: QEMU injects one."""
    for cpu in (0, 1):
        with Guest(Setup(smp=2)) as guest:
            guest.wait_prompt(LIMIT)
            guest.qmp.monitor(f"mce {cpu} 1 0xb200000000000000 0x0 0x0 0x0")
            status = guest.wait_end(LIMIT)
            guest.console.wait_closed(5)
            text = guest.console.text.decode("utf-8", "replace").replace("\r", "")
        tap.equal(status, EXIT_PANIC, f"a machine check on CPU {cpu}: the kernel panics")
        check_line(r"^panic: #MC machine check", text, "and says why")
        check_line(rf"^CPU {cpu}, which panicked", text, "and where")


CRASH = """#include "kernel/module/module.h"
__attribute__((constructor)) static void begin(void)
{
    __builtin_trap();
}
"""


def a_crash_while_a_module_is_loaded_is_told():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mine.c")
        with open(path, "w", encoding="ascii") as file:
            file.write(CRASH)
        status, _, err = sonde("module", path)
    *report, last = err.splitlines()
    tap.equal(status, PANICKED, "a constructor crashes: the status of a panic")
    tap.check("  | panic: #UD" in err and "begin+0x" in err, "its report, with the place")
    tap.equal(
        [line for line in report if not line.startswith("  | ")], [], "and no traceback"
    )
    tap.equal(last, f"sonde: the kernel panicked, while {path} was loaded", "in words")


tap.run(
    a_crash_while_a_module_is_loaded_is_told,
    overflows_are_named,
    handlers_are_named,
    locks_are_named,
    functions_of_markers_are_named,
    probed_ud2_is_named,
    machine_checks_are_named,
    callers_are_seen_through_returns,
    nmis_wait,
    the_log_is_whole,
    modules_are_named,
    text_is_restored,
)
