"""bochs.py - a guest in Bochs, which is as strict as hardware in places where QEMU's TCG
accepts errors.

For example, Bochs faults when it sets the accessed bit of a descriptor in a read-only
page, and it keeps the entries of a local APIC masked while the APIC is disabled. Its CPUs
run one after the other, a few instructions at a time, and take all they have been sent
between any two of them. They are slow: some millions of instructions a second.
"""

import os
import pty
import re
import select
import subprocess
import tempfile
import time
import tty

CSI = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")

CONFIG = """
display_library: rfb, options="timeout=0"
megs: 256
cpu: model=corei7_haswell_4770, count={cpus}, ips=50000000, reset_on_triple_fault=0
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path={iso}, status=inserted
boot: cdrom
com1: enabled=1, mode=term, dev={com1}
log: {log}
panic: action=fatal
error: action=ignore
info: action=ignore
"""


class Bochs:
    """A running Bochs. A pseudo-terminal is its COM1. Use with `with`."""

    def __init__(self, iso, cpus):
        self.folder = tempfile.TemporaryDirectory(prefix="sonde-bochs-")
        self.log = os.path.join(self.folder.name, "log")
        self.com1, line = pty.openpty()
        tty.setraw(line)
        self.text = b""
        config = os.path.join(self.folder.name, "config")
        with open(config, "w") as file:
            com1 = os.ttyname(line)
            file.write(CONFIG.format(cpus=cpus, iso=iso, com1=com1, log=self.log))
        self.process = subprocess.Popen(
            ["bochs", "-q", "-f", config],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.process.stdin.write(b"continue\n")  # Debian's Bochs begins in its debugger
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def expect(self, what, limit):
        """Wait for @what on COM1. Return the text in front of it; None: none came within
        @limit seconds."""
        end = time.monotonic() + limit
        while what not in self.text:
            if time.monotonic() > end or self.process.poll() is not None:
                return None
            if select.select([self.com1], [], [], 1)[0]:
                self.text += CSI.sub(b"", os.read(self.com1, 4096))
        found, self.text = self.text.split(what, 1)
        return found.decode(errors="replace")

    def type(self, text):
        os.write(self.com1, text.encode() + b"\r")

    def last_lines(self):
        """What it has printed last, and the end of Bochs's log, which names for example a
        fatal exception."""
        with open(self.log, errors="replace") as file:
            log = [line.rstrip() for line in file.readlines()[-40:]]
        return self.text.decode(errors="replace").splitlines() + log


GRUB = """
set timeout=0
menuentry "sonde" {{
    multiboot2 /boot/sonde.elf {words}
}}
"""


def make_iso(folder, elf, words):
    """Make an image in @folder that boots @elf with the boot arguments @words."""
    boot = os.path.join(folder, "iso", "boot")
    iso = os.path.join(folder, "sonde.iso")
    os.makedirs(os.path.join(boot, "grub"))
    subprocess.run(
        ["objcopy", "--strip-all", elf, os.path.join(boot, "sonde.elf")], check=True
    )
    with open(os.path.join(boot, "grub", "grub.cfg"), "w") as file:
        file.write(GRUB.format(words=words))
    subprocess.run(
        [
            "grub-mkrescue",
            "--locales=",
            "--fonts=",
            "--themes=",
            "-o",
            iso,
            folder + "/iso",
        ],
        check=True,
        capture_output=True,
    )
    return iso
