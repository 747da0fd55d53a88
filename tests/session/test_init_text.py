#!/usr/bin/env python3
"""test_init_text.py - tests probes on code that only the boot executes. They are hit, and
become GONE when the kernel frees this code.
"""

import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(os.path.dirname(HERE))]
import tap
from sonde.guest import BUILD, ROOT, Guest, Setup
from kernel.module import send as modules
from probes.gdb.host.rsp import Stub
from session import LIMIT, ask, at_prompt, sonde

sys.path.insert(0, os.path.join(ROOT, "kernel", "debug"))
import elf64

# In this order: a function that has been executed before the argument probes= is read; a
# function that is executed once after that; three places in a function that is called
# once for each sample; a function that stays; a function of a module.
FILES = len(os.listdir(os.path.join(ROOT, "docs", "samples"))) + 1  # and bench.o
PLACES = (
    "smp_start",
    "module_load_listed",
    "module_add_boot_file",
    "module_add_boot_file+5",
    "module_add_boot_file+6",
    "vfs_read",
    "reads:before_read",
)
HITS = {
    "smp_start": 0,
    "module_load_listed": 1,
    "module_add_boot_file": FILES,
    "module_add_boot_file+0x5": FILES,
    "module_add_boot_file+0x6": FILES,
}


def append(jump=""):
    return f"probes={','.join(PLACES)} modules=reads,times,names {jump}"


def rows(guest):
    """Return {place: (hits, "[STATE]" or "")} from `probe list`."""
    text = ask(guest, "probe list")
    found = re.findall(r"^p\d+ .* (\d+) +\d+  (\S+) *(\[[A-Z]+\])?", text, re.M)
    return {
        place.removesuffix("+0x0"): (int(hits), state) for hits, place, state in found
    }


def boot_is_over(guest):
    text = ask(guest, "dmesg")
    if not tap.check("boot is over" in text, "what boot needed is freed"):
        tap.note(text)


def probes_see_boot_and_are_gone_then():
    for jump in ("", "kprobes-jump=region", "kprobes-jump=off"):
        with at_prompt(append=append(jump)) as guest:
            boot_is_over(guest)
            seen = rows(guest)
            for place, hits in HITS.items():
                tap.equal(seen.get(place), (hits, "[GONE]"), f"{jump or 'pun'}: {place}")
            tap.check(seen.get("vfs_read", (0, "?"))[1] == "", "what stays has its probe")
            tap.equal(seen.get("reads:before_read", ("", "?"))[1], "", "a module's came")
            ask(guest, "run vfs")
            again = rows(guest)
            tap.equal(
                {p: again[p] for p in HITS},
                {p: seen[p] for p in HITS},
                "the counts of those that are gone stay",
            )
            text = ask(guest, "cat /sys/kernel/debug/kprobes/list")
            tap.equal(text.count("[GONE]"), len(HITS), "/sys/kernel/debug/kprobes/list")
            ask(guest, "probe del all")
            tap.equal(rows(guest), {}, "and all can be taken out")


def what_is_refused_is_told():
    # A list may be as long as all boot arguments together.
    lists = f"probes={',' * 600}exc_int3,kmain+1 modules={',' * 300}nothing"
    with at_prompt(append=lists) as guest:
        text = ask(guest, "dmesg")
        tap.check(
            "probes=exc_int3: " in text and "probes=kmain+1: " in text,
            "what cannot carry a probe is in the log",
        )
        tap.check("modules=nothing: " in text, "a module that does not exist, too")
        tap.check("\n\n" not in text, "without a line that is empty")


# USES: a module that is loaded at boot cannot use a function that will be freed. HOLDS: a
# module has a thread with the address of such a function on its stack, as if the thread
# were about to call it, for ROUNDS milliseconds or more. The module can find the address,
# because it uses no name there.
USES = (
    "void smp_start(const void *info); void (*volatile start)(const void *) = smp_start;"
)
HOLDS = """
#include "kernel/debug/ksyms.h"
#include "kernel/memmap.h"
#include "kernel/thread/thread.h"
static int hold(void *unused)
{
    struct ksym sym;
    volatile uintptr_t word = ksyms_at((uintptr_t)_etext + 512, &sym) ? 0 : sym.start;

    (void)unused;
    for (unsigned i = 0; word && i < ROUNDS; i++)
        thread_sleep_ns(word / word * 1000000);
    return 0;
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
        tap.check(
            "smp_start: nothing has this name" in text,
            "not even at boot, while it is there",
        )
        tap.check("boot is over" in text, "which is freed")


def a_thread_that_is_inside_keeps_it():
    probes = "probes=module_load_listed"
    forever = HOLDS.replace("ROUNDS", "~0u")
    with tempfile.TemporaryDirectory() as folder, with_module(
        folder, forever, probes
    ) as guest:
        text = ask(guest, "dmesg")
        # On a busy host another thread may have such a word as well, and come first.
        why = r"boot needed is not freed: thread \d+ \([^)]+\) (sleeps|runs) in"
        if not tap.check(re.search(why, text), "the log says which thread"):
            tap.note(text)
        tap.equal(
            rows(guest), {"module_load_listed": (1, "")}, "a probe on it stays armed"
        )
        tap.check(" kmain\n" in ask(guest, "cat /proc/kallsyms"), "its names stay")
        ask(guest, "probe add kmain")
        ask(guest, "probe del all")
        tap.check("vfs: checksum" in ask(guest, "run vfs"), "nothing else is wrong")


def a_thread_that_leaves_is_waited_for():
    shortly = HOLDS.replace("ROUNDS", "50")
    with tempfile.TemporaryDirectory() as folder, with_module(
        folder, shortly, ""
    ) as guest:
        boot_is_over(guest)


PANICS = """
#include "kernel/debug/panic.h"
#include "kernel/base/compiler.h"
long mine_called(long n);
NOINLINE long mine_called(long n) { return n * 3; }
__attribute__((constructor)) static void come(void)
{
    panic("%ld", mine_called(14));
}
"""


def a_panic_in_boot_restores_all_text():
    """panic=unprobe restores text that only the boot needs, text that stays, and the text
    of a module, under jumps and under breakpoints.
    """
    places = (
        "module_load_listed",
        "module_add_boot_file+5",
        "vfs_read",
        "mine:mine_called",
    )
    for jump in ("pun", "off"):
        append = (
            f"panic=unprobe kprobes-jump={jump} probes={','.join(places)} modules=mine"
        )
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.c")
            with open(path, "w", encoding="utf-8") as file:
                file.write(PANICS)
            brought = (
                f"-fw_cfg name=opt/sonde/module/mine.o,file={modules.compiled(path)}"
            )
            with Guest(Setup(append=append, qemu=brought)) as guest:
                guest.wait_end(LIMIT)
                guest.console.wait_closed(5)
                text = guest.console.text.decode("utf-8", "replace")
        tap.check("panic: 42" in text, f"{jump}: a module's constructor panics in boot")
        found = re.search(r"unprobe: \d+ bytes .* in (\d+) lines; 0 lines", text)
        tap.check(found and 4 <= int(found[1]) <= 8, f"{found and found[0]} differ")


def address(name):
    return next(
        s.value
        for s in elf64.load(os.path.join(BUILD, "sonde.elf")).symbols()
        if s.name == name
    )


def a_breakpoint_of_gdb_goes_with_it():
    with Stub("gdbwait") as stub:
        stub.guest.console.expect(b"waiting for a debugger", LIMIT)
        client, place = stub.connect(), address("module_add_boot_file")
        client.greet()
        client.ask("?")
        tap.equal(
            client.ask(f"Z0,{place:x},1"), "OK", "a breakpoint on what boot executes"
        )
        hits = 0
        client.resume()
        while hits < FILES and client.packet(LIMIT).startswith("T05"):
            hits += 1
            client.resume()
        tap.equal(hits, FILES, "stops at each of its calls")
        stub.guest.wait_prompt(LIMIT)
        tap.check(client.interrupt().startswith("T02"), "and boot ends as ever")
        tap.check(client.ask(f"m{place:x},1").startswith("E"), "its text cannot be read")
        tap.equal(client.ask(f"z0,{place:x},1"), "OK", "it can be taken back")
        client.resume()
        tap.check("vfs: checksum" in ask(stub.guest, "run vfs"), "and the kernel goes on")


def a_film_of_text_that_goes():
    with at_prompt() as guest:
        command = f"film start {address('module_load_listed'):#x}"
        reply = guest.request(command, may_fail=True)
        tap.check(reply.errno, f"there is no film of what boot needed: {reply.name}")
        for command in (
            "module load /boot/reads.o",
            "film start reads:before_read",
            "probe add reads:before_read",
            "module del reads",
            "film stop",
        ):
            ask(guest, command)
        text = ask(guest, "cat /tmp/film")
        tap.check(
            '"bytes":"cc"' in text and text.count('"ev":"store"') >= 2,
            "a film shows a probe come, and go with its module",
        )


def boot_says_what_it_frees():
    status, out, _ = sonde("exec", "dmesg", "cat /proc/kallsyms", "echo kmain")
    found = re.search(
        r"boot is over: (\d+) KiB of its code and data are free, (\d+) of", out
    )
    tap.check(
        status == 0 and found and int(found[1]) > int(found[2]) > 15,
        f"{found and found[0]} them code",
    )
    tap.equal(len(re.findall(r" kmain$", out, re.M)), 0, "kmain is no symbol")


tap.run(
    probes_see_boot_and_are_gone_then,
    what_is_refused_is_told,
    a_module_cannot_use_what_will_be_gone,
    a_thread_that_is_inside_keeps_it,
    a_thread_that_leaves_is_waited_for,
    a_panic_in_boot_restores_all_text,
    a_breakpoint_of_gdb_goes_with_it,
    a_film_of_text_that_goes,
    boot_says_what_it_frees,
)
