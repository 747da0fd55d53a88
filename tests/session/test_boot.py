"""test_boot.py - checks that all three ways to boot reach the same prompt, and that the
guest ends with the right status.
"""

import os
import subprocess
import tempfile

from sonde import building
import tap
from sonde.guest import BUILD, ROOT, Guest, Setup
from session import LIMIT, ask, at_prompt, sonde

BOOTS = ("pvh", "iso", "uefi")
# The firmware of UEFI takes seconds of CPU time, so the usual run boots by it only once.
BOOTS_AGAIN = BOOTS if tap.LONG else BOOTS[:2]


# Lines that would need escape sequences on a terminal: progress, a line that is wider
# than the screen, an edited line.
LINES = b"echo o''ne\nprobe all vfs_*\nprobe del all\necho abd\x1b[Dc\necho " + b"x" * 99


def every_way_reaches_the_prompt():
    for boot in BOOTS:
        with at_prompt(boot=boot, smp=3) as guest:
            tap.check(True, f"{boot}: the prompt")
            version = ask(guest, "cat /proc/version")
            tap.check(version.startswith("sonde"), f"{boot}: /proc/version")
            cpus = ask(guest, "cat /proc/cpuinfo").count("processor")
            tap.equal(cpus, 3, f"{boot}: three CPUs")


def lists_come_with_the_image():
    os.environ.pop(building.BUILT, None)  # with BUILT, ./sonde would not build anything
    for name in ("sonde.lst", "sonde.sym"):
        path = os.path.join(BUILD, name)
        os.unlink(path)
        status, _, _ = sonde("exec", "echo x")
        with open(path, encoding="utf-8") as file:
            tap.check(status == 0 and "vfs_read" in file.read(), f"./sonde makes {name}")


def boot_arguments_arrive():
    for boot in BOOTS_AGAIN:
        with at_prompt(boot=boot, append="hz=100 colour=blue,green") as guest:
            text = ask(guest, "cat /proc/cmdline")
            tap.check("hz=100 colour=blue,green" in text, f"{boot}: --append")
            log = ask(guest, "dmesg")
            tap.check(
                "boot argument colour: there is none" in log, "what is none is named"
            )
    with at_prompt(append="hz=many panic=tea text-poke=no kprobes-jump=far") as guest:
        log = ask(guest, "dmesg")
        for text in ("hz=many: ", "panic=tea: ", "text-poke=no: ", "kprobes-jump=far: "):
            tap.check(text in log, f"the log names {text}")


def a_loader_that_leaves_no_information_is_told():
    """Boot arguments of this length end in QEMU's own structures: no console is known by
    words, and the report comes all the same."""
    with Guest(Setup(qemu="-append " + 4200 * "x")) as guest:
        guest.wait_end(LIMIT)
        said = bytes(guest.console.text).decode(errors="replace")
    tap.check("panic: cannot read what the boot loader left" in said, "on COM1")


def a_slow_timer_does_not_make_seconds_longer():
    # A step of `sleep` takes a tenth of a second then, so ten of them are a second.
    with at_prompt(append="hz=10", smp=1) as guest:
        text = ask(guest, "trace 'shell_interrupted {count}' -- sleep 1")
        tap.check(int(text.split()[-2]) < 25, f"the steps of `sleep 1`: {text}")


def memory_behind_the_direct_map_is_left_out():
    with tempfile.NamedTemporaryFile() as file:  # of which the guest writes a few MiB
        words = (
            f"-object memory-backend-file,id=ram,size=600G,share=on,mem-path={file.name}"
        )
        words += " -machine memory-backend=ram"
        with at_prompt(memory="600G", qemu=words) as guest:
            total = int(ask(guest, "grep MemTotal /proc/meminfo").split()[1])
            tap.check(total < 512 << 20, f"{total} KiB are less than 512 GiB")


def piped_input_is_typed_after_the_prompt():
    for boot in BOOTS_AGAIN:
        words = ("run", "--boot", boot)
        status, out, err = sonde(*words, stdin=LINES)
        tap.equal((status, err), (0, ""), f"{boot}: end of input is a poweroff")
        lines = out.split("\n")
        tap.check("one" in lines, f"{boot}: the first line was not lost")
        tap.check(
            not set(out) & {"\x1b", "\r", "\b"}, f"{boot}: nothing but text comes out"
        )
        tap.check("sonde> probe all vfs_*" in lines, f"{boot}: each line once")
    status, out, _ = sonde("run", "--boot", "pvh", stdin=b"poweroff\n")
    tap.equal(status, 0, "poweroff exits 0")
    status, out, _ = sonde("run", "--boot", "pvh", stdin=b"")
    tap.equal(status, 0, "so does no input at all")
    status, out, err = sonde("run", "--boot", "pvh", stdin=b"panic\n")
    tap.check(status == 3 and "panicked" in err, "a panic is told")


def a_reset_boots_again():
    with at_prompt(reboot=True) as guest:
        guest.console.send("reboot\r")
        tap.check(
            guest.console.expect(b"\nsonde> ", LIMIT) is not None, "a second prompt"
        )
        tap.check(ask(guest, "cat /proc/version"), "and it answers")


READ_ONLY = """
mount --bind . . && mount -o remount,ro,bind . && cd "$PWD" && ./sonde exec 'echo hi'
"""


def a_checkout_that_cannot_be_written_runs():
    """It is built already; nothing has to be written in it."""
    sonde("exec", "echo built")
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", READ_ONLY],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    tap.equal((done.returncode, done.stdout, done.stderr), (0, "hi\n", ""), "exec")


tap.run(
    every_way_reaches_the_prompt,
    lists_come_with_the_image,
    boot_arguments_arrive,
    a_loader_that_leaves_no_information_is_told,
    a_slow_timer_does_not_make_seconds_longer,
    memory_behind_the_direct_map_is_left_out,
    piped_input_is_typed_after_the_prompt,
    a_reset_boots_again,
    a_checkout_that_cannot_be_written_runs,
)
