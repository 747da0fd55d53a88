"""place.py - where in the program a CPU in generated code is, and with which registers.

What original_address() of probes/port/report.c and copy_original() of probes/core/copy.c say
of an ip, and the stack and the registers besides. The program is at the probed instruction
until its copy has been run, and behind it from then on.
"""

import struct

from sonde_gdb import cfi, fields, kernel, shadow, sites
from sonde_gdb.kernel import View, constant

PUSH_AX = 0x50
CALL_LEN = 5
HOLE_LEN = 4  # of struct plat_pattern


def of(ip, registers):
    """The registers, with rip, that the program has. @ip: in a cell, or on a pad. None: it is
    in neither, or the engine has just taken it away."""
    cell = sites.cell_at(ip)
    if not cell:
        cell = sites.pad_at(ip)
        return cell and at_start(cell.site, registers)
    return in_cell(cell, ip, registers)


def at_start(site, registers):
    """On the way to the detour. The jump of a direct call has pushed its return address."""
    above = 8 if sites.is_call(site) else 0
    return dict(registers, rip=site.addr, rsp=registers["rsp"] + above)


def in_cell(cell, ip, registers):
    site = cell.site
    if is_of_region(cell):
        return dict(registers, rip=in_region(sites.region(site), cell.off))
    if sites.jump_of(site).specialized and cell.holds(sites.detour(site)):
        pattern = pattern_of(cell)
        if cell.off < sites.jump_of(site).copy_off:
            return in_pattern(pattern, cell, registers)
    elif is_return_detour(cell):
        return in_return_detour(cell, registers)
    copy = copy_start(cell)
    if sites.is_call(site):
        if ip < copy:
            return at_start(site, registers)
        return dict(registers, rip=sites.call_target(site))
    if ip > copy:
        return dict(registers, rip=site.addr + site.len)
    return before_copy(site, ip, copy, registers)


def before_copy(site, ip, copy, registers):
    """A detour that counts may have pushed rax meanwhile."""
    registers = dict(registers, rip=site.addr)
    start = sites.detour(site)
    counts = sites.jump_of(site).kind == constant("DETOUR_COUNT")
    if counts and start < ip < copy and kernel.read(start, 1)[0] == PUSH_AX:
        registers["rax"] = kernel.word(registers["rsp"])
        registers["rsp"] += 8
    return registers


def copy_start(cell):
    """Where the copy of the instruction begins."""
    site = cell.site
    if site.way != constant("WAY_EMULATE"):
        if cell.start == site.step_slot:
            return cell.start
        if cell.holds(site.boost_slot):
            return site.boost_slot
    if site.is_sti and cell.start == sites.sti_pair(site).slot:
        return cell.start
    return cell.start + sites.jump_of(site).copy_off


# ---- regions ----


def is_of_region(cell):
    region = sites.region(cell.site)
    return region is not None and region.cell == cell.start


def in_region(region, off):
    """As region_original()."""
    reached = [i for i in range(region.count + 1) if region.copies[i] <= off]
    last = reached[-1] if reached else 0
    return region.addr + (region.starts[last] if last < region.count else region.len)


# ---- code of a site's own ----


def patterns():
    """Each struct plat_pattern, with its code."""
    for name in fields.PATTERNS:
        pattern = View("plat_pattern", kernel.address(name))
        yield pattern, kernel.read(pattern.code, pattern.len)


def pattern_of(cell):
    """What the code there was made of: the pattern that it is most like. Holes differ."""
    code = kernel.read(cell.start, cell.length)
    entry = sites.detour(cell.site) - cell.start
    found = [(sum(a == b for a, b in zip(code, text)), pattern)
             for pattern, text in patterns() if pattern.entry == entry]  # fmt: skip
    if not found:
        raise kernel.Gone(f"no pattern begins {entry} bytes into a cell")
    return max(found, key=lambda each: each[0])[1]


def place_in(pattern, cell):
    """Where the pattern has what the cell has there. A body that stands in the place of the
    call of the handler moves all that is behind it; the stack is the same all through it.
    """
    grown = sites.jump_of(cell.site).copy_off - pattern.len
    call = handler_call(pattern)
    if not grown or cell.off <= call:
        return pattern.code + cell.off
    return pattern.code + max(cell.off - grown, call)


def handler_call(pattern):
    """Offset of the call of the handler."""
    data = kernel.read(pattern.holes, HOLE_LEN * pattern.hole_count)
    for end, what in struct.iter_unpack("<HH", data):
        if what == constant("PLAT_HOLE_HANDLER"):
            return end - CALL_LEN
    raise kernel.Gone("a pattern calls no handler")


def in_pattern(pattern, cell, registers):
    """Its stack is known where the pattern lies."""
    at = place_in(pattern, cell)
    entry = cfi.find(at)
    if not entry:
        raise kernel.Gone("no frame of a pattern is known")
    row = cfi.row_at(entry, at)
    _, _, found = cfi.caller(entry, row, registers)
    return at_start(cell.site, found)


# ---- a function that is called in its caller's place ----


def is_return_detour(cell):
    """call detour_return | call the copy | jmp kretprobe_trampoline | jmp to the copy"""
    site = cell.site
    point = cell.start + fields.RETURN_POINT_OFF
    return not cell.holds(site.boost_slot) \
        and sites.jump_target(point) == kernel.address("kretprobe_trampoline")  # fmt: skip


def in_return_detour(cell, registers):
    """Between the second call and the return point no return address is on the stack."""
    if cell.off not in (fields.RETURN_POINT_OFF - CALL_LEN, fields.RETURN_POINT_OFF):
        return at_start(cell.site, registers)
    ret = shadow.real_return_above(registers["rsp"] - 8)
    if ret is None:
        raise kernel.Gone("the shadow has no return address of a function that returns")
    return dict(registers, rip=ret)
