"""symbols.py - finds the names of addresses, as the guest does (kernel/debug/ksyms.c)."""

import bisect
import functools
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../../.."))
sys.path.insert(0, os.path.join(ROOT, "kernel", "debug"))
import elf64
import gen_ksyms


MODULE_SYMBOL = re.compile(r"^([0-9a-f]{16}) +(\w+) (\w) (\S+)\t\[(\S+)\]$", re.M)


class Symbols:
    """The symbols of an ELF file, and of modules of a guest that runs it."""

    def __init__(self, elf):
        self.elf = elf
        loaded = list(elf64.load(elf).symbols())
        self.entries = gen_ksyms.entries_make(loaded)
        self.starts = [entry.start for entry in self.entries]
        self.image = len(self.entries)  # behind them are those of modules
        self.rows = set()  # of modules: (start, -size, name, type, module)
        self.modules = {}  # entry: " [module]", which is printed behind its name
        self.objects = {s.name: s.value for s in loaded}
        self.find = functools.lru_cache(1 << 16)(self._find)

    def add_modules(self, listed):
        """Add the symbols that the guest's `module symbols` has listed."""
        for start, size, kind, name, module in MODULE_SYMBOL.findall(listed):
            row = int(start, 16), -int(size, 16), name, kind, module
            self.rows.add(row)
        del self.entries[self.image :]
        around = []
        for start, less, name, kind, module in sorted(self.rows):
            while around and sum(self.entries[around[-1]][:2]) <= start:
                around.pop()
            outer = around[-1] if around else gen_ksyms.NONE
            entry = gen_ksyms.Entry(start, -less, name, kind, outer)
            self.modules[entry] = f" [{module}]"
            around += [len(self.entries)]
            self.entries.append(entry)
        self.starts = [entry.start for entry in self.entries]
        self.find.cache_clear()

    def _find(self, address):
        """Return (name, offset, size, module), or None."""
        i = bisect.bisect_right(self.starts, address) - 1
        if i < 0:
            return None
        while i != gen_ksyms.NONE:
            entry = self.entries[i]
            if address - entry.start < entry.size:
                module = self.modules.get(entry, "")
                return entry.name, address - entry.start, entry.size, module
            i = entry.outer
        return None

    def at(self, address):
        """Return "vfs_read+0x4/0x90", with " [reads]" for a symbol of a module; for an
        address without a symbol the number.
        """
        found = self.find(address)
        return "%s+%#x/%#x%s" % found if found else f"{address:#x}"

    def place_at(self, address):
        """Return the text of at(), also of the end of a function that is no other's start."""
        return self.at(address) if self.find(address) else self.caller_at(address)

    def caller_at(self, address):
        """Return the text of at() for a return address. The end of a function, behind a call
        that does not return, is its own.
        """
        found, last = self.find(address), self.find(address - 1)
        if found and found[1] or not last:
            return self.at(address)
        return "%s+%#x/%#x%s" % (last[0], last[2], *last[2:])

    def name_at(self, address):
        """Return the text of at() without the offset and the size."""
        found = self.find(address)
        return found[0] + found[3] if found else f"{address:#x}"

    def kallsyms(self):
        """Return all symbols as /proc/kallsyms shows them."""
        return "".join(f"{e.start:016x} {e.type} {e.name}\n" for e in self.entries)
