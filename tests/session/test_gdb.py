"""test_gdb.py - `./sonde gdb`: stopped at the first instruction, helpers that see through."""

import os
import re
import subprocess
import tempfile

import tap
from guest import ELF, ROOT
from session import LIMIT, ask, at_prompt, sonde


def as_words(commands):
    return ["-batch"] + [word for command in commands for word in ("-ex", command)]


def gdb(*commands):
    return sonde("gdb", "--", *as_words(commands))


def gdb_on_running_guest(path, *commands):
    """The same helpers on a guest that runs already: what gdb prints."""
    words = ["gdb", "-nx", "-q", "-x", ".gdbinit", ELF]
    words += as_words((f"target remote {path}",) + commands)
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, timeout=LIMIT, check=False
    )
    return done.stdout.decode() + done.stderr.decode()


def break_at_kmain():
    status, out, err = gdb("info registers rip", "break kmain", "continue", "bt")
    tap.equal(status, 0, "gdb ran its commands")
    tap.check(re.search(r"rip\s+0xfff0\b", out), "stopped at the first instruction")
    tap.check(re.search(r"Breakpoint 1, kmain \(", out), "break kmain works")
    tap.check("No symbol" not in out + err and "Error" not in err, "nothing to complain")
    if status or "kmain" not in out:
        tap.note(out + err)


def helpers_know_the_kernel():
    _, out, err = gdb(
        "break shell_start", "continue", "cpus", "threads", "probes", "trapframe $sp",
        "original vfs_open")  # fmt: skip
    tap.check(re.search(r"^CPU 0:", out, re.M), "cpus")
    tap.check(re.search(r"^ +\d+ \S+ +running +CPU \d", out, re.M), "threads")
    tap.check("0 probed addresses" in out, "probes, without any")
    tap.check("Dump of assembler code for function vfs_open" in out, "original")
    tap.note(err)


def helpers_know_the_probes():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gdb.sock")
        with at_prompt(
            qemu=f"-chardev socket,path={path},server=on,wait=off,id=g -gdb chardev:g"
        ) as guest:
            ask(guest, "probe add vfs_read")
            calls = re.search(r"calls (\d+) of", ask(guest, "run vfs"))[1]
            out = gdb_on_running_guest(
                path, "probes", "x/1xb vfs_read", "original vfs_read"
            )
    row = rf"vfs_read\+0x0 +armed +\w+ +probes 1 hits {calls} missed 0"
    tap.check(re.search(row, out), "probes: address, state, hits")
    tap.check(re.search(r"<vfs_read>:\s+0xcc", out), "memory shows the breakpoint")
    code = out.partition("Dump of assembler code for function vfs_read")[2]
    tap.check(code and "int3" not in code, "original shows the text without it")
    if not re.search(row, out) or not code:
        tap.note(out)


tap.run(break_at_kmain, helpers_know_the_kernel, helpers_know_the_probes)
