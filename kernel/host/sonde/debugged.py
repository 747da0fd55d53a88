"""debugged.py - a guest under gdb: its sockets, its console, and commands that it runs.

Each `./sonde gdb` has a number; the first one has 1. Its sockets are in build/. From 2 on
their names contain the number, so that `./sonde attach` in another terminal finds them.
"""

import fcntl
import os
import threading
import time

from sonde import errors
from sonde.building import HostError
from sonde.guest import BUILD, PROMPT
from sonde.machine import Gone, ProtocolError

MOST = 64


def claim(name, what):
    """Lock the file @name in build/ until it is closed. HostError: it is in use."""
    os.makedirs(BUILD, exist_ok=True)
    lock = open(os.path.join(BUILD, name), "w", encoding="ascii")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise HostError(f"{what} is running already") from None
    return lock


class Place:
    """The files of one guest under gdb."""

    def __init__(self, number):
        self.number = number
        suffix = "" if number == 1 else str(number)
        self.suffix = suffix
        self.gdb = os.path.join(BUILD, f"gdb{suffix}.sock")
        self.stub = os.path.join(BUILD, f"stub{suffix}.sock")
        self.console = os.path.join(BUILD, f"console{suffix}.sock")
        self.log = os.path.join(BUILD, f"console{suffix}.log")

    def how_to_attach(self):
        return "./sonde attach" + (f" {self.number}" if self.number > 1 else "")

    def clear(self):
        for path in (self.gdb, self.stub, self.console, self.log):
            if os.path.lexists(path):
                os.unlink(path)


def free_place():
    """(Place, its lock): the first place that no guest uses."""
    for number in range(1, MOST + 1):
        place = Place(number)
        try:
            return place, claim(f".gdb{place.suffix}", "./sonde gdb")
        except HostError:
            continue
    raise HostError(f"./sonde gdb is running {MOST} times already")


class Commands(threading.Thread):
    """Runs console commands in a guest, as soon as it shows its prompt. If @ends, the
    guest is switched off after them: a script of gdb would wait for the next stop without
    end.
    """

    def __init__(self, guest, log, commands, show, ends):
        super().__init__(daemon=True)
        self.guest, self.log, self.commands = guest, log, commands
        self.ends = ends
        self.show = show
        self.error = None  # why show() could not take more

    def run(self):
        while not self._at_prompt():
            if self.guest.ended():
                return
            time.sleep(0.05)
        try:
            for command in self.commands:
                reply = self.run_one(os.fsencode(command))
                if reply.errno:
                    errors.say_failure(command, reply, self.commands)
            if self.ends:
                self.run_one(b"poweroff")
        except (Gone, ProtocolError):
            pass  # the guest has ended
        except OSError as error:
            self.error = error
            self.guest.stop()  # gdb would wait for it without end

    def run_one(self, command):
        return self.guest.machine.request(command, None, self.show, may_fail=True)

    def _at_prompt(self):
        try:
            with open(self.log, "rb") as log:
                return PROMPT in log.read()
        except FileNotFoundError:
            return False
