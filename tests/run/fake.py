"""fake.py - for tests with a fake guest: puts the fake in QEMU's place on PATH, and runs
./sonde without building anything.

    tests/run/fake.py WORD...    ./sonde's main()

fake_qemu.py is the guest. FAKE in the environment, or the request, says what it does.
BUG in the environment names a function of ./sonde that gets a bug.
"""

import contextlib
import functools
import importlib.machinery
import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../kernel/host"))
from sonde.guest import ROOT

PROGRAM = [sys.executable, os.path.abspath(__file__)]


def with_fake_qemu(run):
    """Call run() with the fake in front of the real QEMU on PATH."""
    folder = tempfile.mkdtemp()
    path = os.environ["PATH"]
    os.symlink(
        os.path.join(HERE, "fake_qemu.py"), os.path.join(folder, "qemu-system-x86_64")
    )
    os.environ["PATH"] = folder + ":" + path
    try:
        return run()
    finally:
        os.environ["PATH"] = path
        shutil.rmtree(folder)


def launched(groups):
    """Replaces the installation of tools: only note in a file that it was reached."""
    if "LAUNCHED" in os.environ:
        with open(os.environ["LAUNCHED"], "w", encoding="ascii") as file:
            file.write(" ".join(groups))


def has_bug(*_arguments):
    """Replaces a function of ./sonde: a mistake in its code."""
    return {}["no such key"]


@functools.cache
def load_launcher():
    """Load ./sonde as a module, once, with its parser."""
    loader = importlib.machinery.SourceFileLoader("launcher", os.path.join(ROOT, "sonde"))
    spec = importlib.util.spec_from_loader("launcher", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    module.make_parser()
    return module


def be_launcher(arguments):
    """Become ./sonde, which builds and installs nothing. Return its exit status."""
    launcher = load_launcher()
    launcher.PROGRAM = PROGRAM
    launcher.building.install = launched
    launcher.building.build = lambda targets, say: None
    if "BUG" in os.environ:
        setattr(launcher, os.environ["BUG"], has_bug)
        launcher.make_parser.cache_clear()
    sys.argv = ["./sonde", *map(os.fsdecode, arguments)]
    try:
        return launcher.main()
    except SystemExit as end:
        return end.code or 0


def be_launcher_in_child(arguments, environment, streams):
    """The life of a forked process: its standard streams are the files @streams."""
    status = -1
    try:
        os.environ.update(environment)
        for number, stream in enumerate(streams):
            os.dup2(stream.fileno(), number)
        coding = os.environ.get("PYTHONIOENCODING")
        sys.stdin = open(0, encoding=coding)
        sys.stdout, sys.stderr = (open(n, "w", encoding=coding) for n in (1, 2))
        status = be_launcher(arguments)
        sys.stdout.flush()
    finally:
        sys.stderr.flush()
        os._exit(status)


def run_launcher(*arguments, stdin=b"", fake=None, limit=0, **more):
    """Run ./sonde's main() in a process of its own: (status, stdout, stderr). @more:
    variables of its environment. After @limit seconds, if any, SIGALRM ends it. A fork of
    this process has the launcher loaded already.
    """
    load_launcher()
    if fake:
        more["FAKE"] = fake
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        streams[0].write(stdin)
        streams[0].seek(0)
        sys.stdout.flush()
        child = os.fork()
        if not child:
            signal.alarm(limit)
            be_launcher_in_child(arguments, more, streams)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for stream in streams[1:]:
            stream.seek(0)
        return status, streams[1].read(), streams[2].read().decode()


def run_in_shell(words, fake=""):
    """As run_launcher(), in a shell. "sonde" in @words stands for the program."""
    command = words.replace("sonde", shlex.join(PROGRAM))
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        timeout=60,
        env=dict(os.environ, FAKE=fake),
        check=False,
    )
    return done.returncode, done.stdout, done.stderr.decode()


def heed_interrupts():
    """Let Ctrl-C end this process. It may be a background process of a shell, and shells
    let these ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def is_gone(pid):
    """Does the process @pid end within half a minute? A zombie has no command line."""
    for _ in range(300):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                if not file.read():
                    return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


if __name__ == "__main__":
    sys.exit(be_launcher(sys.argv[1:]))
