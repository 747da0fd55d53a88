"""test_qemu.py - tests on the real QEMU that the end of a guest is recognised."""

import dataclasses
import os
import subprocess
import tempfile

import tap
from sonde.guest import EXIT_POWEROFF, Guest, Setup, die_with_parent
from sonde.machine import Gone

HERE = os.path.dirname(os.path.abspath(__file__))


def build_mini(folder):
    """Build mini.asm. Return a Setup that boots it."""
    obj, elf = os.path.join(folder, "mini.o"), os.path.join(folder, "mini.elf")
    subprocess.run(
        ["nasm", "-f", "elf32", "-o", obj, os.path.join(HERE, "mini.asm")], check=True
    )
    link = ["ld", "-m", "elf_i386", "-Ttext=0x200000", "-o", elf, obj]
    subprocess.run(link, check=True, stderr=subprocess.DEVNULL)
    return Setup(elf=elf)


def end_of(letter, limit=10, **setup):
    """Let the guest end in this way. Return (QEMU's status, message of the failure)."""
    with Guest(dataclasses.replace(MINI, **setup)) as mini:
        mini.wait_prompt(20)
        try:
            mini.machine.request(letter, limit)
        except (Gone, TimeoutError):
            pass
        failure = mini.failure("in the test", limit)
        status = mini.wait_end(1)
        return status, failure.status, "\n".join([str(failure), *failure.lines])


def a_child_ends_with_a_parent_that_has_gone():
    """The parent has ended before the child can ask to end with it, as on a busy host."""
    begin_read, begin_write = os.pipe()
    alive_read, alive_write = os.pipe()
    parent = os.fork()
    if not parent:
        begin = die_with_parent()
        if not os.fork():
            os.close(begin_write)
            os.close(alive_read)
            os.read(begin_read, 1)
            begin()
            os.write(alive_write, b"x")
        os._exit(0)
    os.waitpid(parent, 0)
    os.close(alive_write)
    os.close(begin_write)
    tap.equal(os.read(alive_read, 1), b"", "a child without its parent does not begin")
    os.close(begin_read)
    os.close(alive_read)


def a_poweroff_has_its_status():
    tap.equal(end_of("o")[0], EXIT_POWEROFF, "poweroff through isa-debug-exit")


def a_triple_fault_is_seen():
    for smp in (1, 4):
        _, status, message = end_of("t", smp=smp)
        tap.check(status == 4 and "triple fault" in message, f"triple fault, {smp} CPUs")


def a_reset_is_no_triple_fault():
    _, status, message = end_of("r")
    tap.check(status == 4 and "reset itself" in message, "a reset ends QEMU")


def a_hang_is_seen():
    _, status, message = end_of("h", limit=0.5)
    tap.check(status == 124 and "within 0.5 s" in message, "a hang")
    tap.check("CPU 0: _start.hang+0x2, halted" in message, "and where it hangs")
    tap.note(message)


def options_reach_qemu():
    tap.equal(end_of("o", icount=True)[0], EXIT_POWEROFF, "--icount")
    with tempfile.TemporaryDirectory() as folder:
        qmp = os.path.join(folder, "qmp.sock")
        with Guest(dataclasses.replace(MINI, qmp=qmp)) as mini:
            mini.wait_prompt(20)
            tap.check(os.path.exists(qmp), "--qmp makes QEMU's control socket")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        MINI = build_mini(work)
        tap.run(
            a_child_ends_with_a_parent_that_has_gone,
            a_poweroff_has_its_status,
            a_triple_fault_is_seen,
            a_reset_is_no_triple_fault,
            a_hang_is_seen,
            options_reach_qemu,
        )
