"""test_module_text.py - probes all of a module with 190,000 instructions: of 10,000
instructions at least 9,999 must become jumps. The test also measures how long a small
module takes to be loaded and unloaded, without these probes and beside them.

The text of the module is that of bench (probes/bench/host/gen_text.py): a copy of each
function of the image, under another name. No code calls these copies.
"""

import os
import re
import statistics
import time

import tap
from sonde.guest import BUILD, Guest, Setup

LIMIT = 600
ROUNDS = 9
TEXT = os.path.join(BUILD, "bench", "text.o")


def ask(guest, command):
    return guest.request(command, LIMIT).text


def milliseconds(guest, command):
    begun = time.monotonic()
    ask(guest, command)
    return (time.monotonic() - begun) * 1000


def walks(guest):
    """Return the hits of the probe on registry_for_each, which walks over all sites."""
    return int(re.search(r"(\d+) +\d+ +registry_for_each", ask(guest, "probe list"))[1])


def tell_times(guest, name):
    """Print the times to load and to unload, minus the time of an empty command."""
    commands = ("echo", "module load /boot/reads.o", "module del reads")
    probe = ask(guest, "probe add registry_for_each").split()[0]
    rounds = [
        [milliseconds(guest, command) for command in commands] for _ in range(ROUNDS)
    ]
    tap.equal(walks(guest), 0, f"{name}: no walk over all sites")
    ask(guest, f"probe del {probe}")
    nothing, load, unload = (statistics.median(column) for column in zip(*rounds))
    tap.note(
        f"{name}: {load - nothing:.1f} ms to load, {unload - nothing:.1f} ms to unload"
    )


def most_instructions_become_jumps(guest):
    ask(guest, "module load /boot/text.o")
    armed = re.search(r"armed (\d+) of (\d+)", ask(guest, "probe all bench_text_*"))
    jumps = re.search(r"^jumps (\d+) of", ask(guest, "probe stat"), re.M)
    share = 100 * int(jumps[1]) / int(armed[1])
    tap.check(int(armed[1]) > 130000, f"{armed[1]} of {armed[2]} instructions are armed")
    tap.check(share >= 99.99, f"{jumps[1]} of them are jumps, {share:.4f} %")


def a_large_module():
    words = f"-fw_cfg name=opt/sonde/module/text.o,file={TEXT}"
    with Guest(Setup(qemu=words)) as guest:
        guest.wait_prompt(LIMIT)
        tell_times(guest, "0 probes")
        most_instructions_become_jumps(guest)
        tell_times(guest, "190,000 probes")
        tap.note(f"{milliseconds(guest, 'module del text'):.0f} ms to unload all of that")
        left = re.search(r"^sites (\d+)$", ask(guest, "probe stat"), re.M)
        tap.equal(int(left[1]), 0, "it goes with all of its probes")


tap.run(a_large_module)
