"""debugger.py - a debugger that comes and goes at the kernel's own stub during the rounds.

Each time it stops the kernel, sets some breakpoints and watchpoints at random, takes
stops, looks at threads, registers and memory, steps, asks `monitor` commands, and takes
all of it back. It may have breakpoints only while the round is open (stress.c): it writes
`in` before it sets the first one, and clears `in` after the last one has gone.
"""

import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from probes.gdb.host import rsp

SHARE = "stress_debugger"  # two bytes: open, in
PLACES = ["clock_ns", "kmalloc", "schedule", "registry_find", "text_batch_write"]
COMMANDS = (
    "probe list",
    "cpus",
    "probe explain stress_plain",
    "ps",
    "film",
    "nosuch",
)
LIMIT = rsp.LIMIT
END = 10  # seconds from the end of COM2 until the guest is known to be off
TARGETS = pathlib.Path(__file__).with_name("targets.asm")


class Debugger:
    """Use with `with`. Afterwards `failure` says what went wrong, or is None."""

    def __init__(self, path, elf, seed, begun):
        self.path, self.random, self.begun = path, random.Random(seed), begun
        self.failure, self.last = None, "nothing"
        self.counts = dict.fromkeys(("stops", "steps", "breaks", "refused"), 0)
        lines = subprocess.check_output(["nm", elf], text=True).splitlines()
        self.symbols = {line.split()[-1]: int(line.split()[0], 16) for line in lines}
        routines = re.findall(r"^proc (stress_\w+)", TARGETS.read_text(), re.M)
        self.places = sorted([*PLACES, *routines])
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.begun.set()
        self.thread.join(LIMIT)
        if self.thread.is_alive():
            self.failure = "the debugger: no end"

    def _run(self):
        try:
            self.begun.wait()  # earlier, the guest would lose packets
            self.client = rsp.Client(self.path)
            attached = False
            while not self.over.is_set():
                attached = self._visit(attached)
                time.sleep(self.random.uniform(0, 0.2))
        except Exception as error:
            if isinstance(error, ConnectionError) and self.over.wait(END):
                return  # the guest is off
            what = f"{type(error).__name__} {error}"
            self.failure = f"the debugger: {what}, {time.ctime()}, after {self.last}"

    # ---- packets ----

    def _answer(self, timeout=LIMIT):
        """The next packet that is no text of the console."""
        packet = self.client.stopped(timeout)[1]
        if packet[:1] == "W":
            raise ConnectionError("the kernel has ended")
        return packet

    def _ask(self, data):
        self.last = data
        self.client.send(rsp.frame(data.encode("latin-1")))
        return self._answer()

    def _stop(self):
        self.last += ", Ctrl-C"
        self.client.send(b"\x03")
        return self._answer()

    def _go(self, actions="c"):
        self.last = actions
        self.client.resume(actions)

    def _share(self, offset, value=None):
        at = self.symbols[SHARE] + offset
        if value is None:
            return int(self._ask(f"m{at:x},1"), 16)
        return self._ask(f"M{at:x},1:{value:02x}")

    # ---- a visit ----

    def _visit(self, attached):
        """Come, debug for a while if the round is open, and go. Return: still attached?"""
        if attached:
            self._stop()
        else:
            self._ask("qSupported:swbreak+;hwbreak+;vContSupported+")  # stops it, too
        if self._share(0):
            self._share(1, 1)
            points = [self._point() for _ in range(self.random.randint(1, 4))]
            self._debug()
            for point in points:
                self._ask("z" + point)
            self._share(1, 0)
        if self.random.random() < 0.1:
            self._ask("D")
            return False
        self._go()
        return True

    def _point(self):
        """Set a breakpoint of any kind, or a watchpoint. Return its words."""
        at = self.symbols[self.random.choice(self.places)]
        kind = self.random.choice((0, 0, 0, 0, 1, 2, 3, 4))
        if kind in (0, 1):
            at += self.random.choice((0, 0, 1, 4, 7))  # often in an instruction: refused
        point = f"{kind},{at:x},{1 if kind < 2 else 8}"
        answer = self._ask("Z" + point)
        self.counts["breaks" if answer == "OK" else "refused"] += 1
        return point

    def _debug(self):
        """Let the kernel run, and do things at its stops, for a moment."""
        end = time.monotonic() + self.random.uniform(0.05, 0.5)
        self._go()
        while time.monotonic() < end:
            try:
                stop = self._answer(0.1)
            except TimeoutError:
                continue
            self._at_stop(stop)
            self._go()
        self._stop()
        self.counts["stops"] += 1

    def _at_stop(self, stop):
        self.counts["stops"] += 1
        thread = rsp.fields(stop)["thread"]
        for _ in range(self.random.randint(0, 3)):
            what = self.random.randrange(6)
            if what < 2:
                self._go(f"s:{thread}" + ";c" * what)  # 0: it runs alone
                stop = self._answer()
                self.counts["steps" if stop[0] == "T" else "refused"] += 1
                thread = rsp.fields(stop).get("thread", thread)
            elif what == 2:
                self._ask("g")
            elif what == 3:
                self._ask("qXfer:threads:read::0,4000")
            elif what == 4:
                self._ask(f"m{self.symbols[self.random.choice(self.places)]:x},40")
            else:
                self._ask("qRcmd," + self.random.choice(COMMANDS).encode().hex())
