"""test_replay.py - replays a recorded run under gdb, and goes back to a hit and
to a store.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile

from under import ROOT
from session import sonde

import tap

FAILS = "contain.a_spinlock_that_is_taken_twice_is_named"  # this test fails by a panic
COMMANDS = ("probe add vfs_read", "cat /proc/version", "cat /proc/cmdline")


def with_a_recording(test):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run")
        status, out, err = sonde("record", path, *COMMANDS)
        tap.equal(status, 0, "a run is recorded")
        tap.check(
            "sonde version" in out and f"./sonde replay {path}" in err,
            "what it printed is shown, and how it is replayed",
        )
        tap.check("one CPU" in err, "and that it has one CPU")
        test(path)


def replayed(path, *commands):
    words = [word for command in commands for word in ("-ex", command)]
    _, out, err = sonde("replay", path, "--", "-batch", *words)
    return out + err


def back_to_hits(path):
    text = replayed(
        path,
        "break vfs_open",
        "back-to-probe p1 2",
        "bt",
        "info breakpoints",
        "probes",
        "back-to-probe p1 99",
    )
    place = re.search(r"^vfs_read\+0x0: (\d+) of (\d+)$", text, re.M)
    if not tap.check(
        place and int(place[1]) == int(place[2]) - 1, "at the last hit but one"
    ):
        tap.note(text)
        return
    tap.check(
        re.search(r"^#0  vfs_read \(", text, re.M) and "thread_entry" in text,
        "in the probed function, with its callers",
    )
    tap.check(
        re.search("^1 +breakpoint +keep y ", text, re.M) and "already hit" not in text,
        "the user's breakpoint was off, and is on again",
    )
    tap.check(f"hits {int(place[2]) - 2} missed" in text, "before the hit is counted")
    tap.check(f"p1 has {place[2]} hits" in text, "there are no more hits than there are")
    if tap.LONG:
        text = replayed(path, "who-wrote jiffies", "bt 1")
        tap.check(
            re.search(r"^jiffies: (\d+) of \1$", text, re.M) and "sched_tick" in text,
            "who-wrote: the last tick",
        )


def others_are_refused(path):
    """replay refuses the recording of another build, and a file that is no recording."""
    other = path + ".other"
    for setting, changed, told in (
        (rb'"build": "..', b'"build": "zz', "another build"),
        (rb'"memory": "[^"]*"', b'"memory": 1', "is no recording"),
    ):
        with tarfile.open(path) as old, tarfile.open(other, "w") as new:
            for member in old.getmembers():
                data = old.extractfile(member).read()
                if member.name == "about.json":
                    data = re.sub(setting, changed, data)
                with open(path + ".part", "wb") as file:
                    file.write(data)
                new.add(path + ".part", member.name)
        status, _, err = sonde("replay", other, "--", "-batch")
        tap.check(status == 5 and told in err, f"{changed} is refused: {err!r}")
    with open(other, "wb") as file:
        file.write(b"no recording")
    status, _, err = sonde("replay", other, "--", "-batch")
    tap.check(status == 5 and "no recording" in err, "and so is another file")


def a_recorded_run():
    def both(path):
        back_to_hits(path)
        others_are_refused(path)

    with_a_recording(both)


def a_test_that_fails():
    """The runner runs a failed test with one CPU again under record, and prints the line
    that replays it.
    """
    words = [sys.executable, os.path.join(ROOT, "tests/run/kernel_test.py"), FAILS, "1"]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    tap.check(re.search("^not ok ", said, re.M), "a test fails")
    line = re.search(r"^# .*it fails, too; replay: [.]/sonde (replay (\S+))$", said, re.M)
    if not tap.check(line and os.path.exists(os.path.join(ROOT, line[2])), "and is kept"):
        tap.note(said[-2000:])
        return
    text = replayed(line[2], "break panic", "continue", "bt")
    stop = re.search(r"Breakpoint 1, .*panic", text)
    if not tap.check(stop, "its replay comes to the panic"):
        tap.note(text[-2000:])
    words[2] = "frame"
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    tap.check("record" not in said, "a test that passes is not run again")


sys.stdout.reconfigure(line_buffering=True)
tap.run(a_recorded_run, a_test_that_fails)
