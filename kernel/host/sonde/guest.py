"""guest.py - starts QEMU with sonde in it, and finds out how it ends.

The host learns of a guest in three ways: by COM1, the console; by COM3, the machine
interface; and from QEMU itself (its exit status, resets of a CPU). The lines are socket
pairs. So no file is left over, and the host notices at once when a guest ends.
"""

import contextlib
import ctypes
import dataclasses
import functools
import glob
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import tempfile
import threading
import time

from sonde import exits, tree
from sonde.errors import SondeError, writing
from sonde.hang import Qmp, cpu_places
from sonde.machine import LIMIT, Gone, Machine, ProtocolError

ROOT = tree.root()
# As the Makefile has it.
BUILD = os.path.abspath(os.path.join(ROOT, os.environ.get("B") or "build"))
ELF = os.path.join(BUILD, "sonde.elf")
ISO = os.path.join(BUILD, "sonde.iso")
# The files below /boot of each guest.
BOOT_FILES = [
    os.path.join(BUILD, *words)
    for words in (("docs", "samples", "*.o"), ("probes", "bench", "bench.o"))
]
APPEND_MAX = {"pvh": 4095, "iso": 1023, "uefi": 1023}  # docs/boot-options.md
OVMF = "/usr/share/OVMF/OVMF_%s_4M.fd"

ESCAPE, ESCAPE_NAME = 0x1D, "Ctrl-]"  # ESCAPE x leaves a terminal; no key of the editor
PROMPT = b"sonde> "

# drivers/qemu_exit.h: the guest writes a code, QEMU exits with 2 * code + 1.
EXIT_POWEROFF, EXIT_TESTS_FAILED, EXIT_PANIC, EXIT_COMMAND_FAILED = 33, 35, 37, 39

# kernel/debug/panic.c prints this in every report. If no prompt follows, and the guest still
# runs PANIC_GRACE seconds later, it could not end itself.
PANIC = re.compile(rb"(?s)\npanic: .*\nCPU \d+, which panicked:")
PANIC_GRACE = 5
PANIC_MAX = 8192  # bytes; the registers stand between the two lines
PANIC_END = b"\nend of panic"
REPORT_MAX = 200  # lines

LOOK = 1  # seconds between two looks whether QEMU has stopped the machine
BROKEN = ("internal-error", "io-error")  # QEMU's words for a machine that cannot go on

ACCEL = "SONDE_ACCEL"  # `./sonde test --accel kvm` sets this for the guests of its tests

CONTROL = re.compile(r"\r|\x1b\[[0-9;=?]*[A-Za-z]")  # what only a terminal needs
BIOS = range(0xE0000, 0x100000)  # addresses of SeaBIOS


@dataclasses.dataclass
class Setup:
    """The settings of a guest: the options of ./sonde."""

    smp: int = 2
    boot: str = "pvh"  # pvh, iso or uefi
    elf: str = ELF  # the image, if boot is pvh
    modules: tuple = ()  # files that appear in /boot, beside the samples
    accel: str = "tcg"
    icount: bool = False
    append: str = ""
    memory: str = "1G"
    log: str = None  # file that receives what COM1 prints
    socket: str = None  # COM3 as a listening unix socket instead of a pair
    com2: str = None  # COM2 as a listening unix socket: the kernel's own gdb stub
    qmp: str = None  # QMP as a listening unix socket
    qemu: str = ""  # further words of QEMU's command line
    snapshots: bool = False  # save() and restore()
    gdb: str = None  # gdb's unix socket, or stdio; the guest waits for it
    console: str = "pair"  # pair, stdio, or a path: COM1 as a listening unix socket
    reboot: bool = False  # a reset starts the guest again instead of ending it
    stays: bool = False  # the guest stays after a panic, so that its memory can be read

    @property
    def image(self):
        return self.elf if self.boot == "pvh" else ISO


class GuestError(SondeError):
    """The guest panicked, hung or reset."""

    def __init__(self, status, message, lines=()):
        super().__init__(message)
        self.status = status
        self.lines = lines


def module_words(paths):
    """QEMU's words for files that appear in /boot."""
    for path in paths:
        name = os.path.basename(path)
        yield from ("-fw_cfg", f"name=opt/sonde/module/{comma(name)},file={comma(path)}")


def boot_words(setup):
    """The part of QEMU's command line that says what is booted, and how. GuestError: with
    more boot arguments the kernel would not boot, or lose their end.
    """
    most = APPEND_MAX[setup.boot]
    if len(os.fsencode(setup.append)) > most:
        what = (
            f"the boot arguments have more than {most} bytes, the most for {setup.boot}"
        )
        raise GuestError(exits.USAGE, what)
    if setup.boot == "pvh":
        # In the ISO, iso/grub.cfg loads them.
        files = [path for which in BOOT_FILES for path in sorted(glob.glob(which))]
        return [
            "-kernel",
            setup.elf,
            "-append",
            setup.append,
            *module_words([*files, *setup.modules]),
        ]
    words = ["-cdrom", ISO, *module_words(setup.modules)]
    if setup.append:
        words += ["-fw_cfg", f"name=opt/sonde/append,string={comma(setup.append)}"]
    if setup.boot == "uefi":
        pflash = "if=pflash,format=raw,file=" + OVMF
        words += ["-drive", pflash % "CODE" + ",readonly=on"]
        words += ["-drive", pflash % "VARS" + ",snapshot=on"]
    return words


def cpu_words(setup):
    if "kvm" in (setup.accel, os.environ.get(ACCEL)) and not setup.icount:
        words = ["-accel", "kvm", "-cpu", "host"]
    elif setup.icount:
        words = ["-accel", "tcg,thread=single", "-cpu", "max"]
        words += ["-icount", "shift=1,sleep=off"]
    else:
        words = ["-accel", "tcg,thread=multi", "-cpu", "max"]
    return words + ["-smp", str(setup.smp), "-m", setup.memory]


def listening(path):
    return f"socket,path={comma(path)},server=on,wait=off"


def comma(path):
    """A path as a value for QEMU, where a comma in it must be doubled."""
    return path.replace(",", ",,")


def make_snapshot_disk(file):
    """Make an open file one in which QEMU keeps snapshots. It has no name that could stay."""
    path = f"/dev/fd/{file.fileno()}"
    try:
        subprocess.run(
            ["qemu-img", "create", "-q", "-f", "qcow2", path, "1M"],
            check=True,
            capture_output=True,
            pass_fds=[file.fileno()],
        )
    except FileNotFoundError:
        raise GuestError(exits.HOST, "snapshots take qemu-img (qemu-utils)") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip()
        raise GuestError(exits.HOST, f"no file for snapshots: {said}") from None


def further_words(text):
    """The words of the user for QEMU. ValueError: a quote is not closed, or the words make
    QEMU a daemon, which does not end with its parent.
    """
    words = shlex.split(text)
    for word in words:
        if word.lstrip("-") == "daemonize":
            raise ValueError(f"{word}: ./sonde could not end such a QEMU")
    return words


def qemu_words(setup, com1, com3, control, early, resets, image=True):
    """The whole command line. com1, com3, control: chardevs; early, resets: files."""
    words = ["qemu-system-x86_64", "-machine", "pc", "-nodefaults", "-display", "none"]
    words += cpu_words(setup) + (boot_words(setup) if image else ["-S"])
    words += ["-vga", "std" if setup.console == "stdio" else "none"]
    words += ["-chardev", com1 + ",id=com1", "-device", "isa-serial,chardev=com1,index=0"]
    if setup.com2:
        words += ["-chardev", listening(setup.com2) + ",id=com2"]
        words += ["-device", "isa-serial,chardev=com2,index=1"]
    words += ["-chardev", com3 + ",id=com3", "-device", "isa-serial,chardev=com3,index=2"]
    words += ["-chardev", control + ",id=control", "-mon", "control,mode=control"]
    words += ["-chardev", f"file,path={early},id=early"]
    words += ["-device", "isa-debugcon,iobase=0xe9,chardev=early"]
    if not setup.stays:
        words += ["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]
    words += ["-d", "cpu_reset", "-D", resets]
    if not setup.reboot:
        words += ["-no-reboot"]
    if setup.console == "stdio":
        words += ["-mon", "com1", "-echr", str(ESCAPE)]
    if setup.qmp:
        words += ["-qmp", "unix:" + comma(setup.qmp) + ",server=on,wait=off"]
    if setup.gdb:
        line = "stdio" if setup.gdb == "stdio" else listening(setup.gdb)
        words += ["-S", "-chardev", line + ",id=gdb"]
        words += ["-gdb", "chardev:gdb"]
    return words + further_words(setup.qemu)


def refusal(setup):
    """QEMU's message, if it refuses the words for this setup; None: it accepts them.

    QEMU is started with nothing to boot, with its CPUs stopped, and told to quit.
    """
    setup = dataclasses.replace(setup, gdb=None, qmp=None, console="pair")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        control = f"socket,fd={theirs.fileno()}"
        null = "/dev/null"
        words = qemu_words(setup, "null", "null", control, null, null, image=False)
        ours.sendall(b'{"execute": "qmp_capabilities"} {"execute": "quit"}')
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=[theirs.fileno()],
            check=False,
            timeout=60,
        )
    said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
    return (said or f"it ends with status {done.returncode}") if done.returncode else None


def die_with_parent(first=lambda: None):
    """Return a preexec_fn: after @first, the child will end with this process, even if that
    has ended by then.
    """
    parent = os.getpid()

    def begin():
        first()
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return begin


class Console:
    """COM1 on a socket. A thread reads what comes, and expect() waits for it."""

    def __init__(self, sock, log=None, output=None):
        self.sock = sock
        self.log = log
        self.output = output  # called with each piece as it comes
        self.text = bytearray()  # all that came so far
        self.seen = 0  # expect() has looked at this much of it
        self.closed = False
        self.error = None  # why output() could not take more
        self.news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            try:
                data = self.sock.recv(65536)
            except OSError:
                data = b""
            try:
                self._pass_on(data)
            except OSError as error:
                self.error = error
                data = b""
            with self.news:
                self.text += data
                self.closed = not data
                self.news.notify_all()
            if not data:
                return

    def _pass_on(self, data):
        if self.log:
            with writing(self.log.name):
                self.log.write(data)
                self.log.flush()
        if self.output:
            self.output(data)

    def send(self, data, timeout=60):
        """Type @data. TimeoutError: the guest has not read all of it in time."""
        data = data.encode() if isinstance(data, str) else data
        deadline = time.monotonic() + timeout
        while data:
            left = max(deadline - time.monotonic(), 0)
            if not select.select([], [self.sock], [], left)[1]:
                raise TimeoutError("the guest does not read its console")
            data = data[self.sock.send(data[:4096], socket.MSG_DONTWAIT) :]

    def expect(self, what, timeout=LIMIT):
        """Wait for @what, behind the last expected text. Return the text in front of it;
        None: the time is over, or the line was closed.

        what: a string, or bytes or a pattern of bytes; the text in front of it is a string
              or bytes, too
        """
        if isinstance(what, str):
            before = self.expect(what.encode(), timeout)
            return None if before is None else before.decode("utf-8", "backslashreplace")
        pattern = re.compile(re.escape(what)) if isinstance(what, bytes) else what
        deadline = time.monotonic() + timeout
        with self.news:
            while True:
                match = pattern.search(self.text, self.seen)
                if match:
                    before = bytes(self.text[self.seen : match.start()])
                    self.seen = match.end()
                    return before
                left = deadline - time.monotonic()
                if self.closed or left <= 0:
                    return None
                self.news.wait(left)

    def wait_closed(self, timeout):
        with self.news:
            return self.news.wait_for(lambda: self.closed, timeout)


class Guest:
    """A running guest. Use with `with`: QEMU is killed at its end.

    setup: a Setup; or the fields of one, by name
    console: a Console, when the setup says "pair"     machine: a Machine, or None
    output: called with what comes from the console    is_shown: it shows that to the user
    """

    def __init__(self, setup=None, output=None, is_shown=False, **fields):
        self.setup = setup = setup or Setup(**fields)
        if not os.path.exists(setup.image):
            raise GuestError(exits.HOST, f"{setup.image} is not there; `make` builds it")
        self.console = None
        self.machine = None
        self.panicked = False
        self.modules = ""  # what `module symbols` has listed
        self.tail = b""  # the last bytes of the console, behind its last prompt
        self.early = tempfile.TemporaryFile()
        self.resets = tempfile.TemporaryFile()
        self.errors = tempfile.TemporaryFile()
        self.log = None
        if setup.console == "stdio":  # QEMU writes it, and said() reads it
            log = setup.log
            self.log = open(log, "w+b", 0) if log else tempfile.TemporaryFile()
        elif setup.log:
            self.log = open(setup.log, "wb")
        if setup.snapshots:
            self.snapshots = tempfile.TemporaryFile()
        self.is_shown = is_shown or setup.console == "stdio"  # what COM1 prints
        self.started = time.monotonic()
        self._start(lambda data: self._take(data, output))

    def _take(self, data, output):
        """Take a piece of console output. Called in the console's thread."""
        if output:
            output(data)
        _, prompt, self.tail = (self.tail[-PANIC_MAX:] + data).rpartition(PROMPT)
        self.panicked &= not prompt  # a command has only printed such a text
        if self.setup.stays and PANIC_END in self.tail:
            self._give_up()
        if self.panicked or not PANIC.search(self.tail):
            return
        self.panicked = True
        killer = threading.Timer(PANIC_GRACE, lambda: self.panicked and self._give_up())
        killer.daemon = True
        killer.start()

    def _give_up(self):
        """The guest does nothing any more: end it, or the lines on which threads wait."""
        if not self.setup.stays:
            self.process.kill()
            return
        for line in (self.console.sock, self.machine.sock):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RD)

    def _start(self, output):
        passed, ours = [], {}

        def backend(name, kind):
            if kind == "pair":
                ours[name], theirs = socket.socketpair()
                passed.append(theirs)
                return f"socket,fd={theirs.fileno()}"
            if kind == "stdio":
                return f"stdio,mux=on,signal=off,logfile={path(self.log)}"
            log = f",logfile={comma(self.setup.log)}" if self.setup.log else ""
            return listening(kind) + (log if name == "com1" else "")

        def path(file):
            passed.append(file)
            return f"/dev/fd/{file.fileno()}"

        words = qemu_words(
            self.setup,
            backend("com1", self.setup.console),
            backend("com3", self.setup.socket or "pair"),
            backend("control", "pair"),
            path(self.early),
            path(self.resets),
        )
        if self.setup.snapshots:
            make_snapshot_disk(self.snapshots)
            place = path(self.snapshots)
            words += ["-drive", f"file={place},if=none,id=snapshots,format=qcow2"]
        stdio = self.setup.console == "stdio"
        self.process = subprocess.Popen(
            words,
            stdin=None if stdio else subprocess.DEVNULL,
            stdout=None if stdio else subprocess.DEVNULL,
            stderr=self.errors,
            pass_fds=[file.fileno() for file in passed],
            start_new_session=not stdio,
            preexec_fn=die_with_parent(),
        )
        for theirs in passed:
            if isinstance(theirs, socket.socket):
                theirs.close()
        self.control = ours["control"]
        if "com1" in ours:
            self.console = Console(ours["com1"], self.log, output)
        if "com3" in ours:
            self.machine = Machine(ours["com3"])

    def __enter__(self):
        return self

    def __exit__(self, kind, *_rest):
        self.stop()
        if not kind:
            self._must_be_shown()

    def _must_be_shown(self):
        """Raise what has kept the console's output from the user, or from --log."""
        if self.console and self.console.error:
            raise self.console.error

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def save(self, name="prompt"):
        """Keep the state of the whole guest, which is at its prompt, under this name."""
        if self.console and PROMPT not in self.console.text:
            self.wait_prompt()
        if self.machine.is_busy:
            raise GuestError(
                exits.FAILED, f"a command still runs: {self.machine.command}"
            )
        self._snapshot("savevm", name)

    def restore(self, name="prompt"):
        """Bring the guest back to what it was when save() kept it: memory, CPUs, devices,
        and its clock. A command that still runs is gone.
        """
        if self.ended() or self.panicked:
            raise self.failure("before it was brought back", 0)
        self._snapshot("loadvm", name)
        self.machine.forget()

    def _snapshot(self, command, name):
        if not self.setup.snapshots:
            raise GuestError(exits.FAILED, "snapshots take Setup(snapshots=True)")
        if not re.fullmatch(r"[\w.-]+", name):
            raise GuestError(exits.FAILED, f"{name!r} is no name: letters, digits, _ . -")
        try:
            said = self.qmp.monitor(f"{command} {name}").strip()
        except (OSError, ValueError):
            raise self.failure(f"in QEMU's {command}", 0) from None
        if said:
            raise GuestError(exits.FAILED, f"{command} {name}: {said}")

    def request(self, command, timeout=LIMIT, may_fail=False):
        """Run a command as soon as the guest has its prompt. Return the Reply.

        Raises Refused if the command fails (but for @may_fail), Late if it has not ended in
        time, and GuestError, with the end of the log, if the guest has ended.
        """
        if self.console and PROMPT not in self.console.text:
            self.wait_prompt(timeout)
        try:
            return self.machine.request(command, timeout, may_fail=may_fail)
        except Gone:
            raise self.failure(f"in '{command}'", timeout) from None

    def wait_prompt(self, timeout=LIMIT):
        """Wait for the first prompt. Return the seconds since the start. GuestError: none."""
        deadline = time.monotonic() + timeout
        left = timeout
        while (
            self.console.text.find(PROMPT, 0, self.console.seen) < 0
            and self.console.expect(PROMPT, min(left, LOOK)) is None
        ):
            left = deadline - time.monotonic()
            if self.ended() or left <= 0 or self.stopped() in BROKEN:
                raise self.failure("before its prompt", timeout)
        return time.monotonic() - self.started

    def wait_end(self, timeout=None):
        """Wait until QEMU has ended. Return its exit status; None: the time is over."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def triple_fault(self):
        """Has a CPU had a triple fault?

        SeaBIOS triple-faults on purpose when it reboots. If the guest may reboot, QEMU
        goes on after that, and its record shows the address: triple faults in SeaBIOS do
        not count.
        """
        self.resets.seek(0)
        record = self.resets.read()
        if not self.setup.reboot:
            return b"Triple fault" in record
        places = re.findall(rb"(?s)Triple fault\n.*?[RE]IP=([0-9a-f]+)", record)
        return any(int(place, 16) not in BIOS for place in places)

    def failure(self, when, timeout):
        """Make the GuestError for a guest that has not done what was expected."""
        status = self.wait_end(1)  # when its lines close, QEMU is not yet gone
        if self.console and status is not None:
            self.console.wait_closed(1)  # its last words are still on the way
        self._must_be_shown()
        lines = self.last_lines() + self.last_words()
        stopped = None
        if status is None and not self.panicked:
            stopped = self.stopped()
            lines += self.places()
        code, what = self._verdict(status, timeout, stopped)
        message = what if code == exits.FAILED else f"{what}, {when}"
        return GuestError(code, message, lines)

    def note_modules(self, timeout):
        """Ask for the symbols of modules now: a guest that hangs could not answer."""
        with contextlib.suppress(Gone, TimeoutError, ProtocolError):
            reply = self.machine.request("module symbols", timeout, may_fail=True)
            self.modules = reply.text

    def was_signalled(self):
        """Has a signal ended QEMU? Its exit status is 0 then."""
        return any("terminating on signal" in line for line in self.last_words())

    def stopped(self):
        """Return QEMU's word for why it executes nothing; None: it executes the guest, or
        does not answer.
        """
        with contextlib.suppress(OSError, ValueError):
            state = self.qmp.execute("query-status") or {}
            return None if state.get("running", True) else state["status"]
        return None

    def _verdict(self, status, timeout, stopped):
        """(exit status of ./sonde, words) for QEMU's exit status; None: QEMU runs."""
        if status == EXIT_PANIC or self.panicked:
            return exits.PANICKED, "the kernel panicked"
        if stopped:
            return exits.PANICKED, f"QEMU has stopped the machine ({stopped})"
        if status is None:
            return exits.TIMEOUT, f"no answer within {timeout:g} s"
        if status == EXIT_TESTS_FAILED:
            return exits.FAILED, "tests failed"
        if status == EXIT_COMMAND_FAILED:
            return exits.FAILED, "a command failed"
        if status == EXIT_POWEROFF:
            return exits.ENDED, "the guest switched itself off"
        if self.triple_fault():
            return exits.ENDED, "triple fault"
        if self.was_signalled():
            return exits.ENDED, "a signal ended QEMU"
        if status == 0:
            or_off = " or switched itself off" * self.setup.stays
            return exits.ENDED, "the guest reset itself" + or_off
        return exits.ENDED, f"QEMU ended with status {status}"

    @functools.cached_property
    def qmp(self):
        """QEMU's control protocol. OSError or ValueError: QEMU does not answer."""
        return Qmp(self.control)

    def places(self):
        """Where the CPUs are, as lines of text."""
        try:
            return list(cpu_places(self.qmp, self.setup.elf, self.modules))
        except (OSError, ValueError, TypeError) as error:
            return [f"(QEMU does not tell where its CPUs are: {error})"]

    def ended(self):
        return self.process.poll() is not None or (self.console and self.console.closed)

    def said(self):
        """The output of the guest on COM1, as far as it is known here."""
        if self.console:
            return bytes(self.console.text)
        if not self.is_shown:
            return b""
        with contextlib.suppress(OSError):  # a pipe cannot be read back
            self.log.seek(0)
            return self.log.read()
        return b""

    def last_lines(self, count=20):
        """The end of the guest's output, or its panic report, without text that the user
        has seen already.
        """
        self.early.seek(0)
        said = self.said()
        text = b"" if self.is_shown and said else said or self.early.read()
        text = CONTROL.sub("", text.decode("utf-8", "replace"))
        lines = text.splitlines()
        panics = [i for i, line in enumerate(lines) if line.startswith("panic: ")]
        return lines[panics[0] :][:REPORT_MAX] if panics else lines[-count:]

    def last_words(self):
        """The error messages of QEMU, as lines."""
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace").splitlines()
