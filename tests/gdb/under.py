"""under.py - runs a guest under gdb for tests, sends gdb commands and reads its answers.
"""

import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [
    os.path.join(HERE, "../run"),
    os.path.join(HERE, "../session"),
    os.path.join(HERE, "../../kernel/host"),
]
import tap
from sonde.guest import ELF, ROOT
from session import LIMIT, ask, at_prompt

MARK = re.compile(rb"@@(\d+)@@\n")


class Gdb:
    """A running gdb, or ./sonde gdb, which takes commands from a test. `with` ends it."""

    def __init__(self, words):
        self.process = subprocess.Popen(
            words,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.text, self.count = b"", 0
        self.greeting = self.ask(
            "set pagination off", "set width 0", "set style enabled off"
        )

    def tell(self, *commands):
        """Send commands to gdb without waiting for their end: wait() does that."""
        self.count += 1
        lines = [*commands, f"echo \\n@@{self.count}@@\\n"]
        self.process.stdin.write("".join(line + "\n" for line in lines).encode())
        self.process.stdin.flush()

    def wait(self, limit=LIMIT):
        """Wait for the end of the last tell(). Return what gdb has printed."""
        if not self.has_answered(limit):
            raise TimeoutError("gdb does not answer: " + self.text.decode()[-2000:])
        said, _, self.text = self.text.partition(self.mark)
        return MARK.sub(b"", said).decode("utf-8", "replace").replace("(gdb) ", "")

    @property
    def mark(self):
        return b"@@%d@@\n" % self.count

    def has_answered(self, limit):
        """Have the commands of the last tell() ended? Wait at most @limit
        seconds for that.
        """
        deadline = time.monotonic() + limit
        while self.mark not in self.text:
            left = deadline - time.monotonic()
            if not select.select([self.process.stdout], [], [], max(left, 0))[0]:
                return False
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise EOFError("gdb has ended: " + self.text.decode()[-2000:])
            self.text += data
        return True

    def ask(self, *commands):
        self.tell(*commands)
        return self.wait()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()


class GdbOn(Gdb):
    """A gdb with sonde's helpers that is connected to a target."""

    def __init__(self, target, elf=ELF):
        super().__init__(["gdb", "-nx", "-q", "-x", ".gdbinit", elf])
        self.attached = self.ask(f"target remote {target}")


class Under:
    """A guest at its prompt, with gdb attached. `with` ends both."""

    def __init__(self, setup=(), elf=ELF, **options):
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "gdb.sock")
        chardev = f"-chardev socket,path={path},server=on,wait=off,id=g -gdb chardev:g"
        self.guest = at_prompt(qemu=chardev + " " + options.pop("qemu", ""), **options)
        try:
            for command in setup:
                ask(self.guest, command)
            self.gdb = GdbOn(path, elf)
        except BaseException:
            self.guest.stop()
            raise

    def run_to(self, breakpoint, command):
        """Start a console command and wait until gdb stops. Return what gdb printed."""
        self.gdb.ask("delete", breakpoint)
        self.gdb.tell("continue")
        self.asking = threading.Thread(target=self._ask, args=(command,), daemon=True)
        self.asking.start()
        while not self.gdb.has_answered(0.1):
            if not self.asking.is_alive() and not self.gdb.has_answered(1):
                os.kill(self.gdb.process.pid, signal.SIGINT)
                raise AssertionError(f"{breakpoint} was not reached: {self.gdb.wait()}")
        return self.gdb.wait()

    def _ask(self, command):
        try:
            ask(self.guest, command)
        except (OSError, AssertionError, ValueError, TimeoutError, EOFError):
            pass  # the guest has ended while the command was running
        except Exception as error:
            if type(error).__name__ != "Gone":
                raise

    def go_on(self):
        """Delete all breakpoints and let the guest run until the console
        command has ended.
        """
        self.gdb.ask("delete")
        self.gdb.tell("continue")
        self.asking.join(LIMIT)
        os.kill(self.gdb.process.pid, signal.SIGINT)
        return self.gdb.wait()

    def console(self, *commands):
        """Run console commands while gdb lets the guest run. Return what they print."""
        self.gdb.tell("continue")
        said = [ask(self.guest, command) for command in commands]
        os.kill(self.gdb.process.pid, signal.SIGINT)
        self.gdb.wait()
        return "".join(said)

    def idle(self):
        """Let the guest run for a moment, so that its threads come to where they wait."""
        self.gdb.tell("continue")
        time.sleep(0.2)
        os.kill(self.gdb.process.pid, signal.SIGINT)
        self.gdb.wait()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.gdb.__exit__()
        self.guest.stop()
        self.folder.cleanup()


def run_on(u, *tests):
    """Call tap.run() for tests that share a guest."""

    def on(test):
        def run():
            test(u)

        run.__name__ = test.__name__
        return run

    tap.run(*[on(test) for test in tests])


def frames(text):
    """Return the names of the functions in a backtrace."""
    found = []
    for line in re.findall(r"^#\d+ .*", text, re.M):
        match = re.match(r"#\d+ +(?:0x[0-9a-f]+ in )?(<.*>|[\w.]+)", line)
        found.append(match[1] if match else line)
    return found


def build_id_offset(path):
    """Return the offset in an ELF file at which the bytes of its build id begin."""
    sys.path.insert(0, os.path.join(ROOT, "kernel/debug"))
    import elf64

    elf = elf64.load(path)
    notes = elf.section(".notes")
    return notes.offset + elf.content(notes).index(b"GNU\0") + 4
