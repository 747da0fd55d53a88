#!/usr/bin/env python3
"""test_init_text.py - probes on what only boot executes: they are hit, and gone with it."""

import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(os.path.dirname(HERE))]
import tap  # noqa: E402
from guest import ROOT  # noqa: E402
from kernel.module import send as modules  # noqa: E402
from session import ask, at_prompt, sonde  # noqa: E402

# Executed in front of the argument; behind it once; side by side, once for each sample; a
# function that stays; a module's.
FILES = len(os.listdir(os.path.join(ROOT, "docs", "samples")))
PLACES = ("smp_start", "module_load_listed", "module_add_boot_file",
          "module_add_boot_file+5", "module_add_boot_file+6", "vfs_read",
          "reads:before_read")  # fmt: skip
HITS = {"smp_start": 0, "module_load_listed": 1, "module_add_boot_file": FILES,
        "module_add_boot_file+0x5": FILES, "module_add_boot_file+0x6": FILES}  # fmt: skip


def append(jump=""):
    return f"probes={','.join(PLACES)} modules=reads,times,names {jump}"


def rows(guest):
    """place: (hits, [STATE]), of `probe list`."""
    text = ask(guest, "probe list")
    found = re.findall(r"^p\d+ .* (\d+) +\d+  (\S+) *(\[[A-Z]+\])?", text, re.M)
    return {place.removesuffix("+0x0"): (int(hits), state) for hits, place, state in found}


def probes_see_boot_and_are_gone_then():
    for jump in ("", "kprobes-jump=region", "kprobes-jump=off"):
        with at_prompt(append=append(jump)) as guest:
            seen = rows(guest)
            for place, hits in HITS.items():
                tap.equal(seen.get(place), (hits, "[GONE]"), f"{jump or 'pun'}: {place}")
            tap.check(seen.get("vfs_read", (0, "?"))[1] == "", "what stays has its probe")
            tap.equal(seen.get("reads:before_read", ("", "?"))[1], "", "a module's came")
            ask(guest, "run vfs")
            again = rows(guest)
            tap.equal({p: again[p] for p in HITS}, {p: seen[p] for p in HITS},
                      "the counts of those that are gone stay")
            text = ask(guest, "cat /sys/kernel/debug/kprobes/list")
            tap.equal(text.count("[GONE]"), len(HITS), "/sys/kernel/debug/kprobes/list")
            ask(guest, "probe del all")
            tap.equal(rows(guest), {}, "and all can be taken out")


def what_is_refused_is_told():
    with at_prompt(append="probes=exc_int3,kmain+1") as guest:
        text = ask(guest, "dmesg")
        tap.check("probes=exc_int3: " in text and "probes=kmain+1: " in text,
                  "what cannot carry a probe is in the log")  # fmt: skip


# A module of the boot loader cannot use what will be gone. Another one has a thread with an
# address of it on its stack, as if it was called from there; its number is not a name.
USES = "void smp_start(const void *info); void (*volatile start)(const void *) = smp_start;"
HOLDS = """
#include "kernel/memmap.h"
#include "kernel/thread/thread.h"
static int hold(void *unused)
{
    volatile uintptr_t word = (uintptr_t)_etext + 64;

    (void)unused;
    for (;;)
        thread_sleep_ns(word / word * 1000000);
}
__attribute__((constructor)) static void come(void)
{
    kernel_clone(&(struct clone_args){ .fn = hold, .name = "holder" });
}
"""


def with_module(folder, source, append):
    path = os.path.join(folder, "mine.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    brought = f"-fw_cfg name=opt/sonde/module/mine.o,file={modules.compiled(path)}"
    return at_prompt(append=f"modules=mine {append}", qemu=brought)


def a_module_cannot_use_what_will_be_gone():
    with tempfile.TemporaryDirectory() as folder, with_module(folder, USES, "") as guest:
        text = ask(guest, "dmesg")
        tap.check("smp_start: nothing has this name" in text,
                  "not even at boot, while it is there")  # fmt: skip
        tap.check("boot is over" in text, "which is freed")


def a_thread_that_is_inside_keeps_it():
    probes = "probes=module_load_listed"
    with tempfile.TemporaryDirectory() as folder, with_module(folder, HOLDS, probes) as guest:
        text = ask(guest, "dmesg")
        who = re.search(r"boot needed is not freed: thread \d+ \(holder\) (\w+) in", text)
        tap.check(who and who[1] in ("sleeps", "runs"), "the log says which thread")
        tap.equal(rows(guest), {"module_load_listed": (1, "")}, "a probe on it stays armed")
        tap.check(" kmain\n" in ask(guest, "cat /proc/kallsyms"), "its names stay")
        ask(guest, "probe add kmain")
        ask(guest, "probe del all")
        tap.check("vfs: checksum" in ask(guest, "run vfs"), "nothing else is wrong")


def boot_says_what_it_frees():
    status, out, _ = sonde("exec", "dmesg", "cat /proc/kallsyms", "echo kmain")
    found = re.search(r"boot is over: (\d+) KiB of its code and data are free, (\d+) of", out)
    tap.check(status == 0 and found and int(found[1]) > int(found[2]) > 15,
              f"{found and found[0]} them code")  # fmt: skip
    tap.equal(len(re.findall(r" kmain$", out, re.M)), 0, "kmain is no symbol")


tap.run(probes_see_boot_and_are_gone_then, what_is_refused_is_told,
        a_module_cannot_use_what_will_be_gone, a_thread_that_is_inside_keeps_it,
        boot_says_what_it_frees)  # fmt: skip
