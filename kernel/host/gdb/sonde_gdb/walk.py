"""walk.py - finds a frame's caller, through traps, handlers, detours and returns.

A frame is a dictionary of registers: {"rip": ..., "rsp": ..., ...}. Registers that are
not known are missing.
"""

from sonde_gdb import cfi, fields, kernel, place, shadow, sites
from sonde_gdb.kernel import constant

FRAMES_MAX = 200


class Frame:
    """A frame.

    registers   is_exact: the frame was interrupted at rip, and has not called
    note: why no caller is known; "": the caller is known, or there is none
    """

    def __init__(self, registers, is_exact):
        self.registers, self.is_exact = registers, is_exact
        self.note = ""

    @property
    def pc(self):
        return self.registers["rip"]

    @property
    def block(self):
        """Return an address within the frame's current instruction."""
        return self.pc if self.is_exact else self.pc - 1


def in_trampoline(pc):
    entry = cfi.find(pc)
    return entry is not None and entry.start == kernel.address("kretprobe_trampoline")


def behind_int3(image, ip):
    """Return the program's place after an int3 with the registers at @image. Until the
    pre-handlers and the fault handler have run, the @ip in the image is one byte behind
    the probed address, but the program is at that address."""
    hit = sites.hit_with(image)
    if hit is None:
        return ip - 1 if sites.at(ip - 1) else ip
    before = constant("HIT_PRE"), constant("HIT_FAULT")
    site = sites.site_of_hit(hit)
    if site and hit.inside("is", "hit_facts").stage in before and ip == site.addr + 1:
        return site.addr
    return ip


def unwound(frame):
    """Return (CFA, start of the frame's code, the caller's registers, was the caller
    interrupted?, would gdb itself fail to find this caller?). Raises KeyError, Gone or
    Unsupported if the caller is not known."""
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
        # In the trampoline up to its label `known`, call frame information cannot
        # tell rip. The return address lies right below the image that the
        # trampoline is building.
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
    if not entry.is_signal and sites.is_generated(found["rip"]):  # a detour has called
        found = place.of(found["rip"], found)
        return cfa, entry.start, found, True, True
    return cfa, entry.start, found, entry.is_signal, False


def each(registers, is_exact=True):
    """Yield the frames, the innermost first. The last one has a note if a caller is
    expected but not known.
    """
    frame, seen = Frame(registers, is_exact), 0
    while True:
        seen += 1
        try:
            cfa, _, found, exact, _ = unwound(frame)
        except (kernel.Gone, cfi.Unsupported, KeyError) as error:
            frame.note = (
                str(error)
                if not isinstance(error, KeyError)
                else f"{error.args[0]} is not known"
            )
            yield frame
            return
        yield frame
        if not found.get("rip") or seen == FRAMES_MAX:
            return
        if found["rsp"] < frame.registers["rsp"] and not exact and cfa:
            return
        frame = Frame(found, exact)


def line_of(frame):
    """Write a frame as a line of text."""
    name = kernel.symbol_at(frame.block)
    if not frame.is_exact and "+" in name:
        base, _, offset = name.rpartition("+")
        name = f"{base}+{int(offset, 16) + 1:#x}"
    if frame.pc >= fields.REACH_START and sites.is_generated(frame.pc):
        cell = sites.cell_at(frame.pc) or sites.pad_at(frame.pc)
        return f"{frame.pc:#x} <code of the probe at {kernel.symbol_at(cell.site.addr)}>"
    return f"{frame.pc:#x} {name}{kernel.line_at(frame.block)}"
