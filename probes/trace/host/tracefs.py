"""tracefs.py - makes the guest's tracing files a file system of the host, by FUSE.

When the first byte of a file is read, the whole file is read from the guest. A written
text goes to the guest in one write. Reading trace_pipe waits for records, as on Linux.
Programs that are made for Linux's tracing files run in a mount namespace of their own, in
which these files have their usual places.

There is one more file, `sonde`: a text that is written to it is a command for the guest's
console, and reading the file gives the output of the last command.
"""

import collections
import contextlib
import errno
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from sonde.guest import die_with_parent
from sonde.machine import Gone, Late, Machine, ProtocolError, quote

from .capture import ROOT
from .console_line import ConsoleLine
from .memory import Memory
from .symbols import Symbols
from .take import Taker, TraceError

sys.path.append("/usr/lib/python3/dist-packages")  # where Debian's python3-fusepy is
import fusepy

LIMIT = 120  # seconds for one request, or for a command of the console
COMMAND = "/sonde"
REQUEST_MAX = 16000  # bytes; kernel/console/shell.h: SHELL_LINE_MAX
PIECE = 0.2  # seconds between two looks whether a call is interrupted
CLEARS = ("/trace", "/trace_clock")  # files that empty the buffer, if they are written
HEADERS = ("/events/header_page", "/events/header_event")
RAW = "/trace_pipe_raw"
PIPE = "/trace_pipe"
PIPE_PAUSE = 0.05  # seconds between two looks at an empty trace_pipe
SWITCH = "/tracing_on"
READERS_START = 0.3  # seconds
RECORDER = "trace-cmd"  # a program that has readers
RECORDER_WAIT = 10  # seconds for its readers to begin
READERS_PAUSE = 0.02  # seconds between two looks whether they have
RAW_PAUSE = 0.1  # seconds between two looks for pages
PAGE = 4096
KEPT = 1024  # pages behind a reader that the kernel may ask for again
NAME = "sonde"  # of the file system, in /proc/mounts
MOUNT_WAIT, END_WAIT = 30, 5
SYSCTLS = (
    ("ftrace_enabled", "1\n"),
    ("kptr_restrict", "0\n"),
    ("perf_event_paranoid", "2\n"),
)

# This script runs in the new namespace before the command. $1: the folder of the files,
# $2: a folder with files about the kernel that programs read. The host's own tracing files
# must not be reached, so the guest's files are laid over each place that has them. A program
# that finds no tracefs among the mounts would try to mount one: therefore the host's tracefs
# is mounted first, below the guest's files. Then three rights are given away: to mount, to
# look into processes outside of the namespace, and to count events of the host (perf would
# take the number of a guest's event for one of the host's).
IN_PLACE = r"""
set -e
tree=$1 more=$2
shift 2
lay_over_debugfs() {
    mount -t tmpfs none "$1"
    mkdir "$1/tracing"
    mount --bind "$tree" "$1/tracing"
}
mounts=$(cat /proc/mounts)
case $mounts in
*' /sys/kernel/tracing tracefs '*) ;;
*) mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || true ;;
esac
[ ! -d /sys/kernel/tracing ] || mount --bind "$tree" /sys/kernel/tracing
[ ! -d /sys/kernel/debug ] || lay_over_debugfs /sys/kernel/debug
while read -r _ place type _; do
    place=$(printf "$(printf %s "$place" | sed 's/%/%%/g')") # a blank there is \040
    case $place:$type in
    /sys/kernel/*) ;;
    *:tracefs) mount --bind "$tree" "$place" ;;
    *:debugfs) lay_over_debugfs "$place" ;;
    esac
done <<EOF
$mounts
EOF
mount --bind "$more/kallsyms" /proc/kallsyms
mount --bind "$more/notes" /sys/kernel/notes
mount --bind "$more/sys" /proc/sys/kernel
less=-sys_admin,-sys_ptrace,-perfmon,-bpf
exec setpriv --bounding-set=$less --inh-caps=$less --ambient-caps=$less -- "$@"
"""


def fail(number):
    raise fusepy.FuseOSError(number)


def is_interrupted():
    """Has the program that makes this call got a signal?"""
    return fusepy._libfuse.fuse_interrupted()


class Pipe:
    """An open trace_pipe."""

    def __init__(self, may_wait):
        self.may_wait = may_wait
        self.left = b""  # bytes from the guest that are not read yet
        self.has_read = False


class Log:
    """The pages of one CPU that were taken from the guest. Its readers find a page where
    they would find it in a file that begins at the first open.
    """

    def __init__(self):
        self.opened = 0
        self.first = 0  # the number of pages[0] in the file
        self.pages = []
        self.read_to = 0  # the end of what was read, in bytes
        self.is_read = False  # since tracing was switched on

    def end(self):
        return PAGE * (self.first + len(self.pages))

    def waits_for_its_reader(self):
        return not self.is_read and self.end() > self.read_to

    def begin(self):
        """The first reader opens the file. What the last one has left begins it."""
        self.forget(self.read_to // PAGE)
        self.first = self.read_to = 0

    def forget(self, number):
        """Forget the pages before the page @number."""
        count = max(number - self.first, 0)
        del self.pages[:count]
        self.first += count

    def read(self, size, offset):
        self.forget(offset // PAGE - KEPT)
        start = offset - PAGE * self.first
        data = b"".join(self.pages)[start : start + size] if start >= 0 else b""
        self.read_to = max(self.read_to, offset + len(data))
        self.is_read |= bool(data)
        return data

    def clear(self):
        """Forget what was not read. What comes next stands where readers expect it."""
        self.first = -(-self.read_to // PAGE)
        self.pages = []


class Tree(fusepy.Operations):
    """Answers the kernel of the host, which asks in several threads."""

    def __init__(self, machine, console, memory, folder):
        self.folder = folder
        self.guard = threading.RLock()  # of machine and taker
        self.log_guard = threading.Lock()  # of logs; taken last, and never for long
        self.machine = machine
        self.console_guard = threading.Lock()  # of console and said
        self.console = console  # runs the commands, so that files can be read meanwhile
        self.kept = {}  # (command of the guest, path): an answer that never changes
        self.taker = Taker(machine, memory)
        self.opened = {}  # handle: the bytes of the file, or a Pipe
        self.handles = itertools.count(1)
        self.on_since = 0  # when tracing was switched on
        self.on_by = ()  # by which process, and its parent
        self.said = b""  # the output of the last command of the console
        self.logs = collections.defaultdict(Log)  # by the number of the CPU

    def request(self, command):
        """Return the output of a command. An error of the guest fails the call."""
        try:
            with self.guard:
                reply = self.machine.request(command, LIMIT, may_fail=True)
        except (Gone, ProtocolError, TimeoutError):
            fail(errno.EIO)
        if reply.errno:
            fail(reply.errno)
        return reply.output

    def ask(self, command, path):
        """Return the output of a command about a file. trace-cmd has no time between the
        start of its readers and the start of a short command. So an answer that never
        changes is asked for only once.
        """
        if (command, path) in self.kept:
            return self.kept[command, path]
        answer = self.request(f"{command} {name_of(path)}")
        if path in HEADERS or command == "stat" and not is_of_events(path):
            self.kept[command, path] = answer
        return answer

    def warm_up(self, cpus):
        """Ask for what the readers of trace-cmd need before they can begin."""
        for cpu in range(cpus):
            for path in ("/per_cpu", f"/per_cpu/cpu{cpu}"):
                self.ask("stat", path)
            self.ask("stat", f"/per_cpu/cpu{cpu}{RAW}")
        for path in HEADERS:
            self.ask("stat", path)
            self.ask("cat", path)

    def run(self, command):
        """Run a command on the console. If the call is interrupted, so is the command."""
        said = []
        with self.console_guard:
            try:
                reply = self.console.request(command, PIECE, said.append, may_fail=True)
            except Late:
                reply = self.rest(said)
            self.said = b"".join(said)
        if reply.errno:
            fail(reply.errno)

    def rest(self, said):
        while True:
            with contextlib.suppress(Late):
                return self.console.wait(PIECE, said.append)
            if is_interrupted():
                self.console.interrupt()
                fail(errno.EINTR)

    # names

    def getattr(self, path, fh=None):
        if path == COMMAND:
            kind, mode = "f", "0600"
        else:
            kind, mode = self.ask("stat", path).decode().split()
        is_dir = kind == "d"
        return {
            "st_mode": (0o040000 if is_dir else 0o100000) | int(mode, 8),
            "st_nlink": 2 if is_dir else 1,
            "st_size": self.size_of_raw(path) if path.endswith(RAW) else 0,
            "st_uid": os.getuid(),
            "st_gid": os.getgid(),
        }

    def readdir(self, path, fh):
        names = self.request(f"ls {name_of(path)}").decode().splitlines()
        more = [COMMAND[1:]] if path == "/" else []
        return [".", ".."] + [name.rstrip("/") for name in names] + more

    def mkdir(self, path, mode):
        self.request(f"mkdir {name_of(path)}")

    def rmdir(self, path):
        self.request(f"rmdir {name_of(path)}")

    def create(self, path, mode, fi=None):
        fail(errno.EACCES)

    def chmod(self, path, mode):
        return 0

    def chown(self, path, uid, gid):
        return 0

    # contents

    def open(self, path, flags):
        handle = next(self.handles)
        if path.endswith(RAW):
            self.open_raw(path)
        if path.endswith(PIPE):
            self.opened[handle] = Pipe(may_wait=not flags & os.O_NONBLOCK)
        elif flags & os.O_ACCMODE != os.O_WRONLY:
            self.opened[handle] = None
        return handle

    def release(self, path, fh):
        self.opened.pop(fh, None)
        if path.endswith(RAW):
            with self.log_guard:
                self.log_of(path).opened -= 1
        return 0

    def read(self, path, size, offset, fh):
        if path.endswith(RAW):
            return self.read_raw(path, size, offset)
        if path.endswith(PIPE):
            return self.from_pipe(path, size, self.opened[fh])
        if self.opened.get(fh) is None or not offset:
            self.opened[fh] = self.content(path)
        return self.opened[fh][offset : offset + size]

    def content(self, path):
        return self.said if path == COMMAND else self.ask("cat", path)

    def from_pipe(self, path, size, pipe):
        """Read a trace_pipe. It ends after a read, when tracing is switched off."""
        while not pipe.left:
            pipe.left = self.content(path)
            if pipe.left:
                break
            if not pipe.may_wait:
                fail(errno.EAGAIN)
            if pipe.has_read and self.content("/tracing_on").strip() == b"0":
                return b""
            if is_interrupted():
                fail(errno.EINTR)
            time.sleep(PIPE_PAUSE)
        found, pipe.left = pipe.left[:size], pipe.left[size:]
        pipe.has_read = True
        return found

    # trace_pipe_raw. Programs read it by splice(), which the kernel answers from its page
    # cache, up to the size that it knows of the file. So the file has a size here, and as
    # long as it is open, a thread asks for it, by which the kernel learns the new one.

    def log_of(self, path):
        return self.logs[int(path.split("/cpu")[-1].split("/")[0])]

    def open_raw(self, path):
        with self.log_guard:
            log = self.log_of(path)
            log.opened += 1
            is_first = log.opened == 1
            if is_first:
                log.begin()
        if is_first:
            threading.Thread(target=self.tell_size, args=(path,), daemon=True).start()

    def tell_size(self, path):
        with contextlib.suppress(OSError):  # it is not mounted any more
            while self.log_of(path).opened:
                os.stat(self.folder + path)
                time.sleep(RAW_PAUSE)

    def size_of_raw(self, path):
        log = self.log_of(path)
        if not log.opened:
            return 0
        self.take_pages()
        return log.end()

    def read_raw(self, path, size, offset):
        log = self.log_of(path)
        if offset >= log.end():
            self.take_pages()
        with self.log_guard:
            return log.read(size, offset)

    def take_pages(self):
        """Take the pages of all CPUs."""
        try:
            with self.guard:
                self.taker.open()
                for batch in self.taker.drain():
                    with self.log_guard:
                        for cpu, page in batch.pages:
                            self.logs[cpu].pages.append(page)
                self.taker.close()
        except (TraceError, Gone, TimeoutError, OSError):
            fail(errno.EIO)

    def write(self, path, data, offset, fh):
        if path == COMMAND:
            try:
                self.run(data.strip())
            except (Gone, ProtocolError, ValueError):
                fail(errno.EIO)
            return len(data)
        command = f"echo -ne {quote(data)} >> {name_of(path)}"
        if len(command) > REQUEST_MAX:
            fail(errno.E2BIG)
        self.change(path, command)
        if path == SWITCH:
            self.give_readers_time(data)
        return len(data)

    def give_readers_time(self, data):
        """trace-cmd starts its readers and the command that it records at the same time,
        and tells the readers to end when the command has ended. A reader that has not
        begun then reads nothing. So the switch is not off at once, and for a program that
        has readers not before each of them has read something.
        """
        pid = fusepy.fuse_get_context()[2]
        if data.strip() != b"0":
            self.on_since, self.on_by = time.monotonic(), (pid, process(pid)[1])
            with self.log_guard:
                for log in self.logs.values():
                    log.is_read = False
            return
        has_readers = pid in self.on_by and process(pid)[0] == RECORDER
        until = self.on_since + (RECORDER_WAIT if has_readers else READERS_START)
        while time.monotonic() < until and not self.readers_have_begun():
            time.sleep(READERS_PAUSE)
        self.on_since = 0

    def readers_have_begun(self):
        """Only if a file of pages is open, pages are taken: they leave the guest's buffer."""
        with self.log_guard:
            if not any(log.opened for log in self.logs.values()):
                return False
        self.take_pages()
        with self.log_guard:
            return not any(log.waits_for_its_reader() for log in self.logs.values())

    def truncate(self, path, length, fh=None):
        if path != COMMAND:
            self.change(path, f"echo -n '' > {name_of(path)}")

    def change(self, path, command):
        """Run a command that writes to a file. If that empties the buffer, the pages that
        were taken from it are gone, too.
        """
        with self.guard:
            self.request(command)
            if path.endswith(CLEARS):
                with self.log_guard:
                    for log in self.logs.values():
                        log.clear()

    def flush(self, path, fh):
        return 0


def is_of_events(path):
    """May the file come and go, as the events do?"""
    return path.startswith("/events/")


def process(pid):
    """Return a process's name, and the number of its parent; "", 0: it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            start, _, rest = file.read().rpartition(")")
    except OSError:
        return "", 0
    return start.partition("(")[2], int(rest.split()[1])


def name_of(path):
    """Return the guest's name of a path. A path with a blank would be two words there."""
    if any(c in path for c in " '\"|>#\n"):
        fail(errno.ENOENT)
    return ROOT.rstrip("/") + path.rstrip("/")


def reason_against():
    """Return the reason why there can be no file system here; None: there can be one."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"/dev/fuse does not open: {error.strerror}"
    return None


def is_mounted(folder):
    """Is this file system at @folder? This asks no file of it."""
    name = folder.replace("\\", r"\134").replace(" ", r"\040").replace("\t", r"\011")
    with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
        return any(line.startswith(f"{NAME} {name} fuse") for line in mounts)


class Mounted:
    """The files of a guest, mounted at a folder. To be used with `with`."""

    def __init__(self, guest, folder):
        self.guest = guest
        self.folder = folder
        self.more = tempfile.TemporaryDirectory()
        self.memory = Memory(guest.qmp)
        self.server = threading.Thread(target=self._serve, daemon=True)
        self.home = os.getcwd()  # FUSE changes the directory
        self.is_over = False

    def __enter__(self):
        try:
            prepare(self.more.name, self.guest.setup.elf)
            self.guest.machine.request("trace-pages hide")
            self.server.start()
            if not self._wait():
                raise OSError(f"no file system came to {self.folder}")
        except BaseException:  # a signal as well
            self.__exit__()
            raise
        threading.Thread(target=self._end_with_guest, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.is_over = True
        self._unmount()
        deadline = time.monotonic() + END_WAIT
        while self.server.is_alive() and time.monotonic() < deadline:
            self.server.join(0.1)
            self._unmount()  # the mount may have come only now
        self.memory.__exit__()
        self.more.cleanup()
        os.chdir(self.home)

    def _unmount(self):
        if is_mounted(self.folder):
            subprocess.run(["fusermount", "-u", "-z", self.folder], check=False)

    def _end_with_guest(self):
        self.guest.wait_end()
        self._unmount()

    def _serve(self):
        """Serve the file system until it is unmounted."""
        more = {} if os.getuid() else {"allow_other": True}
        console = Machine(ConsoleLine(self.guest.console))
        tree = Tree(self.guest.machine, console, self.memory, self.folder)
        tree.warm_up(self.guest.setup.smp)
        if self.is_over:
            return
        with contextlib.suppress(RuntimeError):  # libfuse says on stderr what is wrong
            fusepy.FUSE(
                tree,
                self.folder,
                foreground=True,
                intr=True,
                direct_io=True,
                big_writes=True,
                fsname=NAME,
                attr_timeout=0,
                entry_timeout=0,
                **more,
            )

    def _wait(self):
        """Wait until the file system is mounted. Return False if it fails."""
        deadline = time.monotonic() + MOUNT_WAIT
        while not is_mounted(self.folder) and time.monotonic() < deadline:
            if not self.server.is_alive():
                return False
            time.sleep(0.02)
        return is_mounted(self.folder)

    def run(self, command):
        """Run a command in a namespace where the files have their usual places. Return
        its exit status.
        """
        user = ["--map-root-user"] if os.getuid() else []
        words = ["unshare", "--mount", *user, "--", "sh", "-c", IN_PLACE, "sh"]
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the command's
        done = subprocess.run(
            [*words, self.folder, self.more.name, *command],
            check=False,
            cwd=self.home,
            preexec_fn=die_with_parent(heed_interrupts),
        )
        return done.returncode


def heed_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def prepare(folder, elf):
    """Make files about the guest, which hide the host's files of the same kind."""
    with open(os.path.join(folder, "kallsyms"), "w", encoding="utf-8") as file:
        file.write(Symbols(elf).kallsyms())
    notes = os.path.join(folder, "notes")
    subprocess.run(["objcopy", "-O", "binary", "-j", ".notes", elf, notes], check=True)
    os.mkdir(os.path.join(folder, "sys"))
    for name, text in SYSCTLS:
        with open(os.path.join(folder, "sys", name), "w", encoding="ascii") as file:
            file.write(text)
