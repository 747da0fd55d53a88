"""in_guest.py - grades labs in which a student writes a module. The grader loads the
module into a guest, runs commands, and compares their output with the output in another
guest, which has the solution.

No guest has both the student's code and the right answers. After a case in which a guest
has failed, the grader starts a new guest.
"""

import os
import resource
import time

from docs.labs.host.grade import (
    PRINTED_MAX,
    Difference,
    NotBuilt,
    Workshop,
    grader_failed,
)
from kernel.module import abi, send
from sonde.building import HostError
from sonde.guest import ROOT, Guest, GuestError, Setup
from sonde.machine import Gone, ProtocolError

BOOT_SECONDS = 30
OUTPUT_MAX = 2**18  # bytes of the answers to one case
FILE_MAX = 2**26  # bytes that QEMU may write for the guest
NO_SYMBOL = "its constructors have refused: No such file or directory"
RETURNED = (
    "; does a handler return something else than 0? That says that it has set regs->ip"
)
LOCKED = (
    "; a handler took a lock in an NMI. The code that the NMI has interrupted may hold this "
    "lock, and cannot go on to give it back"
)
SHOWN = 3  # lines of a guest's last output


class Failed(Exception):
    """The guest does not go on with this case; the text says why."""


class Seen:
    """How a case ended: stands in for a confine.Ended."""

    def __init__(self, why=None):
        self.why = why


class Asker:
    """Sends commands to one guest, for at most @seconds in all."""

    def __init__(self, guest, seconds):
        self.guest, self.seconds = guest, seconds
        self.deadline = time.monotonic() + seconds
        self.left = OUTPUT_MAX
        self.said = []  # for the student: commands and answers
        self.is_loading = False
        self.name = None  # the name of the module that was loaded last
        self.loaded = None  # its object

    def _count(self, piece):
        self.left -= len(piece)
        if self.left < 0:
            raise Failed("it wrote too much")

    def __call__(self, command, may_fail=False, is_shown=True):
        """Send a command that must succeed. Return the Reply.
        @is_shown: show it to the student, too.
        """
        left = max(self.deadline - time.monotonic(), 0.001)
        try:
            reply = self.guest.machine.request(command, left, self._count, True)
        except (Gone, TimeoutError):
            raise Failed(self._what_happened(command)) from None
        except (ProtocolError, ValueError) as error:
            raise Failed(f"'{command}': {error}") from None
        if is_shown and not self.is_loading:
            self.said.append(f"sonde> {command}\n{reply.text}")
        if reply.errno and not may_fail:
            said = reply.text.strip().splitlines()[-1:] or [reply.name]
            raise Failed(f"'{command}' failed: {said[0]}")
        return reply

    def load(self, path):
        """Load the object @path as a module into the guest."""
        with open(path, "rb") as file:
            data = file.read()
        self.name, self.loaded = send.name_of(path), path
        target = f"/tmp/{self.name}.o"
        self.is_loading = True
        try:
            send.send(self, data, target, self.seconds)
        except send.ModuleError as error:
            raise Failed(str(error)) from None
        self.is_loading = False
        try:
            self(f"module reload {target}")
        except Failed as error:
            if str(error).endswith(NO_SYMBOL):
                raise Failed(
                    f"{error}: no function has the symbol_name of a probe"
                ) from None
            raise
        self(f"rm {target}")
        self.guest.note_modules(max(self.deadline - time.monotonic(), 1))

    def request(self, command, _timeout, may_fail):
        """As that of a machine, for kernel/module/send.py. A command that fails ends the
        case.
        """
        return self(command)

    def _what_happened(self, command):
        error = self.guest.failure(f"in '{command}'", self.seconds)
        panic = next((line for line in error.lines if line.startswith("panic: ")), None)
        self.said += [line + "\n" for line in error.lines]
        if panic and command.startswith("run ") and command.split()[1] != self.name:
            # Of the student's code, only handlers run in this command.
            panic += LOCKED if "CTX_NMI" in panic else RETURNED
        return f"{error}; {panic}" if panic else str(error)


class GuestWorkshop(Workshop):
    """Grades a lab in which a student writes a module. Its grader.py has a subclass.

    SOURCE: the student's file   MODULES: paths of modules of the grader, for every guest
    """

    SETUP = {"smp": 4, "memory": "256M"}
    SOURCE = None
    MODULES = ()

    def facts(self, ask, line, seed):
        """Run one case with the student's module loaded. Yield lines: the facts
        of the case.
        """
        raise NotImplementedError

    def warnings(self, ask):
        """Return all lines of the guest's log that report an error of the module."""
        return []

    def kernel_object(self, source, folder, more=()):
        """Compile a module of the grader. Return its object, which has the name of the
        source. Raises NotBuilt.
        """
        os.makedirs(self.path(folder), exist_ok=True)
        target = os.path.join(self.path(folder), send.name_of(source) + ".o")
        self.run([*self.to_compile(source, target), *more], self.folder, ("/",))
        return target

    def compile_theirs(self, source):
        target = os.path.splitext(source)[0] + ".o"
        headers = [
            os.path.join(root, folder)
            for root in (self.tree, ROOT)
            for folder in (*abi.FOLDERS, "libc")
        ]
        self.note_warnings(
            self.run(self.to_compile(source, target), self.theirs, (self.start, *headers))
        )
        return target

    def to_compile(self, source, target):
        return [
            *send.flags(),
            "-Wno-error",
            "-g0",
            "-I" + ROOT,
            "-iquote",
            self.start,
            "-c",
            "-o",
            target,
            source,
        ]

    def build_ours(self):
        solution = os.path.join(self.grader, "solution", self.SOURCE)
        self.guests = {}
        try:
            self.ours = [
                self.kernel_object(os.path.join(self.tree, path), "ours")
                for path in self.MODULES
            ]
            self.truth = self.kernel_object(solution, "truth")
        except NotBuilt as error:
            raise HostError(f"grade: the grader of {self.lab}: {error}") from None

    def build_answer(self, handed_in):
        if "answer" in self.guests:
            self.guests.pop("answer").stop()
        self.answer = self.compile_theirs(self.taken(handed_in, self.SOURCE))

    @staticmethod
    def seed_of(seed, case):
        """Return the seed for the guest's workloads in a case."""
        return (seed * 1000003 + case) % 2**31

    def new_guest(self):
        guest = Guest(Setup(**self.SETUP, append="quiet"))
        try:
            resource.prlimit(
                guest.process.pid, resource.RLIMIT_FSIZE, (FILE_MAX, FILE_MAX)
            )
            guest.wait_prompt(BOOT_SECONDS * self.scale)
            ask = Asker(guest, BOOT_SECONDS * self.scale)
            for path in self.ours:
                ask.load(path)
        except (GuestError, Failed) as error:
            guest.stop()
            raise HostError(f"grade: a guest for {self.lab}: {error}") from None
        return guest

    def guest_for(self, whose):
        if whose not in self.guests:
            self.guests[whose] = self.new_guest()
        return self.guests[whose]

    def run_in(self, whose, module, line, seed):
        """Run one case in a guest. Return (facts, Seen). A guest that fails is ended."""
        ask, found = Asker(self.guest_for(whose), self.seconds), []
        seen = Seen()
        try:
            before = len(self.warnings(ask))
            ask.load(module)
            found += self.facts(ask, line, seed)
            seen.why = next(iter(self.warnings(ask)[before:]), None)
        except Failed as error:
            seen.why = str(error)
            self.guests.pop(whose).stop()
        self.printed = "".join(ask.said)[:PRINTED_MAX]
        return found, seen

    def compare(self, line, seed, case):
        seed = self.seed_of(seed, case)
        if (line, seed) not in self.right:
            facts, seen = self.run_in("truth", self.truth, line, seed)
            if seen.why:
                raise grader_failed(self.lab, line, seen.why)
            self.right[line, seed] = facts
        got, seen = self.run_in("answer", self.answer, line, seed)
        if got == self.right[line, seed] and not seen.why:
            return None
        return Difference(got, self.right[line, seed], seen)

    def how_to_debug(self, line, seed, case):
        return None

    def close(self):
        for guest in self.guests.values():
            guest.stop()
        self.guests = {}
