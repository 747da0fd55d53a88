"""walk.py - from a frame to its caller, through traps, handlers, detours and returns.

Frames are registers: {"rip": ..., "rsp": ..., ...}. Those that are not known are missing.
"""

from sonde_gdb import cfi, fields, kernel, place, shadow, sites
from sonde_gdb.kernel import constant

FRAMES_MAX = 200


class Frame:
    """registers   is_exact: it was interrupted at rip, and has not called
    note: why there is no caller, "" if none is to be expected"""

    def __init__(self, registers, is_exact):
        self.registers, self.is_exact = registers, is_exact
        self.note = ""

    @property
    def pc(self):
        return self.registers["rip"]

    @property
    def block(self):
        """An address inside of the instruction that it is about."""
        return self.pc if self.is_exact else self.pc - 1


def in_trampoline(pc):
    entry = cfi.find(pc)
    return entry is not None and entry.start == kernel.address("kretprobe_trampoline")


def behind_int3(image, ip):
    """Where the program is that an int3 has interrupted whose image says @ip: as long as its
    handlers are to see it, one byte behind the probe."""
    hit = sites.hit_with(image)
    if hit is None:
        return ip - 1 if sites.at(ip - 1) else ip
    before = constant("HIT_PRE"), constant("HIT_FAULT")
    site = sites.site_of_hit(hit)
    if site and hit.inside("is", "hit_facts").stage in before and ip == site.addr + 1:
        return site.addr
    return ip


def unwound(frame):
    """(CFA, start of the code, the caller's registers, were they interrupted there?, is it
    what gdb would not find?). KeyError, Gone or Unsupported: it is not known."""
    pc = frame.pc
    if sites.is_generated(pc):
        found = place.of(pc, frame.registers)
        if not found:
            raise kernel.Gone("the code there was taken away")
        return frame.registers["rsp"], pc, found, True, True
    entry = cfi.find(frame.block)
    if not entry:
        raise kernel.Gone("nothing is known of the frame of this code")
    row = cfi.row_at(entry, frame.block)
    cfa, slot, found = cfi.caller(entry, row, frame.registers)
    if "rip" not in found and in_trampoline(pc):
        # Up to `known`: the return address was right below the image that is being built.
        found["rip"] = shadow.real_return_above(cfa - 8) or 0
        return cfa, entry.start, found, False, True
    if "rip" not in found:
        return cfa, entry.start, found, False, False
    if entry.start == kernel.address("exc_int3") and cfi.NUMBER["r15"] in row.rules:
        real = behind_int3(cfa - kernel.layout("pt_regs").size, found["rip"])
        return cfa, entry.start, dict(found, rip=real), True, real != found["rip"]
    if shadow.is_exchanged(found["rip"]) and not entry.is_signal:
        real = shadow.real_return(slot)
        if real is None:
            raise kernel.Gone("an exchanged return address that no shadow knows")
        return cfa, entry.start, dict(found, rip=real), False, True
    if not entry.is_signal and sites.is_generated(found["rip"]):  # code of its own has called
        found = place.of(found["rip"], found)
        return cfa, entry.start, found, True, True
    return cfa, entry.start, found, entry.is_signal, False


def each(registers, is_exact=True):
    """The frames from the innermost one on; the last one has a note if more were expected."""
    frame, seen = Frame(registers, is_exact), 0
    while True:
        seen += 1
        try:
            cfa, _, found, exact, _ = unwound(frame)
        except (kernel.Gone, cfi.Unsupported, KeyError) as error:
            frame.note = str(error) if not isinstance(error, KeyError) \
                else f"{error.args[0]} is not known"  # fmt: skip
            yield frame
            return
        yield frame
        if not found.get("rip") or seen == FRAMES_MAX:
            return
        if found["rsp"] < frame.registers["rsp"] and not exact and cfa:
            return
        frame = Frame(found, exact)


def line_of(frame):
    """A frame as text."""
    name = kernel.symbol_at(frame.block)
    if not frame.is_exact and "+" in name:
        base, _, offset = name.rpartition("+")
        name = f"{base}+{int(offset, 16) + 1:#x}"
    if frame.pc >= fields.REACH_START and sites.is_generated(frame.pc):
        cell = sites.cell_at(frame.pc) or sites.pad_at(frame.pc)
        name = f"<code of the probe at {kernel.symbol_at(cell.site.addr)}>"
    return f"{frame.pc:#x} {name}{kernel.line_at(frame.block)}"
