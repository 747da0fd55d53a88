"""browser.py - controls a headless Chromium by its DevTools protocol.

    with Browser() as browser:
        page = browser.open("http://127.0.0.1:8080/")
        page.wait("document.title === 'sonde'", 10)
        page.type("help\\r")
        page.shot("page.png")

DevTools use a WebSocket; this file implements as much of it as they need.
"""

import base64
import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

from sonde.guest import die_with_parent

OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
           "--remote-allow-origins=*", "--no-first-run", "--window-size=1200,800",
           "--disable-dev-shm-usage", "about:blank")  # fmt: skip


class Navigated(AssertionError):
    """A page has gone to another address before it could answer."""


class Line:
    """A WebSocket that sends and receives texts of any length."""

    def __init__(self, url):
        host, port, path = re.fullmatch(r"ws://([^:/]+):(\d+)(/.*)", url).groups()
        self.sock = socket.create_connection((host, int(port)), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            f"GET {path} HTTP/1.1",
            f"Host: {host}:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
            "",
            "",
        )
        self.sock.sendall("\r\n".join(lines).encode())
        self.rest = b""
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.sock.recv(4096)
        self.rest = self.rest.partition(b"\r\n\r\n")[2]

    def send(self, text):
        data = text.encode()
        mask = os.urandom(4)
        size = len(data)
        head = (
            struct.pack(">BB", 0x81, 0x80 | size)
            if size < 126
            else struct.pack(">BBH", 0x81, 0x80 | 126, size)
            if size < 65536
            else struct.pack(">BBQ", 0x81, 0x80 | 127, size)
        )
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.sock.sendall(head + mask + masked)

    def take(self, count, limit):
        self.sock.settimeout(max(limit, 0.01))
        while len(self.rest) < count:
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionError("the browser has gone")
            self.rest += data
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def receive(self, limit):
        """Receive the next message, and join its frames."""
        whole = b""
        while True:
            first, size = self.take(2, limit)
            if size >= 126:
                size = int.from_bytes(self.take(2 if size == 126 else 8, limit), "big")
            data = self.take(size, limit)
            if first & 15 in (0, 1):
                whole += data
                if first & 0x80:
                    return whole.decode()


class Page:
    """A tab."""

    def __init__(self, target):
        self.number = 0
        self.line = Line(target["webSocketDebuggerUrl"])

    def call(self, method, limit=60, **more):
        self.number += 1
        self.line.send(json.dumps({"id": self.number, "method": method, "params": more}))
        end = time.monotonic() + limit
        while True:
            reply = json.loads(self.line.receive(end - time.monotonic()))
            if reply.get("id") == self.number:
                if "navigated" in reply.get("error", {}).get("message", ""):
                    raise Navigated(f"{method}: {reply['error']}")
                if "error" in reply:
                    raise AssertionError(f"{method}: {reply['error']}")
                return reply["result"]

    def scheme(self, name):
        """Show the page as in light or dark surroundings."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def evaluate(self, script, limit=60):
        """The value of a JavaScript expression. If it is a promise, the value it gets."""
        reply = self.call(
            "Runtime.evaluate",
            limit,
            expression=script,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in reply:
            raise AssertionError(f"{script}: {reply['exceptionDetails']}")
        return reply["result"].get("value")

    def wait(self, condition, limit):
        """Wait until the expression is true. Return whether it became true in time."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            with contextlib.suppress(Navigated):
                if self.evaluate(f"Boolean({condition})"):
                    return True
            time.sleep(0.1)
        return False

    def type(self, text):
        """Press the keys of @text, one after the other."""
        for key in text:
            more = (
                {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
                if key == "\r"
                else {"key": key}
            )
            self.call("Input.dispatchKeyEvent", type="keyDown", text=key, **more)
            self.call("Input.dispatchKeyEvent", type="keyUp", **more)

    def mouse(self, kind, x, y):
        buttons = {"button": "left", "buttons": 1, "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **buttons)

    def drag(self, *places):
        """Press the mouse at the first place, move it to the others, let it go."""
        self.mouse("Pressed", *places[0])
        for place in places[1:]:
            self.mouse("Moved", *place)
        self.mouse("Released", *places[-1])

    def press(self, selector):
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def shot(self, path):
        kind = path.rpartition(".")[2]
        data = self.call("Page.captureScreenshot", format=kind)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))


class Browser:
    """A new Chromium with a folder of its own. Use with `with`."""

    def __init__(self):
        self.home = tempfile.TemporaryDirectory(prefix="sonde-browser-")
        self.process = subprocess.Popen(
            ["chromium", f"--user-data-dir={self.home.name}", *OPTIONS],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
        self.port = self.find_port()

    def find_port(self):
        path = os.path.join(self.home.name, "DevToolsActivePort")
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if os.path.exists(path):
                with open(path, encoding="ascii") as file:
                    words = file.read().split()
                if len(words) > 1:
                    return int(words[0])
            time.sleep(0.1)
        raise TimeoutError("Chromium does not start")

    def open(self, url):
        quoted = urllib.request.quote(url, safe=":/?=&")  # "#" would end the request
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/json/new?{quoted}", method="PUT"
        )
        with urllib.request.urlopen(request, timeout=30) as reply:
            return Page(json.load(reply))

    def close(self):
        """Kill the browser at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for _ in range(50):
            try:
                self.home.cleanup()
                return
            except OSError:
                time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
