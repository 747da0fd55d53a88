#!/usr/bin/env python3
"""test_module_loop.py - tests ./sonde module: the test edits a handler, and the new
handler is hit in a guest that has been running all the time.

The test prints the time from the edit to the first hit, as the median of five. On a busy
machine this time says little.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from unittest import mock

sys.dont_write_bytecode = True
import tap
from fake import heed_interrupts
from kernel.module import send
from sonde.guest import ROOT, Guest, Setup
from sonde.machine import Reply

LIMIT = 60
EDITS = 5
SONDE = [sys.executable, os.path.join(ROOT, "sonde"), "module"]

SOURCE = """
#include "kernel/module/module.h"
#include "kernel/work/work.h"
#include "probes/kprobe.h"

static long last;

static int handler(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    last = VERSION;
    return 0;
}

static struct kprobe probe = { .symbol_name = "vfs_stat", .pre_handler = handler };

__attribute__((constructor)) static void edited_init(void) { register_kprobe(&probe); }
__attribute__((destructor)) static void edited_exit(void) { unregister_kprobe(&probe); }

static int edited_run(struct work *w)
{
    seq_printf(w->out, "version %ld\\n", last);
    return 0;
}
WORKLOAD(edited, edited_run, "which version was hit last");
"""


def module(*words):
    done = subprocess.run(
        [*SONDE, *words], capture_output=True, text=True, check=False, timeout=LIMIT
    )
    return done.returncode, done.stdout + done.stderr


def write(path, version):
    with open(path, "w", encoding="utf-8") as file:
        file.write(SOURCE.replace("VERSION", str(version)))


def edits_reach_a_running_guest(folder, line):
    path = os.path.join(folder, "edited.c")
    seconds = []
    for version in range(1, EDITS + 1):
        begun = time.monotonic()
        write(path, version)
        status, text = module("--socket", line, path, "stat /tmp", "run edited")
        seconds.append(time.monotonic() - begun)
        if not tap.check(
            status == 0 and f"version {version}\n" in text,
            f"edit {version}: the new handler is hit",
        ):
            tap.note(text)
    tap.note(f"edit to hit: {statistics.median(seconds):.2f} s, the median of {EDITS}")
    write(path, "1 +")
    status, text = module("--socket", line, path)
    tap.check(
        status == 1 and "does not compile" in text, "a source that does not compile"
    )
    write(path, "not_there()")
    status, text = module("--socket", line, path)
    tap.check(status == 1 and "not_there" in text, "a name that nothing has")


def no_command_is_left_behind(path, line):
    words = ["--socket", line, "--timeout", "5", path, "echo begun", "sleep 100"]
    for number, want in ((0, 124), (signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with subprocess.Popen(
            [*SONDE, *words], stdout=subprocess.PIPE, preexec_fn=heed_interrupts
        ) as process:
            process.stdout.readline()
            process.send_signal(number)
        tap.equal(process.returncode, want, f"a command that is ended: status {want}")
    status, text = module("--socket", line, path, "echo next")
    tap.equal((status, text), (0, "next\n"), "the guest takes the next one")


def a_guest_that_stays():
    with tempfile.TemporaryDirectory() as folder:
        line = os.path.join(folder, "line")
        with Guest(Setup(socket=line)) as guest:
            guest.wait_prompt(LIMIT)
            edits_reach_a_running_guest(folder, line)
            write(folder + "/edited.c", 0)
            no_command_is_left_behind(folder + "/edited.c", line)
            status, text = module(
                "--socket", line, folder + "/edited.c", "poweroff # now"
            )
            tap.equal((status, text), (0, ""), "a guest that is switched off as asked")
        with Guest(Setup(socket=line)) as guest:
            guest.wait_prompt(LIMIT)
            status, text = module("--socket", line, folder + "/edited.c", "panic")
            tap.equal(status, 4, f"one that ends otherwise: {text!r}")


def any_file_name():
    """The guest's name of a module has _ for each character that a name cannot have."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "it's ré;1.c")
        write(path, 5)
        status, said = module(path, "stat /tmp", "run edited", "module list")
        loaded = status == 0 and "version 5" in said
        tap.check(loaded, "a file with a strange name is loaded")
        tap.check("it_s_r__1" in said, "by a name that can be typed")
        _, said = module("--json", path, "stat /tmp", "nonsense")
        rows = [json.loads(line) for line in said.splitlines() if line[0] == "{"]
        tap.equal([row.get("module") for row in rows], [path, None, None], "as JSON")
        with open(path, "w", encoding="utf-8") as file:
            file.write("int broken")
        _, said = module("--json", path)
        row = json.loads(said[said.index("{") :].splitlines()[0])
    tap.equal((row["exit"], "does not compile" in row["error"]), (1, True), "a refusal")


def a_full_device():
    """The compiler fails for want of room: that is no mistake of the source."""
    small = (
        'mount -t tmpfs -o size=64k none "$1" && ! head -c 1M /dev/zero >"$1/fill" && '
    )
    small += 'TMPDIR="$1" exec "$2" "$3" "$4" "$5"'
    sample = os.path.join(ROOT, "docs/samples/reads.c")
    with tempfile.TemporaryDirectory() as folder:
        words = ["unshare", "-rm", "sh", "-c", small, "sh"]
        words += [folder, *SONDE, sample]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if "unshare" in done.stderr or "mount" in done.stderr:
            tap.skip("a device that is full", done.stderr.strip())
            return
        why = f"sonde: no space is left on the device of {folder}"
    tap.equal((done.returncode, done.stderr.splitlines()[-1]), (5, why), "is told")


def two_modules_of_one_name():
    """While a module is made, another one of the same file name is loaded elsewhere."""
    loaded, noted = {}, []

    def load(folder, name):
        line = mock.Mock(**{"request.return_value": Reply(b"", 0, "OK")})
        os.mkdir(os.path.join(folder, name))
        path = os.path.join(folder, name, "named.c")
        with open(path, "w", encoding="ascii") as file:
            file.write(f'const char named[] = "this is {name}";')
        send.load(line, path, LIMIT)
        loaded[name] = str(line.request.call_args_list)

    def note(path):
        noted.append(path)
        if len(noted) == 1:
            other.start()
            other.join(1)
        usual(path)

    with tempfile.TemporaryDirectory() as folder:
        other = threading.Thread(target=load, args=(folder, "two"))
        usual = send.params.note
        with mock.patch.object(send.params, "note", note):
            load(folder, "one")
            other.join()
    for name, text in loaded.items():
        tap.check(f"this is {name}" in text, f"guest {name} gets its own module")


def no_guest_at_the_socket():
    with tempfile.TemporaryDirectory() as folder:
        line = os.path.join(folder, "line")
        found = module("--socket", line, os.path.join(ROOT, "docs", "samples", "reads.c"))
        tap.equal(
            found,
            (
                1,
                f"sonde: no guest listens at {line}: No such file or directory; "
                f"start one with ./sonde run --socket {line}\n",
            ),
            "no guest",
        )


tap.run(
    two_modules_of_one_name,
    a_full_device,
    any_file_name,
    no_guest_at_the_socket,
    a_guest_that_stays,
)
