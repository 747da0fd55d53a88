"""test_trace.py - tests gdb's tracepoints on the kernel's own stub: gdb collects frames,
shows them, saves them to files, and shows them again from a file.
"""

import os
import re
import subprocess
import tempfile

import tap
from sonde.guest import ELF, ROOT

LIMIT = 300

TRACE = """
trace vfs_read
actions
collect count, $regs, *file
end
ftrace *(vfs_read+5) if count != 0
actions
collect $rsp, $locals
end
tvariable $calls = 0
trace vfs_open
actions
collect $calls = $calls + 1, path
end
tstart
break shell_read_file
continue
tstop
tstatus
tfind 0
tfind tracepoint 1
tdump
print count
tfind tracepoint 2
print (long) $pc - (long) vfs_read
tfind none
tsave {file}
tsave -ctf {folder}
delete 1 2 3
trace vfs_open
actions
collect/s path
end
tstart
continue
tstop
tfind 0
tdump
"""

LOOK = """
target tfile {file}
tstatus
tfind 0
tfind tracepoint 1
tdump
print count
tfind tracepoint 2
print (long) $pc - (long) vfs_read
"""


def gdb(*words):
    done = subprocess.run(
        words,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        stdin=subprocess.DEVNULL,
    )
    tap.equal(done.returncode, 0, "gdb ends well")
    if done.returncode:
        tap.note((done.stdout + done.stderr)[-3000:])
    return done.stdout + done.stderr


def written(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("set pagination off\nset confirm off\n" + text)
    return path


def finds(text, pattern, fact):
    tap.check(re.search(pattern, text), fact)


def shows_the_frames(text):
    finds(text, r"Found trace frame 0, tracepoint [13]", "tfind finds a frame")
    finds(
        text,
        r"Data collected at tracepoint 1, trace frame \d+:\n(.*\n)*?count = \d+",
        "tdump shows what was collected",
    )
    finds(text, r"\nrip +0x[0-9a-f]+ +0x[0-9a-f]+ <vfs_read>", "registers, too")


def shows_the_fast_ones(text):
    finds(text, r"Found trace frame \d+, tracepoint 2", "a frame of the fast tracepoint")
    finds(text, r"\$\d+ = 5\b", "at an instruction of one byte")


def traced_and_saved():
    with tempfile.TemporaryDirectory(prefix="sonde-") as folder:
        file, ctf = os.path.join(folder, "t.tf"), os.path.join(folder, "ctf")
        first = written(folder, "trace.gdb", TRACE.format(file=file, folder=ctf))
        text = gdb(
            "./sonde",
            "gdb",
            "--stub",
            "run vfs",
            "cat /proc/version",
            "cat /proc/cmdline",
            "--",
            "-batch",
            "-x",
            first,
        )
        finds(text, r"Fast tracepoint 2 at ", "ftrace takes an instruction of one byte")
        finds(
            text,
            r"Collected \d+ trace frames|collected \d+ trace frames",
            "tstatus counts the frames",
        )
        shows_the_frames(text)
        shows_the_fast_ones(text)
        tap.check(os.path.getsize(file) > 100000, "tsave writes them to a file")
        tap.check(os.path.exists(os.path.join(ctf, "metadata")), "and as CTF")
        finds(
            text, r"\npath = 0x[0-9a-f]+ \"/proc/version\"", "collect/s collects a text"
        )
        look = gdb(
            "gdb",
            "-nx",
            "-q",
            "-batch",
            ELF,
            "-x",
            written(folder, "look.gdb", LOOK.format(file=file)),
        )
        shows_the_frames(look)
        shows_the_fast_ones(look)
        if tap.failed:
            tap.note(text[-3000:])
            tap.note(look[-3000:])


tap.run(traced_and_saved)
