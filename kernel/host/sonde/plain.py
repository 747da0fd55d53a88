"""plain.py - turns the output for a terminal into plain text for a pipe or a file."""

import re

# A line feed with carriage returns in front; a carriage return; an escape sequence; text.
TOKEN = re.compile(
    rb"\r*\n|\r|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[^\[]|\x1b|[^\r\n\x1b]+", re.DOTALL
)
UNFINISHED = re.compile(rb"(?:\r+|\x1b(?:\[[0-?]*[ -/]*)?)\Z")


class Plain:
    """Takes pieces of the line as they come, and gives pieces of text.

    CR LF becomes LF. A CR alone moves a terminal back to the start of the line, which is
    then overwritten; here the text behind it gets a new line. Escape sequences are left
    out, also those that the firmware and the boot loader send before the kernel runs.
    """

    def __init__(self):
        self.kept = b""  # the end of the last piece, which the next one may continue
        self.in_line = False  # the line has text already

    def take(self, data):
        data = self.kept + data
        match = UNFINISHED.search(data)
        self.kept = match[0] if match else b""
        data = data[: len(data) - len(self.kept)]
        return b"".join(self._text(token) for token in TOKEN.findall(data))

    def _text(self, token):
        if token.startswith(b"\x1b") or token == b"\r" and not self.in_line:
            return b""
        self.in_line = not token.endswith((b"\r", b"\n"))
        return token if self.in_line else b"\n"
