"""test_cpu.py - checks what the kernel prints on a CPU without a feature it needs."""

import os
import re
import socket
import subprocess
import tempfile

import tap
from sonde.guest import ELF, EXIT_PANIC, ROOT, Guest, Setup
from sonde.hang import Qmp
from session import LIMIT, ask, at_prompt

ROW = re.compile(r'^    feature \w+, .*, "(\w+): (.*)"$', re.M)
QEMU_NAMES = {"LAHF": "lahf-lm"}  # other names of QEMU are our names in small letters


def features():
    """Return (name, description) of each row of the kernel's table."""
    with open(os.path.join(ROOT, "boot/cpu_check.asm"), encoding="ascii") as file:
        return ROW.findall(file.read())


def without(*names):
    """Return the words for QEMU's command line that take features from the CPU."""
    words = [f"-{QEMU_NAMES.get(name, name.lower())}" for name in names]
    return "-cpu " + ",".join(["qemu64", *words])


def last_words(**options):
    """Run a guest that ends before its prompt. Return (its status, the text on COM1, the
    text on the debug port)."""
    with Guest(Setup(smp=1, **options)) as guest:
        status = guest.wait_end(LIMIT)
        guest.console.wait_closed(5)
        guest.early.seek(0)
        text = bytes(guest.console.text), guest.early.read()
    return status, *[piece.decode("ascii", "replace").replace("\r", "") for piece in text]


def check_refusal(what, names, **options):
    lines = [f"  {name}: {text}" for name, text in features() if name in names]
    lines = ["sonde cannot run on this CPU, which lacks:", *lines, "Take another CPU."]
    wanted = "\n".join(lines)
    status, com1, early = last_words(**options)
    tap.equal(status, EXIT_PANIC, f"{what}: the machine ends")
    if not tap.check(wanted in com1, f"{what}: and says what is missing"):
        tap.note(com1[-1000:])
    tap.check(wanted in early, f"{what}: on the debug port, too")


def each_missing_feature_is_named():
    names = [name for name, _ in features()]
    tap.check(len(names) >= 9 and "NX" in names, f"asked for: {' '.join(names)}")
    for boot in ("pvh", "iso"):
        for name in names:
            check_refusal(f"{boot}, no {name}", [name], boot=boot, qemu=without(name))


def all_that_are_missing_are_named():
    check_refusal("two", ["NX", "LAHF"], qemu=without("NX", "LAHF"))
    check_refusal("a 486", [name for name, _ in features()], qemu="-cpu 486")


def the_screen_shows_it():
    """On a machine without a serial line, the text is on the screen."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "qmp")
        memory = os.path.join(folder, "memory")
        words = ["qemu-system-x86_64", "-nodefaults", "-display", "none", "-vga", "std"]
        words += ["-kernel", ELF, "-qmp", f"unix:{path},server=on,wait=off"]
        words += without("NX").split()
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as qemu:
            try:
                text = screen_until("Take another CPU", path, memory)
            finally:
                qemu.kill()
    rows = [text[i : i + 80].rstrip() for i in range(0, len(text), 80)]
    tap.check("  NX: data that cannot be executed" in rows, "the screen shows it, too")


def screen_until(text, path, memory):
    """Wait until the text screen contains @text. Return the characters of the screen."""
    control = connected(path)
    qmp = Qmp(control)
    shown = ""
    for _ in range(LIMIT * 10):
        qmp.execute("pmemsave", val=0xB8000, size=4000, filename=memory)
        with open(memory, "rb") as file:
            shown = file.read()[::2].decode("cp437")
        if text in shown:
            break
        subprocess.run(["sleep", "0.1"], check=True)
    control.close()
    return shown


def connected(path):
    control = socket.socket(socket.AF_UNIX)
    for _ in range(LIMIT * 10):
        try:
            control.connect(path)
            return control
        except OSError:
            subprocess.run(["sleep", "0.1"], check=True)
    raise AssertionError("QEMU does not listen")


def what_is_documented_is_asked_for():
    with open(os.path.join(ROOT, "docs/boot-options.md"), encoding="utf-8") as file:
        rows = re.findall(r"^\| `([A-Z0-9]+)` \| (.*?) \|", file.read(), re.M)
    tap.equal(rows, features(), "docs/boot-options.md has the kernel's table")


def a_cpu_with_just_these_is_enough():
    """The kernel runs on a CPU without SMEP, SMAP, UMIP, x2APIC and all other features
    that are not in the table.
    """
    words = "-cpu qemu64,-x2apic,-popcnt,-sse3,-svm,-syscall,-sep,-mtrr,-pat"
    with at_prompt(qemu=words) as guest:
        tap.check("calls 720" in ask(guest, "run vfs"), "work is done")
        ask(guest, "probe all vfs_*")
        tap.check("calls 720" in ask(guest, "run vfs"), "and with probes")


def emulation_is_known_by_its_name():
    """QEMU's TCG fetches byte by byte, also if it calls itself an AMD processor and hides
    the bit for hypervisors. A CPU that is alone may store several bytes at once.
    """
    for smp in (1, 2):
        setup = {"smp": smp, "append": "text-poke=word"}
        with at_prompt(qemu="-cpu EPYC,-hypervisor", **setup) as guest:
            ask(guest, "probe all vfs_*")
            ask(guest, "sleep 1")
            steps = ask(guest, "cat /sys/kernel/debug/kprobes/changes")
        whole = " whole " in steps
        tap.equal(whole, smp == 1, f"{smp} CPUs: several bytes are stored at once?")


tap.run(
    each_missing_feature_is_named,
    all_that_are_missing_are_named,
    the_screen_shows_it,
    what_is_documented_is_asked_for,
    a_cpu_with_just_these_is_enough,
    emulation_is_known_by_its_name,
)
