"""hang.py - asks QEMU where the CPUs of a guest are, if the guest does not answer.

The kernel keeps frame pointers, so the callers can be followed through guest memory.
"""

import bisect
import json
import re
import subprocess

FRAMES_MAX = 12
FUNCTION_MAX = 1 << 16  # bytes; an address farther from a symbol does not belong to it


class Qmp:
    """QEMU's control protocol on a connected socket, as far as the tests need it."""

    def __init__(self, sock):
        sock.settimeout(10)
        self.file = sock.makefile("rw")
        self.file.readline()  # the greeting
        self.execute("qmp_capabilities")

    def execute(self, command, **arguments):
        request = {"execute": command, "arguments": arguments}
        self.file.write(json.dumps(request) + "\n")
        self.file.flush()
        while True:  # events come in between
            line = self.file.readline()
            if not line:
                raise ConnectionResetError("QEMU has ended")
            answer = json.loads(line)
            if "return" in answer or "error" in answer:
                return answer.get("return")

    def monitor(self, line):
        """Run a command of QEMU's monitor. Return its output."""
        return self.execute("human-monitor-command", **{"command-line": line}) or ""


class Symbols:
    """The symbols of code in an ELF file and in modules.
    @modules: what the guest's `module symbols` has listed
    """

    def __init__(self, elf, modules=""):
        done = subprocess.run(
            ["nm", "-n", elf], capture_output=True, text=True, check=False
        )
        rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
        rows = [(int(row[0], 16), row[2]) for row in rows if row[1:2] in (["t"], ["T"])]
        rows = [row for row in rows if not row[1].endswith("_end")]
        found = re.findall(r"^([0-9a-f]{16}) +\w+ [tT] (\S+)\s+\[(\S+)\]$", modules, re.M)
        rows = sorted(rows + [(int(at, 16), f"{of}:{name}") for at, name, of in found])
        self.starts = [start for start, _ in rows]
        self.names = [name for _, name in rows]

    def at(self, address):
        i = bisect.bisect_right(self.starts, address) - 1
        if i < 0 or address - self.starts[i] >= FUNCTION_MAX:
            return hex(address)
        return f"{self.names[i]}+{address - self.starts[i]:#x}"


def callers(qmp, frame):
    """The return addresses, found by the chain of frame pointers."""
    for _ in range(FRAMES_MAX):
        words = re.findall(r"0x([0-9a-f]{16})", qmp.monitor(f"x/2gx {frame:#x}"))
        if len(words) != 2 or words[1] == "0" * 16:
            return
        yield int(words[1], 16)
        if int(words[0], 16) <= frame:
            return  # the callers' frames lie above
        frame = int(words[0], 16)


def cpu_places(qmp, elf, modules=""):
    """One line of text per CPU, and one per caller."""
    symbols = Symbols(elf, modules)
    qmp.execute("stop")
    blocks = re.split(r"CPU#(\d+)\r?\n", qmp.monitor("info registers -a"))[1:]
    for cpu, registers in zip(blocks[::2], blocks[1::2]):
        rip = int(re.search(r"[RE]IP=([0-9a-f]+)", registers)[1], 16)
        frame = int(re.search(r"[RE]BP=([0-9a-f]+)", registers)[1], 16)
        halted = ", halted" if "HLT=1" in registers else ""
        yield f"CPU {cpu}: {symbols.at(rip)}{halted}"
        qmp.monitor(f"cpu {cpu}")
        for address in callers(qmp, frame):
            yield f"  {symbols.at(address - 1)}"  # inside the call instruction
