"""machine.py - sends requests to a running guest, and reads its replies.

The guest answers one line `@TAG COMMAND` with lines that begin with `#TAG`:

    #TAG|text      a line of output
    #TAG~text      output without a line feed at its end
    #TAG=N NAME    the end: 0 OK, or an errno

In text a backslash is doubled, and a byte outside 0x20..0x7e is \\xHH, except for TAB.
All other text on the line (echo, prompt, log) is skipped.
"""

import collections
import re
import time

ESCAPE = re.compile(rb"\\(?:\\|x([0-9a-fA-F]{2})|)")


class Gone(Exception):
    """The guest has closed the line: it has ended without an answer."""


class ProtocolError(Exception):
    """The guest has broken the protocol of the line."""


class Reply:
    """The answer to one request: output (bytes), errno (0 = OK) and its name."""

    def __init__(self, output, errno, name):
        self.output = output
        self.errno = errno
        self.name = name

    @property
    def text(self):
        return self.output.decode("utf-8", "backslashreplace")

    @property
    def lines(self):
        return self.text.splitlines()


def quote(text):
    """Bytes or str as a TEXT in single quotes, for the machine interface."""
    if isinstance(text, str):
        text = text.encode()
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


def one_line(command):
    """The bytes of a command. ValueError: it is more than one line."""
    line = command.encode() if isinstance(command, str) else command
    if re.search(rb"[\0\r\n]", line):
        raise ValueError("a request is one line")
    return line


class Machine:
    """The machine interface on a connected stream socket. One request at a time."""

    def __init__(self, sock):
        self.sock = sock
        self.tag = 0
        self.lines = collections.deque()  # complete lines, received and not yet taken
        self.partial = b""

    def request(self, command, timeout=None, output=None):
        """Send one command and wait for its status.

        timeout: seconds for the request and its reply; then TimeoutError
        output:  called with each piece of the output as it comes
        """
        line = one_line(command)
        deadline = None if timeout is None else time.monotonic() + timeout
        self.tag += 1
        self.sock.settimeout(timeout)
        try:
            self.sock.sendall(b"@%d %s\n" % (self.tag, line))
        except (BrokenPipeError, ConnectionResetError):
            raise Gone() from None
        return self._receive(b"#%d" % self.tag, deadline, output)

    def _receive(self, mark, deadline, output):
        pieces = []
        while True:
            line = self._line(deadline)
            if not line.startswith(mark):
                continue
            kind, text = line[len(mark) : len(mark) + 1], line[len(mark) + 1 :]
            if kind == b"=":
                number, _, name = text.partition(b" ")
                return Reply(b"".join(pieces), int(number), name.decode())
            if kind not in (b"|", b"~"):
                if kind.isdigit():
                    continue
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
                raise Gone()
            *complete, self.partial = (self.partial + data).split(b"\n")
            self.lines.extend(complete)
        return self.lines.popleft().removesuffix(b"\r")

    # The commands that tools use, by name. Each returns the Reply.

    def read(self, path, timeout=None):
        return self.request(f"cat {path}", timeout)

    def write(self, path, text, timeout=None):
        """Append the bytes of @text to the file, by one write."""
        return self.request(f"echo -ne {quote(text)} >> {path}", timeout)

    def truncate(self, path, timeout=None):
        return self.request(f"echo -n '' > {path}", timeout)
