"""test_bochs.py - runs the kernel in Bochs, which is as strict as hardware in places
where QEMU's TCG accepts errors.

For example, Bochs faults when it sets the accessed bit of a descriptor in a read-only
page, and it keeps the entries of a local APIC masked while the APIC is disabled. The CPUs
of Bochs are slow, so the guest does little: it starts all CPUs, and a probe is hit.
"""

import os
import pty
import re
import select
import subprocess
import tempfile
import time
import tty

import tap
from sonde.guest import ISO, PROMPT
from session import CSI

CPUS = 4
LIMIT = 300  # seconds; the prompt comes after about 20 s

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

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="sonde-bochs-")
        self.log = os.path.join(self.folder.name, "log")
        self.com1, line = pty.openpty()
        tty.setraw(line)
        self.text = b""
        config = os.path.join(self.folder.name, "config")
        with open(config, "w") as file:
            com1 = os.ttyname(line)
            file.write(CONFIG.format(cpus=CPUS, iso=ISO, com1=com1, log=self.log))
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

    def expect(self, what):
        """Wait for @what on COM1. Return the text in front of it; None: none came."""
        end = time.monotonic() + LIMIT
        while what not in self.text:
            if time.monotonic() > end or self.process.poll() is not None:
                tap.note(self.text.decode(errors="replace"))
                self.tell_end()
                return None
            if select.select([self.com1], [], [], 1)[0]:
                self.text += CSI.sub(b"", os.read(self.com1, 4096))
        found, self.text = self.text.split(what, 1)
        return found.decode(errors="replace")

    def tell_end(self):
        """Print the end of Bochs's log, which names for example a fatal exception."""
        with open(self.log, errors="replace") as file:
            for line in file.readlines()[-40:]:
                tap.note(line.rstrip())

    def type(self, command):
        os.write(self.com1, command.encode() + b"\r")
        self.expect(b"\n")  # the echo
        return self.expect(PROMPT) or ""


def all_cpus_start_where_nothing_is_forgiven():
    with Bochs() as bochs:
        log = bochs.expect(PROMPT)
        tap.check(log is not None, "the prompt")
        tap.check(f"smp: {CPUS} CPUs online" in (log or ""), f"{CPUS} CPUs are online")
        if not log:
            return
        bochs.type("probe add memcpy")
        bochs.type("run format")
        hits = re.search(r"(\d+) +0 +memcpy", bochs.type("probe list"))
        tap.check(hits and int(hits[1]) > 0, "a probe is hit")


tap.run(all_cpus_start_where_nothing_is_forgiven)
