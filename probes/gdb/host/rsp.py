"""rsp.py - a client of gdb's remote protocol, on a guest's COM2. It sends single packets,
also damaged packets, and bytes that are no packet.
"""

import os
import socket
import tempfile
import threading
import time

from sonde.guest import Guest, Setup

# Seconds for one answer. Much more than needed: the host may be busy.
LIMIT = int(os.environ.get("LIMIT", "120"))
SOCKET = "com2.sock"


def checksum(data):
    return b"%02x" % (sum(data) & 0xFF)


def frame(data):
    return b"$" + data + b"#" + checksum(data)


class Client:
    """The debugger's side. ask() sends a packet and returns the data of the answer."""

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
        """Return the data of the next packet. Raises TimeoutError if no packet comes."""
        end = time.monotonic() + timeout
        while True:
            start = self.came.find(b"$")
            stop = self.came.find(b"#", start)
            if start > 0 and self.came[:start].strip(b"+-"):
                raise ValueError(f"no packet: {self.came[:start]!r}")
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
        """Return the next byte that arrives, such as an acknowledgement."""
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
        """Return (text of all O packets, the first packet of another kind)."""
        packet, text = self.packet(timeout), ""
        while is_output(packet):
            text += text_of(packet)
            packet = self.packet(timeout)
        return text, packet

    def told(self, data):
        """Send a packet. Return (text of O packets, answer)."""
        self.send(frame(data.encode("latin-1")))
        return self.stopped()

    def interrupted(self):
        """Send Ctrl-C. Return (stop packet, text that came before the kernel stopped)."""
        self.send(b"\x03")
        text, stop = self.stopped()
        return stop, text

    def greet(self):
        """Send gdb's first packet. Return {feature: value} of the answer."""
        features = self.ask("qSupported:swbreak+;hwbreak+;vContSupported+")
        return dict(
            word.split("=") if "=" in word else (word[:-1], word[-1])
            for word in features.split(";")
        )

    def without_acks(self):
        """Switch acknowledgements off. Return the answer."""
        answer = self.ask("QStartNoAckMode")
        self.acks = False
        return answer

    def interrupt(self):
        self.send(b"\x03")
        return self.packet()

    def monitor(self, command):
        """Run a console command by the stub. Return (its output, the answer)."""
        return self.told("qRcmd," + command.encode().hex())

    def stand_quietly(self):
        """If a CPU was stopped while it held a lock, the stub postpones a command that
        needs this lock. Run on and stop again, until `ps` is not postponed.
        """
        for _ in range(50):
            if "runs when the kernel does" not in self.monitor("ps")[0]:
                return
            self.resume()
            output(self, lambda text: "PREEMPTED" in text)
            self.interrupted()

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
        return self.guest.machine.request(text, LIMIT, may_fail=True)

    def in_background(self, text):
        """Start a console command in a thread, because the debugger may stop it."""
        console = threading.Thread(target=self.ask_console, args=(text,))
        console.start()
        return console

    def disturbed(self, client, console):
        """Wait for the end of a command of in_background(). Let the kernel go on after
        each stop. Return the packets of these stops, which no test expects.
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
        """Return the address of a function from the kernel's own table of symbols."""
        return int(self.ask_console(f"sym {name}").text.split()[0], 16)

    def __enter__(self):
        return self

    def __exit__(self, error, *more):
        self.guest.stop()
        self.folder.cleanup()
        if error:
            for line in self.guest.console.text.decode("latin-1").splitlines()[-20:]:
                print(f"# console: {line}", flush=True)


def is_output(packet):
    return packet[:1] == "O" and packet != "OK"


def text_of(packet):
    return bytes.fromhex(packet[1:]).decode("latin-1")


def output(client, enough, timeout=LIMIT):
    """Return what the running kernel prints, as soon as enough(text) is true."""
    text = ""
    while not enough(text):
        try:
            text += text_of(client.packet(timeout))
        except TimeoutError:
            end = text[-200:]
            raise TimeoutError(f"no more after {len(text)} characters: {end!r}") from None
    return text


def fields(stop):
    """Return {name: value} of the pairs in a stop reply."""
    return dict(pair.split(":", 1) for pair in stop[3:].split(";") if pair)
