"""test_signals.py - a signal ends each command of ./sonde, and nothing is left of it.

BEGINS has a row for each command that goes on until it is ended; `./sonde --help` has the
commands. Each runs in a folder for temporary files of its own, and its processes are found
by a variable of their environment. The usual run sends one signal to each, a long run all.
"""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

import tap
from fake import heed_interrupts
from sonde.guest import ROOT
from session import LIMIT, sonde

SONDE = os.path.join(ROOT, "sonde")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MARK = "SONDE_TEST_SIGNALS"
SAMPLE = os.path.join(ROOT, "docs/samples/reads.c")
HANDLER = os.path.join(ROOT, "docs/labs/host/handler/solution")
FUSE = os.access("/dev/fuse", os.R_OK | os.W_OK) and not os.getuid()
SLEEPS = """
from sonde import Guest
def test_sleeps(snapshots=True):
    with Guest(snapshots=snapshots) as guest:
        print("begun", flush=True)
        guest.request("sleep 100")
"""
# In the place of a text: the command has begun when it has a guest, or a mount.
QEMU, MOUNT = "a guest", "a mount"


class Command:
    """A running ./sonde. Use with `with`."""

    def __init__(self, folder, words, begun, **more):
        self.folder, self.begun = folder, begun
        self.temporary = os.path.join(folder, "temporary")
        os.mkdir(self.temporary)
        self.mark = f"{MARK}={os.path.basename(folder)}"
        name, _, value = self.mark.partition("=")
        environment = dict(os.environ, TMPDIR=self.temporary, **{name: value}, **more)
        self.output = open(os.path.join(folder, "output"), "w+b", buffering=0)
        self.process = subprocess.Popen(
            [SONDE, *words],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=self.output,
            stderr=self.output,
            env=environment,
            start_new_session=True,
            preexec_fn=heed_interrupts,
        )

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.stdin.close()
        self.process.wait()
        self.output.close()

    def text(self):
        return os.pread(self.output.fileno(), 1 << 20, 0).decode(errors="replace")

    def processes(self):
        """The processes that this command has started, and that have not ended."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(
                f"/proc/{name}/environ", "rb"
            ) as file:
                if self.mark.encode() in file.read().split(b"\0"):
                    found.append(int(name))
        return found

    def has_begun(self):
        if self.begun is MOUNT:
            return mounts(self.folder)
        if self.begun is not QEMU:
            return self.begun in self.text()
        return any("qemu-system" in name_of(pid) for pid in self.processes())

    def wait(self, condition):
        deadline = time.monotonic() + LIMIT
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.05)
        return condition()


def name_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().split(b"\0")[0].decode()
    return ""


def a_file(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def a_folder(folder, name):
    os.mkdir(os.path.join(folder, name))
    return os.path.join(folder, name)


def of_class(folder):
    """Two students, whose handler is graded."""
    for student in ("eve", "bob"):
        shutil.copytree(HANDLER, os.path.join(folder, "in", student, "handler"))
    roster = a_file(folder, "roster.csv", "id\neve\nbob\n")
    return ["class", roster, "--collect", "in"]


def with_recording(folder):
    path = os.path.join(folder, "f")
    sonde("record", path, "echo x")
    return ["replay", path, "--", "-batch", "-ex", r"echo begun\n", "-ex", WAIT]


WAIT = "python import time; time.sleep(100)"
SLEEP = ["echo begun", "sleep 100"]

# {command: [(function that returns its words, what it prints when it has begun)]}
BEGINS = {
    "run": [(lambda f: ["run", "--boot", "pvh"], "sonde> ")],
    "exec": [(lambda f: ["exec", *SLEEP], "begun"), (lambda f: ["exec", *SLEEP], QEMU)],
    "module": [(lambda f: ["module", SAMPLE, *SLEEP], "begun")],
    "trace": [
        (lambda f: ["trace", "-o", "t.dat", "--", *SLEEP], "begun"),
        (lambda f: ["trace", "p vfs_read", "--", *SLEEP], QEMU),
    ],
    "tracefs": [
        (lambda f: ["tracefs", a_folder(f, "m"), "--", "sh", "-c", "echo begun; sleep 100"],
         "begun"),
        (lambda f: ["tracefs", a_folder(f, "m"), "--", "sleep", "100"], QEMU),
        (lambda f: ["tracefs", a_folder(f, "m"), "--", "sleep", "100"], MOUNT),
    ],
    "gdb": [
        (lambda f: ["gdb", "--", "-batch", "-ex", r"echo begun\n", "-ex", WAIT], "begun"),
        (lambda f: ["gdb", "--stub", "--", "-batch", "-ex", r"echo begun\n", "-ex", WAIT],
         "begun"),
    ],
    "record": [(lambda f: ["record", "x", "sleep 100000"], QEMU)],
    "replay": [(with_recording, "begun")],
    "check": [
        (lambda f: ["check", a_file(f, "t", "sonde> echo x\nx\nsonde> sleep 100\n")], "ok "),
    ],
    "python": [(lambda f: ["python", a_file(f, "t.py", SLEEPS + "test_sleeps()")], "begun")],
    "pytest": [(lambda f: ["pytest", "-s", a_file(f, "test_t.py", SLEEPS)], "begun")],
    "test": [(lambda f: ["test", "kernel/smp2"], QEMU)],
    "web": [(lambda f: ["web", "--port", "0"], "http://")],
    "film": [(lambda f: ["film", "record", "hit"], QEMU)],
    "grade": [(lambda f: ["grade", "handler", HANDLER, "--tree", "--progress"], QEMU)],
    "class": [(lambda f: ["class", "--guests", "2"], QEMU), (of_class, QEMU)],
}  # fmt: skip
ENDS_BY_ITSELF = {"lab"}
BESIDE_GDB = {"attach"}  # session/exits has its signals
# Ctrl-C is for gdb, or for the program that the user has named; on a terminal it gets it.
CTRL_C_IS_FOR_ANOTHER = {"gdb", "replay", "tracefs"}
STATUS = {("web", signal.SIGINT): 0, ("pytest", signal.SIGINT): 2}


def commands():
    text = sonde("--help")[1].partition("exit status:")[0]
    return set(re.findall(r"^    (\w+)  ", text, re.M))


def each_command_has_a_row():
    missing = commands() - set(BEGINS) - ENDS_BY_ITSELF - BESIDE_GDB
    tap.equal(missing, set(), "each command has a row")
    tap.check(len(commands()) > 15, f"there are {len(commands())} of them")


def mounts(folder):
    with open("/proc/mounts", encoding="utf-8") as file:
        return [line for line in file if folder in line]


def ends(make, begun, number):
    with tempfile.TemporaryDirectory(prefix="sonde-signals-") as folder:
        words = make(folder)
        what = f"{' '.join(words)[:40]} ({begun}), {number.name}"
        taps = a_folder(folder, "tap")
        with Command(folder, words, begun, TAP_FOLDER=taps) as command:
            if not tap.check(command.wait(command.has_begun), f"{what}: it has begun"):
                tap.note(command.text()[-2000:])
                return
            if words[0] == "web":
                ask_for_a_guest(command)
            command.process.send_signal(number)
            try:
                status = command.process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                status = "no end"
            want = STATUS.get((words[0], number), 128 + number)
            got = 128 - status if status != "no end" and status < 0 else status
            tap.equal(got, want, f"{what}: its status")
            left = not command.wait(lambda: not command.processes())
            names = [name_of(pid) for pid in command.processes()] if left else []
            tap.equal(names, [], "no process is left")
            tap.equal(mounts(folder), [], "no mount")
            tap.equal(os.listdir(command.temporary), [], "no temporary file")
            is_pythons = words[0] == "python" and number == signal.SIGINT
            told = "Traceback" in command.text()
            if not tap.equal(told, is_pythons, "no traceback, but of a user's script"):
                tap.note(command.text()[-2000:])


def ask_for_a_guest(command):
    address = re.search(r"http://\S+", command.text())[0]
    request = urllib.request.Request(address + "start", b"{}", method="POST")
    with urllib.request.urlopen(request, timeout=LIMIT) as answer:
        answer.read()


def main():
    seed = int(os.environ.get("SEED", random.randrange(1 << 31)))
    tap.note(f"seed {seed}")
    chance = random.Random(seed)

    def test_of(name):
        def test():
            for make, begun in BEGINS[name]:
                some = SIGNALS[name in CTRL_C_IS_FOR_ANOTHER :]
                for number in some if tap.LONG else [chance.choice(some)]:
                    ends(make, begun, number)

        test.__name__ = "ends_" + name
        return test

    names = [name for name in BEGINS if FUSE or name != "tracefs"]
    tap.run(each_command_has_a_row, *map(test_of, names))


main()
