"""test_exits.py - checks each row of the table of exit statuses in `./sonde --help`.

    tests/run/run_tests.py session/exits [--long]

FACTS has the facts for each row, and names the row by its text. The test fails if a row
has no facts, or if facts have no row. The usual run takes a quarter of the rows of each
text, another one at each time, and checks the first fact of each. SEED=N repeats a run.
"""

import contextlib
import os
import random
import re
import signal
import sys
import socket
import subprocess
import tempfile
import time

import image
import tap
from fake import heed_interrupts, is_gone, run_launcher, with_fake_qemu
from sonde.guest import BUILD, ROOT
from session import LIMIT, Terminal, sonde

SONDE = os.path.join(ROOT, "sonde")
COMMANDS = ("run", "exec", "module", "trace", "tracefs", "gdb", "record", "replay",
            "attach", "python", "pytest", "test", "check", "lab", "grade")  # fmt: skip
ROW = re.compile(r"^ +(\S+)  (\w+(?:(?:, | but )\w+)*) {2,}(\S.*)$", re.M)
RUN = ("run", "--boot", "pvh")


def rows_of_help():
    """Yield (status, command, text) for each row and each command that the row names."""
    _, text, _ = sonde("--help")
    for status, commands, text in ROW.findall(text.partition("exit status:\n")[2]):
        named = commands.removeprefix("all but ").split(", ")
        all_but = [c for c in COMMANDS if c not in named]
        for command in all_but if commands.startswith("all") else named:
            yield status, command, text


def status_of(*words, stdin=b"", **more):
    """Return the exit status of ./sonde. @more: variables of its environment."""
    with tempfile.TemporaryFile() as file:
        environment = dict(os.environ, **more)
        done = subprocess.run(
            [SONDE, *words],
            input=stdin,
            stdout=file,
            stderr=file,
            env=environment,
            timeout=LIMIT,
            check=False,
        )
    return done.returncode


# What a command line of these commands needs at least.
NEEDED = {
    "module": ["x.c"],
    "record": ["x", "echo x"],
    "replay": [__file__],
    "check": ["-"],
    "grade": ["3"],
}


def with_bug(command):
    """Return the status of a command whose function has a bug."""
    with tempfile.TemporaryDirectory() as folder:
        words = NEEDED.get(command, [folder] * (command == "tracefs"))
        return run_launcher(command, *words, BUG=f"command_{command}")[0]


def with_tap_elsewhere(*words, **more):
    """Run ./sonde test with another folder for TAP output, because the same tests may be
    running at the same time.
    """
    with tempfile.TemporaryDirectory() as folder:
        return status_of(*words, TAP_FOLDER=folder, **more)


def with_fake(*words, fake, stdin=b""):
    return with_fake_qemu(lambda: run_launcher(*words, fake=fake, stdin=stdin)[0])


def after_signal(number, *words, begun=None, **more):
    """Send a signal to ./sonde, or with -number to the program that it has started.
    Return the exit status of ./sonde. The signal is sent as soon as the file @begun is
    there, or without @begun when ./sonde has printed its first prompt or line. @more:
    variables of its environment.
    """
    process = subprocess.Popen(
        [SONDE, *words],
        stdin=subprocess.PIPE,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ, **more),
        preexec_fn=heed_interrupts,
    )
    with process:
        try:
            if begun:
                wait_for_file(begun)
            elif words[0] == "check":
                process.stdout.readline()
            else:
                read_up_to(process, b"sonde> ")
            child = last_child(process.pid)
            # In a replay gdb has started QEMU.
            below = children(child) if words[0] == "replay" else []
            os.kill(process.pid if number > 0 else child, abs(number))
            status = process.wait(LIMIT)
        finally:
            process.kill()
    tap.check(
        all(map(is_gone, [child, *below])), f"{words[0]}: what it had started is gone"
    )
    return status if status >= 0 else 128 - status


def signal_in_a_fork(number):
    """Send the signal while Python forks, where it drops an exception."""
    sent = (
        f"os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), {number:d}))"
    )
    with tempfile.TemporaryDirectory() as folder:
        with open(
            os.path.join(folder, "sitecustomize.py"), "w", encoding="ascii"
        ) as file:
            file.write(f"import os\n{sent}\n")
        return status_of("exec", "sleep 100", PYTHONPATH=folder)


def check_after_signal(number):
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("sonde> echo x\nx\nsonde> sleep 100\n")
        file.flush()
        return after_signal(number, "check", file.name)


def test_after_signal(number):
    """Wait for a file, because prove writes its output only when its buffer is full."""
    with tempfile.TemporaryDirectory() as folder:
        return after_signal(
            number,
            "test",
            "run/launcher",
            TAP_FOLDER=folder,
            begun=os.path.join(folder, "run-launcher"),
        )


SLEEPS = """
from sonde import Guest
def test_sleeps():
    with Guest() as guest:
        print(guest.request("echo 'sonde> '"), flush=True)
        guest.request("sleep 100")
"""


def script_after_signal(number, *words, more=""):
    """Run a script that sleeps in a guest, by ./sonde python or ./sonde pytest."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "test_sleeps.py")
        with open(path, "w", encoding="ascii") as file:
            file.write(SLEEPS + more)
        return after_signal(number, *words, path)


def wait_for_file(path):
    deadline = time.monotonic() + LIMIT
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.1)


def read_up_to(process, what):
    text = b""
    while what not in text:
        data = os.read(process.stdout.fileno(), 65536)
        if not data:
            break
        text += data
    return text


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def last_child(pid):
    """Return the process that ./sonde has started last: QEMU, gdb or prove. Wait for one,
    because for a moment between two programs a grader has none.
    """
    deadline = time.monotonic() + LIMIT
    while not (found := children(pid)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found[-1]


def key_on_terminal(keys):
    terminal = Terminal(*RUN)
    terminal.expect(b"sonde> ")
    terminal.send(keys)
    return terminal.end()


@contextlib.contextmanager
def guest_under_gdb():
    """Start `./sonde gdb`, with a guest that runs. Use with `with`."""
    path = os.path.join(BUILD, "console.log")
    words = [SONDE, "gdb", "--", "-batch", "-ex", "continue"]
    gdb = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        if os.path.exists(path):
            os.unlink(path)
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), open(path, "rb") as log:
                if b"sonde> " in log.read():
                    break
            time.sleep(0.1)
        yield gdb
    finally:
        gdb.terminate()
        gdb.communicate(timeout=LIMIT)


def attached(*, keys=b"", number=0, twice=False):
    """Run `./sonde attach` and end it by @keys or by signal @number; with @twice, run a
    second one beside it. Return the exit status.
    """
    with guest_under_gdb():
        words = [SONDE, "attach"]
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=heed_interrupts,
        )
        with process:
            try:
                read_up_to(process, b"sonde> ")
                if twice:
                    return status_of("attach")
                if number:
                    process.send_signal(number)
                else:
                    process.stdin.write(keys)
                    process.stdin.flush()
                return process.wait(LIMIT)
            finally:
                process.kill()


def in_shell(words):
    done = subprocess.run(
        ["bash", "-c", words],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT,
        check=False,
    )
    return done.returncode


def broken_build(*words):
    with tempfile.TemporaryDirectory() as folder:
        return status_of(*words, B=folder, CC="false")


def no_tools(*words):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("python3", "sh", "id", "sed"):
            path = subprocess.check_output(["which", name], text=True).strip()
            os.symlink(path, os.path.join(folder, name))
        return status_of(*words, PATH=folder)


def recording(*words):
    """Return (the exit status of `./sonde record`, is there a recording?)."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f")
        return status_of("record", path, *words), os.path.exists(path)


def with_recording(function):
    """Make a recording and return function(its path)."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f")
        status_of("record", path, "echo x")
        return function(path)


def replay_of_nothing():
    with tempfile.NamedTemporaryFile() as file:
        return status_of("replay", file.name, "--", "-batch")


def replay_after_signal(number):
    words = (
        "--",
        "-batch",
        "-ex",
        "echo sonde> \\n",
        "-ex",
        "python import time; time.sleep(100)",
    )
    return with_recording(lambda path: after_signal(number, "replay", path, *words))


def record_after_signal(number):
    with tempfile.TemporaryDirectory() as folder:
        return ended_by(number, "record", os.path.join(folder, "f"), "sleep 100000")


def recorded_until(number):
    return ended_by(number, "trace", "--live")


def recorded_and_written(number):
    """Return the status, and whether the file of the recording is written."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.dat")
        status = ended_by(number, "trace", "-o", path)
        return status, os.path.exists(path) and os.path.getsize(path) > 4096


def ended_by(number, *words):
    """Send a signal to ./sonde after its message that it records. Return its status."""
    process = subprocess.Popen(
        [SONDE, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    )
    with process:
        process.stderr.readline()  # the message that it records
        process.send_signal(number)
        return process.wait(LIMIT)


def recorded_with_failure():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.dat")
        status = status_of("trace", "-o", path, "--", "echo x", "cat /nope")
        return status, os.path.exists(path)


def in_tracefs(function):
    with tempfile.TemporaryDirectory() as folder:
        return function(folder)


def tracefs_after_signal(number):
    """Without FUSE on the host, ./sonde tracefs ends by itself."""
    if not FUSE:
        return in_tracefs(lambda folder: status_of("tracefs", folder, "--", "true"))
    script = "echo 'sonde> '; exec sleep 100"
    return in_tracefs(
        lambda folder: after_signal(number, "tracefs", folder, "--", "sh", "-c", script)
    )


def after_sigpipe(words):
    return in_shell(f"(sleep 0.5; ./sonde {words}) | true; exit ${{PIPESTATUS[0]}}")


def can_open(path):
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError:
        return False
    return True


def graded(*words, **more):
    with tempfile.TemporaryDirectory() as folder:
        return status_of("grade", *words, SONDE_LABS=folder, **more)


def grade_after_signal(number):
    """A signal ends the grader while the student's program hangs. Both must end."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "int3.c"), "w", encoding="ascii") as file:
            file.write(
                "__attribute__((constructor)) static void hang(void) { for (;;) ; }\n"
                "void breakpoint_set(void) {}\nvoid breakpoint_clear(void) {}\n"
            )
        build = os.path.join(folder, "build")
        begun = os.path.join(build, "labs/int3/built/answer")
        return after_signal(
            number,
            "grade",
            "3",
            folder,
            "--tree",
            begun=begun,
            GRADE_SCALE="100",
            B=build,
        )


def with_module(text):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mine.c")
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return status_of("module", path)


def no_guest_at_socket(is_there):
    """@is_there: the socket exists, but no process listens: its guest has ended."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as line:
        path = os.path.join(folder, "line")
        if is_there:
            line.bind(path)
        return status_of("module", "--socket", path, SAMPLE)


CRASH = """#include "kernel/module/module.h"
__attribute__((constructor)) static void begin(void)
{
    __builtin_trap();
}
"""
SAMPLE = os.path.join(ROOT, "docs/samples/reads.c")
INT3 = os.path.join(ROOT, "docs/labs/host/int3/solution")
INT3_START = os.path.join(ROOT, "docs/labs/int3/start")
SWITCHED_OFF = "the guest was switched off, or Ctrl-] x was typed on the terminal"
PIPE_FAILED = "no terminal, but a pipe or a file: a command that was read failed"
USAGE = "a wrong option, name or file; nothing was built or started"
EARLY = "the guest was switched off or reset before its last command"
TRIPLE = "a CPU of the guest went down by a triple fault"
QEMU_ENDED = "QEMU ended, or was ended by a signal"
NO_BUILD = "the build failed, or a tool is missing"
LIMIT_REACHED = "the time limit was reached (--timeout)"
BUG = "a bug of ./sonde, to be reported as CONTRIBUTING.md says"
SIGNAL = "signal N: 130 Ctrl-C, 141 the output has no reader, 143 SIGTERM"
INT, TERM = signal.SIGINT, signal.SIGTERM
FUSE = can_open("/dev/fuse")
TESTS = ("--image", image.TESTS, "--append")

# (status, command, text of the row): facts. A fact returns (status got, status wanted).
FACTS = {
    ("0", "run", SWITCHED_OFF): [
        lambda: (status_of(*RUN, stdin=b"echo x\n"), 0),
        lambda: (status_of(*RUN, stdin=b"echo x\npoweroff\n"), 0),
        lambda: (status_of(*RUN, stdin=b"reboot\necho x\n"), 0),
        lambda: (key_on_terminal(b"nonsense\rpoweroff\r"), 0),
        lambda: (key_on_terminal(b"\x1dx"), 0),
    ],
    ("0", "run", "the tests of an --image with tests passed"): [
        lambda: (status_of(*RUN, *TESTS, "tests=shell"), 0),
    ],
    ("0", "exec", "every command succeeded"): [
        lambda: (status_of("exec", "echo x", "cat /proc/version"), 0),
        lambda: (status_of("exec", "echo x", "poweroff"), 0),
        lambda: (status_of("exec", "echo x", "reboot"), 0),
    ],
    ("0", "trace", "every command succeeded, or none was given and Ctrl-C came"): [
        lambda: (status_of("trace", "--", "echo x", "run fork"), 0),
        lambda: (recorded_until(INT), 0),
    ],
    ("0", "attach", "the guest ended, or Ctrl-] x was typed"): [
        lambda: (attached(keys=b"poweroff\r"), 0),
        lambda: (attached(keys=b"\x1dx"), 0),
    ],
    ("0", "test", "every test passed"): [
        lambda: (with_tap_elsewhere("test", "run/ktap"), 0),
        lambda: (status_of("test", "--list"), 0),
    ],
    ("1", "run", PIPE_FAILED): [
        lambda: (status_of(*RUN, stdin=b"cat /nope\necho x\n"), 1),
        lambda: (status_of(*RUN, stdin=b"cat /nope\npoweroff\n"), 1),
        lambda: (in_shell("echo nonsense >build/exits.tmp; "
                          "./sonde run --boot pvh <build/exits.tmp >/dev/null"), 1),
    ],
    ("1", "run", "a test of an --image with tests failed"): [
        lambda: (status_of(*RUN, *TESTS, "tests=shell,no_such_test"), 1),
    ],
    ("1", "exec", "a command failed; those behind it were not run"): [
        lambda: (sonde("exec", "echo x", "cat /nope", "echo y")[:2],
                 (1, "x\ncat: /nope: No such file or directory\n")),
        lambda: ("this is one: 'cat /nope')" in sonde("exec", "cat", "/nope")[2], True),
        lambda: ("this is one" in sonde("exec", "echo x", "sym")[2], False),
    ],
    ("0", "record", "every command succeeded; the run is recorded, up to its end"): [
        lambda: (recording("echo x"), (0, True)),
    ],
    ("1", "record", "a command failed; the run is recorded"): [
        lambda: (recording("cat /nope"), (1, True)),
    ],
    ("3", "record", "the kernel panicked"): [lambda: (recording("panic"), (3, True))],
    ("4", "record", "the guest was reset; the run is recorded until then"): [
        lambda: (recording("reboot", "echo x"), (4, True)),
    ],
    ("1", "trace", "a command failed, and the files are written; or a line was refused"): [
        lambda: (recorded_with_failure(), (1, True)),
        lambda: (status_of("trace", "p no_such_function", "--", "echo x"), 1),
    ],
    ("0", "module", "the modules were loaded, and every command succeeded"): [
        lambda: (status_of("module", SAMPLE, "module del reads"), 0),
    ],
    ("1", "module", "a module was refused, or a command failed"): [
        lambda: (status_of("module", SAMPLE, "cat /nope"), 1),
        lambda: (with_module("int broken"), 1),
    ],
    ("3", "module", "the kernel panicked"): [
        lambda: (with_module(CRASH), 3),
        lambda: (status_of("module", SAMPLE, "panic"), 3),
    ],
    ("1", "module", "there is no guest at --socket"): [
        lambda: (no_guest_at_socket(is_there=False), 1),
        lambda: (no_guest_at_socket(is_there=True), 1),
    ],
    ("1", "attach", "there is no guest to attach to"): [lambda: (status_of("attach"), 1)],
    ("1", "test", "a test failed"): [
        lambda: (with_tap_elsewhere("test", "unit/err", ASAN_OPTIONS="no such option"), 1),
    ],
    ("0", "check", "everything is as shown"): [
        lambda: (status_of("check", "-", stdin=b"sonde> echo x\nx\n"), 0),
        lambda: (status_of("check", "--list", "README.md"), 0),
    ],
    ("1", "check", "something differs from what is shown"): [
        lambda: (status_of("check", "-", stdin=b"sonde> echo x\ny\n"), 1),
    ],
    ("2", "check", "the files have no command to run"): [
        lambda: (status_of("check", "-", stdin=b"nothing\n"), 2),
        lambda: (status_of("check", "--list", "-", stdin=b"nothing\n"), 2),
    ],
    ("0", "grade", "full score; with --case: the case passed"): [
        lambda: (status_of("grade", "3", INT3, "--tree"), 0),
        lambda: (status_of("grade", "3", INT3, "--tree", "--case", "20"), 0),
    ],
    ("1", "grade", "points are missing; with --case: the case failed"): [
        lambda: (status_of("grade", "3", INT3_START, "--tree"), 1),
        lambda: (status_of("grade", "3", INT3_START, "--tree", "--case", "20"), 1),
    ],
    ("2", "python", USAGE): [lambda: (status_of("python", "/no/such.py"), 2)],
    ("2", "lab", USAGE): [lambda: (status_of("lab", "77"), 2)],
    ("2", "grade", USAGE): [
        lambda: (graded("77"), 2),
        lambda: (graded("3"), 2),
        lambda: (status_of("grade", "3", INT3, "--tree", "--case", "999"), 2),
        lambda: (status_of("grade", "3", INT3, "--tree", GRADE_SCALE="x"), 2),
    ],
    ("2", "check", USAGE): [
        lambda: (status_of("check", "/no/such/file"), 2),
        lambda: (status_of("check", "--junit", "/no/such/dir/x", "README.md"), 2),
    ],
    ("2", "run", USAGE): [lambda: (status_of("run", "--memory", "abc"), 2)],
    ("2", "module", USAGE): [lambda: (status_of("module", "no/such.c"), 2)],
    ("2", "exec", USAGE): [lambda: (status_of("exec", "-f", "/no/such/file"), 2)],
    ("2", "trace", USAGE): [
        lambda: (status_of("trace", "-o", "x.txt", "--", "echo x"), 2),
        lambda: (status_of("trace", "--buffer", "0", "--", "echo x"), 2),
        lambda: (status_of("trace", "f", "{", "count", "}", "--", "echo x"), 2),
    ],
    ("2", "tracefs", USAGE): [
        lambda: (status_of("tracefs", "/no/such/dir", "--", "true"), 2),
        lambda: (status_of("tracefs", "/tmp"), 2),
    ],
    ("2", "gdb", USAGE): [lambda: (status_of("gdb", "--qemu", "-no-such-option"), 2)],
    ("2", "record", USAGE): [lambda: (recording("--memory", "abc"), (2, False))],
    ("2", "replay", USAGE): [lambda: (status_of("replay", "/no/such"), 2)],
    ("2", "attach", USAGE): [lambda: (status_of("attach", "x"), 2)],
    ("2", "test", USAGE): [lambda: (status_of("test", "no_such_test"), 2)],
    ("3", "run", "the kernel panicked"): [
        lambda: (status_of(*RUN, stdin=b"panic\n"), 3),
        lambda: (key_on_terminal(b"panic\r"), 3),
        lambda: (status_of(*RUN, *TESTS, "tests=stack.an_overflow_is_named"), 3),
    ],
    ("3", "run", "QEMU has stopped the machine"): [
        lambda: (status_of(*RUN, "--qemu", "-S", "--timeout", "2"), 3),
    ],
    ("3", "exec", "QEMU has stopped the machine"): [
        lambda: (status_of("exec", "--qemu", "-S", "--timeout", "2", "echo x"), 3),
    ],
    ("3", "exec", "the kernel panicked"): [lambda: (status_of("exec", "panic"), 3)],
    ("4", "module", EARLY): [
        lambda: (status_of("module", SAMPLE, "poweroff", "echo x"), 4),
    ],
    ("124", "module", LIMIT_REACHED): [
        lambda: (status_of("module", "--timeout", "1", SAMPLE, "sleep 100"), 124),
    ],
    ("3", "trace", "the kernel panicked"): [
        lambda: (status_of("trace", "--", "panic"), 3),
    ],
    ("4", "trace", "the guest was switched off or reset, and nothing was fetched"): [
        lambda: (status_of("trace", "--", "poweroff"), 4),
        lambda: (status_of("trace", "--", "reboot", "echo x"), 4),
    ],
    ("4", "run", TRIPLE): [
        lambda: (with_fake("run", fake="console triple", stdin=b"x\n"), 4),
    ],
    ("4", "exec", TRIPLE): [lambda: (with_fake("exec", "triple", fake=" "), 4)],
    ("4", "exec", EARLY): [
        lambda: (status_of("exec", "poweroff", "echo x"), 4),
        lambda: (status_of("exec", "reboot", "echo x"), 4),
    ],
    ("4", "run", QEMU_ENDED): [
        lambda: (after_signal(-TERM, *RUN), 4),
        lambda: (after_signal(-signal.SIGKILL, *RUN), 4),
    ],
    ("4", "exec", QEMU_ENDED): [lambda: (with_fake("exec", "say x", fake="broken"), 4)],
    ("4", "gdb", "QEMU ended before gdb could be started"): [
        lambda: (with_fake("gdb", fake="broken"), 4),
    ],
    ("5", "run", "the output cannot be written"): [
        lambda: (in_shell("./sonde run --boot pvh >/dev/full"), 5),
    ],
    ("5", "exec", "the output cannot be written"): [
        lambda: (in_shell("./sonde exec 'echo x' >/dev/full"), 5),
    ],
    ("5", "trace", "the output cannot be written"): [
        lambda: (in_shell("./sonde trace -- 'echo x' >/dev/full"), 5),
    ],
    ("5", "trace", NO_BUILD): [lambda: (broken_build("trace", "--", "echo x"), 5)],
    ("5", "tracefs", NO_BUILD): [
        lambda: (in_tracefs(lambda folder: broken_build("tracefs", folder, "--", "true")), 5),
    ],
    ("5", "run", NO_BUILD): [lambda: (broken_build("run"), 5)],
    ("5", "exec", NO_BUILD): [
        lambda: (broken_build("exec", "echo x"), 5),
        lambda: (no_tools("exec", "echo x"), 5),
    ],
    ("5", "module", NO_BUILD): [lambda: (broken_build("module", SAMPLE), 5)],
    ("5", "gdb", NO_BUILD): [lambda: (broken_build("gdb"), 5)],
    ("5", "record", NO_BUILD): [lambda: (broken_build("record", "/tmp/none", "echo x"), 5)],
    ("5", "replay", NO_BUILD): [lambda: (broken_build("replay", SONDE), 5)],
    ("5", "replay", "the file is no recording, or one of another build or QEMU"): [
        lambda: (replay_of_nothing(), 5),
    ],
    ("5", "test", NO_BUILD): [lambda: (broken_build("test", "run/ktap"), 5)],
    ("5", "python", NO_BUILD): [lambda: (broken_build("python", "-c", ""), 5)],
    ("5", "pytest", NO_BUILD): [lambda: (broken_build("pytest"), 5)],
    ("5", "check", NO_BUILD): [lambda: (broken_build("check", "README.md"), 5)],
    ("5", "grade", NO_BUILD): [lambda: (no_tools("grade", "3", INT3, "--tree"), 5)],
    ("5", "attach", "it is running already"): [lambda: (attached(twice=True), 5)],
    ("124", "run", LIMIT_REACHED): [
        lambda: (status_of(*RUN, "--timeout", "1", stdin=b"sleep 100\n"), 124),
    ],
    ("124", "exec", LIMIT_REACHED): [
        lambda: (status_of("exec", "--timeout", "1", "sleep 100"), 124),
    ],
    ("124", "trace", LIMIT_REACHED): [
        lambda: (status_of("trace", "--timeout", "1", "--", "sleep 100"), 124),
    ],
    ("124", "record", LIMIT_REACHED): [
        lambda: (recording("--timeout", "1", "sleep 100000"), (124, False)),
    ],
    ("128+N", "record", SIGNAL): [
        lambda: (record_after_signal(INT), 130),
        lambda: (record_after_signal(TERM), 143),
    ],
    ("128+N", "replay", SIGNAL): [lambda: (replay_after_signal(TERM), 143)],
    ("128+N", "module", SIGNAL): [
        lambda: (after_signal(TERM, "module", SAMPLE, "echo 'sonde> '", "sleep 100"), 143),
        lambda: (after_sigpipe(f"module {SAMPLE} 'echo x' 'sleep 1' 'echo y'"), 141),
    ],
    ("128+N", "trace", SIGNAL): [
        lambda: (recorded_and_written(TERM), (143, True)),
        lambda: (after_signal(INT, "trace", "--", "echo 'sonde> '", "sleep 100"), 130),
        lambda: (after_signal(TERM, "trace", "--", "echo 'sonde> '", "sleep 100"), 143),
        lambda: (after_sigpipe("trace -- 'echo x' 'sleep 1' 'echo y'"), 141),
    ],
    ("128+N", "tracefs", SIGNAL): [lambda: (tracefs_after_signal(TERM), 143 if FUSE else 5)],
    ("128+N", "run", SIGNAL): [
        lambda: (after_signal(INT, *RUN), 130),
        lambda: (after_signal(TERM, *RUN), 143),
        lambda: (after_sigpipe("run --boot pvh </dev/null"), 141),
    ],
    ("128+N", "exec", SIGNAL): [
        lambda: ([signal_in_a_fork(one) for one in (INT, TERM, signal.SIGHUP)],
                 [130, 143, 129]),
        lambda: (after_signal(INT, "exec", "echo 'sonde> '", "sleep 100"), 130),
        lambda: (after_signal(TERM, "exec", "echo 'sonde> '", "sleep 100"), 143),
        lambda: (after_sigpipe("exec 'echo x' 'sleep 1' 'echo y'"), 141),
    ],
    ("128+N", "gdb", SIGNAL): [
        lambda: (after_signal(TERM, "gdb", "--", "-batch", "-ex", "echo sonde> \\n",
                              "-ex", "continue"), 143),
        lambda: (after_sigpipe("gdb dmesg dmesg help -- -batch -ex continue"), 141),
    ],
    ("128+N", "attach", SIGNAL): [
        lambda: (attached(number=INT), 130),
        lambda: (attached(number=TERM), 143),
    ],
    ("128+N", "test", SIGNAL): [
        lambda: (test_after_signal(TERM), 143),
        lambda: (test_after_signal(INT), 130),
    ],
    ("128+N", "check", SIGNAL): [
        lambda: (check_after_signal(TERM), 143),
        lambda: (check_after_signal(INT), 130),
    ],
    ("128+N", "python", SIGNAL): [
        lambda: (script_after_signal(TERM, "python", more="test_sleeps()\n"), 143),
        lambda: (script_after_signal(INT, "python", more="test_sleeps()\n"), 130),
    ],
    ("128+N", "pytest", SIGNAL): [lambda: (script_after_signal(TERM, "pytest", "-s"), 143)],
    ("128+N", "lab", SIGNAL): [lambda: (after_sigpipe("lab"), 141)],
    ("128+N", "grade", SIGNAL): [
        lambda: (grade_after_signal(TERM), 143),
        lambda: (grade_after_signal(INT), 130),
    ],
    ("4", "tracefs", "QEMU or the guest ended before the command could run"): [
        lambda: (in_tracefs(lambda folder: with_fake("tracefs", folder, "--", "true",
                                                     fake="broken")),
                 4 if FUSE else 5),
    ],
    ("3", "tracefs", "the kernel panicked while the command ran"): [
        lambda: (in_tracefs(lambda folder: status_of("tracefs", folder, "--", "sh", "-c",
                                                     f"echo panic > {folder}/sonde")),
                 3 if FUSE else 5),
    ],
    ("else", "tracefs", "what the command exited with"): [
        lambda: (in_tracefs(lambda folder: status_of("tracefs", folder, "--", "sh", "-c",
                                                     "exit 7")), 7 if FUSE else 5),
    ],
    ("else", "python", "what Python or pytest exited with"): [
        lambda: (status_of("python", "-c", "raise SystemExit(7)"), 7),
    ],
    ("else", "pytest", "what Python or pytest exited with"): [
        lambda: (status_of("pytest", "/no/such/test"), 4),
    ],
    ("else", "gdb", "what gdb exited with"): [
        lambda: (status_of("gdb", "--", "-batch", "-ex", "quit 7"), 7),
        lambda: (status_of("gdb", "--", "-batch"), 0),
        lambda: ("this is one: 'cat /nope')" in sonde("gdb", "cat", "/nope", "--", "-batch",
                                                      "-ex", "continue")[2], True),
    ],
    ("else", "replay", "what gdb exited with"): [
        lambda: (with_recording(lambda path: status_of("replay", path, "--", "-batch",
                                                       "-ex", "quit 7")), 7),
    ],
}  # fmt: skip
FACTS |= {("6", one, BUG): [lambda one=one: (with_bug(one), 6)] for one in COMMANDS}


def every_row_has_a_fact():
    rows = set(rows_of_help())
    tap.check(len(rows) > 30, f"--help has {len(rows)} rows, one for each command")
    tap.equal(sorted(rows - set(FACTS)), [], "each has a fact")
    tap.equal(sorted(set(FACTS) - rows), [], "each fact has a row")


def sample():
    """The rows for the usual run. Commands share most of the code for a text. A failing
    build takes seconds, so only `run` is tested with one.
    """
    if any(not word.startswith("--") for word in sys.argv[1:]):
        return set(FACTS)
    seed = int(os.environ.get("SEED", random.randrange(1 << 31)))
    tap.note(f"seed {seed}")
    chance = random.Random(seed)
    rows = {}
    for row in FACTS:
        rows.setdefault(row[2], []).append(row)
    rows[NO_BUILD] = [row for row in rows[NO_BUILD] if row[1] == "run"]
    return {
        row for same in rows.values() for row in chance.sample(same, -(-len(same) // 4))
    }


CHOSEN = set(FACTS) if tap.LONG else sample()


def chosen(row):
    return FACTS[row][: None if tap.LONG else 1] if row in CHOSEN else []


def rows_of(command):
    """Make a test that checks the facts of one command."""

    def test():
        for status, of, text in FACTS:
            for count, fact in enumerate(
                chosen((status, of, text)) if of == command else (), 1
            ):
                got, want = fact()
                tap.equal(got, want, f"{status} {of}: {text} ({count})")

    test.__name__ = "rows_of_" + command
    return test


tap.run(every_row_has_a_fact, *map(rows_of, COMMANDS))
