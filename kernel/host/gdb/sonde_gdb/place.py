"""place.py - finds the program's place and registers for a CPU in generated code.

In the kernel, original_address() of probes/port/report.c and copy_original() of
probes/core/copy.c do the same for an ip; this file does it for the stack and the
registers, too. Until the copy of the probed instruction has been run, the program is at
the probed instruction. After that, the program is behind it.
"""

import struct

from sonde_gdb import cfi, fields, kernel, shadow, sites
from sonde_gdb.kernel import View, constant

PUSH_AX, PUSH_CX, PUSH_DX = 0x50, 0x51, 0x52
CALL_LEN = 5
HOLE_LEN = 4  # of struct plat_pattern


def of(ip, registers):
    """Return the registers of the program, with rip, for an @ip in a cell or on a pad.
    None: the ip is in no cell and on no pad. The engine may have freed it just now.
    """
    cell = sites.cell_at(ip)
    if not cell:
        cell = sites.pad_at(ip)
        return cell and at_start(cell.site, registers)
    return in_cell(cell, ip, registers)


def at_start(site, registers):
    """The CPU is on its way to the detour, and the program is at the probed instruction.
    At a direct call, the jump is a call itself, and has pushed a return address.
    """
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
            return at_start(site, before_copy(site, ip, copy, registers))
        return dict(registers, rip=sites.call_target(site))
    if ip > copy:
        return dict(registers, rip=site.addr + site.len)
    return before_copy(site, ip, copy, registers)


def before_copy(site, ip, copy, registers):
    """The CPU has not executed the copy yet. The code of a program pushes registers, so
    the program's values may be on the stack.
    """
    registers = dict(registers, rip=site.addr)
    start = sites.detour(site)
    if sites.jump_of(site).kind != constant("DETOUR_PROGRAM") or not start < ip < copy:
        return registers
    on_stack = pushed_at(kernel.read(start, copy - start), ip - start)
    for i, name in enumerate(reversed(on_stack)):
        registers[name] = kernel.word(registers["rsp"] + 8 * i)
    registers.pop(FLAGS, None)
    registers["rsp"] += 8 * len(on_stack)
    return registers


FLAGS = "status flags"  # a word on the stack with them
SAVE, RESTORE = b"\x9f\x0f\x90\xc0", b"\x04\x7f\x9e"  # insn_encode_flags_save, _restore


def pushed_at(code, at):
    """Return what the code of a detour (probes/program/program_code.c) has on the stack at
    offset @at: names of registers, in the order of their pushes.
    """
    names, ends, end = [], [], 0  # ends: where the push of each name ends

    def push(name, opcode):
        nonlocal end
        if code[end : end + 1] == bytes([opcode]):
            end += 1
            names.append(name)
            ends.append(end)

    push("rax", PUSH_AX)
    live = code[end : end + len(SAVE)] == SAVE
    end += live * len(SAVE)
    if live:
        push(FLAGS, PUSH_AX)
    push("rcx", PUSH_CX)
    push("rdx", PUSH_DX)
    place, pops = len(code), []
    for name in names:
        place -= 1
        pops.append(place)
        if name == "rax":
            place -= live * len(RESTORE)
    return [name for name, end, pop in zip(names, ends, pops) if end <= at <= pop]


def copy_start(cell):
    """Return the address of the copy of the instruction in the cell."""
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
    """Return the address in the program, as region_original() of the kernel does."""
    reached = [i for i in range(region.count + 1) if region.copies[i] <= off]
    last = reached[-1] if reached else 0
    return region.addr + (region.starts[last] if last < region.count else region.len)


# ---- specialized detours ----


def patterns():
    """Yield each struct plat_pattern with its code."""
    for name in fields.PATTERNS:
        pattern = View("plat_pattern", kernel.address(name))
        yield pattern, kernel.read(pattern.code, pattern.len)


def pattern_of(cell):
    """Return the pattern that a specialized detour was made of: the pattern with the most
    equal bytes. (The bytes in the holes differ from the pattern.)
    """
    code = kernel.read(cell.start, cell.length)
    entry = sites.detour(cell.site) - cell.start
    found = [
        (sum(a == b for a, b in zip(code, text)), pattern)
        for pattern, text in patterns()
        if pattern.entry == entry
    ]
    if not found:
        raise kernel.Gone(f"no pattern begins {entry} bytes into a cell")
    return max(found, key=lambda each: each[0])[1]


def place_in(pattern, cell):
    """Return the address in the pattern that corresponds to the cell's place. In some
    cells a piece of code replaces the call of the handler, and moves the code behind it.
    All of this piece corresponds to the call, because it does not change the stack.
    """
    grown = sites.jump_of(cell.site).copy_off - pattern.len
    call = handler_call(pattern)
    if not grown or cell.off <= call:
        return pattern.code + cell.off
    return pattern.code + max(cell.off - grown, call)


def handler_call(pattern):
    """Return the offset of the call of the handler in the pattern."""
    data = kernel.read(pattern.holes, HOLE_LEN * pattern.hole_count)
    for end, what in struct.iter_unpack("<HH", data):
        if what == constant("PLAT_HOLE_HANDLER"):
            return end - CALL_LEN
    raise kernel.Gone("a pattern calls no handler")


def in_pattern(pattern, cell, registers):
    """The stack is as in the pattern, for which there is call frame information."""
    at = place_in(pattern, cell)
    entry = cfi.find(at)
    if not entry:
        raise kernel.Gone("no frame of a pattern is known")
    row = cfi.row_at(entry, at)
    _, _, found = cfi.caller(entry, row, registers)
    return at_start(cell.site, found)


# ---- a probed function that its detour calls, for a return probe ----


def is_return_detour(cell):
    """Is the cell the detour of a return probe? Its code is:

    call detour_return | call the copy | jmp kretprobe_trampoline | jmp to the copy
    """
    site = cell.site
    point = cell.start + fields.RETURN_POINT_OFF
    return not cell.holds(site.boost_slot) and sites.jump_target(point) == kernel.address(
        "kretprobe_trampoline"
    )


def in_return_detour(cell, registers):
    """At the second call and at the return point, no return address is on the stack: the
    real one is in the shadow.
    """
    if cell.off not in (fields.RETURN_POINT_OFF - CALL_LEN, fields.RETURN_POINT_OFF):
        return at_start(cell.site, registers)
    ret = shadow.real_return_above(registers["rsp"] - 8)
    if ret is None:
        raise kernel.Gone("the shadow has no return address of a function that returns")
    return dict(registers, rip=ret)
