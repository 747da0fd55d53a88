"""tracefs.py - makes the guest's tracing files a file system of the host, by FUSE.

When the first byte of a file is read, the whole file is read from the guest. A written
text goes to the guest in one write. Reading trace_pipe waits for records, as on Linux.
Programs that are made for Linux's tracing files run in a mount namespace of their own, in
which these files have their usual places.

There is one more file, `sonde`: a text that is written to it is a command for the guest's
console, and reading the file gives the output of the last command.
"""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from sonde.guest import ELF, die_with_parent
from sonde.machine import Gone, ProtocolError, quote

from .capture import ROOT
from .memory import Memory
from .symbols import Symbols
from .take import Taker, TraceError

sys.path.append("/usr/lib/python3/dist-packages")  # where Debian's python3-fusepy is
import fusepy

LIMIT = 120  # seconds for one request, or for a command of the console
COMMAND = "/sonde"
REQUEST_MAX = 16000  # bytes; kernel/console/shell.h: SHELL_LINE_MAX
RAW = "/trace_pipe_raw"
PIPE = "/trace_pipe"
PIPE_PAUSE = 0.05  # seconds between two looks at an empty trace_pipe
PAGE = 4096
MOUNT_WAIT, END_WAIT = 30, 5
SYSCTLS = (
    ("ftrace_enabled", "1\n"),
    ("kptr_restrict", "0\n"),
    ("perf_event_paranoid", "-1\n"),
)

# This script runs in the new namespace before the command. $1: the folder of the files,
# $2: a folder with files about the kernel that programs read. A program that finds no
# tracefs among the mounts would mount the host's tracefs over the guest's files. So the
# host's tracefs is mounted first, below the guest's files.
IN_PLACE = """
set -e
tree=$1 more=$2
shift 2
if ! grep -q ' /sys/kernel/tracing tracefs ' /proc/mounts; then
    mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || true
fi
for place in /sys/kernel/tracing /sys/kernel/debug/tracing; do
    if [ -d "$place" ]; then
        mount --bind "$tree" "$place"
    fi
done
mount --bind "$more/kallsyms" /proc/kallsyms
mount --bind "$more/notes" /sys/kernel/notes
mount --bind "$more/sys" /proc/sys/kernel
exec "$@"
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


class Tree(fusepy.Operations):
    """Answers the kernel of the host, which asks in several threads."""

    def __init__(self, machine, memory):
        self.guard = threading.RLock()  # of machine, taker, next_handle and raw
        self.machine = machine
        self.taker = Taker(machine, memory)
        self.opened = {}  # handle: the bytes of the file, or a Pipe
        self.next_handle = 1
        self.said = b""  # the output of the last command of the console
        self.raw = {}  # CPU: pages that were taken and are not read yet

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

    # names

    def getattr(self, path, fh=None):
        if path == COMMAND:
            kind, mode = "f", "0600"
        else:
            kind, mode = self.request(f"stat {name_of(path)}").decode().split()
        is_dir = kind == "d"
        return {
            "st_mode": (0o040000 if is_dir else 0o100000) | int(mode, 8),
            "st_nlink": 2 if is_dir else 1,
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
        with self.guard:
            handle = self.next_handle
            self.next_handle += 1
        if path.endswith(PIPE):
            self.opened[handle] = Pipe(may_wait=not flags & os.O_NONBLOCK)
        elif flags & os.O_ACCMODE != os.O_WRONLY:
            self.opened[handle] = None
        return handle

    def release(self, path, fh):
        self.opened.pop(fh, None)
        return 0

    def read(self, path, size, offset, fh):
        if path.endswith(RAW):
            with self.guard:
                return self.raw_page(path, size)
        if path.endswith(PIPE):
            return self.from_pipe(path, size, self.opened[fh])
        if self.opened.get(fh) is None or not offset:
            self.opened[fh] = self.content(path)
        return self.opened[fh][offset : offset + size]

    def content(self, path):
        return self.said if path == COMMAND else self.request(f"cat {name_of(path)}")

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

    def raw_page(self, path, size):
        """Return pages of one CPU. Pages of all CPUs are taken from the guest at once."""
        cpu = int(path.split("/cpu")[-1].split("/")[0])
        if not self.raw.get(cpu):
            try:
                self.taker.open()
                for batch in self.taker.drain():
                    for one, page in batch.pages:
                        self.raw.setdefault(one, []).append(page)
                self.taker.close()
            except (TraceError, Gone, TimeoutError, OSError):
                fail(errno.EIO)
        count = max(size // PAGE, 1)
        pages, self.raw[cpu] = (
            self.raw.get(cpu, [])[:count],
            self.raw.get(cpu, [])[count:],
        )
        return b"".join(pages)[:size]

    def write(self, path, data, offset, fh):
        if path == COMMAND:
            self.said = self.request(data.strip())
            return len(data)
        command = f"echo -ne {quote(data)} >> {name_of(path)}"
        if len(command) > REQUEST_MAX:
            fail(errno.E2BIG)
        self.request(command)
        return len(data)

    def truncate(self, path, length, fh=None):
        if path != COMMAND:
            self.request(f"echo -n '' > {name_of(path)}")

    def flush(self, path, fh):
        return 0


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


class Mounted:
    """The files of a guest, mounted at a folder. To be used with `with`."""

    def __init__(self, guest, folder):
        self.guest = guest
        self.folder = folder
        self.more = tempfile.TemporaryDirectory()
        self.server = 0

    def __enter__(self):
        prepare(self.more.name)
        self.server = os.fork()
        if not self.server:
            self._serve()
        if not self._wait():
            self.__exit__()
            raise OSError(f"no file system came to {self.folder}")
        return self

    def __exit__(self, *exc):
        if os.path.ismount(self.folder):
            subprocess.run(["fusermount", "-u", "-z", self.folder], check=False)
        killer = threading.Timer(END_WAIT, lambda: os.kill(self.server, signal.SIGKILL))
        if self.server:
            killer.start()
            os.waitpid(self.server, 0)
            killer.cancel()
        self.more.cleanup()

    def _serve(self):
        """Serve the file system until it is unmounted. The process ends here."""
        status = 1
        try:
            die_with_parent()
            more = {} if os.getuid() else {"allow_other": True}
            with Memory(self.guest.qmp) as memory:
                fusepy.FUSE(
                    Tree(self.guest.machine, memory),
                    self.folder,
                    foreground=True,
                    intr=True,
                    direct_io=True,
                    big_writes=True,
                    fsname="sonde",
                    attr_timeout=0,
                    entry_timeout=0,
                    **more,
                )
            status = 0
        finally:
            os._exit(status)

    def _wait(self):
        """Wait until the file system is mounted. Return False if it fails."""
        deadline = time.monotonic() + MOUNT_WAIT
        while not os.path.ismount(self.folder) and time.monotonic() < deadline:
            if os.waitpid(self.server, os.WNOHANG)[0]:
                self.server = 0
                return False
            time.sleep(0.02)
        return os.path.ismount(self.folder)

    def run(self, command):
        """Run a command in a namespace where the files have their usual places. Return
        its exit status.
        """
        user = ["--map-root-user"] if os.getuid() else []
        words = ["unshare", "--mount", *user, "--", "sh", "-c", IN_PLACE, "sh"]
        done = subprocess.run(
            [*words, self.folder, self.more.name, *command], check=False
        )
        return done.returncode


def prepare(folder):
    """Make files about the guest, which hide the host's files of the same kind."""
    with open(os.path.join(folder, "kallsyms"), "w", encoding="utf-8") as file:
        file.write(Symbols(ELF).kallsyms())
    notes = os.path.join(folder, "notes")
    subprocess.run(["objcopy", "-O", "binary", "-j", ".notes", ELF, notes], check=True)
    os.mkdir(os.path.join(folder, "sys"))
    for name, text in SYSCTLS:
        with open(os.path.join(folder, "sys", name), "w", encoding="ascii") as file:
            file.write(text)
