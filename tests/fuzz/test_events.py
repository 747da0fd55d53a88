"""test_events.py - write right and wrong lines to the files of the tracer, in a guest
that runs a workload.

    tests/run/run_tests.py [--long] fuzz/events

The lines are made of words of the grammar, and are written while a workload runs, on one
CPU and on four. These facts must hold: a refused line has an errno of the tracer, and the
definitions are as before; every file can be read. At the end everything is removed: then
the text is that of the image, and the heap has as many blocks as before.
There are a hundred lines, always the same. --long: other lines, two minutes for each
number of CPUs. A run prints its seed; SEED=N repeats that run.
"""

import errno
import os
import random
import re
import tempfile
import time

import tap
from sonde.guest import Guest, Setup
from sonde.machine import Gone, quote
from sonde.memory import Memory

ROOT = "/sys/kernel/tracing/"
LIMIT = 60  # seconds for one answer, or until the guest is idle; generous
LINES = 100
WORK = "run all | tail -n 1\r"  # typed
SECONDS = 20
REFUSED = (errno.EINVAL, errno.ENOENT, errno.EEXIST, errno.EBUSY, errno.EILSEQ, errno.ENODEV,
           errno.E2BIG, errno.ENOSPC, errno.ERANGE, errno.EPERM, errno.EACCES,
           errno.EOPNOTSUPP, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.EBADF,
           errno.ESRCH)  # fmt: skip

# Functions that workloads call, the tracer itself calls, or that cannot be probed.
FUNCTIONS = ("vfs_read", "vfs_write", "vfs_open", "vfs_node_find", "kmalloc", "kfree",
             "memcpy", "schedule", "mutex_lock", "strcmp", "exc_int3", "nosuch",
             "clock_ns")  # fmt: skip
NAMES = ("a", "b", "c1", "kprobes/a", "g/a", "g/b", "g/", "9x", "x" * 70, "")
PLACES = ("", "+0", "+4", "+0x2", "%return", "+1%return", "+99999", "-4")
VALUES = ("%di", "%si", "%sp", "%xx", "$stack", "$stack3", "$stack999", "$retval", "$arg1",
          "$arg99", "$comm", "\\\\1", "\\\\-9", '\\\\"text"', "@jiffies", "@nosuch+8",
          "+0(%di)", "+8(+0(%si))", "-16(%sp)", "+0(", "+u0(%di)", "count", "path", "$ns",
          "", "+0(\\\\1)")  # fmt: skip
TYPES = ("", "", "", ":u8", ":s64", ":x32", ":string", ":ustring", ":symbol", ":symstr",
         ":char", ":u16[3]", ":string[2]", ":b3@2/8", ":u7", ":u8[65]", ":u8[")  # fmt: skip
FILTERS = ("0", "a > 1", "a == 1 || b != 2", 'a ~ "*x*"', "common_pid > 0 && CPU < 3",
           "comm == 'init'", "a >", "(a", "nosuch == 1", "a & 3", '"')  # fmt: skip
TRIGGERS = ("traceoff", "traceon", "traceoff:2", "stacktrace", "stacktrace:1", "snapshot:1",
            "enable_event:kprobes:a", "disable_event:g:a:3", "enable_event:no:such",
            "hist:keys=a", "hist:keys=a,common_pid.execname:vals=b:size=128",
            "hist:keys=stacktrace:size=256", "hist:keys=a.log2:sort=a", "hist:keys=nosuch",
            "hist:name=n:keys=a", "hist:name=n:keys=b", "hist:keys=a:pause",
            "hist:keys=a:clear", "hist:keys=", "nonsense")  # fmt: skip
FILES = ("kprobe_events", "kprobe_profile", "trace", "error_log", "set_event", "snapshot",
         "available_events", "dynamic_events", "saved_cmdlines", "per_cpu/cpu0/stats",
         "trace_options", "buffer_size_kb")  # fmt: skip


# ---- lines: (file, text) ----


def right_definition(rnd):
    """A definition with right grammar. Its name may be taken already, and its place
    wrong."""
    kind = rnd.choice(("p", "p", "r", "r5"))
    words = [f"{kind}:{rnd.choice(NAMES[:5])}", rnd.choice(FUNCTIONS[:8])]
    for name in "ab"[: rnd.randrange(3)]:
        value = rnd.choice(("%di", "%sp", "$stack", "+0(%di)", "\\\\1", "$comm"))
        kinds = (":string",) if value == "$comm" else ("", ":u8", ":s64", ":x32", ":char")
        words.append(f"{name}={value}{rnd.choice(kinds)}")
    return "kprobe_events", " ".join(words)


def definition(rnd):
    kind = rnd.choice(("p", "p", "p", "r", "r5", "x"))
    name = rnd.choice(NAMES)
    words = [
        kind + (":" + name if name else ""),
        rnd.choice(FUNCTIONS) + rnd.choice(PLACES),
    ]
    for i in range(rnd.choice((0, 1, 2, 2, 3, 9))):
        words.append(
            rnd.choice(("", f"{'ab'[i % 2]}=", "x="))
            + rnd.choice(VALUES)
            + rnd.choice(TYPES)
        )
    return rnd.choice(("kprobe_events", "kprobe_events", "dynamic_events")), " ".join(
        words
    )


def deletion(rnd):
    return "kprobe_events", "-:" + rnd.choice(NAMES) + rnd.choice(
        ("", " " + FUNCTIONS[0])
    )


def of_event(rnd):
    return f"events/{rnd.choice(('kprobes', 'g'))}/{rnd.choice(('a', 'b', 'c1'))}/"


def setting(rnd):
    switch = rnd.choice(("0", "1", "1", "2", "x"))
    trigger = rnd.choice(("", "", "!")) + rnd.choice(TRIGGERS)
    if rnd.random() < 0.3:
        trigger += " if " + rnd.choice(FILTERS)
    return rnd.choice(
        (
            (of_event(rnd) + "enable", switch),
            (f"events/{rnd.choice(('kprobes/', 'g/', ''))}enable", switch),
            (of_event(rnd) + "filter", rnd.choice(FILTERS)),
            (f"events/{rnd.choice(('kprobes', 'g'))}/filter", rnd.choice(FILTERS)),
            (of_event(rnd) + "trigger", trigger),
            (of_event(rnd) + "trigger", trigger),
            ("set_event", rnd.choice(("kprobes:a", "!g:a", "*:*", "g:", "no:such", ""))),
            ("tracing_on", switch),
            ("snapshot", switch),
            ("trace_clock", rnd.choice(("local", "global", "mono", "nosuch"))),
            ("buffer_size_kb", rnd.choice(("8", "64", "1408", "-1", "x"))),
            ("trace_options", rnd.choice(("overwrite", "nooverwrite", "nosuch"))),
            ("trace_marker", "a mark"),
        )
    )


def damaged(rnd):
    file, text = definition(rnd)
    at = rnd.randrange(len(text) + 1)
    return (
        file,
        text[:at] + rnd.choice("\t:=()[]+-%$@'#;\\") + text[at + rnd.randrange(3) :],
    )


def any_line(rnd):
    makers = (right_definition, definition, setting, deletion, damaged)
    return rnd.choices(makers, (4, 3, 8, 1, 1))[0](rnd)


# ---- the test ----


class Tracer:
    def __init__(self, guest):
        self.machine = guest.machine
        self.taken = 0  # definitions

    def put(self, name, text, how=">>"):
        text = text.replace("\\\\", "\\").replace("\\", "\\\\")
        command = f"echo -e {quote(text)} {how} {ROOT}{name}"
        return self.machine.request(command, LIMIT, may_fail=True)

    def text_at(self, path):
        return self.machine.read(path, LIMIT)

    def text(self, name):
        return self.text_at(ROOT + name)

    def read(self, name):
        """Let the guest make the whole file, but send the last line only: all of `trace`
        would take minutes."""
        return self.machine.request(f"cat {ROOT}{name} | tail -n 1", LIMIT, may_fail=True)

    def definitions(self):
        return self.text("kprobe_events")

    def clear(self):
        """Remove everything, whatever the state of the tracer is."""
        self.put("events/enable", "0", ">")
        for group, name in re.findall(
            r"^(kprobes|g):(\w+)$", self.text("available_events"), re.M
        ):
            trigger = f"events/{group}/{name}/trigger"
            self.put(trigger, "", ">")  # removes the histograms
            for line in self.text(trigger).splitlines():
                if not line.startswith("#"):
                    self.put(
                        trigger, "!" + re.sub(":(unlimited|count=-?[0-9]+)", "", line)
                    )
        self.put("events/enable", "0", ">")
        for name, text in (
            ("kprobe_events", ""),
            ("snapshot", "0"),
            ("error_log", ""),
            ("tracing_on", "1"),
            ("trace_clock", "local"),
            ("buffer_size_kb", "1408"),
            ("trace_options", "overwrite"),
            ("trace", ""),
        ):
            self.put(name, text, ">")


def heap_blocks(tracer):
    """The number of blocks on the heap. Bytes would differ: tables that have grown stay
    large."""
    return int(
        re.search(r"^HeapBlocks: +(\d+)", tracer.text_at("/proc/meminfo"), re.M)[1]
    )


def is_quiet(guest):
    """Stop the commands that were typed, and wait until no workload runs. Nothing else is
    typed, because the console would keep the line in its history, on the heap.
    """
    guest.console.send("\x03")
    end = time.monotonic() + LIMIT
    while " work/" in guest.machine.request("ps", LIMIT).text and time.monotonic() < end:
        time.sleep(0.1)


def blocks_again(tracer, before):
    """The number of blocks on the heap, when it is @before, or after LIMIT: threads that
    have ended are freed a little later."""
    end = time.monotonic() + LIMIT
    while heap_blocks(tracer) != before and time.monotonic() < end:
        time.sleep(0.2)
    return heap_blocks(tracer)


def is_part_of(text, reply, before, after):
    """Return whether this is `-:NAME`, `-:GROUP/NAME` or `-:GROUP/` for several
    definitions: of events in several groups, of one event with several probes, or of all in
    a group. As on Linux, such a line deletes definitions up to the first one that is busy.
    """
    if not text.startswith("-:") or reply.errno != errno.EBUSY:
        return False
    name = re.escape(text[2:].split()[0])
    name += r"\w+" if name.endswith("/") else ""
    gone = [line for line in before.splitlines() if line not in after.splitlines()]
    stays = [line for line in before.splitlines() if line not in gone]
    return after.splitlines() == stays and all(
        re.match(rf"\w+:(?:\w+/)?{name} ", line) for line in gone
    )


def write_one(tracer, rnd, last):
    """Write one line. Return a fact about it that does not hold, or None."""
    file, text = any_line(rnd)
    last[:] = [f"{file}: {text}"]
    is_definition = file.endswith("_events")
    before = tracer.definitions() if is_definition else ""
    reply = tracer.put(file, text)
    if reply.errno and reply.errno not in REFUSED:
        return f"{reply.name} of {last[0]}"
    tracer.taken += is_definition and not reply.errno
    if is_definition and reply.errno:
        after = tracer.definitions()
        if after != before and not is_part_of(text, reply, before, after):
            return f"refused, and changed something: {last[0]}"
    if rnd.random() < 0.2:
        tracer.read(rnd.choice(FILES))
    if rnd.random() < 0.1:
        tracer.read(of_event(rnd) + rnd.choice(("format", "hist", "trigger", "filter")))
    return None


def warm(guest, tracer):
    """Let the kernel allocate what it allocates once and keeps: memory for return probes,
    the rings, those of snapshots, and the lines in the history of the console.
    """
    guest.console.send(WORK)
    is_quiet(guest)
    tracer.put("kprobe_events", "r:a vfs_read b=$retval c=$ns")
    for trigger in ("hist:keys=stacktrace", "stacktrace", "snapshot"):
        tracer.put("events/kprobes/a/trigger", trigger)
    tracer.put("events/kprobes/a/enable", "1")
    tracer.machine.request("run all | tail -n 1", LIMIT, may_fail=True)
    tracer.clear()


def lines_under_work(smp, rnd):
    last = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Guest(Setup(smp=smp, console="pair", qmp=os.path.join(folder, "qmp"))) as guest,
    ):
        guest.wait_prompt(LIMIT)
        tracer = Tracer(guest)
        sums = guest.machine.request("run special", LIMIT).text
        warm(guest, tracer)
        before = heap_blocks(tracer)
        wrong, count, end = [], 0, time.monotonic() + SECONDS
        try:
            while time.monotonic() < end if tap.LONG else count < LINES:
                if count % 10 == 0:
                    guest.console.send(WORK)
                fault = write_one(tracer, rnd, last)
                wrong += [fault] * bool(fault)
                count += 1
            guest.console.send("\x03")
            tracer.clear()
        except (Gone, OSError, TimeoutError) as error:
            tap.note(f"{type(error).__name__} after {last[0]}")
            raise guest.failure("fuzzed", LIMIT) from None
        name = f"{smp} CPUs" if smp > 1 else "1 CPU"
        tap.check(not wrong, f"{name}: {count} lines, each taken or refused for a reason")
        tap.note("\n".join(wrong[:20]))
        tap.check(tracer.taken, f"{name}: {tracer.taken} definitions are taken")
        nothing_is_left(guest, tracer, before, sums, name)
        with Memory(guest.setup.qmp) as memory:
            tap.check(memory.text_is_whole(), f"{name}: the text is the image's again")


def nothing_is_left(guest, tracer, before, sums, name):
    is_quiet(guest)
    tap.equal(tracer.definitions(), "", f"{name}: all go")
    stat = guest.machine.request("probe stat", LIMIT).text
    tap.check(
        "\nsites 0\n" in stat and "\nhandler_faults 0\n" in stat, f"{name}: no probe"
    )
    tap.equal(blocks_again(tracer, before), before, f"{name}: the heap is as before")
    tap.equal(guest.machine.request("run special", LIMIT).text, sums, f"{name}: it works")


def lines_of_all_kinds():
    seed = int(os.environ.get("SEED", random.randrange(1 << 32) if tap.LONG else 1))
    tap.note(f"seed {seed}")
    for smp in (1, 4):
        lines_under_work(smp, random.Random(seed + smp))


if __name__ == "__main__":
    tap.run(lines_of_all_kinds)
