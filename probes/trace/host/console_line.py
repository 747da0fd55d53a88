"""console_line.py - requests over the console's line: a command can run there while the
machine interface is asked for pages.
"""


class ConsoleLine:
    """What a machine.Machine takes for its socket, made of a guest.Console at its prompt."""

    def __init__(self, console):
        self.console = console
        self.at = len(console.text)
        self.timeout = None

    def settimeout(self, timeout):
        self.timeout = timeout

    def sendall(self, data):
        self.console.send(data)

    def recv(self, size):
        """b"" when the guest has ended, or can say nothing any more."""
        console = self.console
        with console.news:
            came = console.news.wait_for(
                lambda: console.closed or len(console.text) > self.at, self.timeout
            )
            if not came:
                raise TimeoutError
            data = bytes(console.text[self.at : self.at + size])
        self.at += len(data)
        return data
