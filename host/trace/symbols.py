"""symbols.py - names of addresses, as the guest has them (kernel/debug/ksyms.c)."""

import bisect
import functools
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "kernel", "debug"))
import elf64  # noqa: E402
import gen_ksyms  # noqa: E402


class Symbols:
    """Of an ELF file."""

    def __init__(self, elf):
        loaded = list(elf64.load(elf).symbols())
        self.entries = gen_ksyms.entries_make(loaded)
        self.starts = [entry.start for entry in self.entries]
        self.objects = {s.name: s.value for s in loaded}
        self.find = functools.lru_cache(1 << 16)(self._find)

    def _find(self, address):
        """(name, offset, size), or None."""
        i = bisect.bisect_right(self.starts, address) - 1
        if i < 0:
            return None
        while i != gen_ksyms.NONE:
            entry = self.entries[i]
            if address - entry.start < entry.size:
                return entry.name, address - entry.start, entry.size
            i = entry.outer
        return None

    def at(self, address):
        """vfs_read+0x4/0x90, or the number."""
        found = self.find(address)
        return "%s+%#x/%#x" % found if found else f"{address:#x}"

    def name_at(self, address):
        """vfs_read, or the number."""
        found = self.find(address)
        return found[0] if found else f"{address:#x}"

    def kallsyms(self):
        """As /proc/kallsyms has them."""
        return "".join(f"{e.start:016x} {e.type} {e.name}\n" for e in self.entries)
