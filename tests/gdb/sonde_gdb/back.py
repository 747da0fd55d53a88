"""back.py - back in time, in a replay (`./sonde replay`).

QEMU can go backwards, but waits for ever when there are watchpoints, or none of the things
that it looks for. What it does well is to begin anew, and to run forward. So each command
runs through the whole recording and counts, begins anew with another QEMU, and stops at the
place that it looks for.
"""

import os

import gdb

from sonde_gdb import commands, fields, kernel, sites
from sonde_gdb.kernel import View, symbol_at


def run(command):
    return gdb.execute(command, to_string=True)


def rewind():
    """Begin anew, and go on to the kernel's first function."""
    machine = os.environ.get("SONDE_REPLAY")
    if not machine:
        raise gdb.GdbError("only in a replay: ./sonde replay FILE")
    try:
        run("kill")
    except gdb.error:
        pass  # QEMU has ended before it could answer
    run(f"target remote | {machine}")
    start = gdb.Breakpoint("kmain", internal=True)
    start.silent = True
    run("continue")
    start.delete()
    kernel.forget()


def to_the_end():
    """Where the guest is about to end QEMU."""
    ends = [gdb.Breakpoint(name, internal=True) for name in fields.ENDS]
    for end in ends:
        end.silent = True
    try:
        run("continue")
    finally:
        for end in ends:
            end.delete()


class Counting(gdb.Breakpoint):
    """Counts how often it is met, and stops at the last one that is wanted."""

    def __init__(self, spec, **more):
        super().__init__(spec, internal=True, **more)
        self.silent = True
        self.met, self.wanted = 0, None

    def stop(self):
        self.met += 1
        return self.met == self.wanted


def stand_at(make, from_the_end, what):
    """Stand at the N-th meeting with the breakpoint of make(), counted from the end."""
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
    """The address of a probe that the console knows by its name, None."""
    head = kernel.address("console_probes")
    offset = kernel.layout("console_probe").fields["link"].bit // 8
    link = kernel.word(head)
    while link != head:
        probe = View("console_probe", link - offset)
        if probe.name.partition(b"\0")[0] == name.encode():
            return View("kprobe", probe.one_ptr).addr if probe.one_ptr else None
        link = kernel.word(link)
    return None


class BackToProbe(commands.Command):
    """back-to-probe NAME [N]: in a replay, stand at the N-th hit of a probe from the end.

    NAME is what `probe list` calls it (p1), or a place. N is 1 if it is left out: the last
    hit. The guest is in front of the probed instruction, whose handlers have not run yet."""

    def run(self, argument):
        words = argument.split()
        if not 1 <= len(words) <= 2 or len(words) == 2 and not words[1].isdigit():
            raise gdb.GdbError("back-to-probe NAME [N]")
        number = int(words[1]) if len(words) == 2 else 1
        to_the_end()
        addr = console_probe(words[0])
        if addr is None:
            addr = commands.address_of(words[0]) & kernel.MASK
        site = sites.at(addr)
        if not site:
            raise gdb.GdbError(f"{words[0]} is no probe at the end of the recording")
        hits = sum(sites.counted(probe) for probe in sites.probes_of(site))
        if not 1 <= number <= hits:
            raise gdb.GdbError(f"{words[0]} has {hits} hits")
        stand_at(lambda: Counting(f"*{addr:#x}"), number, symbol_at(addr))


class WhoWrote(commands.Command):
    """`who-wrote EXPRESSION`: in a replay, stand right behind the last store that changed it.

    EXPRESSION is a variable or another place in memory; it is evaluated at the end."""

    def run(self, argument):
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
