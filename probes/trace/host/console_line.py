"""console_line.py - sends requests over the line of the console. So a command can run
there while the recording asks for pages on the machine interface.
"""


class ConsoleLine:
    """The socket of a machine.Machine, which uses a guest.Console at its prompt."""

    def __init__(self, console):
        self.console = console
        self.at = len(console.text)
        self.timeout = None

    def settimeout(self, timeout):
        self.timeout = timeout

    def sendall(self, data):
        self.console.send(data)

    def recv(self, size):
        """Return the next bytes; b"" if the guest has ended or its console is closed."""
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
