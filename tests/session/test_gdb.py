"""test_gdb.py - tests `./sonde gdb`: it stops at the first instruction, its helpers know
the kernel and its probes, and breakpoints and probes work at the same address.
"""

import os
import re
import subprocess
import tempfile
import time

import tap
from sonde.guest import ELF, ROOT
from session import LIMIT, ask, at_prompt, sonde


def as_words(commands):
    return ["-batch"] + [word for command in commands for word in ("-ex", command)]


def gdb(*commands):
    return sonde("gdb", "--", *as_words(commands))


def gdb_on_running_guest(path, *commands):
    """Attach gdb with the helpers to a running guest. Return what gdb prints."""
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


def two_at_a_time():
    """Two `./sonde gdb` run at once, and the second has its own sockets and console. The
    first gdb is no batch, so its guest goes on after the command that it was given.
    """
    words = [os.path.join(ROOT, "sonde"), "gdb", "echo the first", "--"]
    first = subprocess.Popen(
        words + ["-ex", "break power_off", "-ex", "continue"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    said = b""
    while b"the first" not in said:
        said += first.stdout.readline() or b"the first, never"
    tap.check(b"never" not in said, "a command is run once the console is there")
    status, out, err = sonde(
        "gdb",
        "echo the second",
        "poweroff",
        "--",
        *as_words(["break power_off", "continue", "bt 1"]),
    )
    tap.equal(status, 0, "a second guest under gdb")
    tap.check("./sonde attach 2" in err, "its console has a number")
    tap.check(
        "the second" in out and "#0  power_off" in out, "it has run its own commands"
    )
    attach = subprocess.Popen(
        [words[0], "attach"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    attach.stdin.write(b"echo from attach\rpoweroff\r")
    attach.stdin.flush()
    said = first.communicate(timeout=LIMIT)[0]
    tap.check(b"Breakpoint 1, power_off" in said, "meanwhile the first one has gone on")
    tap.check(
        b"from attach" in attach.communicate(timeout=LIMIT)[0], "and has its console"
    )
    if tap.failed:
        tap.note(said.decode() + out + err)


def helpers_know_the_kernel():
    _, out, err = gdb(
        "break shell_start",
        "continue",
        "cpus",
        "threads",
        "probes",
        "trapframe $sp",
        "original vfs_open",
    )
    tap.check(re.search(r"^CPU 0:", out, re.M), "cpus")
    tap.check(re.search(r"^ +\d+ \S+ +running +CPU \d", out, re.M), "threads")
    tap.check("0 probed addresses" in out, "probes, without any")
    tap.check("Dump of assembler code for function vfs_open" in out, "original")
    tap.note(err)


def helpers_know_the_probes():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gdb.sock")
        with at_prompt(
            append="kprobes-jump=off",
            qemu=f"-chardev socket,path={path},server=on,wait=off,id=g -gdb chardev:g",
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


# ---- a breakpoint and a probe at one address ----

STOPS = """
set pagination off
set confirm off
target remote {path}
{breakpoint}
commands
silent
x/1xb vfs_read
continue
end
shell touch {ready}
continue
"""


class Stops:
    """A gdb on a running guest. At its breakpoint on vfs_read it prints the byte there,
    and lets the guest go on at once.
    """

    def __init__(self, folder, path, breakpoint):
        ready = os.path.join(folder, "ready")
        script = os.path.join(folder, "script")
        self.out = os.path.join(folder, "out")
        with open(script, "w") as file:
            file.write(STOPS.format(path=path, ready=ready, breakpoint=breakpoint))
        words = ["gdb", "-nx", "-q", "-batch", "-x", ".gdbinit", "-x", script, ELF]
        with open(self.out, "w") as out:
            self.process = subprocess.Popen(
                words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        deadline = time.monotonic() + LIMIT
        while not os.path.exists(ready) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.unlink(ready)

    def bytes(self):
        """Return the byte that gdb found at vfs_read, for each stop up to now."""
        with open(self.out) as file:
            return re.findall(r"<vfs_read>:\t(0x..)", file.read())

    def end(self):
        self.process.kill()
        self.process.wait()


def hits_of(guest):
    row = re.search(r"(\d+) +(\d+)  vfs_read", ask(guest, "probe list"))
    return int(row[1]), int(row[2])


def read(guest, stops):
    """Read a file. Return (its text, the bytes that gdb found at the stops meanwhile)."""
    before = len(stops.bytes())
    text = ask(guest, "cat /proc/version")
    return text, stops.bytes()[before:]


def on_one_address(breakpoint, probe_first):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gdb.sock")
        with at_prompt(
            append="kprobes-jump=off",
            qemu=f"-chardev socket,path={path},server=on,wait=off,id=g -gdb chardev:g",
        ) as guest:
            want = ask(guest, "cat /proc/version")
            if probe_first:
                ask(guest, "probe add vfs_read")
            stops = Stops(folder, path, breakpoint)
            try:
                text, alone = read(guest, stops)
                if not probe_first:
                    tap.equal(set(alone), {"0x0f"}, "the breakpoint stops, unprobed")
                    ask(guest, "probe add vfs_read")
                    text, alone = read(guest, stops)
                hits = hits_of(guest)
                tap.equal(set(alone), {"0xcc"}, "both: it stops before the probe's int3")
                tap.equal(hits, (len(alone), 0), "and each stop is a hit")
                tap.equal(text, want, "and the file is read as without them")
                ask(guest, "probe del all")
                text, alone = read(guest, stops)
                tap.equal(set(alone), {"0x0f"}, "without the probe the text is original")
                tap.equal(text, want, "and still runs")
            finally:
                stops.end()
                if tap.failed:
                    with open(stops.out) as file:
                        tap.note(file.read()[-2000:])


def a_probe_on_a_breakpoint():
    on_one_address("break *vfs_read", False)


def a_breakpoint_on_a_probe():
    on_one_address("kbreak vfs_read", True)


tap.run(
    break_at_kmain,
    two_at_a_time,
    helpers_know_the_kernel,
    helpers_know_the_probes,
    a_probe_on_a_breakpoint,
    a_breakpoint_on_a_probe,
)
