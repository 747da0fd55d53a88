"""test_suite.py - runs gdb's own test-suite on the kernel's stub and on gdbserver, and
compares the results.

    make gdb-suite
    python3 tests/gdb/test_suite.py [FILE...]       after it: e.g. gdb.base/break; none:
    all

Debian's package gdb-source has the suite, and dejagnu runs it. Each FILE runs twice: on
the host, where gdbserver controls an ordinary process, and in a kernel that its stub
controls. A test with different results on the two sides is a difference. Each difference
has to be in tests/gdb/expected.tsv, with the reason, and each row of that file has to
match a difference. The output is TAP: one fact for each file, and one for each row that
matches no difference. Where the host's debug registers watch no data, as on some virtual
machines, gdbserver cannot be the ruler for files about watches: these are skipped by name.
"""

import collections
import contextlib
import fnmatch
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "suite")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path[:0] = [os.path.join(ROOT, "tests/run"), os.path.join(ROOT, "kernel/host")]

import tap
from sonde.guest import BUILD, die_with_parent

ARCHIVE = "/usr/src/gdb.tar.xz"
WANTED = ("gdb/gdb/testsuite/", "gdb/include/dwarf2.h", "gdb/include/dwarf2.def")
EXPECTED = os.path.join(os.path.dirname(HERE), "expected.tsv")
BASE = ("break", "condbreak", "step-test", "finish", "watchpoint", "hbreak", "recurse",
        "dprintf", "find", "return")  # fmt: skip
WATCHES = ("gdb.base/watchpoint", "gdb.base/recurse")
WRITES = 5
WATCHED = f"int watched;\nint main(void) {{ while (watched != {WRITES}) watched++; }}\n"
FOLDER = os.path.join(BUILD, "suite")
TESTS = os.path.join(FOLDER, "gdb/gdb/testsuite")
GDBSERVER = os.path.join(HERE, "gdbserver")
XSTATE = os.path.join(FOLDER, "whole_xstate.so")
AGENT_LIBRARY = "/usr/lib/libinproctrace.so"
NONE = "-"  # the result on a side that does not have this test
# Runs of a file while it has unexplained differences: a busy host can cause time-outs, and
# some tests of the suite fail if expect has read only a part of what gdb prints.
TIMES = 5
# Files that may run again. A fault of the stub that comes now and then would show in more.
AGAIN_MAX = 3
LIMIT = 300  # seconds for a file on one side
RESULT = re.compile(r"([A-Z]+): (\S+)\.exp: (.*)")
RESULTS = ("PASS", "FAIL", "KPASS", "KFAIL", "XPASS", "XFAIL", "UNTESTED", "UNSUPPORTED",
           "UNRESOLVED")  # fmt: skip
# Words that gdb or the suite adds to the name of a test when the test fails.
ADDED = re.compile(
    r" \((timeout|eof|the program is no longer running|"
    r"the program exited|got interactive prompt|GDB internal error)\)$"
)

Row = collections.namedtuple("Row", "file test server stub reason number")


def unpack():
    """Unpack the suite, unless a run before has done so."""
    done = os.path.join(FOLDER, ".unpacked")
    if os.path.exists(done) and os.path.getmtime(done) > os.path.getmtime(ARCHIVE):
        return
    shutil.rmtree(os.path.join(FOLDER, "gdb"), ignore_errors=True)
    os.makedirs(FOLDER, exist_ok=True)
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(FOLDER, (m for m in archive if m.name.startswith(WANTED)))
    with open(done, "w", encoding="ascii"):
        pass


def all_files():
    trace = sorted(
        name
        for name in os.listdir(os.path.join(TESTS, "gdb.trace"))
        if name.endswith(".exp")
    )
    return [f"gdb.base/{name}" for name in BASE] + ["gdb.trace/" + n[:-4] for n in trace]


class Side:
    """One of the two targets."""

    def __init__(self, name, board, triplet, *words):
        self.name, self.board, self.triplet, self.words = name, board, triplet, words
        # gdbserver's library is looked for in ../../gdbserver.
        self.folder = os.path.join(FOLDER, name, "run")
        self.seconds = 0

    def prepare(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(os.path.join(self.folder, "cache"))
        library = os.path.join(FOLDER, "gdbserver")
        os.makedirs(library, exist_ok=True)
        if not os.path.exists(os.path.join(library, "libinproctrace.so")):
            shutil.copy(AGENT_LIBRARY, library)
        host = "x86_64-pc-linux-gnu"
        lines = (
            f"set host_triplet {host}",
            f"set build_triplet {host}",
            f"set target_triplet {self.triplet}",
            f"set target_alias {self.triplet}",
            f"set srcdir {TESTS}",
            "set tool gdb",
            "set enable_libctf no",
            "set gdb_test_timeout 30",
            "source ${srcdir}/lib/append_gdb_boards_dir.exp",
            f"lappend boards_dir {HERE}/boards",
        )
        with open(os.path.join(self.folder, "site.exp"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def run(self, files):
        """{file: {test: [results]}}"""
        self.prepare()
        begun = time.monotonic()
        found = collections.defaultdict(lambda: collections.defaultdict(list))
        for name in files:
            self.run_one(name)
            self.add_results(found)
        self.seconds += time.monotonic() - begun
        return found

    def run_one(self, name):
        """Run one file in a process of its own, so that a file
        that hangs stops no other file.
        """
        words = [
            "runtest",
            f"--target_board={self.board}",
            "GDB=/usr/bin/gdb",
            *self.words,
        ]
        with open(os.path.join(self.folder, "out"), "a", encoding="utf-8") as out:
            process = subprocess.Popen(
                words + [name + ".exp"],
                cwd=self.folder,
                stdout=out,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=dict(
                    os.environ,
                    SONDE_SUITE=HERE,
                    SONDE_SUITE_XSTATE=XSTATE,
                    LC_ALL="C",
                    TERM="dumb",
                ),
                preexec_fn=die_with_parent(),
            )
            try:
                process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                tap.note(f"{self.name}: {name} did not end within {LIMIT} s")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def add_results(self, found):
        """Add the results of the file that has run last, and append its log to all.log."""
        path = os.path.join(self.folder, "gdb.sum")
        if not os.path.exists(path):  # runtest was killed before it wrote a result
            return
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                match = RESULT.match(line)
                if match and match[1] in RESULTS:
                    name = match[3].replace(self.folder, "DIR").replace(TESTS, "SRC")
                    found[match[2]][ADDED.sub("", name)].append(match[1])
        os.unlink(path)
        with open(os.path.join(self.folder, "gdb.log"), "rb") as log:
            with open(os.path.join(self.folder, "all.log"), "ab") as logs:
                shutil.copyfileobj(log, logs)


SERVER = Side(
    "server", "native-gdbserver", "x86_64-pc-linux-gnu", f"GDBSERVER={GDBSERVER}"
)
STUB = Side("stub", "sonde", "x86_64-unknown-elf")


def host_watches():
    """Do the host's debug registers stop a process that writes what gdb watches? The answer
    comes from gdb and a program of one line, not from the two targets that are compared.
    """
    program = os.path.join(FOLDER, "watched")
    subprocess.run(
        ["gcc", "-g", "-x", "c", "-o", program, "-"],
        input=WATCHED,
        text=True,
        check=True,
    )
    words = ["start", "watch watched", *["continue"] * WRITES]
    done = subprocess.run(
        ["gdb", "-nx", "-batch", *(f"-ex={word}" for word in words), program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ, LC_ALL="C"),
    )
    return done.stdout.count("\nNew value = ") == WRITES and "\nHardware" in done.stdout


def run_both(files):
    """Run the files on both sides at once. Return {file: {test: (results on gdbserver,
    results on the stub)}}.
    """
    came = {}

    def one(side):
        came[side] = side.run(files)

    threads = [threading.Thread(target=one, args=(side,)) for side in (SERVER, STUB)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    both = {}
    for file in files:
        server, stub = came[SERVER][file], came[STUB][file]
        names = list(dict.fromkeys([*server, *stub]))
        both[file] = {
            name: (word(server.get(name)), word(stub.get(name))) for name in names
        }
    return both


def word(results):
    """Join the results of all tests with the same name to one word, each result once."""
    return "+".join(sorted(set(results))) if results else NONE


def read_rows():
    rows = []
    with open(EXPECTED, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            fields = line.rstrip("\n").split("\t")
            if line.startswith("#") or not line.strip():
                continue
            if len(fields) != 5 or not fields[4]:
                raise SystemExit(
                    f"{EXPECTED}:{number}: five columns, the last is a reason"
                )
            rows.append(Row(*fields, number))
    return rows


def matches(pattern, text):
    """Does @text match? Only * is special in a pattern: names of tests contain brackets."""
    return fnmatch.fnmatchcase(text, re.sub(r"[\[?]", lambda m: f"[{m[0]}]", pattern))


def rows_of(rows, file, test, server, stub):
    return [
        row
        for row in rows
        if matches(row.file, file)
        and matches(row.test, test)
        and matches(row.server, server)
        and matches(row.stub, stub)
    ]


def differences(tests):
    return [(test, *pair) for test, pair in tests.items() if pair[0] != pair[1]]


def unexplained(rows, both):
    """Return {file: its differences without a row}. A file that ran no test at all is in
    the result, too, with no difference.
    """
    found = {}
    for file, tests in both.items():
        left = [d for d in differences(tests) if not rows_of(rows, file, *d)]
        if left or not tests:
            found[file] = left
    return found


def tell(rows, both):
    used = set()
    left = unexplained(rows, both)
    for file, tests in both.items():
        found = differences(tests)
        for one in found:
            used.update(row.number for row in rows_of(rows, file, *one)[:1])
        passed = sum(pair[1].startswith("PASS") for pair in tests.values())
        tap.check(
            tests and file not in left,
            f"{file}: {passed} pass on the stub, {len(found)} of {len(tests)} differ "
            "from gdbserver",
        )
        for test, server, stub in left.get(file, ()):
            tap.note(f"{file}\t{test}\t{server}\t{stub}\t")
    for row in rows:
        if row.number not in used and any(matches(row.file, file) for file in both):
            what = f"expected.tsv, row {row.number}: {row.file} {row.test}"
            tap.check(False, what + ": no difference")


def total(both, rows):
    tests = [pair for those in both.values() for pair in those.values()]
    tap.note(
        f"{len(tests)} tests in {len(both)} files; pass on gdbserver "
        f"{sum(p[0].startswith('PASS') for p in tests)}, on the stub "
        f"{sum(p[1].startswith('PASS') for p in tests)}; "
        f"{sum(p[0] != p[1] for p in tests)} differences, {len(rows)} rows; "
        f"{SERVER.seconds:.0f} s, {STUB.seconds:.0f} s"
    )


def compare(files):
    rows = read_rows()
    both = run_both(files)
    repeated = list(unexplained(rows, both))
    for _ in range(TIMES - 1):
        again = list(unexplained(rows, both))
        if again:
            tap.note("once more: " + " ".join(again))
            both.update(run_both(again))
    tap.check(len(repeated) <= AGAIN_MAX, f"at most {AGAIN_MAX} files had to run again")
    tell(rows, both)
    total(both, rows)


def all_of_it():
    if not os.path.exists(XSTATE):
        raise SystemExit(f"{XSTATE} is not built: make gdb-suite builds it")
    unpack()
    files = FILES or all_files()
    left_out = [name for name in files if name in WATCHES and not host_watches()]
    for name in left_out:
        tap.skip(name, "the debug registers of this host watch no data")
    compare([name for name in files if name not in left_out])


FILES = [name for name in sys.argv[1:] if not name.startswith("--")]

if __name__ == "__main__":
    del sys.argv[1:]  # tap.run() would take these words for names of tests
    tap.run(all_of_it)
