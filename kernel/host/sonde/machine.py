"""machine.py - sends requests to a running guest, and reads its replies.

The guest answers one line `@TAG COMMAND` with lines that begin with `#TAG`:

    #TAG|text      a line of output
    #TAG~text      output without a line feed at its end
    #TAG=N NAME    the end: 0 OK, or an errno

In text a backslash is doubled, and a byte outside 0x20..0x7e is \\xHH, except for TAB.
All other text on the line (echo, prompt, log) is skipped.
"""

import collections
import contextlib
import random
import re
import shlex
import socket
import time

from sonde import exits
from sonde.errors import SondeError

LIMIT = 60  # seconds for a request, if its caller does not say
CTRL_C = b"\x03"
SHOWN_MAX = 200  # characters of a command in the text of an error
STATUS = re.compile(rb"(-?\d{1,9}) ([!-~]+)")
TAGGED = re.compile(rb"#(\d{1,19})(?!\d)(.?)(.*)", re.S)
ESCAPE = re.compile(rb"\\(?:\\|x([0-9a-fA-F]{2})|)")


class Gone(SondeError):
    """The guest has closed the line: it has ended without an answer."""

    status = exits.ENDED


class ProtocolError(SondeError):
    """The guest has broken the protocol of the line."""

    status = exits.ENDED

    def __init__(self, what):
        super().__init__(f"the machine interface does not keep to its protocol: {what}")


class Late(SondeError, TimeoutError):
    """The command has not ended in time. It still runs: Machine.interrupt() ends it."""

    status = exits.TIMEOUT


class Refused(SondeError):
    """The command has failed. reply: the Reply, with its errno."""

    def __init__(self, command, reply):
        said = str(reply).strip()
        super().__init__(
            f"'{command}' failed: {reply.errno} {reply.name}"
            + (f": {said}" if said else "")
        )
        self.reply = reply


class Reply:
    """The answer to one request: output (bytes), errno (0 = OK) and its name. As a string
    it is the output without the last line feed, so that print() shows it as the console does.
    """

    def __init__(self, output, errno, name):
        self.output = output
        self.errno = errno
        self.name = name

    def __str__(self):
        return self.text.removesuffix("\n")

    def __repr__(self):
        return f"<Reply {self.errno} {self.name} {self.text!r}>"

    @property
    def text(self):
        return self.output.decode("utf-8", "backslashreplace")

    @property
    def lines(self):
        return self.text.splitlines()


def encoded(text):
    """Bytes or str as bytes. A str may have bytes of the command line that are no UTF-8."""
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def quote(text):
    """Bytes or str as a TEXT in single quotes, for the machine interface."""
    text = encoded(text)
    plain = set(range(0x20, 0x7F)) - set(b"'\\")
    body = "".join(chr(b) if b in plain else "\\x%02x" % b for b in text)
    return f"'{body}'"


def unescape(text):
    def byte(match):
        if match.group(1):
            return bytes([int(match.group(1), 16)])
        if match.group(0) == b"\\\\":
            return b"\\"
        raise ProtocolError(f"bad escape in {text!r}")

    return ESCAPE.sub(byte, text)


def shortened(command):
    return command if len(command) <= SHOWN_MAX else command[:SHOWN_MAX] + "..."


def one_line(command):
    """The bytes of a command. ValueError: it is more than one line, or has a Ctrl-C."""
    line = encoded(command)
    if re.search(rb"[\0\x03\r\n]", line):
        raise ValueError("a request is one line, without Ctrl-C")
    return line


class Machine:
    """The machine interface on a connected stream socket. One request at a time."""

    def __init__(self, sock, tag=0):
        self.sock = sock
        self.tag = tag  # of the last request
        self.answered = tag  # requests behind this one have no reply yet
        self.command = ""  # of the last request
        self.is_busy = False  # it has no reply yet
        self.lines = collections.deque()  # complete lines, received and not yet taken
        self.partial = b""

    @classmethod
    def connect(cls, path):
        """Connect to a guest of `./sonde run --socket PATH`. Use with `with`."""
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(path)
        except OSError as error:
            sock.close()
            why = error.strerror or error  # Python's own words: the path is too long
            raise SondeError(f"no guest listens at {path}: {why}") from None
        # A late answer to an earlier connection has another tag.
        return cls(sock, random.randrange(10**9, 2 * 10**9))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def request(self, command, timeout=LIMIT, output=None, may_fail=False):
        """Send one command and wait for its status. Return the Reply.

        timeout:  seconds for the request and its reply; then Late. None: no limit
        output:   called with each piece of the output as it comes
        may_fail: return the Reply of a command that has failed, too; otherwise Refused
        """
        line = one_line(command)
        if not self.is_busy:
            self.answered = self.tag
        self.tag += 1
        self.is_busy = True
        self.command = shortened(line.decode("utf-8", "backslashreplace"))
        reply = self._answer(b"@%d %s\n" % (self.tag, line), timeout, self.tag, output)
        if reply.errno and not may_fail:
            raise Refused(self.command, reply)
        return reply

    def wait(self, timeout=LIMIT, output=None):
        """Go on waiting for the command that still runs after a Late. Return its Reply,
        with the output that came since; None: no command runs.
        """
        if not self.is_busy:
            return None
        return self._answer(b"", timeout, self.tag, output)

    def interrupt(self, timeout=10):
        """End the command that still runs after a Late, as Ctrl-C does. Return its Reply,
        with the output that came since; None: no command runs. If another request was made
        after the Late, the reply is of the one that ran: the guest drops a line that waits.
        """
        if not self.is_busy:
            return None
        return self._answer(CTRL_C, timeout, self.answered + 1)

    def forget(self):
        """The guest is another one from now on: drop what has come, and the last request."""
        self.lines.clear()
        self.partial = b""
        self.is_busy = False
        self.sock.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while self.sock.recv(65536):
                pass

    def _answer(self, data, timeout, first, output=None):
        """Send @data, and return the Reply to a request with the tag @first or above."""
        deadline = None if timeout is None else time.monotonic() + timeout
        self.sock.settimeout(timeout)
        try:
            self._send(data)
            reply = self._receive(first, deadline, output)
        except TimeoutError:
            raise Late(f"'{self.command}' has not ended within {timeout:g} s") from None
        self.is_busy = False
        return reply

    def _send(self, data):
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Gone("the guest has ended") from None

    def _receive(self, first, deadline, output):
        pieces = []
        while True:
            line = self._line(deadline)
            tagged = TAGGED.match(line)
            if not tagged or not first <= int(tagged[1]) <= self.tag:
                continue
            kind, text = tagged[2], tagged[3]
            if kind == b"=":
                end = STATUS.fullmatch(text)
                if not end:
                    raise ProtocolError(f"bad status in {line!r}")
                return Reply(b"".join(pieces), int(end[1]), end[2].decode())
            if kind not in (b"|", b"~"):
                raise ProtocolError(f"unexpected reply line {line!r}")
            piece = unescape(text) + (b"\n" if kind == b"|" else b"")
            pieces.append(piece)
            if output:
                output(piece)

    def _line(self, deadline):
        """The next line without its end (LF or CR LF)."""
        while not self.lines:
            if deadline is not None:
                self.sock.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self.sock.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                raise Gone("the guest has ended without an answer")
            *complete, self.partial = (self.partial + data).split(b"\n")
            self.lines.extend(complete)
        return self.lines.popleft().removesuffix(b"\r")

    # The commands that tools use, by name.

    def read(self, path, timeout=LIMIT):
        """Return what a file has, as text."""
        return self.request(f"cat {shlex.quote(path)}", timeout).text

    def write(self, path, text, timeout=LIMIT):
        """Append the bytes of @text to the file, by one write."""
        self.request(f"echo -ne {quote(text)} >> {shlex.quote(path)}", timeout)

    def truncate(self, path, timeout=LIMIT):
        self.request(f"echo -n '' > {shlex.quote(path)}", timeout)
