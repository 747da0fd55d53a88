#!/usr/bin/env python3
"""test_hidden.py - tests `probe hide`: what the host makes the guest do is no hit of the
console's probes, but a miss, while all other threads are counted.
"""

import json
import sys

sys.dont_write_bytecode = True
import tap
from session import typed
from sonde import Guest

PLACES = (
    "memcpy",
    "serial_read",
    "shell_printf",
    "wake_all",
    "kmalloc",
    "paging_flush_local",
    "vfs_read",
)
CALLS = 720  # of vfs_read, by `run vfs`


def rows(guest, name):
    """{place: (hits, misses)} of a set."""
    lines = guest.request(f"probe list {name}").text.splitlines()[1:]
    return {line.split()[6]: tuple(map(int, line.split()[4:6])) for line in lines}


def work(guest):
    """What a page makes its guest do. A workload has threads of its own, which count."""
    for command in (
        "cat /proc/version",
        "cat /proc/cpuinfo",
        "probe explain vfs_write",
        "probe listing vfs_write",
        "probe list",
        "probe add vfs_open short",
        "probe del short",
        "ps",
    ):
        guest.request(command)
    name = guest.request("probe all vfs_write").text.partition(":")[0]
    guest.request(f"probe del {name}")


def what_is_hidden(guest, how):
    guest.request(f"echo {int(how == 'jumps')} > /proc/sys/debug/kprobes-optimization")
    names = [guest.request(f"probe add {place}").text.split()[0] for place in PLACES]
    guest.request("probe add --if 'count > 0' vfs_read some")

    def told():
        return {name: rows(guest, name) for name in (*names, "some")}

    before = told()
    work(guest)
    after = told()
    moved = {
        place
        for name in after
        for place, (hits, _) in after[name].items()
        if hits != before[name][place][0]
    }
    tap.equal(moved, set(), f"{how}: no count moves by what the host asks for")
    missed = [min(m for _, m in after[name].values()) for name in names]
    tap.check(all(missed), f"{how}: it is missed: {missed}")
    typed(guest, "run vfs")
    after = told()
    tap.equal(after["some"]["vfs_read+0x0"][0], CALLS, f"{how}: others are counted")
    listed = guest.request("probe list some").text
    tap.check(f"taken={CALLS}" in listed, f"{how}: by conditions, too")
    rows_of = guest.request("probe listing vfs_read").text.splitlines()[1:]
    of_some = next(p for p in json.loads(rows_of[0])["probes"] if p["name"] == "some")
    tap.equal(of_some["hits"], CALLS, f"{how}: and in a listing")
    tap.check(of_some["missed"][-1] > 0, f"{how}: which tells both")
    guest.request("probe del all")


def text_that_goes():
    """A kprobe whose text has gone keeps its counts, with what hidden threads did."""
    with Guest(smp=2) as guest:
        guest.request("probe hide")
        its_counts_stay(guest)


def its_counts_stay(guest):
    guest.request("module load /boot/reads.o")
    guest.request("probe add --if 'p > 0' reads:before_read goes")
    guest.request("run vfs")
    guest.request("cat /proc/version")
    there = guest.request("probe list goes").text.splitlines()[1].split()
    guest.request("module del reads")
    gone = guest.request("probe list goes").text.splitlines()[1].split()
    tap.check(int(there[4]) and int(there[5]), f"hits and misses: {there}")
    tap.check(gone[-2] == "[GONE]", f"its text goes: {gone}")
    tap.equal((gone[4:6], gone[-1]), (there[4:6], there[-1]), "its counts do not change")


def hidden_threads():
    with Guest(smp=2) as guest:
        guest.request("probe add vfs_read before")
        guest.request("probe hide")
        guest.request("run vfs")
        told = rows(guest, "before")["vfs_read+0x0"]
        tap.check(told[0] >= CALLS, "a probe from before counts all")
        guest.request("probe del all")
        what_is_hidden(guest, "jumps")
        what_is_hidden(guest, "breakpoints")


tap.run(hidden_threads, text_that_goes)
