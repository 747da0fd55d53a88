"""frames.py - makes gdb's backtraces lead through probes.

The unwinder handles what call frame information cannot describe: code that the engine has
made, and return addresses that the engine has exchanged. gdb takes each frame that an
unwinder in Python finds for a frame that has called, so gdb looks up the byte in front of
its pc. This would be wrong for a program at a probed instruction, which has not called.
So the unwinder gives gdb the mirror of the instruction's address. Call frame information
leads from the mirror to the address itself, as from a signal frame
(kernel/debug/gen_frames.py).

The filter names the frames of the engine, so that a reader of a backtrace knows them.
"""

import gdb
from gdb.FrameDecorator import FrameDecorator
from gdb.unwinder import Unwinder

from sonde_gdb import cfi, fields, kernel, sites, walk

MIRROR = 1 << 40
REGISTERS = [*cfi.NAMES[:-1], "eflags"]


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = gdb.Value(sp), gdb.Value(pc)


def is_mirror(pc):
    return fields.REACH_START <= pc + MIRROR <= kernel.MASK


class ProbeUnwinder(Unwinder):
    def __init__(self):
        super().__init__("sonde")
        self.last = None

    def __call__(self, pending):
        pc = number_in(pending, "rip")
        if pc is None or pc < fields.REACH_START or not kernel.is_known():
            return None
        registers = {name: number_in(pending, name) for name in REGISTERS}
        registers = {name: had for name, had in registers.items() if had is not None}
        if pending.level() == 0 and self.last != (pc, registers):
            # A step of gdb is many steps of the guest, of which gdb tells nothing here.
            self.last = pc, registers
            kernel.forget()
        try:
            # gdb does not say whether the frame has called or was interrupted.
            is_exact = pending.level() == 0 or not is_behind_call(pc)
            found = walk.unwound(walk.Frame(dict(registers, rip=pc), is_exact))
            if pending.level() == 0 and sites.is_generated(pc):
                found = of_function(found)
        except (kernel.Gone, cfi.Unsupported, KeyError):
            return None
        cfa, start, caller, exact, is_ours = found
        if not is_ours or "rip" not in caller:
            return None
        if exact:
            caller["rip"] -= MIRROR
        info = pending.create_unwind_info(FrameId(cfa, start))
        for name in [*REGISTERS, "rip"]:
            if name in caller:
                info.add_saved_register(name, value(pending, name, caller[name]))
        return info


def of_function(found):
    """The CPU is in generated code, on its way for an instruction of a function, and @found
    is how that function goes on. For gdb the frame is that of the function, with the same
    id and the same caller: a step in that function goes on here, and steps over calls.
    """
    _, _, registers, is_exact, _ = found
    cfa, start, caller, exact, _ = walk.unwound(walk.Frame(registers, is_exact))
    return cfa, start, caller, exact, True


def number_in(pending, name):
    """Return the value of a register. None: it is not known, as most registers of a thread
    that sleeps, and of a tracepoint's frame.
    """
    try:
        return int(pending.read_register(name)) & kernel.MASK
    except gdb.error:
        return None


def is_behind_call(pc):
    """Is there a call right in front of @pc: call rel32, or a call through a register or
    through a word in memory?
    """
    code = kernel.read(pc - 7, 7)
    return code[2] == 0xE8 or any(
        code[7 - n] == 0xFF and code[8 - n] >> 3 & 7 == 2 for n in range(2, 8)
    )


def value(pending, name, number):
    """Convert a number to a gdb.Value of the register's type."""
    kind = pending.read_register(name).type
    data = (number & kernel.MASK).to_bytes(8, "little")
    return gdb.Value(data[: kind.sizeof], kind)


# ---- names ----

MARKS = {"exc_int3": "int3", "nmi_entry": "NMI", "irq_entry": "interrupt",
         "switch_entry": "switch", "pf_entry": "page fault", "db_entry": "debug trap",
         "df_entry": "double fault", "mc_entry": "machine check", "trap_entry": "trap",
         "trap_exit": "return from a trap", "switch_if_due": "return from a trap",
         "entry_stubs": "trap"}  # fmt: skip


def place_text(frame):
    """Return " at PLACE", the place where @frame has interrupted the program."""
    older = frame.older()
    return f" at {kernel.symbol_at(older.pc() & kernel.MASK)}" if older else ""


def mark_of(frame):
    """Return a name for a frame that is no function of the program. None: it is one."""
    pc = frame.pc() & kernel.MASK
    if is_mirror(pc):
        return f"<probe{place_text(frame)}>"
    if sites.is_generated(pc):
        cell = sites.cell_at(pc) or sites.pad_at(pc)
        return f"<code of the probe at {kernel.symbol_at(cell.site.addr)}>"
    entry = cfi.find(pc)
    name = entry and kernel.routine_at(entry.start)
    if not name:
        return None
    if name.startswith("detour") and frame.type() == gdb.SIGTRAMP_FRAME:
        return f"<probe{place_text(frame)}, {name}>"
    if name in MARKS:
        return f"<{MARKS[name]}>"
    return None if is_name(frame.name()) else name


def is_name(name):
    """Is @name the name of a function, and not of a label within a function?"""
    return bool(name) and not set("@[.") & set(name)


class Marked(FrameDecorator):
    def __init__(self, base, mark):
        super().__init__(base)
        self.mark = mark

    def function(self):
        return self.mark

    def filename(self):
        return None

    def line(self):
        return None

    def frame_args(self):
        return None

    def frame_locals(self):
        return None


class ProbeFilter:
    def __init__(self):
        self.name, self.priority, self.enabled = "sonde", 100, True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        for decorated in frames:
            yield self.named(decorated)

    def named(self, decorated):
        try:
            mark = mark_of(decorated.inferior_frame()) if kernel.is_known() else None
        except (kernel.Gone, gdb.error):
            mark = None
        return Marked(decorated, mark) if mark else decorated


def start():
    gdb.unwinder.register_unwinder(None, ProbeUnwinder(), replace=True)
    ProbeFilter()
