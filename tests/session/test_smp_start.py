"""test_smp_start.py - tests the start of the CPUs: the commands to the local APICs, and
registers that a loader may leave in any state.

QEMU does not enforce all rules of the hardware. So this test looks at the kernel's writes
to the registers of the local APICs. QEMU records each write with its time, and with the
thread of QEMU that is the CPU.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile

import image
import tap
from sonde.guest import ELF, EXIT_POWEROFF, ROOT, Guest, Setup
from session import LIMIT, ask, at_prompt

sys.path[:0] = [os.path.join(ROOT, folder) for folder in ("kernel/debug", "tests/gdb")]
from elf64 import Elf
from under import GdbOn

# ---- the commands to the APICs ---------------------------------------------------------

WRITE = re.compile(r"^(\d+)@([\d.]+):apic_mem_writel (0x\w+) = (0x\w+)$", re.M)
SPURIOUS, ICR, ICR_HIGH, LVT = 0xF0, 0x300, 0x310, range(0x350, 0x371, 0x10)
ENABLE, MASKED = 0x100, 0x10000
INIT, STARTUP = 0x4500, 0x4600  # asserted, to one CPU
MS, US = 1e-3, 1e-6


def apic_writes(smp):
    """Yield (thread, seconds, register, value) of each write before the prompt."""
    with tempfile.NamedTemporaryFile() as trace:
        words = f"-trace apic_mem_writel -msg timestamp=on -D {trace.name}"
        with at_prompt(smp=smp, qemu=words):
            pass
        text = trace.read().decode()
    for thread, seconds, register, value in WRITE.findall(text):
        yield thread, float(seconds), int(register, 16), int(value, 16)


def cpus_are_started_by_the_manual():
    destination, inits, startups = None, {}, {}
    unmasked, too_early, enabled = 0, 0, set()
    for thread, seconds, register, value in apic_writes(smp=4):
        if register == ICR_HIGH and value:
            destination = value >> 24
        elif register == ICR and value == INIT:
            inits.setdefault(destination, []).append(seconds)
        elif register == ICR and value & ~0xFF == STARTUP:
            startups.setdefault(destination, []).append(seconds)
        elif register == SPURIOUS and value & ENABLE:
            enabled.add(thread)
        elif register in LVT and not value & MASKED:
            unmasked += 1
            too_early += thread not in enabled
    tap.equal(sorted(inits), [1, 2, 3], "INIT goes to each of the other CPUs")
    tap.check(all(len(times) == 1 for times in inits.values()), "once")
    tap.equal(sorted(startups), [1, 2, 3], "so does the start IPI")
    settled = [startups[cpu][0] - inits[cpu][0] for cpu in startups]
    tap.check(min(settled) >= 10 * MS, f"10 ms later or more: {min(settled):.4f} s")
    gaps = [b - a for times in startups.values() for a, b in zip(times, times[1:])]
    tap.check(all(gap >= 200 * US for gap in gaps), "200 us and more between two of them")
    tap.check(unmasked >= 4, f"{unmasked} entries of local vector tables are unmasked")
    tap.equal(too_early, 0, "none before its APIC is enabled, which would not unmask it")


def an_ipi_is_sent_behind_a_fence():
    """WRMSR to an APIC is not ordered behind earlier stores, so the kernel needs two fences:
    WRMSR is no store, so MFENCE alone does not hold it back. QEMU cannot show that they are
    missing, so the test looks at the code.
    """
    words = ["objdump", "-d", "--no-show-raw-insn", "-M", "intel", ELF]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    body = re.search(r"<lapic_send>:\n(.*?)\n\n", text, re.S)[1]
    names = [line.split("\t")[1].split()[0] for line in body.splitlines()]
    tap.check("wrmsr" in names, "lapic_send() sends by WRMSR")
    fences = [name for name in names[: names.index("wrmsr")] if "fence" in name]
    tap.equal(fences, ["mfence", "lfence"], "MFENCE and LFENCE are in front of it")


# ---- the state that a loader may leave -------------------------------------------------

LOADER = 0x1F0000  # free: between the kernel's 32-bit code and its image
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
NOTE_ENTRY = 16  # offset of the entry in .notes: three lengths and a name are before it


def assembled(target, *options):
    with tempfile.NamedTemporaryFile() as out:
        source = os.path.join(ROOT, "tests", "session", "loader.asm")
        words = ["nasm", "-f", "bin", f"-DLOADER={LOADER}", f"-DTARGET={target}"]
        subprocess.run([*words, *options, "-o", out.name, source], check=True)
        return out.read()


def with_loader(image, *options):
    """Return the kernel's file with loader.asm as one more segment and its entry."""
    elf = Elf(image)
    image = bytearray(image)
    note = elf.section(".notes").offset + NOTE_ENTRY
    code = assembled(struct.unpack_from("<I", image, note)[0], *options)
    struct.pack_into("<I", image, note, LOADER)
    start = struct.unpack_from("<Q", image, 32)[0]
    count = struct.unpack_from("<H", image, 56)[0]
    headers = image[start : start + count * PROGRAM_HEADER.size]
    headers += PROGRAM_HEADER.pack(
        1, 5, len(image), LOADER, LOADER, len(code), len(code), 16
    )
    image += code
    struct.pack_into("<Q", image, 32, len(image))
    struct.pack_into("<H", image, 56, count + 1)
    return bytes(image + headers)


def what_a_loader_leaves_makes_no_difference():
    with tempfile.NamedTemporaryFile() as file, open(image.TESTS, "rb") as kernel:
        file.write(with_loader(kernel.read()))
        file.flush()
        setup = Setup(smp=3, append="tests=smp", qemu=f"-kernel {file.name}")
        with Guest(setup) as guest:
            status = guest.wait_end(LIMIT)
            said = bytes(guest.console.text).decode(errors="replace")
    state = re.findall(
        r"^ +((?:not )?ok \d+ - .*(?:CR0|CR4|EFER|PAT|flags).*)$", said, re.M
    )
    for line in state:
        tap.note(line)
    tap.equal(status, EXIT_POWEROFF, "the tests of CPUs pass")
    tap.equal(len(state), 5, "those of the registers are among them")


def with_ghost(apic_id):
    """Boot four CPUs with a list that gives @apic_id to the second one. Return (the log,
    the number of CPUs that the kernel has started).
    """
    return with_tables(f"-DGHOST={apic_id}")


def with_tables(option):
    with tempfile.NamedTemporaryFile() as file, open(ELF, "rb") as kernel:
        file.write(with_loader(kernel.read(), option))
        file.flush()
        with at_prompt(smp=4, qemu=f"-kernel {file.name}") as guest:
            cpus = ask(guest, "cat /proc/cpuinfo").count("processor")
            return ask(guest, "dmesg"), cpus


def a_cpu_that_does_not_start_is_left_out():
    log, cpus = with_ghost(9)
    sentence = "smp: the CPU with APIC id 9 has not started in 5000 ms; it is left out"
    tap.check(sentence in log, "a CPU that is not there is named")
    tap.equal(cpus, 3, "and those behind it are started")


def a_cpu_that_was_given_up_stays_off():
    """gdb lets the second CPU begin right before CPU 0, which gave it up, resets it. If it
    came online then, the kernel would wait for a CPU that executes nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gdb.sock")
        words = f"-S -chardev socket,path={path},server=on,wait=off,id=g -gdb chardev:g"
        with Guest(Setup(smp=2, qemu=words)) as guest, GdbOn(path) as gdb:
            gdb.ask("hbreak ap_main", "continue", "delete", "set scheduler-locking on")
            gdb.ask("thread 1", "hbreak lapic_send if $esi == 0x4500", "continue")
            halts = re.findall(r"(0x\w+) <.*:\thlt", gdb.ask("disassemble ap_main"))
            gdb.ask("delete", "thread 2", "hbreak percpu_set_online")
            gdb.ask(*[f"hbreak *{halt}" for halt in halts], "continue")
            if "in percpu_set_online" in gdb.ask("bt 1"):
                gdb.ask("finish")
            gdb.ask("delete", "thread 1", "set scheduler-locking off")
            gdb.tell("continue")
            guest.wait_prompt(LIMIT)
            cpus = ask(guest, "cat /proc/cpuinfo").count("processor")
            log = ask(guest, "dmesg")
    tap.equal(cpus, 1, "a CPU that is given up does not come online")
    tap.check("the CPU with APIC id 1 has not started" in log, "and it is named")


def a_wrong_list_of_cpus_resets_none():
    """A list has an id twice, or has the id 255: an INIT to 255 would reset all CPUs."""
    for apic_id in (3, 255):
        log, cpus = with_ghost(apic_id)
        tap.equal(cpus, 3, f"the second CPU is called {apic_id}: the others are started")
        tap.check("has not started" not in log, "and no CPU is waited for")


def a_table_outside_of_memory_is_skipped():
    _, cpus = with_tables("-DSTRAY=0xd0000000")
    tap.equal(cpus, 4, "the tables behind it are found")


def places_of_absent_cpus_take_no_room():
    """78 of the 80 places for CPUs are empty, also some in front of CPUs that are there."""
    place = "max-x86_64-cpu,core-id=0,thread-id=0,socket-id="
    words = "-smp 1,maxcpus=80,sockets=80,cores=1,threads=1"
    words += f" -device {place}70 -device {place}20"
    with at_prompt(qemu=words) as guest:
        tap.equal(
            ask(guest, "cat /proc/cpuinfo").count("processor"), 3, "all are started"
        )


def cpus_without_room_are_counted():
    with at_prompt(qemu="-machine q35 -smp 66") as guest:
        log = ask(guest, "dmesg")
    tap.check(
        "smp: 2 more CPUs are left out: sonde has room for 64" in log, "which is said"
    )


def cpus_without_memory_are_left_out():
    with at_prompt(smp=64, memory="8M") as guest:
        log = ask(guest, "dmesg")
        cpus = ask(guest, "cat /proc/cpuinfo").count("processor")
        idle = ask(guest, "ps").count("idle/")
        ask(guest, "run all")
    tap.check(16 <= cpus < 64, f"{cpus} CPUs of 64 run with 8 MiB")
    sentence = f"smp: no memory for CPU {cpus} and those after it"
    tap.check(sentence in log, "the log says why")
    tap.equal(idle, cpus, "there is no thread of a CPU that is left out")


tap.run(
    cpus_are_started_by_the_manual,
    an_ipi_is_sent_behind_a_fence,
    what_a_loader_leaves_makes_no_difference,
    a_cpu_that_does_not_start_is_left_out,
    a_cpu_that_was_given_up_stays_off,
    a_wrong_list_of_cpus_resets_none,
    a_table_outside_of_memory_is_skipped,
    places_of_absent_cpus_take_no_room,
    cpus_without_room_are_counted,
    cpus_without_memory_are_left_out,
)
