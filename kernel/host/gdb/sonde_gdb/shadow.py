"""shadow.py - finds the real return addresses where return probes have exchanged them."""

from sonde_gdb import fields, kernel, sites, threads
from sonde_gdb.kernel import View


@kernel.until_it_runs
def all_of_them():
    """Return each struct shadow: of the threads, and of the stacks of NMIs."""
    found = [thread.probe for thread in threads.each()]
    found += [cpu.inside("plat", "plat_cpu").nmi_shadow for cpu in sites.cpus()]
    return [View("shadow", pointer) for pointer in found if pointer]


def is_exchanged(ret):
    """Has a return probe put the return address @ret there? If so, @ret is the trampoline
    or a return point.
    """
    trampoline = kernel.address("kretprobe_trampoline")
    if ret == trampoline:
        return True
    cell = sites.cell_at(ret) if ret >= fields.REACH_START else None
    return (
        cell is not None
        and cell.off == fields.RETURN_POINT_OFF
        and sites.jump_target(ret) == trampoline
    )


def _entries(slot):
    """Return (how many bytes @slot is below the top of its stack, the entries of that
    stack's shadow, the latest first).
    """
    size = kernel.layout("shadow_entry").size
    for shadow in all_of_them():
        if 0 < shadow.top - slot <= shadow.len:
            first = shadow.at("entries")
            latest = range(shadow.last, first, -size)
            return shadow.top - slot, (View("shadow_entry", at) for at in latest)
    return 0, ()


def _real(entry):
    return kernel.address("kretprobe_trampoline") + entry.ret & kernel.MASK


def real_return(slot):
    """Return the real return address for the word at @slot, which holds an exchanged one;
    None: no shadow has it.
    """
    below, entries = _entries(slot)
    return next((_real(entry) for entry in entries if entry.below == below), None)


def real_return_above(sp):
    """Return the real return address for the innermost exchanged word at or above @sp;
    None: no shadow has one.
    """
    below, entries = _entries(sp)
    return next((_real(e) for e in entries if 0 < e.below <= below), None)
