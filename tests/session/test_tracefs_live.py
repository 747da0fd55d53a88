#!/usr/bin/env python3
"""test_tracefs_live.py - tests ./sonde tracefs: perf probe, trace-cmd and a shell script
work on the tracing files of a guest as they do on the files of the host's kernel.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import tap
from fake import run_launcher
from sonde.guest import ELF, ROOT
from session import LIMIT, sonde

SCRIPT = """
cd /sys/kernel/tracing
grep -q '\\[local\\]' trace_clock && echo clock
echo 'p:k/reads vfs_read count=%dx:u64' > kprobe_events
cat kprobe_events
echo 'r:k/back vfs_read' >> kprobe_events
wc -l < kprobe_events
echo 'p:k/no nothing_like_this' 2>/dev/null >> kprobe_events || echo refused
tail -n 1 error_log
echo 1 > events/k/enable
echo 1 2>/dev/null > kprobe_events || echo busy
echo 'run vfs' > sonde
cat sonde
echo 0 > events/enable
ls events/k
grep -c 'work/.*reads: (vfs_read' trace
[ -w trace ] && [ -d events ] && [ ! -e nope ] && echo names
printf '' > trace
grep reads: trace | wc -l
"""
PIPE = """
cd /sys/kernel/tracing
cat trace_pipe > FOLDER.pipe &
reader=$!
reads() { [ -e /proc/$reader/fd/1 ]; } # a process that has ended has none open
sleep 1
reads && wc -c < FOLDER.pipe
echo hello > trace_marker
while reads && ! grep -q hello FOLDER.pipe; do sleep 0.1; done
reads && echo waits on
echo 0 > tracing_on
wait $reader && wc -l < FOLDER.pipe
timeout 1 cat trace_pipe
echo $?
dd if=trace_pipe iflag=nonblock status=none 2>&1 | grep -c 'temporarily unavailable'
rm FOLDER.pipe
"""
SHORT = """
T=/sys/kernel/tracing
echo 'p:foo vfs_read count=$arg3' > $T/kprobe_events
run="echo 'run vfs' > $T/sonde"
for i in 1 2 3 4 5 6; do
    trace-cmd record -e kprobes -o FOLDER.dat sh -c "$run" >/dev/null 2>&1
    trace-cmd report -i FOLDER.dat | grep -c 'work/.*foo:'
done
trace-cmd stream -e kprobes sh -c "$run; sleep 2" | grep -c foo:
echo 1 > $T/events/kprobes/foo/enable
cat $T/README $T/kprobe_events >/dev/null
sh -c "$run"
cat $T/README $T/kprobe_events >/dev/null
grep -c foo: $T/trace
dd if=$T/per_cpu/cpu0/trace_pipe_raw bs=4096 count=1 2>/dev/null | wc -c
cat $T/per_cpu/cpu0/trace_pipe_raw | wc -c | grep -cx 0
sh -c "$run"
dd if=$T/per_cpu/cpu0/trace_pipe_raw bs=4096 count=1 2>/dev/null | wc -c
echo > $T/trace
cat $T/per_cpu/cpu0/trace_pipe_raw $T/per_cpu/cpu1/trace_pipe_raw | wc -c
rm FOLDER.dat
"""
# Each line tries a way to the files of the host, which have an instance MARKER.
WAYS_OUT = """
mkdir FOLDER.m
exec 2>/dev/null
trace-cmd record -e ftrace -o FOLDER.dat true >/dev/null
ls /sys/kernel/debug/tracing/README
umount /sys/kernel/tracing && echo umounted
umount /sys/kernel/debug && echo umounted
mount -t tracefs none FOLDER.m && echo tracefs
mount -t debugfs none FOLDER.m && echo debugfs
mount -t sysfs none FOLDER.m && echo sysfs
unshare --mount mount -t tracefs none FOLDER.m && echo unshared
unshare --mount --user --map-root-user sh -c '
    umount /sys/kernel/tracing || mount -t tracefs none FOLDER.m' && echo user
nsenter --target 1 --mount ls /sys/kernel/tracing/instances
ls /proc/1/root/sys/kernel/tracing/instances
cut -d' ' -f2 /proc/mounts | while read -r place; do
    ls -d "$(printf "$place")"/instances/MARKER "$(printf "$place")"/tracing/instances/MARKER
done
rm -rf FOLDER.m FOLDER.dat
"""


def run(script, name="sh"):
    """Run a script under ./sonde tracefs. Return (status, its lines, its errors). Its input
    is no pipe: if that is closed, trace-cmd stream reads without end after its readers have
    ended.
    """
    with tempfile.TemporaryDirectory() as folder:
        script = "exec </dev/null\n" + script.replace("FOLDER", folder + ".x")
        status, out, err = sonde("tracefs", folder, "--", name, "-c", script)
        tap.check(not is_mounted(folder), "the files are gone behind it")
    return status, out.splitlines(), err


def a_shell_script():
    status, lines, err = run(SCRIPT)
    tap.equal(status, 0, "the script ends well")
    want = [
        "clock",
        "p:k/reads vfs_read count=%dx:u64",
        "2",
        "refused",
        r" +\^",
        "busy",
        "vfs: checksum .* calls 720 of vfs_read",
        "back",
        "enable",
        "filter",
        "reads",
        "720",
        "names",
        "0",
    ]
    tap.equal(
        [line for line, pattern in zip(lines, want) if not re.fullmatch(pattern, line)],
        [],
        "each line is the one that Linux would give",
    )
    if not tap.equal(len(lines), len(want), "and all are there"):
        tap.note("\n".join(lines) + err)


def a_pipe_waits():
    """A read of trace_pipe waits for a record, until tracing is off or a signal comes."""
    status, lines, err = run(PIPE)
    tap.equal(
        (status, lines),
        (0, ["0", "waits on", "1", "124", "1"]),
        "trace_pipe waits, beside other calls, and ends as on Linux",
    )
    tap.note(err)


def short_recordings():
    """A recording has all events, however short the command is, and no event of an
    earlier one."""
    status, lines, err = run(SHORT)
    want = ["720"] * 8 + ["4096", "0", "4096", "0"]
    tap.equal((status, lines), (0, want), "each has the 720 reads of its command")
    tap.note(err)


LATE = 1  # seconds
ONE = """
echo 'p:foo vfs_read count=$arg3' > /sys/kernel/tracing/kprobe_events
run="echo 'run vfs' > /sys/kernel/tracing/sonde"
trace-cmd record -e kprobes -o FOLDER.dat sh -c "$run" >/dev/null 2>&1
trace-cmd report -i FOLDER.dat | grep -c 'work/.*foo:'
rm FOLDER.dat
"""


def readers_that_begin_late():
    """The readers of trace-cmd begin long after the command. What they need from the guest
    is known before, and tracing goes on until they have begun.
    """
    from probes.trace.host import tracefs

    ask, open_raw = tracefs.Tree.ask, tracefs.Tree.open_raw

    def ask_late(self, command, path):
        is_new = (command, path) not in self.kept
        if is_new and (path.startswith("/per_cpu") or path in tracefs.HEADERS):
            time.sleep(LATE)
        return ask(self, command, path)

    def open_late(self, path):
        time.sleep(LATE)
        open_raw(self, path)

    tracefs.Tree.ask, tracefs.Tree.open_raw = ask_late, open_late
    with tempfile.TemporaryDirectory() as folder:
        script = ONE.replace("FOLDER", folder + ".x")
        got = run_launcher("tracefs", folder, "--", "sh", "-c", script)
    tracefs.Tree.ask, tracefs.Tree.open_raw = ask, open_raw
    tap.equal(got, (0, b"720\n", ""), "a recording has all events")


def programs_work():
    """Type each command of tracefs.tsv, in a guest. RUN and sonde.elf are files."""
    with open(os.path.join(ROOT, "tests/session/tracefs.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line[0] != "#"]
    script = "echo 'p:foo vfs_read count=$arg3' > /sys/kernel/tracing/kprobe_events\n"
    script += "mkdir FOLDER; cd FOLDER; ln -s %s sonde.elf; PATH=$PATH:$PWD\n" % ELF
    script += "printf '#!/bin/sh\\necho run vfs > /sys/kernel/tracing/sonde' > RUN\n"
    script += "chmod +x RUN\n"
    for command, _ in rows:
        script += f'{command} > said 2>&1; echo "=$?"; tail -c 2000 said\n'
    script += "echo =; rm -r FOLDER"
    _, lines, err = run(script)
    parts = re.split(r"^=", "\n".join(lines), flags=re.M)[1:-1]
    tap.equal(len(parts), len(rows), "all commands were run")
    for (command, result), part in zip(rows, parts):
        status, _, said = part.partition("\n")
        words = re.search(r'"(.*)"', result)
        if result.startswith("works"):
            right = status == "0"
        else:
            right = words[1] in said if words else status != "0"
        if not tap.check(right, f"{command}: {result}"):
            tap.note(part)


def the_host_is_out_of_reach():
    if os.getuid():
        tap.skip("programs never reach the host's files", "only root can mount them")
        return
    with tempfile.TemporaryDirectory() as folder:
        marker = os.path.basename(folder)
        inside = WAYS_OUT.replace("FOLDER", folder + ".x").replace("MARKER", marker)
        outside = """
            mount -t tracefs none /sys/kernel/tracing
            mkdir "$1.a b" "$1.debug" "$1.guest" /sys/kernel/tracing/instances/$4 || exit 9
            mount -t tracefs none "$1.a b"
            mount -t debugfs none "$1.debug"
            ls "$1.a b/instances" "$1.debug/tracing/instances" | grep -cx $4
            "$2" tracefs "$1.guest" -- sh -c "$3"
            rmdir /sys/kernel/tracing/instances/$4
            umount "$1.a b" "$1.debug"
            rmdir "$1.a b" "$1.debug" "$1.guest"
        """
        words = [folder, os.path.join(ROOT, "sonde"), inside, marker]
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", outside, "sh", *words],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    if done.returncode == 9:
        tap.skip("programs never reach the host's files", "the host has no tracefs")
        return
    want = ["2", "/sys/kernel/debug/tracing/README"]
    tap.equal(done.stdout.split("\n")[:-1], want, "programs never reach the host's files")
    tap.note(done.stderr)


def is_mounted(folder):
    """Is @folder a mount? A dead mount is one, which os.path.ismount() does not see."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        return f" {folder} " in mounts.read()


def wait_for_mount(folder, wanted):
    """Wait until @folder is a mount, or is none."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if is_mounted(folder) == wanted:
            return True
        time.sleep(0.01)
    return False


def a_guest_that_ends():
    """The report is shown, and the files are gone while the command still runs; also those
    that an earlier ./sonde has left because it was killed.
    """
    for command, *wanted in (
        ("panic", 3, "| end of panic", "panicked"),
        ("poweroff", 4, "| [", "switched itself off"),
    ):
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as file:
            script = f"echo {command} > /sys/kernel/tracing/sonde; "
            script += f"while [ -e {file.name} ]; do sleep 0.1; done; exit 7"
            words = [os.path.join(ROOT, "sonde"), "tracefs", folder, "--", "sh", "-c"]
            process = subprocess.Popen(
                [*words, script], stderr=subprocess.PIPE, text=True
            )
            gone = wait_for_mount(folder, True) and wait_for_mount(folder, False)
            tap.check(gone and process.poll() is None, f"{command}: the files are gone")
            file.close()
            _, err = process.communicate(timeout=LIMIT)
        got = [process.returncode, *(word for word in wanted[1:] if word in err)]
        tap.equal(got, wanted, "its report is shown")
        tap.check("while sh ran" in err, "with when it came")
    with tempfile.TemporaryDirectory() as folder:
        sonde("tracefs", folder, "--", "sh", "-c", "kill -9 $PPID; sleep 1")
        tap.check(
            not os.path.isdir(folder), "a ./sonde that is killed leaves a dead mount"
        )
        status, out, _ = sonde("tracefs", folder, "--", "echo", "x")
        tap.equal((status, out), (0, "x\n"), "the next one takes it away")


def a_signal_ends_it():
    with tempfile.TemporaryDirectory() as folder:
        words = [os.path.join(ROOT, "sonde"), "tracefs", folder, "--", "sleep", "100"]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        tap.check(wait_for_mount(folder, True), "the files are there")
        process.terminate()
        _, err = process.communicate(timeout=LIMIT)
        tap.equal(
            (process.returncode, err),
            (128 + signal.SIGTERM, ""),
            "SIGTERM ends it, in silence",
        )
        tap.check(not is_mounted(folder), "the files are gone behind it")


def a_signal_while_it_mounts():
    """The signal comes before the files are there, or before the command is started."""
    from probes.trace.host import tracefs

    wait, fuse, begun = tracefs.Mounted._wait, tracefs.fusepy.FUSE, threading.Event()

    def late(*arguments, **more):
        begun.set()
        time.sleep(LATE)
        fuse(*arguments, **more)

    for is_there in (False, True):

        def interrupted(self):
            found = wait(self) if is_there else begun.wait(LIMIT)
            os.kill(os.getpid(), signal.SIGTERM)
            return found

        tracefs.Mounted._wait = interrupted
        tracefs.fusepy.FUSE = fuse if is_there else late
        with tempfile.TemporaryDirectory() as folder:
            status, _, err = run_launcher("tracefs", folder, "--", "true")
            mounted = is_mounted(folder)
            if mounted:
                subprocess.run(["fusermount", "-u", "-z", folder], check=True)
        where = "when" if is_there else "before"
        tap.equal((status, err), (128 + signal.SIGTERM, ""), f"{where} they are there")
        tap.check(not mounted, "the files are gone behind it")
    tracefs.Mounted._wait = wait


def an_interrupt():
    script = (
        "timeout -s INT 2 sh -c 'echo sleep 100 > FILE'; echo echo x > FILE; cat FILE"
    )
    _, lines, err = run(script.replace("FILE", "/sys/kernel/tracing/sonde"))
    tap.equal(lines, ["x"], "a signal ends the command of the console")
    tap.note(err)


def a_host_without_tracefs():
    """If the host has not mounted its tracefs, trace-cmd must not mount and use it: it
    would start and stop the tracing of the host.
    """
    if os.getuid():
        tap.skip("programs never see the host's files", "only root can take a mount away")
        return
    with tempfile.TemporaryDirectory() as folder:
        script = 'umount /sys/kernel/tracing 2>/dev/null; exec "$@"'
        done = subprocess.run(
            [
                "unshare",
                "--mount",
                "sh",
                "-c",
                script,
                "sh",
                os.path.join(ROOT, "sonde"),
                "tracefs",
                folder,
                "--",
                "trace-cmd",
                "list",
                "-e",
            ],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    tap.check("markers:vfs_read" in done.stdout, "programs never see the host's files")
    tap.note(done.stderr)


def statuses_and_refusals():
    with tempfile.TemporaryDirectory() as folder:
        tap.equal(
            sonde("tracefs", folder, "--", "sh", "-c", "exit 7")[0],
            7,
            "the status is the command's",
        )
        tap.equal(sonde("tracefs", folder)[0], 2, "a command is needed")
        with open(os.path.join(folder, "x"), "wb"):
            tap.equal(sonde("tracefs", folder, "--", "true")[0], 2, "and an empty folder")


def can_mount():
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError:
        return False
    return True


def it_says_that_it_cannot():
    with tempfile.TemporaryDirectory() as folder:
        status, _, err = sonde("tracefs", folder, "--", "true")
        tap.check(status == 5 and "/dev/fuse does not open" in err, "no FUSE is told")


if can_mount():
    tap.run(
        a_shell_script,
        a_pipe_waits,
        short_recordings,
        readers_that_begin_late,
        programs_work,
        the_host_is_out_of_reach,
        a_guest_that_ends,
        an_interrupt,
        a_signal_ends_it,
        a_signal_while_it_mounts,
        a_host_without_tracefs,
        statuses_and_refusals,
    )
else:
    tap.run(it_says_that_it_cannot)
