"""session.py - helpers of the session tests: a guest at its prompt, typing, a terminal.
"""

import atexit
import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import time

import tap
from sonde.guest import PROMPT, ROOT, Guest, Setup
from sonde.machine import Gone

# Seconds that one step of a test may take. Much more than needed: the host may be busy.
LIMIT = int(os.environ.get("LIMIT", "120"))

CSI = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")


def at_prompt(**options):
    """Start a guest and wait for its prompt. Use with `with`."""
    guest = Guest(Setup(**options))
    try:
        guest.wait_prompt(LIMIT)
    except BaseException:
        guest.stop()
        raise
    return guest


running = {}  # guests that tests share, by their options


@contextlib.contextmanager
def shared(**options):
    """A guest at its prompt, which the tests of a program share: each leaves it as it was.
    After an exception the next test gets another guest. Use with `with`.
    """
    key = tuple(options.items())
    if key not in running:
        running[key] = at_prompt(**options)
        atexit.register(running[key].stop)
    try:
        yield running[key]
    except BaseException:
        running.pop(key).stop()
        raise


def run_on(guest, *tests):
    """Call tap.run() for tests that share a guest. If the guest ends during a test, the
    error has the last lines that the guest printed.
    """

    def on(test):
        def run():
            guest.console.seen = len(guest.console.text)
            try:
                test(guest)
            except (Gone, OSError):
                raise guest.failure(f"in {test.__name__}", LIMIT) from None

        run.__name__ = test.__name__
        return run

    tap.run(*[on(test) for test in tests])


def typed(guest, keys, end="\r"):
    """Type a line. Return what the guest prints up to its next prompt, as lines.

    The first line is the echo of the keys.
    """
    guest.console.send(keys + end)
    text = guest.console.expect(b"\n" + PROMPT, LIMIT)
    if text is None:
        raise AssertionError(f"no prompt after {keys!r}")
    plain = CSI.sub(b"", text).decode("utf-8", "replace")
    return [line.rstrip("\r") for line in plain.split("\n")]


def ask(guest, command):
    """Send a request that has to succeed. Return its output as text."""
    return guest.machine.request(command, LIMIT).text


def stat(guest):
    """Return {name: number or word} of `probe stat`."""
    rows = (line.split()[:2] for line in ask(guest, "probe stat").splitlines())
    return {name: int(word) if word.isdigit() else word for name, word in rows}


def sonde(*arguments, stdin=b"", limit=LIMIT):
    """Run ./sonde. Return (status, stdout, stderr)."""
    try:
        done = subprocess.run(
            [os.path.join(ROOT, "sonde"), *arguments],
            input=stdin,
            capture_output=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        for said in late.stdout, late.stderr:
            late.add_note((said or b"")[-2000:].decode(errors="replace"))
        raise
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Terminal:
    """./sonde run with a pseudo terminal as its terminal."""

    def __init__(self, *arguments):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            for number in (signal.SIGINT, signal.SIGQUIT):  # ignored in the background
                signal.signal(number, signal.SIG_DFL)
            program = os.path.join(ROOT, "sonde")
            os.execv(program, [program, *arguments])
        self.text = b""

    def expect(self, what):
        """Wait for @what. Return the bytes in front of it; None: it did not come."""
        deadline = time.monotonic() + LIMIT
        while what not in self.text:
            if not select.select([self.fd], [], [], max(deadline - time.monotonic(), 0))[
                0
            ]:
                return None
            try:
                self.text += os.read(self.fd, 65536)
            except OSError:
                return None
        before, _, self.text = self.text.partition(what)
        return before

    def send(self, keys):
        os.write(self.fd, keys)

    def close(self):
        """Close the terminal, which sends SIGHUP. Return the exit status of ./sonde."""
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def end(self):
        """Wait for the end of ./sonde. Return its exit status."""
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
