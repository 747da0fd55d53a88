"""test_commands.py - tests the commands that sonde adds to gdb, and the disassembler that
shows text without probes.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile

import under
from under import ELF, ROOT, GdbOn, Under

import tap
from kernel.module import send
from session import LIMIT

BY_INT3 = "echo off > /proc/sys/debug/kprobes-jump"
BY_JUMP = "echo pun > /proc/sys/debug/kprobes-jump"


def it_says_what_there_is(u):
    lines = [line for line in u.gdb.greeting.splitlines() if line.startswith("sonde: ")]
    tap.equal(len(lines), 1, "one line at the start says what there is")
    names = re.findall(r"^(\w+) ", u.gdb.ask("help sonde"), re.M)
    for name in ("probes", "explain", "threads", "trace", "cpus"):
        tap.check(name in lines[0] and name in names, f"{name} is in it, and in the help")
        help_text = u.gdb.ask(f"help {name}")
        tap.check(
            "Undefined" not in help_text and len(help_text) > 40, f"{name} has a help"
        )


def hits_are_counted(u):
    calls = re.search(r"calls (\d+) of", u.console("probe add vfs_read", "run vfs"))[1]
    for how in ("jump", "boost"):
        text = u.gdb.ask("probes", "explain vfs_read")
        tap.check(
            f" {how} " in text and f"hits {calls} missed 0" in text,
            f"{how}: probes has the hits of all CPUs",
        )
        tap.check(f"k hits {calls} missed 0" in text, f"{how}: explain has them")
        u.console(BY_INT3, "echo 0 > /proc/sys/debug/kprobes-optimization")
    u.console("probe del all", BY_JUMP, "echo 1 > /proc/sys/debug/kprobes-optimization")


def text_is_original(u):
    starts = re.findall(r"<\+(\d+)>:", u.gdb.ask("disassemble vfs_open"))
    places = ["vfs_read", "vfs_read+5", "vfs_read+9"]
    places += [f"vfs_open+{starts[n]}" for n in (3, 4, 8)]
    asked = [f"x/{n}i {name}" for name in ("vfs_read", "vfs_open") for n in (1, 12)]
    asked += [f"x/6i {place}" for place in places] + ["disassemble vfs_close"]
    want = u.gdb.ask(*asked)
    tap.check("nopl" in want, "text without probes")
    for how in (BY_JUMP, BY_INT3, "echo region > /proc/sys/debug/kprobes-jump"):
        way = how.split()[1]
        u.console(how, *[f"probe add {place}" for place in places], "probe all vfs_close")
        tap.equal(u.gdb.ask(*asked), want, f"{way}: is shown with probes, too")
        u.gdb.ask("set sonde show-original off")
        raw = u.gdb.ask("show sonde show-original", "x/1i vfs_read", "original vfs_read")
        u.gdb.ask("set sonde show-original on")
        tap.check(
            "show changed text" in raw and re.search(r"vfs_read>:\s+(jmp|int3)", raw),
            f"{way}: and what is there, when asked for",
        )
        tap.check(
            re.search(r"<\+0>:\s+nopl", raw), f"{way}: original shows it all the same"
        )
        if how == BY_JUMP:
            generated_code_is_named(u)
        tap.equal(u.gdb.ask(*asked), want, f"{way}: and so does everything again")
        u.console("probe del all")
    u.console(BY_JUMP)


def generated_code_is_named(u):
    """gdb names the target of a jump: a cell, or a pad that leads to a cell."""
    u.gdb.ask("set sonde show-original off")
    text = u.gdb.ask("x/1i vfs_read", "x/1i vfs_read+5")
    tap.check(
        re.search(r"<vfs_read>:\s+jmp +0x\w+ <cell of vfs_read\+0x0, \+\d+>", text),
        "a jump leads to a cell, by name",
    )
    pad = re.search(r"<vfs_read\+5>:\s+jmp +(0x\w+) <pad of vfs_read\+0x5>", text)
    tap.check(pad, "one byte has a jump to a pad, by name")
    at = u.gdb.ask(f"x/1i {pad[1]}") if pad else ""
    tap.check(
        re.search(r"jmp +0x\w+ <cell of vfs_read\+0x5, \+\d+>", at),
        "which leads to a cell",
    )
    if tap.failed:
        tap.note(text + at)
    u.gdb.ask("set sonde show-original on")


def a_marker_is_the_programs(u):
    """gdb shows the byte of a marker as the marker is switched, also under a probe."""
    asked = ["x/30i vfs_read", "disassemble vfs_read"]
    off = u.gdb.ask(*asked)
    place = re.search(r"<\+(\d+)>:\s+mov +\$0x0,%al", off)
    tap.check(place, "a marker that is off")
    place = f"vfs_read+{place[1]}"
    u.console("marker on vfs_read")
    on = u.gdb.ask(*asked)
    tap.equal(on, off.replace("$0x0,%al", "$0x1,%al"), "on, it has another byte")
    for how in (BY_JUMP, BY_INT3, "echo region > /proc/sys/debug/kprobes-jump"):
        way = how.split()[1]
        calls = re.search(
            r"calls (\d+) of", u.console(how, f"probe add {place}", "run vfs")
        )[1]
        tap.check(
            f"hits {calls} missed 0" in u.gdb.ask("probes"), f"{way}: hits at a marker"
        )
        tap.equal(u.gdb.ask(*asked), on, f"{way}: a probe at it does not show")
        u.console("marker off vfs_read")
        tap.equal(
            u.gdb.ask(*asked), off, f"{way}: nor when it is switched below the probe"
        )
        u.console("marker on vfs_read", "probe del all")
        tap.equal(u.gdb.ask(*asked), on, f"{way}: nor when the probe has gone")
    u.console("marker off vfs_read", BY_JUMP)


def places_are_explained(u):
    u.console("probe add --post vfs_read+6")
    text = u.gdb.ask("explain vfs_read+7")
    tap.check(
        re.search(r"^place +vfs_read\+0x6, 3 bytes", text, re.M)
        and "original   49 89 f0" in text,
        "a byte within the instruction",
    )
    tap.check("post count_post" in text, "its handlers are named")
    pad = re.search(r"pad (0x\w+)", text)
    detour = re.search(r"detour (0x\w+)", text)
    for what in (pad, detour):
        told = u.gdb.ask(f"explain {what[1]}") if what else ""
        tap.check("made by the engine, for vfs_read+0x6" in told, "its code is named")
    cell = u.gdb.ask(f"slot {detour[1]}") if detour else ""
    tap.check("of the slot of vfs_read+0x6" in cell, "slot says whose it is")
    text = u.gdb.ask("explain vfs_close", "explain vfs_nothing")
    tap.check("vfs_close+0x0: no probe" in text, "where there is none")
    tap.check("No symbol" in text, "what is no place is refused")
    u.console("probe del all")


def stack_of_the_shell(u):
    """Return (what `threads` prints, the functions on the stack of the thread
    that answers requests).
    """
    text = u.gdb.ask("threads")
    parts = re.split(r"^ +\d+ (?=\S+ +\w+ +CPU)", text, flags=re.M)
    shell = next((part for part in parts if part.startswith("shell/COM3")), "")
    return text, re.findall(r"#\d+ +0x\w+ (\w+)[\w.]*\+", shell)


def sleepers_have_stacks(u):
    u.console("probe ret serial_read", "probe ret thread_start")
    text, functions = stack_of_the_shell(u)
    for _ in range(50):  # after its last answer the thread needs a moment to fall asleep
        if "leave_cpu" in functions[:1] and "serial_read" in functions:
            break
        u.idle()
        text, functions = stack_of_the_shell(u)
    tap.check(
        {"serial_read", "next_byte"} < set(functions)
        and functions[-2:] == ["thread_start", "thread_entry"],
        "a thread sleeps in a function that a probe follows",
    )
    tap.check(
        "trampoline" not in text and "not known" not in text, "all stacks are whole"
    )
    tap.check(
        re.search(r"serial_read\+0x\w+ at drivers/serial.c:\d+", text), "with lines"
    )
    names = re.findall(r"^ +\d+ (\S+) +\w+ +CPU", u.gdb.ask("threads -short"), re.M)
    tap.check(
        {"idle/0", "idle/1", "optimizer", "shell/COM1"} <= set(names), "threads -short"
    )
    one = u.gdb.ask("threads optimizer")
    tap.check("optimizer" in one and "shell" not in one, "one thread, by its name")
    if tap.failed:
        tap.note(text)
    u.console("probe del all")


def a_change_that_is_under_way_is_told(u):
    """gdb stops the guest in the middle of text_poke_batch()."""
    u.run_to("break plat_sync_cores", "probe add vfs_read")
    text = u.gdb.ask("probes", "x/2i vfs_read")
    tap.check("text is being changed, by thread shell/COM" in text, "probes says so")
    tap.check(re.search(r"vfs_read>:\s+nopl", text), "and the text is the original")
    u.go_on()
    u.console("probe del all")


TRACING = "/sys/kernel/tracing"


def records_are_read(u):
    """gdb's `trace` reads only memory, and prints the lines of the guest's `trace`."""
    read = "p:read vfs_read file=%di count=%dx:u64 four=+0(%di):x8[4] place=%ip:symbol"
    u.console(
        f"echo '{read}' >> {TRACING}/kprobe_events",
        f"echo 'r:done vfs_open ret=$retval:x8' >> {TRACING}/kprobe_events",
        f"echo 'p:open vfs_open path=+0(%di):string' >> {TRACING}/kprobe_events",
        f"echo 1 > {TRACING}/events/kprobes/enable",
        "cat /proc/version",
        f"echo hello > {TRACING}/trace_marker",
        f"echo 0 > {TRACING}/events/kprobes/enable",
    )
    shown = [
        line
        for line in u.console(f"cat {TRACING}/trace").splitlines()
        if line and not line.startswith("#")
    ]
    said = u.gdb.ask("trace").splitlines()
    lines = [line for line in said if re.search(r"\[\d\d\d\]", line)]
    tap.check(
        len(shown) > 5 and 'path="/proc/version"' in "".join(shown), "there are some"
    )
    tap.equal(lines, shown, "trace: the same lines as the guest")
    last = [line for line in u.gdb.ask("trace 1").splitlines() if "[" in line]
    tap.equal(last, shown[-1:], "trace 1: the last one")
    tap.equal(u.gdb.ask("trace 0").count("["), 0, "trace 0: none")
    u.console(f"echo > {TRACING}/kprobe_events")


def tracepoints_are_set(u):
    said = u.gdb.ask("trace vfs_read if count > 4096").strip()
    place = r"Tracepoint (\d+) at 0x[0-9a-f]+: file kernel/fs/vfs\.c, line \d+\."
    found = re.fullmatch(place, said)
    tap.check(found, f"trace with a place sets a tracepoint: {said}")
    told = u.gdb.ask("info tracepoints")
    tap.check("trace only if count > 4096" in told, "which has a condition")
    tap.check("not defined" in u.gdb.ask("trace nosuch"), "a name that is none is told")
    u.gdb.ask(f"delete {found[1]}")
    said = u.gdb.ask("trace list_empty").strip()
    places = r"Tracepoint (\d+) at 0x[0-9a-f]+: list_empty\. \(\d\d+ locations\)"
    found = re.fullmatch(places, said)
    tap.check(found, f"an inlined function has several places: {said}")
    u.gdb.ask(f"delete {found[1]}")


def memory_is_compared_and_saved(u):
    u.console("probe add vfs_read", "probe all vfs_close")
    said = u.gdb.ask("compare-sections")
    for name in (".text", ".rodata", ".notes", ".ksyms"):
        tap.check(
            re.search(rf"^Section \{name}, .*: matched\.", said, re.M),
            f"compare-sections: {name} is the file's, probes or not",
        )
    tap.check(
        re.search(r"^Section \.init\.data, .*: freed after boot", said, re.M), "init"
    )
    tap.check(re.search(r"\.data, .*MIS-MATCHED! .*kernel writes", said), "data changes")
    u.console("probe del all", "marker on vfs_read")
    said = u.gdb.ask("compare-sections .text", "compare-sections .nosuch")
    tap.check("MIS-MATCHED! from vfs_read+0x" in said, "a marker that is on is a change")
    tap.check("no loaded section is called .nosuch" in said, "a name that is none")
    u.console("marker off vfs_read")
    core = os.path.join(u.folder.name, 'the "core" of \\ \xe4')
    said = u.gdb.ask(f"gcore {core}", "gcore /nosuch/core")
    tap.check(f"Saved corefile {core}" in said, "gcore: QEMU saves the machine")
    tap.check("Could not open '/nosuch/core'" in said, "and says why it cannot")
    words = ["gdb", "-nx", "-q", "-batch", "-x", ".gdbinit", "-ex", "cpus", ELF, core]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    tap.check(re.search("^CPU 0: ", done.stdout, re.M), "the file opens in gdb")


def modules_have_symbols(u):
    """A module that comes while gdb is there, and goes, and comes again."""
    for _ in range(2):
        u.console("module load /boot/reads.o")
        said = u.gdb.ask(
            "break before_read", "info symbol before_read", "x/2i before_read"
        )
        tap.check(
            re.search(r"^Breakpoint \d+ at 0x", said, re.M)
            and "before_read in section .text of " in said
            and "<before_read>:" in said,
            "gdb knows the functions of a module",
        )
        u.run_to("tbreak before_read", "run vfs")
        said = u.gdb.ask("bt")
        tap.check(re.search(r"^#0 .*before_read \(\)", said, re.M), "it stops there")
        u.go_on()
        u.console("module del reads")
        tap.check("No symbol" in u.gdb.ask("info symbol before_read"), "until it goes")
        if tap.failed:
            tap.note(said)
            break


MODULE = """
#include "kernel/module/module.h"
#include "kernel/work/work.h"
static NOINLINE int {function}(int n) {{ __asm__ volatile("" : "+r"(n)); return n; }}
static int run(struct work *w UNUSED) {{ return {function}(0); }}
WORKLOAD({name}, run, "calls a function");
"""


def two_modules_are_kept_apart(u):
    """One stays, and one is edited and comes again between two stops, to the same place."""

    def load(name, function):
        path = os.path.join(u.folder.name, name + ".c")
        with open(path, "w", encoding="ascii") as file:
            file.write(MODULE.format(name=name, function=function))
        u.gdb.tell("continue")
        send.load(u.guest.machine, path, LIMIT)
        os.kill(u.gdb.process.pid, signal.SIGINT)
        u.gdb.wait()
        return u.gdb.ask(f"info symbol {function}", f"info address {function}")

    def stops_in(function, workload):
        u.run_to(f"tbreak {function}", f"run {workload}")
        said = u.gdb.ask("bt")
        tap.check(
            re.search(rf"^#0 .*{function} \(", said, re.M), f"it stops in {function}"
        )
        u.go_on()

    load("steady", "steady_function")
    before = load("edited", "edited_once")
    stops_in("edited_once", "edited")
    behind = load("edited", "edited_more")
    place = r"is at (0x[0-9a-f]+) "
    tap.equal(re.search(place, behind)[1], re.search(place, before)[1], "the same place")
    tap.check("edited_more in section .text" in behind, "the new function is known")
    said = u.gdb.ask(
        "info symbol edited_once", f"info symbol {re.search(place, behind)[1]}"
    )
    tap.check(said.startswith('No symbol "edited_once"'), "and the old one is not")
    tap.check(
        re.search("^edited_more in section", said, re.M), "nor found by its address"
    )
    stops_in("edited_more", "edited")
    stops_in("steady_function", "steady")
    u.console("module del steady")
    tap.check("No symbol" in u.gdb.ask("info symbol steady_function"), "one goes")
    stops_in("edited_more", "edited")
    u.console("module del edited")


def another_build_is_named(u):
    """The image has another build id than the guest: gdb warns, the commands refuse."""
    with tempfile.TemporaryDirectory() as folder:
        other = os.path.join(folder, "other.elf")
        shutil.copy(ELF, other)
        where = under.build_id_offset(other)
        with open(other, "r+b") as file:
            file.seek(where)
            byte = file.read(1)
            file.seek(where)
            file.write(bytes([byte[0] ^ 0xFF]))
        u.gdb.ask("disconnect")
        with GdbOn(os.path.join(u.folder.name, "gdb.sock"), other) as gdb:
            tap.check("warning: the guest is another build" in gdb.attached, "gdb warns")
            tap.check("build than other.elf" in gdb.ask("probes"), "commands refuse")
            tap.check("#0" in gdb.ask("bt"), "gdb's own commands work")
            gdb.ask("disconnect")
        u.gdb.ask(f"target remote {u.folder.name}/gdb.sock")


def without_an_image_it_says_so(_u):
    words = ["gdb", "-nx", "-q", "-batch", "-x", ".gdbinit"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    tap.check(b"no image: `file build/sonde.elf`" in done.stdout, "and then it says so")


def without_a_guest_it_says_so(_u):
    asked = ["probes", "explain vfs_read", "threads", "trace", "cpus", "slot vfs_read"]
    asked += ["trapframe 0", "back-to-probe p1", "who-wrote jiffies"]
    words = [word for command in asked for word in ("-ex", command)]
    words = ["gdb", "-nx", "-q", "-batch", "-x", ".gdbinit", *words, ELF]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    said = done.stderr.splitlines()
    tap.equal(
        said,
        ["the guest is off: ./sonde gdb starts one"] * 7
        + ["only in a replay: ./sonde replay FILE"] * 2,
        "commands that ask a guest say that it is off",
    )


with Under(memory="128M") as guest:
    under.run_on(
        guest,
        it_says_what_there_is,
        hits_are_counted,
        text_is_original,
        a_marker_is_the_programs,
        places_are_explained,
        sleepers_have_stacks,
        a_change_that_is_under_way_is_told,
        records_are_read,
        tracepoints_are_set,
        memory_is_compared_and_saved,
        modules_have_symbols,
        two_modules_are_kept_apart,
        another_build_is_named,
        without_an_image_it_says_so,
        without_a_guest_it_says_so,
    )
