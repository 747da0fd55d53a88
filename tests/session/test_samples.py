#!/usr/bin/env python3
"""test_samples.py - docs/samples: each is built, loaded, hit and unloaded."""

import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(os.path.dirname(HERE))]
import tap  # noqa: E402
from guest import ROOT, Guest, Setup  # noqa: E402
from kernel.module import send as modules  # noqa: E402

SAMPLES = os.path.join(ROOT, "docs", "samples")
LIMIT = 60

# What its workload prints behind `run vfs`: numbers that have to be above 0 in brackets.
PRINTS = {
    "reads": r"(\d+) reads of (\d+) bytes, 0 missed",
    "times": r"(\d+) opened, (\d+) failed, (\d+) ns each, (\d+) ns at most",
    "names": r"(\d+) opened, (\d+) of them below /tmp",
    "guarded": r"sum (110)",
}


def ask(guest, command):
    return guest.machine.request(command, LIMIT)


def a_sample(guest, name):
    modules.load(guest.machine, os.path.join(SAMPLES, name + ".c"), LIMIT)
    ask(guest, "run vfs")
    ask(guest, "cat /nothing/there")
    text = ask(guest, f"run {name}").text
    found = re.search(PRINTS[name], text)
    if not tap.check(found and all(int(n) for n in found.groups()), f"{name}: is hit"):
        tap.note(text)
    tap.equal(ask(guest, f"module del {name}").errno, 0, f"{name}: goes")
    tap.equal(ask(guest, f"run {name}").name, "ENOENT", f"{name}: is gone")


def the_blacklist_of_a_sample(guest):
    modules.load(guest.machine, os.path.join(SAMPLES, "guarded.c"), LIMIT)
    names = {"count": "OK", "add": "EPERM", "add_twice": "EPERM"}
    for name, answer in names.items():
        reply = ask(guest, f"probe add guarded:{name}")
        tap.equal(reply.name, answer, f"guarded:{name}: {answer}")
    tap.equal(ask(guest, "module del guarded").errno, 0, "it goes with a probe on it")
    tap.check("guarded:count [GONE]" in ask(guest, "probe list").text, "which is gone")


def every_sample_works():
    names = sorted(os.path.splitext(name)[0] for name in os.listdir(SAMPLES))
    tap.equal(names, sorted(PRINTS), "every sample is tried")
    with Guest(Setup()) as guest:
        guest.wait_prompt(LIMIT)
        for name in names:
            a_sample(guest, name)
        the_blacklist_of_a_sample(guest)


def object_of(name):
    return modules.compiled(os.path.join(SAMPLES, name + ".c"))


def at_boot(**given):
    """One of them, brought along by the loader and loaded before the prompt."""
    with Guest(Setup(**given)) as guest:
        guest.wait_prompt(LIMIT)
        return ask(guest, "module list").text + ask(guest, "ls /boot").text


def modules_come_with_the_kernel():
    reads, times = object_of("reads"), object_of("times")
    files = "".join(f" -fw_cfg name=opt/sonde/module/{os.path.basename(path)},file={path}"
                    for path in (reads, times))  # fmt: skip
    text = at_boot(append="modules=times,reads", qemu=files.strip())
    tap.check(re.fullmatch(r"times .* Live .*\nreads .* Live .*\nreads\.o\ntimes\.o\n", text),
              "fw_cfg: two, in the order of the argument")  # fmt: skip
    text = at_boot(append="modules=module0", qemu=f"-initrd {reads}")
    tap.check(re.fullmatch(r"module0 .* Live .*\nmodule0\.o\n", text), "PVH: by its list")


tap.run(every_sample_works, modules_come_with_the_kernel)
