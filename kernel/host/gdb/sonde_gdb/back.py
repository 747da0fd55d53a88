"""back.py - commands that go back in time in a replay (`./sonde replay`).

QEMU can run backwards, but it hangs if there is a watchpoint, and if it meets no
breakpoint on the way back. QEMU is reliable when it starts from the beginning and runs
forward. So each command runs through the whole recording and counts how often the wanted
event happens. Then the command starts another QEMU from the beginning, and stops at the
event with the right number.
"""

import contextlib
import os

import gdb

from sonde_gdb import commands, fields, kernel, sites
from sonde_gdb.kernel import View, symbol_at


def run(command):
    return gdb.execute(command, to_string=True)


def rewind():
    """Start the recording from its beginning, and run to the kernel's first function."""
    try:
        run("kill")
    except gdb.error:
        pass  # QEMU has ended before it could answer
    run(f"target remote | {os.environ['SONDE_REPLAY']}")
    start = gdb.Breakpoint("kmain", internal=True)
    start.silent = True
    run("continue")
    start.delete()
    kernel.forget()


def to_the_end():
    """Run on, until the guest is about to end QEMU."""
    if not gdb.selected_inferior().threads():
        rewind()  # the guest has ended
    ends = [gdb.Breakpoint(name, internal=True) for name in fields.ENDS]
    for end in ends:
        end.silent = True
    try:
        run("continue")
    finally:
        for end in ends:
            end.delete()


class Counting(gdb.Breakpoint):
    """A breakpoint that counts its hits, and stops gdb at hit number `wanted`."""

    def __init__(self, spec, **more):
        super().__init__(spec, internal=True, **more)
        self.silent = True
        self.met, self.wanted = 0, None

    def stop(self):
        self.met += 1
        return self.met == self.wanted


def stand_at(make, from_the_end, what):
    """Stop at a hit of the breakpoint that make() sets. Of all its hits in the recording
    this is number @from_the_end, counted from the last one.
    """
    rewind()
    counter = make()
    to_the_end()
    met = counter.met
    counter.delete()
    if met < from_the_end:
        raise gdb.GdbError(f"{what}: {met} times in this recording")
    rewind()
    counter = make()
    counter.wanted = met - from_the_end + 1
    try:
        run("continue")
    finally:
        counter.delete()
    kernel.forget()
    print(f"{what}: {met - from_the_end + 1} of {met}")
    gdb.execute("frame")


def console_probe(name):
    """Return the address of the probe that the console calls @name, or None."""
    head = kernel.address("console_probes")
    offset = kernel.layout("console_probe").fields["link"].bit // 8
    link = kernel.word(head)
    while link != head:
        probe = View("console_probe", link - offset)
        if probe.name.partition(b"\0")[0] == name.encode():
            return View("kprobe", probe.one_ptr).addr if probe.one_ptr else None
        link = kernel.word(link)
    return None


@contextlib.contextmanager
def alone():
    """Switch the user's breakpoints off meanwhile: a stop at one of them would be taken for
    the end of the recording.
    """
    on = [each for each in gdb.breakpoints() if each.enabled]
    for each in on:
        each.enabled = False
    try:
        yield
    finally:
        for each in on:
            each.enabled = True


class Replay(commands.Command):
    """The base of the commands here. A subclass has go(argument)."""

    on_a_guest = False  # a replay that has ended begins again

    def run(self, argument):
        if "SONDE_REPLAY" not in os.environ:
            raise gdb.GdbError("only in a replay: ./sonde replay FILE")
        with alone():
            self.go(argument)


class BackToProbe(Replay):
    """back-to-probe NAME [N]: in a replay, go to the N-th hit of a probe, from the end.

    NAME is the name in `probe list` (p1), or a place. Without N, this is the last hit.
    The guest stops at the probed instruction, before the handlers of the probe run."""

    def go(self, argument):
        words = argument.split()
        if not 1 <= len(words) <= 2 or len(words) == 2 and not words[1].isdigit():
            raise gdb.GdbError("back-to-probe NAME [N]")
        name, number = words[0], int(words[1]) if len(words) == 2 else 1
        to_the_end()
        addr = console_probe(name)
        if addr is None:
            addr = commands.address_of(name) & kernel.MASK
        site = sites.at(addr)
        if not site:
            raise gdb.GdbError(f"{name} is no probe at the end of the recording")
        hits = sum(sites.counted(probe) for probe in sites.probes_of(site))
        if not 1 <= number <= hits:
            raise gdb.GdbError(f"{name} has {hits} hits")
        stand_at(lambda: Counting(f"*{addr:#x}"), number, symbol_at(addr))


class WhoWrote(Replay):
    """`who-wrote EXPRESSION`: in a replay, go right behind the last store to it.

    EXPRESSION is a variable or another place in memory; it is evaluated at the end."""

    def go(self, argument):
        to_the_end()
        value = gdb.parse_and_eval(argument)
        if value.address is None:
            raise gdb.GdbError(f"{argument} is not in memory")
        spec = f"*({value.type.strip_typedefs()} *) {int(value.address) & kernel.MASK:#x}"
        kinds = {"type": gdb.BP_WATCHPOINT, "wp_class": gdb.WP_WRITE}
        stand_at(lambda: Counting(spec, **kinds), 1, argument)


def start():
    BackToProbe("back-to-probe", gdb.COMMAND_RUNNING)
    WhoWrote("who-wrote", gdb.COMMAND_RUNNING)
