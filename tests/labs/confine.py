"""confine.py - run a program that is not trusted: for so long, with so much memory, without a
way to change any file, and without those files that would tell it the right answers.

Landlock keeps it from files, as far as the running Linux has it; a filter of system
calls keeps it from sockets and other processes. Limits of resources hold everywhere; but
that of processes does not hold for root, so where root grades, the program has a user of
its own.
"""

import contextlib
import ctypes
import errno
import functools
import os
import resource
import signal
import struct
import subprocess

OUTPUT_MAX = 2**20  # bytes of each file that it writes
MEMORY_MAX = 4 * 2**30  # of address space
GRACE_SECONDS = 0.5  # for last words
TASKS_MORE = 200  # processes and threads that it may add to those of the user

USERS = 0x40000000  # numbers from here on are no user's

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
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

# System calls, by number. None of these is for a submission:
# socket ptrace tkill process_vm_readv process_vm_writev pidfd_send_signal io_uring_setup
# pidfd_open
REFUSED = (41, 101, 200, 310, 311, 424, 425, 434)
# Their first argument is a process, which has to be the program itself: kill rt_sigqueueinfo
# tgkill rt_tgsigqueueinfo prlimit64
OWN_ONLY = (62, 129, 234, 297, 302)
ARCH_X86_64, X32 = 0xC000003E, 0x40000000
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # of classic BPF
AT_NUMBER, AT_ARCH, AT_FIRST = 0, 4, 16  # in what the filter is given
ALLOW, REFUSE = 0x7FFF0000, 0x50000 | errno.EPERM

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


def filter_of(process):
    """Instructions: what @process may ask of Linux. Each jumps over so many that follow."""
    calls = [(EQUAL, number) for number in REFUSED] + [(EQUAL, number) for number in OWN_ONLY]
    last = len(REFUSED) + len(OWN_ONLY)
    rows = [(LOAD, 0, 0, AT_ARCH), (EQUAL, 1, 0, ARCH_X86_64), (RETURN, 0, 0, REFUSE),
            (LOAD, 0, 0, AT_NUMBER), (AT_LEAST, last + 5, 0, X32)]  # fmt: skip
    for i, (code, number) in enumerate(calls):
        left = last - i - 1
        rows.append((code, left + 5 if number in REFUSED else left + 1, 0, number))
    rows += [(RETURN, 0, 0, ALLOW), (LOAD, 0, 0, AT_FIRST), (EQUAL, 1, 0, process),
             (EQUAL, 0, 1, 0), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]  # fmt: skip
    return b"".join(struct.pack("=HBBI", *row) for row in rows)


def filter_calls():
    """From here on Linux answers EPERM to what REFUSED and OWN_ONLY exclude."""
    program = filter_of(os.getpid())
    text = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(text))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0)


def become(user):
    """Another user, where root may: in a namespace it may not have the number."""
    with contextlib.suppress(OSError):
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


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


def children(of="self"):
    """Processes that a process has made; of our own, also those whose parent has ended."""
    found = []
    with contextlib.suppress(OSError):  # it has ended
        for task in os.listdir(f"/proc/{of}/task"):
            with open(f"/proc/{of}/task/{task}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
    return found


def family(before):
    """Our processes but @before, and all that these have made."""
    found = [child for child in children() if child not in before]
    for process in found:
        found += children(process)
    return found


def signal_to(processes, number):
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def end_all(before):
    """Kill what the program has left behind. All are stopped first: a process that is stopped
    starts no others, and still has its place among TASKS_MORE.
    """
    stopped = set()
    while new := set(family(before)) - stopped:
        signal_to(new, signal.SIGSTOP)
        stopped |= new
    while left := family(before):
        signal_to(left, signal.SIGKILL)
        for child in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


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
        writable=(), readable=(), output_max=OUTPUT_MAX, cwd="/",
        is_apart=False):  # fmt: skip
    """Run @words for @seconds at most; all that it has started ends with it.
    @output:    file for what it prints
    @facts:     file that it finds open, with its number in LAB_FACTS
    @writable:  folders in which it may write
    @readable:  files and folders that it may read, besides these, itself and the system's
    @is_apart:  as a user of its own, and without system calls that reach others: no compiler
    """
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = children()
    rows = limits(seconds, output_max)

    def prepare():
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.setsid()
        set_limits(rows)
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")  # where memory runs out, this is what has to end
        lock_files(("/dev/null", *writable), (*readable, *filter(os.path.isabs, words[:1])))
        if is_apart:
            become(USERS + os.getppid())
            filter_calls()

    passed = (facts.fileno(),) if facts else ()
    environment = dict(os.environ, LAB_FACTS=" ".join(map(str, passed)))
    opened = program = None
    if is_apart:  # by its number, for a user that cannot go through all folders above it
        opened = os.open(words[0], os.O_RDONLY)
        os.fchmod(opened, 0o755)
        passed += (opened,)
        program = f"/proc/self/fd/{opened}"
    if writable:  # a place for compilers' temporary files; ccache would write elsewhere
        environment.update(TMPDIR=writable[0], CCACHE_DISABLE="1")
    # A signal that ends the grading while the program is started would leave it behind.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    process, is_late = None, False
    try:
        process = subprocess.Popen(words, executable=program, stdin=stdin, stdout=output,
                                   stderr=subprocess.STDOUT, preexec_fn=prepare, cwd=cwd,
                                   env=environment, pass_fds=passed)  # fmt: skip
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        is_late = True
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.send_signal(signal.SIGXCPU)  # a grader's program says where it is
            process.wait(GRACE_SECONDS)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if process and process.poll() is None:
            process.kill()
            process.wait()
        end_all(before)
        if opened:
            os.close(opened)
    return Ended(process.returncode, is_late, seconds)
