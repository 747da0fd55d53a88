"""test_mass.py - the work of an operation on all probes grows only in proportion to their
number.

    tests/run/run_tests.py truth/mass

With a probe on every instruction, all code of the kernel traps: a listing that executes a
few thousand instructions for each line takes minutes. So the test counts instructions and
traps, by QEMU's plugin, and compares these with limits. It does not measure time.
"""

import re

import tap
from counted import Counted

LIMIT = 300
LIST = "/sys/kernel/debug/kprobes/list"
TRACING = "/sys/kernel/tracing/"
EVENTS = TRACING + "kprobe_events"
DEFINITIONS = 10, 1000
MORE_MAX = 1.05

# The limits for each probe.
LIST_INSNS_MAX = 6000
TRAPS_MAX = (
    ("probe all -- probe off all -- probe on all -- probe del all", 50),
    ("probe all -- probe stat -- probe del all", 50),
)


def traps_are_few():
    """`bare` registers no probes, so all counted traps are those of the commands."""
    with Counted(smp=1, only="exc_int3") as machine:
        for commands, most in TRAPS_MAX:
            outcome = machine.run(f"bare all {commands}", LIMIT)
            probes = int(re.search(r"armed (\d+) of", outcome.output)[1])
            traps = outcome.executions[machine.table["exc_int3"][0]] // probes
            tap.check(traps <= most, f"{commands}: {traps} traps a probe, at most {most}")


def a_listing_is_short_work():
    with Counted(smp=1) as machine:
        machine.ask("probe all", LIMIT)
        machine.ask("probe off all", LIMIT)  # otherwise the listing would take a minute
        outcome = machine.run(f"bare all cat {LIST}", LIMIT)
        lines = re.findall(r"^([0-9a-f]{16})  k  ", outcome.output, re.M)
        probes = re.search(r"^sites (\d+)", machine.ask("probe stat", LIMIT), re.M)
        insns = outcome.total() // len(lines)
        tap.check(
            insns <= LIST_INSNS_MAX,
            f"{insns} instructions a line, at most {LIST_INSNS_MAX}",
        )
        tap.equal(len(lines), int(probes[1]), "every probe has a line")
        tap.check(lines == sorted(set(lines)), "each has one, by address")


def define(machine, count, functions):
    """Define @count events, each at another one of @functions. At a few functions an
    event is refused; these are skipped.
    """
    while count:
        line = f"echo 'p {functions.pop()} %di' >> {EVENTS}"
        count -= machine.guest.machine.request(line, LIMIT, may_fail=True).errno == 0


def a_definition_costs_the_same_among_others():
    """Before the first definition that is counted, an event at the same function makes
    the engine decode the function.
    """
    counted = f"bare all \"echo 'p:counted vfs_read %di' >> {EVENTS}\""
    with Counted(smp=1) as machine:
        text = machine.ask(f"cat {TRACING}available_filter_functions", LIMIT)
        functions = re.findall(r"^(?!vfs_read$)\w+$", text, re.M)
        machine.ask(f"echo 'p:first vfs_read' >> {EVENTS}", LIMIT)
        define(machine, DEFINITIONS[0], functions)
        few = machine.run(counted, LIMIT).total()
        machine.ask(f"echo '-:counted' >> {EVENTS}", LIMIT)
        define(machine, DEFINITIONS[1], functions)
        many = machine.run(counted, LIMIT).total()
        tap.check(
            many <= few * MORE_MAX,
            f"{few} instructions beside {DEFINITIONS[0]} events, {many} beside "
            f"{DEFINITIONS[1]}, at most {MORE_MAX} times as many",
        )


if __name__ == "__main__":
    tap.run(
        traps_are_few, a_listing_is_short_work, a_definition_costs_the_same_among_others
    )
