"""commands.py - the commands that sonde adds to gdb. gdb's help for a command is the
docstring of its class.
"""

import re

import gdb

from sonde_gdb import cfi, fields, kernel, ring, sites, text, threads, walk
from sonde_gdb.kernel import View, constant, enum_name, symbol_at


class Command(gdb.Command):
    """The base of all commands. A subclass has run(argument); its docstring is its help.

    on_a_guest: does it ask a guest? With no guest, gdb would read the image's file."""

    on_a_guest = True

    def __init__(self, name, kind=gdb.COMMAND_DATA):
        self.__doc__ = type(self).__doc__
        super().__init__(name, kind)

    def invoke(self, argument, from_tty):
        if self.on_a_guest:
            check_guest()
        if kernel.guest_id() and not kernel.is_known():
            raise gdb.GdbError(kernel.other_build())
        try:
            self.run(argument.strip())
        except kernel.Gone as error:
            raise gdb.GdbError(f"not there yet, or not any more: {error}")
        except gdb.error as error:
            raise gdb.GdbError(str(error))
        except cfi.Unsupported as error:
            raise gdb.GdbError(
                f"the debug data has what these commands do not know: {error}"
            )


def check_guest():
    if not gdb.selected_inferior().threads():
        raise gdb.GdbError("the guest is off: ./sonde gdb starts one")


def address_of(argument):
    """Return the address of a PLACE: an expression, or FILE:LINE."""
    try:
        value = gdb.parse_and_eval(argument)
    except gdb.error as error:
        found = gdb.decode_line(argument)[1] if ":" in argument else None
        if not found:
            raise gdb.GdbError(str(error)) from None
        return found[0].pc
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_FUNC:
        value = value.address
    return int(value.cast(gdb.lookup_type("unsigned long")))


def note_change():
    """Print a note if a thread is changing text at this moment."""
    name = text.changer()
    if name:
        print(f"text is being changed, by thread {name}: what is shown may be half of it")


# ---- probes ----


class Probes(Command):
    """Show every probed address: its state, how a hit is handled, hits, misses.

    probes [NAME]     only of functions with NAME in their names"""

    def run(self, argument):
        note_change()
        count = 0
        for addr, site in sites.by_address().items():
            name = symbol_at(addr)
            if argument in name:
                print(self.line(addr, name, site))
                count += 1
        print(f"{count} probed addresses")

    @staticmethod
    def line(addr, name, site):
        probes = list(sites.probes_of(site))
        way = "jump" if sites.is_jump(site) else enum_name("site_way", site.way)
        return (
            f"{addr:#x} {name:32} {enum_name('site_state', site.state):9} {way:8} "
            f"probes {len(probes)} hits {sum(map(sites.counted, probes))} "
            f"missed {sum(probe.nmissed for probe in probes)}"
        )


class Explain(Command):
    """explain PLACE: show the probe at an address, its handlers, the code made for it.

    PLACE is an expression (vfs_read, vfs_read+4, $pc) or FILE:LINE. For an address in a
    pad, a cell or a detour, the command explains the probed place for which this code
    was made. To see how a probe at a place would be run, type `probe explain PLACE` on
    the guest's console."""

    def run(self, argument):
        if not argument:
            raise gdb.GdbError("explain PLACE")
        note_change()
        addr = address_of(argument) & kernel.MASK
        if addr >= fields.REACH_START and sites.is_generated(addr):
            addr = self.generated(addr)
        site = sites.at(addr) or self.around(addr)
        if not site:
            print(f"{symbol_at(addr)}: no probe")
            return
        self.site(site)

    @staticmethod
    def generated(addr):
        cell, what = sites.cell_at(addr), "its cell"
        if not cell:
            cell, what = sites.pad_at(addr), "its pad"
        print(f"{addr:#x} is made by the engine, for {symbol_at(cell.site.addr)}: {what}")
        return cell.site.addr

    @staticmethod
    def around(addr):
        """Return the site that has a byte of its instruction or of its jump at @addr."""
        for start in range(addr, addr - text.INSN_MAX_LEN, -1):
            site = sites.at(start)
            if site and addr < start + len(text.original_bytes(site)):
                return site
        return None

    def site(self, site):
        now = kernel.read(site.addr, site.len)
        way = enum_name("site_way", site.way)
        print(f"place      {symbol_at(site.addr)}, {site.len} bytes")
        print(f"original   {site.bytes[: site.len].hex(' ')}")
        if now != site.bytes[: site.len]:
            print(f"text       {now.hex(' ')}")
        print(f"state      {enum_name('site_state', site.state)}; behind a trap: {way}")
        if sites.is_jump(site):
            self.jump(site)
        elif sites.jump_of(site).jump_why:
            why = enum_name("probe_reason", sites.jump_of(site).jump_why)
            print(f"no jump    {why.replace('_', ' ')}")
        for probe in sites.probes_of(site):
            self.probe(probe)

    @staticmethod
    def jump(site):
        way = f"{site.addr:#x}"
        if sites.pad(site):
            way += f" -> pad {sites.pad(site):#x}"
        kind = enum_name("detour_kind", sites.jump_of(site).kind)
        own = ", with code of its own" if sites.jump_of(site).specialized else ""
        print(f"jump       {way} -> detour {sites.detour(site):#x}: {kind}{own}")
        region = sites.region(site)
        if region and region.is_open:
            print(f"region     {region.len} bytes, copied to {region.cell:#x}")

    @staticmethod
    def probe(probe):
        kind = "krj"[probe.kind] if probe.kind < 3 else "?"
        line = f"probe      {probe.here:#x} {kind} hits {sites.counted(probe)}"
        line += f" missed {probe.nmissed}"
        for name in ("pre_handler", "light_handler", "post_handler", "fault_handler"):
            handler = getattr(probe, name)
            if handler:
                line += f" {name.partition('_')[0]} {symbol_at(handler, False)}"
        if probe.kind == constant("KPROBE_KIND_RETURN"):
            handler = View("kretprobe", probe.here).handler
            line += f" return {symbol_at(handler, False)}" if handler else ""
        print(line + (" disabled" if probe.flags & 2 else ""))


class Slot(Command):
    """slot ADDR: show the probed place for which the slot around ADDR was made."""

    def run(self, argument):
        addr = address_of(argument) & kernel.MASK
        cell = sites.cell_at(addr)
        if cell:
            print(
                f"{addr:#x} is byte {cell.off} of the slot of {symbol_at(cell.site.addr)}"
            )
        else:
            print(f"{addr:#x} is in no slot of a registered probe")


class Original(Command):
    """original WHERE: disassemble a function as if no probe were armed, also after
    `set sonde show-original off`."""

    on_a_guest = False

    def run(self, argument):
        was = gdb.parameter("sonde show-original")
        gdb.execute("set sonde show-original on")
        try:
            gdb.execute(f"disassemble {argument}")
        finally:
            gdb.execute(f"set sonde show-original {'on' if was else 'off'}")


class ProbedBreak(Command):
    """kbreak WHERE: a breakpoint at an address that may carry an armed probe.

    If gdb finds an int3 at a breakpoint, gdb takes the int3 for a part of the program,
    and steps over it without executing it. So this command puts the original byte there
    while gdb sets the breakpoint."""

    on_a_guest = False

    def __init__(self, name):
        super().__init__(name, gdb.COMMAND_BREAKPOINTS)

    def run(self, argument):
        addr = address_of(argument) & kernel.MASK
        memory = gdb.selected_inferior()
        armed = kernel.read(addr, 1)
        original = text.recovered(addr, armed)
        if original != armed:
            memory.write_memory(addr, original)
        try:
            gdb.Breakpoint(f"*{addr:#x}")
        finally:
            if original != armed:
                memory.write_memory(addr, armed)


# ---- the machine ----


class Trapframe(Command):
    """trapframe [EXPR]: show the registers in a struct pt_regs, by default `regs`."""

    ROWS = ("ip sp flags", "ax bx cx dx", "si di bp", "r8 r9 r10 r11", "r12 r13 r14 r15")

    def run(self, argument):
        regs = View("pt_regs", int(gdb.parse_and_eval(argument or "regs")))
        print(f"at {symbol_at(regs.ip)}")
        for row in self.ROWS:
            print(
                "  ".join(f"{name:5} {getattr(regs, name):016x}" for name in row.split())
            )
        print(f"vector {regs.vector}  error code {regs.error_code:#x}")


class Cpus(Command):
    """Show what each CPU is doing: thread, depth of interrupts, active hits of probes."""

    def run(self, argument):
        for area in sites.areas():
            thread = threads.running_on(area)
            print(
                f"CPU {area.id}:  {'idle' if area.idle else 'thread'} "
                f"{threads.name_of(thread) if thread else '-'}  "
                f"preempt_count {area.preempt_count}  irq_depth {area.irq_depth}  "
                f"nmi_depth {area.nmi_depth}"
            )
            for hit in sites.hits_of(View("probe_cpu", area.probe)) if area.probe else ():
                self.hit(hit)

    @staticmethod
    def hit(hit):
        site = sites.site_of_hit(hit)
        where = symbol_at(site.addr) if site else "a probe not yet known"
        print(f"        in a hit of {where}")


class Threads(Command):
    """Show every thread of the kernel, and the stack of each thread that is off its CPU.

    threads           all threads
    threads TID|NAME  threads with this number, or with NAME in their names
    threads -short    one line for each thread, without stacks

    gdb's own `info threads` has the CPUs. Where a return probe has exchanged a return
    address, the real caller is shown."""

    def run(self, argument):
        short = argument == "-short"
        wanted = "" if short else argument
        for thread in threads.each():
            name = threads.name_of(thread)
            if wanted and wanted != str(thread.tid) and wanted not in name:
                continue
            state = enum_name("thread_state", thread.state)
            line = f"{thread.tid:4} {name:16} {state:8} CPU {thread.cpu}"
            if thread.preempted_regs and not threads.is_running(thread):
                ip = View("pt_regs", thread.preempted_regs).ip
                line += f"  preempted at {symbol_at(ip)}"
            print(line)
            if not short:
                self.stack(thread)

    @staticmethod
    def stack(thread):
        if threads.is_running(thread) or thread.state == constant("THREAD_DEAD"):
            return
        number = 0
        for frame in walk.each(threads.registers_of(thread), is_exact=False):
            print(f"       #{number:<3} {walk.line_of(frame)}")
            number += 1
            if frame.note:
                print(f"       the rest is not known: {frame.note}")


def set_tracepoint(where):
    """Set a tracepoint as gdb's own `trace` does. The class Trace below takes the place
    of that command, so the tracepoint is set by gdb's interface for programs (MI).
    """
    place, _, condition = where.partition(" if ")
    words = f"-c {quoted(condition.strip())} " if condition else ""
    words += quoted(place.strip())
    said = gdb.execute(
        f"interpreter-exec mi {quoted('-break-insert -a ' + words)}", to_string=True
    )
    refused = re.search(r'\^error,msg="((?:[^"\\]|\\.)*)"', said)
    if refused:
        raise gdb.GdbError(refused[1].replace('\\"', '"').rstrip("."))
    found = re.findall(r'[{,](number|addr|file|line)="([^"<]*)"', said)
    told = dict(
        reversed(found)
    )  # of several places, that of the tracepoint and the first
    line = f": file {told['file']}, line {told['line']}." if "line" in told else "."
    places = [words[0] for words in found].count("number") - 1
    if places:
        line = f": {place.strip()}. ({places} locations)"
    print(f"Tracepoint {told['number']} at {told['addr']}{line}")


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Trace(Command):
    """Show the records of the tracer, also of a guest that is stopped or has crashed.

    trace             all records, by time
    trace N           the last N records
    trace WHERE       set a tracepoint, as gdb's own command does"""

    on_a_guest = False

    def run(self, argument):
        if argument and not argument.isdecimal():
            set_tracepoint(argument)
            return
        check_guest()
        lines = list(ring.lines())
        count = min(int(argument), len(lines)) if argument else len(lines)
        for line in lines[len(lines) - count :]:
            print(line)


COMMANDS = {"probes": Probes, "explain": Explain, "threads": Threads, "trace": Trace,
            "cpus": Cpus, "original": Original, "slot": Slot, "trapframe": Trapframe,
            "kbreak": ProbedBreak}  # fmt: skip


class Sonde(gdb.Command):
    """What sonde adds to gdb.

    probes            every probed address
    explain PLACE     what is at an address
    threads           the kernel's threads, with the stacks of threads that sleep
    trace             the records of the tracer
    cpus              what each CPU is doing
    original WHERE    disassemble without probes
    slot ADDR         the probed place for which a slot was made
    trapframe [EXPR]  the registers in a struct pt_regs
    kbreak WHERE      a breakpoint, on a probed address too
    compare-sections  does memory have what the image's file has?
    gcore [FILE]      save the machine, at QEMU's stub
    back-to-probe, `who-wrote`        in a replay: back to a hit, to a store
    set sonde show-original on|off    what x/i and disassemble show

    bt, up and finish lead through probes by themselves."""

    def __init__(self):
        super().__init__("sonde", gdb.COMMAND_SUPPORT)

    def invoke(self, argument, from_tty):
        gdb.execute("help sonde")


class SetSonde(gdb.Command):
    """Set how gdb shows sonde."""

    def __init__(self, verb):
        super().__init__(f"{verb} sonde", gdb.COMMAND_DATA, prefix=True)


def start():
    Sonde()
    SetSonde("set")
    SetSonde("show")
    for name, command in COMMANDS.items():
        command(name)
