"""image.py - compares the guest's memory with the image's file, and writes it to a file.

gdb's own commands of these names cannot: its compare-sections looks at the addresses to
which the boot loader loads the image, and its gcore wants the memory of a process.
"""

import os
import re

import elf64
import gdb

from sonde_gdb import commands, fields, kernel, text


def first_difference(addr, wanted, found):
    return next(addr + i for i, byte in enumerate(wanted) if found[i] != byte)


class CompareSections(commands.Command):
    """compare-sections [SECTION]: does memory have what the file of the image has?

    Text is compared as it is without probes. Pages that only the boot needs are freed
    after boot, and are left out; data is changed by the kernel."""

    def run(self, argument):
        image = kernel.image()
        wanted = [
            section
            for section in image.sections
            if section.flags & elf64.SHF_ALLOC and section.type != elf64.SHT_NOBITS
            if argument in ("", section.name)
        ]
        if not wanted:
            raise gdb.GdbError(f"no loaded section is called {argument}")
        for section in wanted:
            said = self.compare(section, image.content(section))
            end = section.addr + section.size
            print(f"Section {section.name}, range {section.addr:#x} -- {end:#x}: {said}")

    @staticmethod
    def compare(section, content):
        """Say how @content, that of the file, differs from memory."""
        freed, start = 0, None
        for at in range(0, len(content), fields.PAGE_LEN):
            here, part = section.addr + at, content[at : at + fields.PAGE_LEN]
            try:
                found = text.recovered(here, kernel.read(here, len(part)))
            except kernel.Gone:
                freed += len(part)
                continue
            if found != part and start is None:
                start = first_difference(here, part, found)
        if freed == len(content):
            return "freed after boot."
        rest = f" {freed // 1024} KiB of it are freed after boot." if freed else ""
        if start is None:
            return "matched." + rest
        why = "; the kernel writes there" if section.flags & elf64.SHF_WRITE else ""
        return f"MIS-MATCHED! from {kernel.symbol_at(start)} on{why}.{rest}"


class Gcore(commands.Command):
    """gcore [FILE]: write the machine's memory and registers to a file, which
    `gdb build/sonde.elf FILE` opens. QEMU does it, so this works at QEMU's stub.

    FILE is sonde.core if it is not given."""

    def run(self, argument):
        if not is_qemu():
            raise gdb.GdbError(
                "only QEMU can save the machine, and this stub is the kernel's own: use "
                "./sonde gdb without --stub, or dump-guest-memory of --qmp"
            )
        path = os.path.abspath(argument or "sonde.core")
        limit = gdb.parameter("remotetimeout")
        gdb.execute("set remotetimeout 600")
        try:
            quoted = re.sub(r'(["\\])', r"\\\1", path)  # as QEMU's monitor wants it
            command = f'monitor dump-guest-memory -p "{quoted}"'
            said = gdb.execute(command, to_string=True)
        finally:
            gdb.execute(f"set remotetimeout {limit}")
        if said.strip():
            raise gdb.GdbError(said.strip())
        print(f"Saved corefile {path}")


def is_qemu():
    """Is gdb at QEMU's stub? The console of the kernel has no command `info`."""
    try:
        said = gdb.execute("monitor info version", to_string=True)
    except gdb.error:
        return False
    return "unknown command info" not in said


def start():
    CompareSections("compare-sections")
    for name in ("gcore", "generate-core-file"):
        Gcore(name)
