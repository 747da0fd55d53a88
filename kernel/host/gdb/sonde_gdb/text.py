"""text.py - shows the program's text without what probes have written into it.

gdb's disassembler shows this original text, unless `set sonde show-original off` is
typed. If an instruction leads to code that the engine has made, the disassembler names
that code. Memory that is examined as bytes (x/xb) is always shown as the CPUs see it.
"""

import re

import gdb

from sonde_gdb import fields, kernel, sites
from sonde_gdb.kernel import View, constant

try:
    import gdb.disassembler as disassembler
except ImportError:  # before gdb 13
    disassembler = None

INSN_MAX_LEN = 15


def original_bytes(site):
    """Return the original bytes at @site, for all bytes that the engine may have changed.
    They are right also while a thread is changing the text there."""
    length = sites.jump_of(site).jump_len if sites.is_jump(site) else 0
    text = bytearray(site.bytes[: max(site.len, length)])
    region = sites.region(site)
    if region and region.is_open:
        text[: region.len] = region.bytes[: region.len]
    return bytes(text)


@kernel.until_it_runs
def originals():
    """Return {address: original byte} of all text that probes may have changed."""
    found = {}
    for addr, site in sites.by_address().items():
        for i, byte in enumerate(original_bytes(site)):
            found[addr + i] = byte
    return found


def recovered(addr, data):
    """Return the bytes @data of memory at @addr as they would be without probes."""
    changed = originals()
    return bytes(
        changed.get((addr + i) & kernel.MASK, byte) for i, byte in enumerate(data)
    )


def changer():
    """Return the name of the thread that is changing text now; None: no thread is."""
    size = kernel.layout("mutex").size
    lock = kernel.address("locks") + constant("PLAT_TEXT") * size
    owner = View("mutex", lock).owner
    if not owner:
        return None
    return View("thread", owner).name.partition(b"\0")[0].decode("utf-8", "replace")


# ---- the disassembler ----

if disassembler:

    class OriginalMemory(disassembler.DisassembleInfo):
        def read_memory(self, length, offset=0):
            data = bytes(super().read_memory(length, offset))
            try:
                return recovered(self.address + offset, data)
            except kernel.Gone:
                return data

    class Text(disassembler.Disassembler):
        def __init__(self, is_original):
            super().__init__("sonde")
            self.memory = OriginalMemory if is_original else disassembler.DisassembleInfo

        def __call__(self, info):
            if info.address % 2**64 < fields.REACH_START or not kernel.is_known():
                return None
            found = disassembler.builtin_disassemble(self.memory(info))
            name = name_of_target(found.string)
            if not name:
                return found
            return disassembler.DisassemblerResult(found.length, f"{found.string} {name}")


UNNAMED = re.compile(r"(?:call|j[a-z]+) +(0x[0-9a-f]+)$")


def name_of_target(text):
    """Return a name for the target of a jump or call if the engine has made the code
    there. None: it has not; gdb itself has named other targets.
    """
    match = UNNAMED.match(text)
    if not match:
        return None
    addr = int(match[1], 16)
    try:
        if not sites.is_generated(addr):
            return None
        cell = sites.cell_at(addr)
        site = (cell or sites.pad_at(addr)).site
    except kernel.Gone:
        return None
    place = kernel.symbol_at(site.addr)
    return f"<cell of {place}, +{cell.off}>" if cell else f"<pad of {place}>"


class ShowOriginal(gdb.Parameter):
    """Whether x/i and disassemble show the program's text as it is without probes."""

    set_doc = (
        "Set whether x/i and disassemble show text without what probes wrote into it."
    )
    show_doc = (
        "Show whether x/i and disassemble show text without what probes wrote into it."
    )

    def __init__(self):
        super().__init__("sonde show-original", gdb.COMMAND_DATA, gdb.PARAM_BOOLEAN)
        self.value = disassembler is not None
        self.apply()

    def apply(self):
        if disassembler:
            disassembler.register_disassembler(Text(self.value))

    def get_set_string(self):
        if self.value and not disassembler:
            self.value = False
            raise gdb.GdbError("this gdb has no disassembler hook; gdb 13 has")
        self.apply()
        return ""

    def get_show_string(self, svalue):
        return f"x/i and disassemble show {'original' if self.value else 'changed'} text."


def start():
    return ShowOriginal()
