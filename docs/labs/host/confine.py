"""confine.py - runs a program that is not trusted. The program gets a limited time and
memory, cannot change files, and cannot read the files that have the right answers.

Landlock keeps the program away from files, if the running Linux has Landlock. A filter of
system calls keeps it away from sockets and other processes. Limits of resources work on
every Linux. But the limit of processes does not hold for root, so if root grades, the
program runs as a user of its own.
"""

import contextlib
import ctypes
import errno
import functools
import os
import resource
import signal
import subprocess

from sonde.guest import die_with_parent

OUTPUT_MAX = 2**20  # bytes of each file that the program writes
MEMORY_MAX = 4 * 2**30  # bytes of address space
GRACE_SECONDS = 0.5  # in which a late program may write where it is
TASKS_MORE = 200  # processes and threads that it may add to those of the user

USERS = 0x40000000  # no user has a number from here on

PR_SET_NO_NEW_PRIVS = 38
PR_SET_CHILD_SUBREAPER = 36
PR_SET_PDEATHSIG = 1
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
RULE_PATH = 1
# Rights of Landlock that change something: write, remove, make ..., refer, truncate.
WRITES = 1 << 1 | sum(1 << n for n in range(4, 13))
BY_ABI = ((2, 1 << 13), (3, 1 << 14))
WRITE_FILE = 1 << 1 | 1 << 14
READS = 1 << 0 | 1 << 2  # execute, read
# Folders that programs of the system need. Not every Linux has all of them.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/dev",
          "/proc", "/nix", "/gnu")  # fmt: skip
NETWORK = 3  # bind, connect; ABI 4
SCOPES = 3  # abstract sockets, signals; ABI 6

# System calls that a submission may not use.
REFUSED = ("socket", "ptrace", "tkill", "process_vm_readv", "process_vm_writev",
           "pidfd_send_signal", "io_uring_setup", "pidfd_open")  # fmt: skip
# The first argument of these calls is a process, which has to be the program itself.
OWN_ONLY = ("kill", "rt_sigqueueinfo", "tgkill", "rt_tgsigqueueinfo")
# Of libseccomp: two actions, an attribute of a filter, a comparison.
ALLOW, REFUSE = 0x7FFF0000, 0x50000 | errno.EPERM
OTHER_MACHINES, NOT_EQUAL = 2, 1

libc = ctypes.CDLL(None, use_errno=True)
libseccomp = ctypes.CDLL("libseccomp.so.2")
libseccomp.seccomp_init.restype = ctypes.c_void_p


class Ruleset(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("files", "network", "scopes")]


class PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


class Comparison(ctypes.Structure):
    _fields_ = [
        ("arg", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("value", ctypes.c_uint64),
        ("mask", ctypes.c_uint64),
    ]


def landlock_abi():
    """Return the version of Landlock; 0: this Linux has no Landlock."""
    return max(libc.syscall(CREATE_RULESET, None, 0, 1), 0)


def lock_files(writable, readable):
    """Restrict the files that this process can use. It can write only @writable. It can
    read and execute only @writable, @readable and the folders of the system. Each is a
    file, or a folder with all files in it.
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
        libc.syscall(
            ADD_RULE, ruleset, RULE_PATH, ctypes.byref(PathRule(allowed, opened)), 0
        )
        os.close(opened)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(RESTRICT_SELF, ruleset, 0):
        raise OSError(ctypes.get_errno(), "landlock")
    os.close(ruleset)


def filter_calls():
    """From now on Linux answers EPERM to calls that REFUSED and OWN_ONLY exclude, to
    changes of another process's limits, and to calls of other machines.
    """
    calls = ctypes.c_void_p(libseccomp.seccomp_init(ALLOW))
    others = {name: [Comparison(0, NOT_EQUAL, os.getpid())] for name in OWN_ONLY}
    others["prlimit64"] = [Comparison(0, NOT_EQUAL, 0)]  # 0: the program itself
    libseccomp.seccomp_attr_set(calls, OTHER_MACHINES, REFUSE)
    for name, rule in (dict.fromkeys(REFUSED, ()) | others).items():
        number = libseccomp.seccomp_syscall_resolve_name(name.encode())
        array = (Comparison * len(rule))(*rule)
        libseccomp.seccomp_rule_add_array(calls, REFUSE, number, len(rule), array)
    if libseccomp.seccomp_load(calls):
        raise OSError("seccomp")


def become(user):
    """Become another user, if that is possible: only root can do that, and in a namespace
    the number of the user may not exist.
    """
    with contextlib.suppress(OSError):
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


@functools.lru_cache(1)
def tasks_of_user():
    """Return how many threads this user has: RLIMIT_NPROC counts all of them. The result
    is computed only once.
    """
    count = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat("/proc/" + process).st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{process}/task"))
        except OSError:
            pass  # the process has ended meanwhile
    return count


def limits(seconds, output_max):
    tasks = tasks_of_user() + TASKS_MORE
    return (
        (resource.RLIMIT_CPU, int(seconds) * 4 + 1),
        (resource.RLIMIT_FSIZE, output_max),
        (resource.RLIMIT_AS, MEMORY_MAX),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, tasks),
    )


def set_limits(rows):
    for which, value in rows:
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


def children(of="self"):
    """Return the children of a process. Our own children include processes that have lost
    their parents, because this process is a subreaper.
    """
    found = []
    with contextlib.suppress(OSError):  # the process has ended
        for task in os.listdir(f"/proc/{of}/task"):
            with open(f"/proc/{of}/task/{task}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
    return found


def adopt_orphans():
    """From now on, a descendant of this process that loses its parent becomes its child."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def family(before):
    """Return our children, without those in @before, and all their descendants."""
    found = [child for child in children() if child not in before]
    for process in found:
        found += children(process)
    return found


def signal_to(processes, number):
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def end_all(before):
    """Kill all processes that the program has left. Stop all of them first: a stopped
    process cannot start others, and it still counts for the limit TASKS_MORE.
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


def name_of(number):
    """Return the name of a signal. Not every real-time signal has one."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Ended:
    """How a program ended. why: the reason in words if it ended badly, or None."""

    def __init__(self, status, is_late, seconds):
        self.why = None
        if is_late:
            self.why = f"it did not end within {seconds:g} s"
        elif status == -signal.SIGXFSZ:
            self.why = "it wrote too much"
        elif status < 0:
            self.why = f"it was ended by {name_of(-status)}"
        elif status:
            self.why = f"it ended with status {status}"


def run(
    words,
    seconds,
    stdin=subprocess.DEVNULL,
    output=subprocess.DEVNULL,
    facts=None,
    writable=(),
    readable=(),
    output_max=OUTPUT_MAX,
    cwd="/",
    is_apart=False,
):
    """Run the program @words for @seconds at most. At its end kill all that
    it has started: all new children, so no other thread may start any meanwhile.
    @output:    file for the text that it prints
    @facts:     file that is open in the program; the variable LAB_FACTS has its number
    @writable:  folders in which the program may write
    @readable:  more files and folders that it may read; it may read @writable, itself and
                the files of the system anyway
    @is_apart:  run it as a user of its own, without system calls that affect other
                processes; a compiler does not run so
    """
    adopt_orphans()
    before = children()
    rows = limits(seconds, output_max)

    def prepare():
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.setsid()
        set_limits(rows)
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")  # if memory runs out, Linux has to end this program
        lock_files(
            ("/dev/null", *writable), (*readable, *filter(os.path.isabs, words[:1]))
        )
        if is_apart:
            become(USERS + os.getppid())
            filter_calls()

    passed = (facts.fileno(),) if facts else ()
    environment = dict(os.environ, LAB_FACTS=" ".join(map(str, passed)))
    opened = program = None
    if is_apart:  # start it by a descriptor: its user may not enter all folders above
        opened = os.open(words[0], os.O_RDONLY)
        os.fchmod(opened, 0o755)
        passed += (opened,)
        program = f"/proc/self/fd/{opened}"
    if writable:  # for the temporary files of a compiler; ccache would write elsewhere
        environment.update(TMPDIR=writable[0], CCACHE_DISABLE="1")
    # A signal that ended the grading here, while the program is started, would leave it.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    process, is_late = None, False
    try:
        process = subprocess.Popen(
            words,
            executable=program,
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A program that sleeps reaches no limit. To become another user forgets this.
            preexec_fn=die_with_parent(prepare),
            cwd=cwd,
            env=environment,
            pass_fds=passed,
        )
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
