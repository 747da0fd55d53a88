"""kprobes.py - adds to gdb what it needs for sonde: backtraces that lead through probes,
program text without the changes by probes, and commands that know the kernel's
structures. `./sonde gdb` loads this file; the parts are in sonde_gdb/.

The commands that show something only read memory, so they work with QEMU's stub and on a
dump. kbreak and `trace WHERE` also set a breakpoint or a tracepoint, and back-to-probe
and `who-wrote` run a replay.
"""

import os
import sys

import gdb

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sonde_gdb import back, commands, frames, image, kernel, lines, modules, text


class Greeter:
    """Warns once if the guest runs another build than the image."""

    def __init__(self):
        self.has_complained = False
        gdb.events.stop.connect(self.stopped)

    def stopped(self, _event):
        kernel.forget()
        if not self.has_complained and kernel.guest_id() and not kernel.is_known():
            self.has_complained = True
            gdb.write(f"warning: {kernel.other_build()}\n", gdb.STDERR)


def start():
    if not any(file.lookup_global_symbol("kmain") for file in gdb.objfiles()):
        gdb.write(
            "sonde: no image: `file build/sonde.elf`, then `source` this file again\n"
        )
        return
    missing = kernel.prepare()
    if missing:
        gdb.write(
            "sonde: the image does not have what these commands know: "
            f"{', '.join(missing)}\n",
            gdb.STDERR,
        )
        return
    commands.start()
    back.start()
    image.start()
    frames.start()
    text.start()
    lines.start()
    modules.start()
    Greeter()
    for event in (
        gdb.events.cont,
        gdb.events.memory_changed,
        gdb.events.inferior_call,
        gdb.events.new_objfile,
    ):
        event.connect(kernel.forget)
    gdb.events.connection_removed.connect(kernel.forget_guest)
    gdb.write(
        "sonde: bt and x/i show the program without probes; commands: probes, explain "
        "PLACE, threads, trace, cpus ... `help sonde` has all\n"
    )


start()
