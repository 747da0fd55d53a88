"""confine.py - run a program that is not trusted: for so long, with so much memory, without a
way to change any file, and without those files that would tell it the right answers.

Landlock keeps it from files, from the network and from signals to other processes, as far as
the running Linux has it; limits of resources hold everywhere.
"""

import ctypes
import functools
import os
import resource
import signal
import subprocess

OUTPUT_MAX = 2**20  # bytes of each file that it writes
MEMORY_MAX = 4 * 2**30  # of address space
TASKS_MORE = 200  # processes and threads that it may add to those of the user

PR_SET_NO_NEW_PRIVS = 38
PR_SET_CHILD_SUBREAPER = 36
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
RULE_PATH = 1
# Rights of Landlock that change something: write, remove, make ..., refer, truncate.
WRITES = 1 << 1 | sum(1 << n for n in range(4, 13))
BY_ABI = ((2, 1 << 13), (3, 1 << 14))
WRITE_FILE = 1 << 1 | 1 << 14
READS = 1 << 0 | 1 << 2  # execute, read
# What a program of the system needs; what there is of it.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/dev",
          "/proc", "/nix", "/gnu")  # fmt: skip
NETWORK = 3  # bind, connect; ABI 4
SCOPES = 3  # abstract sockets, signals; ABI 6

libc = ctypes.CDLL(None, use_errno=True)


class Ruleset(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("files", "network", "scopes")]


class PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def landlock_abi():
    """0: this Linux has none."""
    return max(libc.syscall(CREATE_RULESET, None, 0, 1), 0)


def lock_files(writable, readable):
    """From here on only @writable can be written, only these and @readable can be read or
    executed: files, and folders with all that is in them. A program of the system still runs.
    """
    abi = landlock_abi()
    if not abi:
        return
    files = READS | WRITES | sum(right for since, right in BY_ABI if abi >= since)
    rules = Ruleset(files, NETWORK if abi >= 4 else 0, SCOPES if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = libc.syscall(CREATE_RULESET, ctypes.byref(rules), size, 0)
    there = [(path, READS) for path in (*SYSTEM, *readable) if os.path.exists(path)]
    for path, allowed in [*there, *((path, files) for path in writable)]:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        allowed &= files if os.path.isdir(path) else files & (READS | WRITE_FILE)
        libc.syscall(ADD_RULE, ruleset, RULE_PATH, ctypes.byref(PathRule(allowed, opened)), 0)
        os.close(opened)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(RESTRICT_SELF, ruleset, 0):
        raise OSError(ctypes.get_errno(), "landlock")
    os.close(ruleset)


@functools.lru_cache(1)
def tasks_of_user():
    """Threads of this user, which a limit counts together, when it is first asked for."""
    count = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat("/proc/" + process).st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{process}/task"))
        except OSError:
            pass  # it has ended meanwhile
    return count


def limits(seconds, output_max):
    tasks = tasks_of_user() + TASKS_MORE
    return ((resource.RLIMIT_CPU, int(seconds) * 4 + 1), (resource.RLIMIT_FSIZE, output_max),
            (resource.RLIMIT_AS, MEMORY_MAX), (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NPROC, tasks))  # fmt: skip


def set_limits(rows):
    for which, value in rows:
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


def children():
    """Processes that are ours, also those whose parent has ended."""
    found = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children", encoding="ascii") as file:
            found += [int(word) for word in file.read().split()]
    return found


def end_all(before):
    """Kill what the program has left behind, generation by generation."""
    while True:
        left = [child for child in children() if child not in before]
        if not left:
            return
        for child in left:
            try:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


class Ended:
    """How a program ended. why: None, or in words why it is not well."""

    def __init__(self, status, is_late, seconds):
        self.why = None
        if is_late:
            self.why = f"it did not end within {seconds:g} s"
        elif status == -signal.SIGXFSZ:
            self.why = "it wrote too much"
        elif status < 0:
            self.why = f"it was ended by {signal.Signals(-status).name}"
        elif status:
            self.why = f"it ended with status {status}"


def run(words, seconds, stdin=subprocess.DEVNULL, output=subprocess.DEVNULL, facts=None,
        writable=(), readable=(), output_max=OUTPUT_MAX, cwd="/"):  # fmt: skip
    """Run @words for @seconds at most; all that it has started ends with it.
    @output:    file for what it prints
    @facts:     file that it finds open, with its number in LAB_FACTS
    @writable:  folders in which it may write
    @readable:  files and folders that it may read, besides these, itself and the system's
    """
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = children()
    rows = limits(seconds, output_max)

    def prepare():
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.setsid()
        set_limits(rows)
        lock_files(("/dev/null", *writable), (*readable, *filter(os.path.isabs, words[:1])))

    passed = (facts.fileno(),) if facts else ()
    environment = dict(os.environ, LAB_FACTS=" ".join(map(str, passed)))
    if writable:  # a place for compilers' temporary files; ccache would write elsewhere
        environment.update(TMPDIR=writable[0], CCACHE_DISABLE="1")
    # A signal that ends the grading while the program is started would leave it behind.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    process, is_late = None, False
    try:
        process = subprocess.Popen(words, stdin=stdin, stdout=output,
                                   stderr=subprocess.STDOUT, preexec_fn=prepare, cwd=cwd,
                                   env=environment, pass_fds=passed)  # fmt: skip
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        is_late = True
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if process and process.poll() is None:
            process.kill()
            process.wait()
        end_all(before)
    return Ended(process.returncode, is_late, seconds)
