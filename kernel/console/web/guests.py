"""guests.py - the guests of pages: starts them, asks them, ends them.

A page that has lost its connection can connect to its guest again, for some seconds.
"""

import contextlib
import os
import queue
import secrets
import shutil
import socket
import tempfile
import threading
import time

from probes.film.host import film as film_file
from probes.film.host import page as film_page
from probes.trace.host.take import TraceError
from kernel.console.web import answer, listing
from sonde.guest import Guest, GuestError
from sonde.machine import LIMIT, Machine
from sonde.memory import Memory

START_S = 120
PROMPT = "sonde>"
FILM_MS = 5  # what the patcher waits after each step


class Refused(Exception):
    """A request is refused: a status of HTTP, and a sentence for the user."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class Session:
    """The guest of a page."""

    def __init__(self, setup_of):
        self.name = secrets.token_urlsafe(12)
        self.place = tempfile.mkdtemp(prefix="sonde-web-")
        self.console = os.path.join(self.place, "console")
        self.machine = os.path.join(self.place, "machine")
        self.qmp = os.path.join(self.place, "qmp")
        self.lock = threading.Lock()
        self.asking, self.reading = threading.Lock(), threading.Lock()
        self.answering = threading.Lock()
        self.log = os.path.join(self.place, "log")  # what the console has printed
        self.is_hidden = False
        self.memory = None  # of the guest, as soon as a page wants to see it
        self.function = None  # the function that the page shows
        self.standing = None  # its question, until it is withdrawn
        self.page_line = None  # the socket of the page that is connected
        self.seen = time.monotonic()
        try:
            names = {"socket": self.machine, "qmp": self.qmp, "log": self.log}
            self.guest = Guest(setup_of(console=self.console, **names))
        except BaseException:
            shutil.rmtree(self.place, ignore_errors=True)
            raise

    def connect(self):
        """Return a socket of the guest's console. QEMU serves one connection at a time,
        so the connection of an earlier page is cut.
        """
        with self.lock:
            self.cut()
            line, end = socket.socket(socket.AF_UNIX), time.monotonic() + 10
            while True:
                try:
                    line.connect(self.console)
                    self.page_line = line
                    return line
                except OSError:
                    if time.monotonic() > end or self.guest.ended():
                        line.close()
                        raise
                    self.seen = time.monotonic()  # the page waits
                    time.sleep(0.05)

    def cut(self):
        if self.page_line:
            try:
                self.page_line.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.page_line = None

    def leave(self, line):
        with self.lock:
            if self.page_line is line:
                self.page_line = None
            self.seen = time.monotonic()

    def is_left(self, grace):
        return not self.page_line and time.monotonic() - self.seen > grace

    def request(self, command, limit=LIMIT, may_fail=False):
        """Run a command in the guest, beside its console. Return the Reply."""
        with self.asking:
            self.wait_up()
            if self.guest.ended():
                raise Refused(500, "the guest has ended")
            with Machine.connect(self.machine) as machine:
                if not self.is_hidden:  # what the page asks for is in no count
                    machine.request("probe hide")
                    self.is_hidden = True
                return machine.request(command, limit, may_fail=may_fail)

    def wait_up(self):
        """Wait until the guest listens: what is sent before that is lost."""
        end = time.monotonic() + START_S
        while PROMPT not in text_of(self.log):
            if self.guest.ended() or time.monotonic() > end:
                raise Refused(500, "the guest has not come to its prompt")
            time.sleep(0.1)

    def output(self, command):
        """The output of a command of ours. Raises Refused if it fails."""
        reply = self.request(command, may_fail=True)
        if reply.errno:
            raise Refused(404, str(reply) or reply.name)
        return reply.text

    def show(self, name):
        """Let the page see the function @name. Return it as JSON."""
        with self.reading:
            self.memory = self.memory or Memory(self.qmp)
            self.function = listing.Function(name, self.output, self.memory)
            return self.function.json()

    def ask(self, question):
        """Withdraw the question of before, and let @question stand, if there is one."""
        with self.answering:
            old, self.standing = self.standing, None
            if old:
                old.withdraw()
            if question:
                try:
                    self.standing = answer.Standing(self, self.guest, question)
                except TraceError as error:
                    raise Refused(404, str(error)) from None

    @contextlib.contextmanager
    def looked(self):
        """The answer to the question that stands, and whether it is another one than at the
        last look.
        """
        with self.answering:
            if not self.standing:
                raise Refused(404, "no question stands")
            try:
                yield self.standing.look()
            except TraceError as error:
                raise Refused(500, str(error)) from None

    def record(self, place, load):
        """Record a film of @place: a probe comes, the workload @load runs, the probe goes.
        Return it as JSON.
        """
        with contextlib.ExitStack() as undo:
            self.output(f"film start {place} {FILM_MS}")
            undo.callback(self.request, "film stop", may_fail=True)
            name = self.output(f"probe add {place}").split()[0]
            undo.callback(self.output, f"probe del {name}")
            for _ in range(2):  # in the first one, the optimizer makes the jump
                self.output(f"run {load}")
        film = film_file.parse(self.output("cat /tmp/film"))
        film.title = f"A probe comes to {place}, and goes"
        return film_page.data_of(film)

    def seen_function(self):
        if not self.function:
            raise Refused(404, "the page shows no function")
        return self.function

    def stop(self):
        self.cut()
        self.guest.stop()
        if self.memory:
            self.memory.__exit__()
        shutil.rmtree(self.place, ignore_errors=True)


class Desk:
    """Owns all sessions.

    A guest dies with the thread that has started it (die_with_parent). So a single thread
    that never ends starts all guests. It also ends the guests that no page uses any more.
    """

    def __init__(self, setup_of, guests, grace):
        self.setup_of, self.guests, self.grace = setup_of, guests, grace
        self.sessions, self.lock, self.over = {}, threading.Lock(), False
        self.asked = queue.Queue()  # queues, where a new session or an error goes
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while not self.over:
            try:
                self.asked.get(timeout=0.5).put(self.begin())
            except queue.Empty:
                pass
            self.drop([s for s in list(self.sessions.values()) if s.is_left(self.grace)])

    def begin(self):
        if len(self.sessions) >= self.guests:
            return Refused(503, f"there are {self.guests} guests already; close a page")
        try:
            session = Session(self.setup_of)
        except (GuestError, OSError) as error:
            return Refused(500, str(error))
        self.sessions[session.name] = session
        return session

    def drop(self, some):
        for session in some:
            with self.lock:
                known = self.sessions.pop(session.name, None)
            if known:
                session.stop()

    def close(self):
        self.over = True
        self.drop(list(self.sessions.values()))

    def of(self, name):
        session = self.sessions.get(name)
        if not session:
            raise Refused(404, "this guest has ended; load the page again")
        return session

    def start(self):
        told = queue.Queue()
        self.asked.put(told)
        session = told.get(timeout=START_S)
        if isinstance(session, Refused):
            raise session
        return session
