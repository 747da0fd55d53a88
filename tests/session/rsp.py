"""rsp.py - a client of gdb's remote protocol, for a guest's COM2: packets one by one, their
damage, and none at all.
"""

import os
import socket
import tempfile
import threading
import time

from guest import Guest, Setup
from session import LIMIT

SOCKET = "com2.sock"


def checksum(data):
    return b"%02x" % (sum(data) & 0xFF)


def frame(data):
    return b"$" + data + b"#" + checksum(data)


class Client:
    """A debugger. ask() sends a packet and returns the answer's data."""

    def __init__(self, path, acks=True):
        self.line = socket.socket(socket.AF_UNIX)
        self.line.connect(path)
        self.came = b""
        self.acks = acks

    def close(self):
        self.line.close()

    def send(self, data, timeout=120):
        self.line.settimeout(timeout)
        self.line.sendall(data)

    def _more(self, end):
        self.line.settimeout(max(end - time.monotonic(), 0.001))
        piece = self.line.recv(65536)
        if not piece:
            raise ConnectionError("the guest has closed COM2")
        self.came += piece

    def packet(self, timeout=LIMIT):
        """The next packet; TimeoutError when none comes."""
        end = time.monotonic() + timeout
        while True:
            start = self.came.find(b"$")
            stop = self.came.find(b"#", start)
            if start >= 0 and stop >= 0 and len(self.came) >= stop + 3:
                data, given = self.came[start + 1 : stop], self.came[stop + 1 : stop + 3]
                self.came = self.came[stop + 3 :]
                if given != checksum(data):
                    raise ValueError(f"wrong sum of {data!r}")
                if self.acks:
                    self.send(b"+")
                return data.decode("latin-1")
            self._more(end)

    def byte(self, timeout=LIMIT):
        """The next byte outside of packets."""
        end = time.monotonic() + timeout
        while not self.came:
            self._more(end)
        byte, self.came = self.came[:1], self.came[1:]
        return byte

    def ask(self, data, timeout=LIMIT):
        data = data.encode("latin-1") if isinstance(data, str) else data
        self.send(frame(data))
        return self.packet(timeout)

    def stopped(self, timeout=LIMIT):
        """(text, packet): O packets come before the next other packet."""
        packet, text = self.packet(timeout), ""
        while is_output(packet):
            text += text_of(packet)
            packet = self.packet(timeout)
        return text, packet

    def told(self, data):
        """(text, answer) of a packet."""
        self.send(frame(data.encode("latin-1")))
        return self.stopped()

    def interrupted(self):
        """(stop, text): Ctrl-C, and what is printed until the kernel stands."""
        self.send(b"\x03")
        text, stop = self.stopped()
        return stop, text

    def greet(self):
        """What gdb says first. The answer: the features."""
        features = self.ask("qSupported:swbreak+;hwbreak+;vContSupported+")
        return dict(word.split("=") if "=" in word else (word[:-1], word[-1])
                    for word in features.split(";"))  # fmt: skip

    def interrupt(self):
        self.send(b"\x03")
        return self.packet()

    def read(self, addr, length):
        return bytes.fromhex(self.ask(f"m{addr:x},{length:x}"))

    def resume(self, actions="c"):
        self.send(frame(b"vCont;" + actions.encode()))


class Stub:
    """A guest with COM2. connect() gives a Client."""

    def __init__(self, append="", smp=2, **more):
        self.folder = tempfile.TemporaryDirectory(prefix="sonde-")
        self.path = os.path.join(self.folder.name, SOCKET)
        self.guest = Guest(Setup(append=append, smp=smp, com2=self.path, **more))

    def connect(self, **more):
        end = time.monotonic() + 30
        while not os.path.exists(self.path) and time.monotonic() < end:
            time.sleep(0.01)
        return Client(self.path, **more)

    def ask_console(self, text):
        return self.guest.machine.request(text, LIMIT)

    def in_background(self, text):
        """A command of the console that may be stopped in its middle."""
        console = threading.Thread(target=self.ask_console, args=(text,))
        console.start()
        return console

    def disturbed(self, client, console):
        """A command in_background() runs to its end. Packets that come meanwhile are stops
        for which the debugger has not asked, and it lets the kernel go on.
        """
        came = []
        while console.is_alive():
            try:
                came.append(client.packet(0.05))
                client.resume()
            except TimeoutError:
                pass
        return came

    def symbol(self, name):
        """Where a function begins, by the kernel's own table."""
        return int(self.ask_console(f"sym {name}").text.split()[0], 16)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.guest.stop()
        self.folder.cleanup()


def is_output(packet):
    return packet[:1] == "O" and packet != "OK"


def text_of(packet):
    return bytes.fromhex(packet[1:]).decode("latin-1")


def output(client, enough, timeout=LIMIT):
    """What the kernel prints while it runs, until enough(text)."""
    text = ""
    while not enough(text):
        text += text_of(client.packet(timeout))
    return text


def fields(stop):
    """The pairs of a stop reply."""
    return dict(pair.split(":", 1) for pair in stop[3:].split(";") if pair)
