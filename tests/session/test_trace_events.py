#!/usr/bin/env python3
"""test_trace_events.py - tests events that a user defines by lines: what their hits
record, and what filters, triggers and histograms do with the hits.
"""

import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../kernel/host"))
import tap
from sonde.guest import Guest, Setup
from sonde.machine import quote

ROOT = "/sys/kernel/tracing/"
EBADF, EBUSY, EEXIST, EILSEQ, EINVAL, ENOENT = 9, 16, 17, 84, 22, 2
LINE = re.compile(
    r" +(\S+)-(\d+) +\[(\d{3})\] (\S{5}) +(\d+\.\d{6}): (\w+): \((.*?)\)(.*)"
)


class Files:
    def __init__(self, guest):
        self.machine = guest.machine

    def text(self, name):
        return self.machine.read(ROOT + name, 60)

    def put(self, name, text, how=">>"):
        command = f"echo -ne {quote(text)} {how} {ROOT}{name}"
        return self.machine.request(command, may_fail=True).errno

    def reset(self, *lines):
        self.put("events/enable", "0")
        for name in re.findall(r"kprobes/(\w+) ", self.text("kprobe_events")):
            for line in self.text(f"events/kprobes/{name}/trigger").splitlines():
                if not line.startswith("#"):
                    self.put(f"events/kprobes/{name}/trigger", "!" + line.split(" [")[0])
        self.put("kprobe_events", "", ">")
        self.put("tracing_on", "1")
        self.put("trace", "", ">")
        if lines:
            tap.equal(
                self.put("kprobe_events", "".join(line + "\n" for line in lines)),
                0,
                f"{len(lines)} lines are taken",
            )

    def act(self):
        """Make the guest open and read a file once."""
        return self.machine.read("/proc/version", 60)

    def records(self):
        """Return [(name, place, arguments)] of the lines that are records."""
        found = map(LINE.fullmatch, self.text("trace").splitlines())
        return [(m.group(6), m.group(7), m.group(8).strip()) for m in found if m]

    def names(self):
        return [name for name, _, _ in self.records()]


def on(files, name="kprobes"):
    return files.put(f"events/{name}/enable", "1")


def off(files, name="kprobes"):
    return files.put(f"events/{name}/enable", "0")


def values(files):
    files.reset(
        "p:open vfs_open path=+0(%di):string flags=+0(%si):u32 # what is opened",
        "r:done vfs_open err=$retval:s32",
        "p:two vfs_close a=+0(\\1) n=\\5:s8 who=$comm b=+0(%di):u8[2]",
    )
    before = files.text("kprobe_events")
    tap.equal(
        before.splitlines()[0],
        "p:kprobes/open vfs_open path=+0(%di):string flags=+0(%si):u32",
        "a comment is not kept",
    )
    on(files)
    files.act()
    off(files)
    mine = [r for r in files.records() if r[0] != "two" and "events" not in r[2]]
    name, place, args = mine[0]
    tap.check(
        name == "open"
        and re.fullmatch(r"vfs_open\+0x0/0x[0-9a-f]+", place)
        and args == 'path="/proc/version" flags=1',
        "what is opened, and how",
    )
    name, place, args = mine[1]
    tap.check(
        name == "done"
        and re.fullmatch(r"\w+\+0x.* <- vfs_open", place)
        and args == "err=0",
        "and what came of it",
    )
    args = next(r[2] for r in files.records() if r[0] == "two")
    tap.check(
        re.fullmatch(r'a=0x0 n=5 who="shell/COM3" b=\{\d+,\d+\}', args),
        "a value that cannot be read is 0",
    )
    tap.check(
        re.search(r"^  two +\d+ +0 fault=\d+$", files.text("kprobe_profile"), re.M),
        "and is counted",
    )
    hits = {
        name: int(n)
        for name, n in re.findall(r"^  (\w+) +(\d+) ", files.text("kprobe_profile"), re.M)
    }
    tap.equal({n: files.names().count(n) for n in hits}, hits, "each hit is a record")
    tap.equal(
        files.put("kprobe_events", before, ">"), 0, "the listing is a file of lines"
    )
    tap.equal(files.text("kprobe_events"), before, "that makes the same again")


def parameters(files):
    """A line may name a parameter of the function, as it is in the debug data."""
    files.reset(
        "p:open vfs_open file path=+0(path):string", "r:done vfs_open $arg1:x64 file"
    )
    tap.equal(
        files.text("kprobe_events").splitlines()[1],
        "r10:kprobes/done vfs_open path=path:x64 file=file",
        "a number gets its name",
    )
    tap.equal(
        files.put("kprobe_events", "p:open2 vfs_open nosuch\n"), EINVAL, "no parameter"
    )
    tap.check(
        files.put("kprobe_events", "p:open2 vfs_open+8 path\n") in (EINVAL, EILSEQ),
        "nor away from the entry",
    )
    on(files)
    files.act()
    off(files)
    mine = next(i for i, r in enumerate(files.records()) if '"/proc/version"' in r[2])
    entry, done = files.records()[mine], files.records()[mine + 1]
    tap.equal(
        [done[0], done[2].split()[1]],
        ["done", entry[2].split()[0]],
        "the same at the entry and, saved, at the return",
    )


def probes_listed(files):
    """Return the lines of available_events, without the markers, which always exist."""
    lines = files.text("available_events").splitlines(True)
    return "".join(line for line in lines if not line.startswith("markers:"))


def several_probes(files):
    files.reset("p:both vfs_open a=%di", "p:both vfs_close a=%si")
    tap.equal(probes_listed(files), "kprobes:both\n", "one event of two lines")
    on(files)
    files.act()
    off(files)
    places = {place.split("+")[0] for _, place, _ in files.records()}
    tap.equal(places, {"vfs_open", "vfs_close"}, "is hit at both places")
    tap.equal(files.put("kprobe_events", "-:both vfs_open\n"), 0, "one goes")
    tap.equal(
        files.text("kprobe_events"), "p:kprobes/both vfs_close a=%si\n", "one stays"
    )
    tap.check("a=0x" in files.text("trace"), "records keep their arguments' names")
    on(files)
    tap.equal(files.put("kprobe_events", "-:both\n"), EBUSY, "not while it is enabled")
    tap.equal(files.put("kprobe_events", "", ">"), EBUSY, "nor all of them")
    tap.equal(files.put("kprobe_events", "p:both vfs_open a=%di\n"), 0, "one more")
    files.put("trace", "", ">")
    files.act()
    tap.check("(vfs_open+" in files.text("trace"), "is hit at once")
    off(files)
    number = files.text("events/kprobes/both/id")
    tap.equal(files.put("kprobe_events", "-:both\n"), 0, "all go")
    listed = files.machine.request(f"ls {ROOT}events/kprobes", 10, may_fail=True)
    tap.equal(listed.errno, ENOENT, "with their files, and the group's")
    tap.check(
        f"Unknown type {number.strip()}\n" in files.text("trace"),
        "records say that their event has gone",
    )
    files.reset("p:next vfs_open")
    tap.check(
        files.text("events/kprobes/next/id") != number, "its number is not given again"
    )


def sets(files):
    files.reset("p:a vfs_open", "p:g2/b vfs_close", "p:g2/c vfs_read")
    tap.equal(files.text("events/g2/enable"), "0\n", "a group that is off")
    files.put("events/g2/b/enable", "1")
    tap.equal(files.text("events/g2/enable"), "X\n", "half of it is on")
    tap.equal(files.put("set_event", "g2:c\n"), 0, "the other half")
    tap.equal(files.text("events/g2/enable"), "1\n", "all of it")
    tap.equal(files.text("set_event"), "g2:c\ng2:b\n", "the newest first")
    tap.equal(files.put("set_event", "nosuch"), EINVAL, "no such event")
    files.put("set_event", "", ">")
    tap.equal(files.text("events/enable"), "0\n", "opening set_event anew clears it")
    tap.equal(files.put("kprobe_events", "-:g2/\n"), 0, "a whole group is deleted")
    tap.equal(
        files.text("dynamic_events"), "p:kprobes/a vfs_open\n", "the other one stays"
    )


def filters(files):
    files.reset(
        "p:all vfs_open path=+0(%di):string",
        "p:some vfs_open path=+0(%di):string",
        "p:none vfs_close n=%di",
    )
    tap.equal(files.put("events/kprobes/some/filter", 'path ~ "*version"'), 0, "a filter")
    on(files)
    files.act()
    files.text("tracing_on")
    off(files)
    kept = [args for name, _, args in files.records() if name == "some"]
    tap.equal(kept, ['path="/proc/version"'], "it keeps what matches")
    tap.check(files.names().count("all") > 1, "and is the business of one event")
    tap.equal(files.put("events/kprobes/filter", 'path == "x"'), 0, "a filter for all")
    tap.equal(files.text("events/kprobes/some/filter"), 'path == "x"\n', "where it suits")
    tap.check(
        "Couldn't find or set field in one" in files.text("events/kprobes/none/filter"),
        "where it does not, the file says so",
    )
    tap.check("Couldn't find or set field" in files.text("error_log"), "so does the log")
    files.put("events/kprobes/filter", "0")
    tap.equal(
        files.text("events/kprobes/some/filter"), "none\n", "and all are free again"
    )


def trigger(name, text):
    return f"events/kprobes/{name}/trigger", text


def triggers(files):
    files.reset("p:open vfs_open path=+0(%di):string", "p:close vfs_close")
    on(files)
    tap.equal(
        files.put(*trigger("open", 'traceoff:1 if path ~ "*version"')), 0, "traceoff"
    )
    files.act()
    tap.equal(files.text("tracing_on"), "0\n", "the hit switches it off")
    tap.equal(
        [r[2] for r in files.records()][-1], 'path="/proc/version"', "as its last one"
    )
    tap.check(
        "count=0" in files.text("events/kprobes/open/trigger"), "and has been counted"
    )
    files.reset("p:gone vfs_rmdir")
    on(files)
    files.put(*trigger("gone", "traceoff"))
    for _ in range(2):
        files.machine.request("rmdir /tmp/nothing", 10, may_fail=True)
    tap.equal(files.names(), ["gone"], "the hit that switches it off is recorded")
    tap.equal(files.text("tracing_on"), "0\n", "under no condition, too")
    files.reset("p:open vfs_open path=+0(%di):string", "p:close vfs_close")
    tap.equal(
        files.put(*trigger("open", "enable_event:kprobes:close")), 0, "enable_event"
    )
    tap.equal(files.text("events/kprobes/close/enable").strip()[-1], "*", "waits")
    tap.equal(files.put("kprobe_events", "-:close\n"), EBUSY, "and may not go")
    off(files)
    files.put("trace", "", ">")
    files.act()
    tap.check(set(files.names()) == {"close"}, "the hit of one records the other")
    tap.equal(files.put(*trigger("open", "!enable_event:kprobes:close")), 0, "it goes")
    off(files)
    tap.equal(files.text("events/kprobes/open/enable"), "0\n", "and nothing waits")
    tap.equal(files.put("kprobe_events", "", ">"), 0, "all may go")


def stacks(files):
    files.reset("p:open vfs_open", "r:ret vfs_read", "p:in kmalloc")
    files.put(*trigger("open", "stacktrace:1"))
    on(files)
    files.act()
    off(files)
    stack = re.search(r"<stack trace>\n((?: => .*\n)+)", files.text("trace")).group(1)
    places = stack.replace(" => ", "").split()
    tap.equal([places[0], places[-1]], ["vfs_open", "thread_entry"], "from here outwards")
    tap.check("shell_run_line" in places, "by way of the shell")
    tap.check(
        not any(p.startswith("0x") or "trampoline" in p for p in places),
        "each place is the program's own",
    )
    tap.check(
        "ID: 4\n" in files.text("events/ftrace/kernel_stack/format"), "known to tools"
    )


def stacks_by_option(files):
    """As for Linux's tools: perf-tools' `kprobe -s`, `trace-cmd record -T`."""
    files.reset("p:f vfs_open", "p:g vfs_open path=+0(%di):string")
    files.put("events/kprobes/g/filter", 'path ~ "*version"')
    on(files)
    counts = []
    for value in ("1", "0"):
        tap.equal(files.put("options/stacktrace", value), 0, f"stacktrace {value}")
        files.put("trace", "", ">")
        files.act()
        text = files.text("trace")
        events = len(re.findall(r": (?:f|g): ", text))
        counts.append(
            (events > 1, events and text.count("<stack trace>\n => vfs_open") / events)
        )
    off(files)
    tap.equal(counts, [(True, 1), (True, 0)], "each record has its stack, or none")


def caller_behind_return_probe(files):
    files.reset("r:ret shell_run_line", "p:in vfs_open caller=$stack0:symbol")
    files.put(*trigger("in", "hist:keys=stacktrace"))
    on(files)
    files.act()
    off(files)
    shown = files.text("events/kprobes/in/hist")
    tap.check(
        "shell_thread+0x" in shown, "a frame whose return is watched has its caller"
    )


def histograms(files):
    files.reset("p:open vfs_open path=+0(%di):string flags=+0(%si):u32")
    spec = "hist:keys=path:vals=flags:sort=hitcount.descending:size=256"
    tap.equal(files.put(*trigger("open", spec)), 0, "a histogram")
    tap.equal(files.put(*trigger("open", spec)), EEXIST, "is there once")
    for _ in range(3):
        files.act()
    files.put(*trigger("open", spec + ":pause"))
    shown = files.text("events/kprobes/open/hist")
    tap.check(
        shown.startswith(
            "# event histogram\n#\n# trigger info: hist:keys=path:vals=hitcount,flags:"
            "sort=hitcount.descending:size=256 [paused]\n#\n\n"
        ),
        "it begins as on Linux",
    )
    tap.check(
        re.search(r"^\{ path: /proc/version +\} hitcount: +3  flags: +3$", shown, re.M),
        "it counts and sums",
    )
    ends = r"\nTotals:\n    Hits: \d+\n    Entries: \d+\n    Dropped: 0\n$"
    tap.check(re.search(ends, shown), "it ends as on Linux")
    files.act()
    tap.equal(files.text("events/kprobes/open/hist"), shown, "paused, it does not")
    files.put(*trigger("open", spec + ":clear"))
    tap.check(
        "/proc/version" not in files.text("events/kprobes/open/hist"), "it is cleared"
    )
    files.put("events/kprobes/open/trigger", "", ">")
    tap.equal(files.text("events/kprobes/open/hist"), "", "it goes by truncation")


def named_histograms(files):
    """Two events share one histogram, which has a name."""
    files.reset("p:open vfs_open n=\\1", "p:close vfs_close n=\\2")
    for name in ("open", "close"):
        tap.equal(files.put(*trigger(name, "hist:name=both:keys=n")), 0, f"named: {name}")
    files.act()
    files.put(*trigger("open", "hist:name=both:keys=n:pause"))
    files.put(*trigger("close", "hist:name=both:keys=n:pause"))
    row = re.compile(r"^\{ n: +(\d) \}", re.M)
    tables = [
        row.findall(files.text(f"events/kprobes/{name}/hist"))
        for name in ("open", "close")
    ]
    tap.equal(list(map(sorted, tables)), [["1", "2"]] * 2, "each shows the hits of both")
    tap.equal(
        files.put(*trigger("close", "hist:name=both:keys=n:clear")), 0, "it is cleared"
    )
    files.act()
    tap.check("Hits: 0\n" in files.text("events/kprobes/open/hist"), "and stays paused")
    tap.equal(
        files.put(*trigger("open", "hist:keys=n.hex:name=both")), EINVAL, "other keys"
    )
    wanted = (
        "Named hist trigger doesn't match existing named trigger (includes variables)"
    )
    tap.check(
        files.text("error_log").endswith(
            f"error: {wanted}\n  Command: hist:keys=n.hex:name=both\n{' ' * 32}^\n"
        ),
        "say so",
    )
    files.put(*trigger("open", "!hist:name=both:keys=n"))
    tap.check(
        "hist:name=both:keys=n" in files.text("events/kprobes/close/trigger"), "one stays"
    )
    files.put("events/kprobes/close/trigger", "", ">")


def recorded(files):
    """Read a file. Return the names of the events that this records."""
    files.put("trace", "", ">")
    files.act()
    return set(files.names())


def whose_hits(files):
    """The tracer records only hits of chosen threads and CPUs. There is one event for
    each way in which a hit can be recorded.

    `plain` is alone at its place, so its specialized detour records its hits.
    """
    files.reset(
        "p:plain vfs_close a=%di",
        "p:text vfs_open path=+0(%di):string",
        "p:asked vfs_open a=%di",
        "r:back vfs_open a=$retval",
    )
    every = {"plain", "text", "asked", "back"}
    files.put("events/kprobes/asked/filter", "a != 0")
    files.put(*trigger("text", "hist:keys=common_pid:size=128"))
    on(files)
    tap.equal(recorded(files), every, "the hits of all threads")
    tid = re.search(r"shell/COM3-(\d+)", files.text("trace")).group(1)
    files.put("set_event_pid", "99999", ">")
    tap.equal(recorded(files), set(), "those of one that there is not")
    hits = re.compile(r"Hits: (\d+)")
    before = int(hits.search(files.text("events/kprobes/text/hist")).group(1))
    files.act()
    after = int(hits.search(files.text("events/kprobes/text/hist")).group(1))
    tap.check(after > before, "triggers act all the same")
    tap.equal(files.put("set_event_pid", tid), 0, "a thread is added")
    tap.equal(files.text("set_event_pid"), f"{tid}\n99999\n", "beside the other")
    tap.equal(files.put("set_event_pid", "99999"), 0, "a thread is listed once")
    tap.equal(
        files.text("set_event_pid"), f"{tid}\n99999\n", "however often it is written"
    )
    tap.equal(recorded(files), every, "its hits")
    files.put("set_event_notrace_pid", tid, ">")
    tap.equal(recorded(files), set(), "all but its hits")
    files.put("set_event_pid", "", ">")
    tap.equal(recorded(files), set(), "the same without the other list")
    files.put("set_event_notrace_pid", "", ">")
    tap.equal(recorded(files), every, "and of all threads again")
    files.put("tracing_cpumask", "0")
    tap.equal(recorded(files), set(), "of no CPU")
    tap.equal(files.put("trace_marker", "x"), EBADF, "nor are markers")
    tap.check(" ring=" not in files.text("kprobe_profile"), "none of them counts as lost")
    files.put("tracing_cpumask", "3")
    tap.equal(recorded(files), every, "of both CPUs")
    off(files)


def snapshots(files):
    files.reset("p:open vfs_open path=+0(%di):string", "p:take vfs_rmdir")
    tap.check("* Snapshot is freed *" in files.text("snapshot"), "there is none")
    files.put(*trigger("take", "snapshot:1"))
    tap.check("* Snapshot is allocated *" in files.text("snapshot"), "one may come")
    on(files, "kprobes/open")
    files.act()
    files.machine.request("rmdir /tmp/nothing", 10, may_fail=True)
    files.machine.request("cat /proc/uptime", 10)
    taken, live = files.text("snapshot"), files.text("trace")
    off(files)
    tap.check(
        "/proc/version" in taken and "/proc/version" not in live,
        "what was recorded is in the snapshot",
    )
    tap.check("/proc/uptime" in live and "/proc/uptime" not in taken, "the rest is not")
    tap.equal(files.put("snapshot", "1"), 0, "one by hand")
    tap.check("/proc/uptime" in files.text("snapshot"), "has the rest")
    snapshots_in_a_row(files)
    files.put("snapshot", "2")
    tap.check("* Snapshot is allocated *" in files.text("snapshot"), "it is cleared")
    files.put("snapshot", "0")
    tap.check("* Snapshot is freed *" in files.text("snapshot"), "and is freed")


def snapshots_in_a_row(files):
    """A snapshot that nothing has read is lost when the next one is taken. The events in
    it are counted as lost.
    """
    on(files, "kprobes/open")
    files.act()
    files.put("snapshot", "1")
    files.put("snapshot", "1")
    found = files.text("snapshot")
    tap.equal(lost_in(found), 2, "both events of the snapshot before it are told as lost")
    tap.equal(found.count(" open: "), 1, "and it has its own")
    files.put("snapshot", "1")
    tap.equal(lost_in(files.text("snapshot")), 0, "but not what was read")
    files.put("buffer_size_kb", "8")
    files.put("trace", "", ">")
    files.act()
    files.put("buffer_size_kb", "64")
    files.put("snapshot", "1")
    found = files.text("snapshot")
    counts = lost_in(found), found.count(" open: ")
    tap.equal(counts, (2, 1), "what a smaller ring had left is lost as well")
    off(files)
    files.put("buffer_size_kb", "1408")


def lost_in(text):
    return sum(map(int, re.findall(r"^CPU:\d+ \[LOST (\d+) EVENTS\]", text, re.M)))


def lost_lines(files):
    return lost_in(files.text("trace"))


def losses(files):
    files.reset("p:open vfs_open path=+0(%di):string")
    files.put("options/overwrite", "0")
    files.put("buffer_size_kb", "8")
    files.put("trace", "", ">")
    on(files)
    for _ in range(800):  # more than both rings hold
        files.act()
    off(files)
    told = re.search(r"^trace.ring (\d+)$", asked(files, "probe stat")[1], re.M)
    hits, lost = map(
        int,
        re.search(r"  open +(\d+) +0 ring=(\d+)", files.text("kprobe_profile")).groups(),
    )
    tap.equal(len(files.records()) + lost, hits, "recorded and lost are all hits")
    tap.equal(lost_lines(files), lost, "the file tells of those behind its last record")
    tap.equal(int(told.group(1)), lost, "probe stat says the same")
    hot = asked(files, "probe hot 1")[1].splitlines()
    tap.check(
        len(hot) == 2 and re.match(rf"open +\w+ k \S+ +{hits} ", hot[1]), "the hottest"
    )
    asked(files, "probe all vfs_* --entries")
    files.act()
    asked(files, "probe off all")
    hot = asked(files, "probe hot")[1]
    counts = [int(n) for n in re.findall(r"^\S+ +\w{16} k \S+ +(\d+) ", hot, re.M)]
    tap.check(
        len(set(counts)) > 2 and counts == sorted(counts, reverse=True),
        f"the hottest are first: {counts}",
    )
    members = asked(files, "probe list p1")[1].splitlines()
    tap.check(
        len(members) > 5
        and any(re.search(r" [1-9]\d* +0  vfs_read\+0x0", m) for m in members),
        "each member of a set, by itself",
    )
    asked(files, "probe del all")
    files.put("options/overwrite", "1")
    files.put("buffer_size_kb", "16")
    files.put("buffer_size_kb", "64")
    files.put("buffer_size_kb", "8")
    tap.equal(files.records(), [], "a smaller ring takes nothing along")
    tap.equal(lost_lines(files), hits, "and the file tells how many were lost")
    files.put("trace", "", ">")
    tap.equal(lost_lines(files), 0, "until it is cleared")
    files.put("buffer_size_kb", "1408")


def asked(files, command):
    reply = files.machine.request(command, 60, may_fail=True)
    return reply.errno, reply.text


def questions(files):
    """Test the console's `trace`. docs/trace.md has more questions with answers."""
    files.reset("p:mine vfs_open")
    errno, text = asked(
        files, "trace 'vfs_r* { count by func, cpu }' -- cat /proc/version"
    )
    tap.check(
        errno == 0 and re.search(r"^ +2  vfs_read +\d+$", text, re.M), "by two keys"
    )
    tap.check(
        "cuont: it has file, buf, count, pos\n"
        in asked(files, "trace 'vfs_read { print cuont }' -- cat /proc/version")[1],
        "the parameters that there are",
    )
    tap.equal(files.text("kprobe_events"), "p:kprobes/mine vfs_open\n", "nothing is left")
    tap.equal(files.text("trace").count("q1:"), 0, "a table has no records")
    errno, text = asked(files, "trace 'vfs_open { stack }' -- cat /proc/version")
    tap.check("vfs_open+0x0\n" in text and "thread_entry+0x" in text, "a stack")
    question = "ret vfs_open { print path, retval, ns }"
    errno, text = asked(files, f"trace '{question}' -- cat /proc/none")
    tap.check(errno == ENOENT, "the status is that of the command")
    tap.check(re.search(r'path="/proc/none" retval=-2 ns=\d+$', text, re.M), "a return")
    for action, shown in (
        ("hist(retval)", r"^ +-1 \|@{40} 1$"),
        ("min(retval)", r"^ +MIN\n +-2$"),
        ("avg(retval)", r"^ +-2$"),
        ("count by retval", r"^ +1  -2$"),
    ):
        errno, text = asked(
            files, f"trace 'ret vfs_open {{ {action} }}' -- cat /proc/none"
        )
        tap.check(re.search(shown, text, re.M), f"a signed value: {action}")
    twice = "/proc/version /proc/none"
    text = asked(files, f"trace 'ret vfs_open {{ avg(retval) by path }}' -- cat {twice}")[
        1
    ]
    tap.equal(
        re.findall(r"^ +(\S+)  (\S+)$", text, re.M),
        [("AVERAGE", "path"), ("0", "/proc/version"), ("-2", "/proc/none")],
        "averages, the largest first",
    )
    text = asked(files, f"trace 'ret vfs_open {{ avg(retval) }}' -- cat {twice}")[1]
    tap.equal(
        re.findall(r"^ +(-?\d+)$", text, re.M), ["-1"], "of values on both sides of 0"
    )
    text = asked(files, "trace 'vfs_read { avg(count) by count }' -- run vfs")[1]
    found = [tuple(map(int, row)) for row in re.findall(r"^ +(\d+)  (\d+)$", text, re.M)]
    tap.check(
        len(found) > 9
        and found == sorted(found, reverse=True)
        and all(one == other for one, other in found),
        "not by their sums",
    )
    question = 'vfs_open if path == "/none" { count by path }'
    errno, text = asked(files, f"trace '{question}' -- cat /proc/version")
    tap.check(not errno and "/proc/version" not in text, "a table has a condition")
    asked(files, "probe ret vfs_open r")
    asked(files, "cat /proc/none")
    tap.check(" value=-2 " in asked(files, "probe list r")[1], "and that of probe ret")
    asked(files, "probe del r")
    for condition in ("%di == 1", 'path ~ "*$x" && $arg1 == 1'):
        errno, text = asked(files, f"trace 'vfs_open if {condition} {{ count }}'")
        told = re.search(r"\n( *)\^ a filter takes names: `with NAME=%di", text)
        at = 7 + len("vfs_open if ") + re.search(r"%|[$](?=arg)", condition).start()
        tap.check(
            errno == EINVAL and told and len(told[1]) == at,
            f"no register in a filter: {condition}",
        )
    errno, text = asked(files, "trace 'clock_ns { count by comm }' for 1")
    tap.check(errno == 0 and "COUNT  comm" in text, "for a second")
    question = "mark vfs_read if count > 0 { print count }"
    errno, text = asked(files, f"trace '{question}' -- cat /proc/version")
    tap.check(
        errno == 0 and len(re.findall(r"vfs_read: .* count=\d+ pos=", text)) == 1,
        "a marker, with a condition",
    )
    tap.equal(
        files.text("events/markers/vfs_read/filter"), "none\n", "which goes with it"
    )
    files.put("events/markers/vfs_read/enable", "1")
    tap.equal(
        asked(files, "trace count 'mark vfs_read' -- cat /proc/version")[0],
        EBUSY,
        "a marker that is in use",
    )
    files.put("events/markers/vfs_read/enable", "0")
    for question in (
        "mark nosuch { count }",
        "mark vfs_read { print nosuch }",
        "mark",
        "mark vfs_read { count by caller }",
        "mark vfs_read with a=%di { print a }",
        "nosuch { count }",
        "exc_int3 { count }",
        "vfs_read { print nosuch }",
        "vfs_read",
        "{ count }",
        "vfs_read { hist }",
        "vfs_read { count(x) }",
        "vfs_read { count by a,b,c,d }",
        "vfs_read { count } x",
        "zz* { count }",
        "vfs_read if { count }",
        "vfs_read if count = 1 { count }",
        "vfs_read { print * by func }",
        "vfs_read { hist(count }",
    ):
        errno, text = asked(files, f"trace '{question}' -- cat /proc/version")
        tap.check(errno and "sonde version" not in text, f"refused: {question}")
    tap.equal(files.text("kprobe_events"), "p:kprobes/mine vfs_open\n", "nothing is left")


# Functions that run during a hit, in the tracer and in the code that the tracer calls.
OWN = ("record_begin", "record_head_fill", "record_copy", "record_end", "ring_write",
       "ring_write_slow", "ring_commit", "ring_publish", "fetch_args", "fetch_strings_size",
       "filter_match", "hist_add", "trigger_take", "hit_probe", "hit_take", "clock_ns",
       "comm_save", "copy_nofault", "kretprobe_find_ret", "cpu_id")  # fmt: skip


def its_own_functions(files):
    """Define events on functions that each recorded hit runs, also hits of these."""
    files.reset("p:open vfs_open path=+0(%di):string")
    files.put(*trigger("open", 'hist:keys=path if path ~ "/proc/*"'))
    files.put("events/kprobes/open/filter", 'path ~ "/proc/*"')
    lines = {name: f"p:own_{name} {name} a=%di b=+0(%si)\n" for name in OWN}
    taken = [name for name in OWN if files.put("kprobe_events", lines[name]) == 0]
    tap.check(len(taken) > 8, f"events on {len(taken)} functions of the tracer's own")
    tap.equal(on(files), 0, "are enabled")
    for _ in range(10):
        files.act()
    tap.equal(off(files), 0, "and disabled")
    found = re.findall(r"^  (\w+) +(\d+) +(\d+)(.*)", files.text("kprobe_profile"), re.M)
    tap.check(
        any(int(hits) > 0 for name, hits, _, _ in found if name.startswith("own_")),
        "they are hit",
    )
    tap.check(
        any(int(missed) and "recursion=" in causes for _, _, missed, causes in found),
        "and what they would cause themselves is missed, and counted",
    )
    shown = files.text("events/kprobes/open/hist")
    tap.check(
        re.search(r"path: /proc/version +\} hitcount: +10\b", shown),
        "the hits of the other one are all counted",
    )
    files.put("events/kprobes/open/trigger", "", ">")


def deleted_meanwhile(guest, files):
    """The console's `trace` records an event, and another user deletes it meanwhile."""
    files.reset()
    for action in ("print", "count by cpu"):
        guest.console.send(f"trace 'vfs_rmdir {{ {action} }}' for 3\r")
        end = time.monotonic() + 60
        while not probes_listed(files) and time.monotonic() < end:
            time.sleep(0.05)
        files.put("events/trace/q1/trigger", "", ">")
        off(files, "trace/q1")
        tap.equal(files.put("kprobe_events", "", ">"), 0, f"deleted during {action}")
        files.put("kprobe_events", "p:trace/q1 vfs_rmdir\n")
        found = guest.console.expect(b"trace: trace/q1 was deleted", 60)
        tap.check(found is not None, "is said in the end")
        tap.equal(probes_listed(files), "trace:q1\n", "another of that name stays")
        files.put("kprobe_events", "", ">")


def many(files):
    """Define 1000 events one by one, and enable all of them with one write."""
    names = re.findall(r"^(\w+)$", files.text("available_filter_functions"), re.M)
    files.reset()
    start, taken = time.monotonic(), 0
    for number, name in enumerate(names):
        taken += files.put("kprobe_events", f"p:e{number} {name} %di\n") == 0
        if taken == 1000:
            break
    tap.note(f"1000 definitions: {time.monotonic() - start:.2f} s with their requests")
    tap.equal(taken, 1000, "a thousand events")
    start = time.monotonic()
    tap.equal(on(files), 0, "enabled")
    tap.note(f"enabled in {time.monotonic() - start:.2f} s")
    files.put("tracing_on", "0")
    tap.equal(off(files), 0, "and disabled")
    tap.equal(files.put("kprobe_events", "", ">"), 0, "and gone")
    files.reset("p:wide vfs_open" + 128 * " +0x000000000000010(%di):u64")
    wide = files.text("kprobe_events")
    tap.check(" arg128=" in wide and len(wide) > 4096, "a line that got longer is whole")
    files.reset()
    tap.equal(probes_listed(files), "", "all of them")


def events_are_recorded():
    with Guest(Setup(smp=2)) as guest:
        guest.wait_prompt(120)
        files = Files(guest)
        for facts in (
            values,
            parameters,
            several_probes,
            sets,
            filters,
            triggers,
            stacks,
            stacks_by_option,
            caller_behind_return_probe,
            histograms,
            named_histograms,
            whose_hits,
            snapshots,
            losses,
            its_own_functions,
            questions,
            many,
        ):
            facts(files)
        deleted_meanwhile(guest, files)


def events_in_a_module():
    enable, lines = ROOT + "events/kprobes/m/enable", ROOT + "kprobe_events"
    done = subprocess.run(
        [
            sys.executable,
            os.path.join(HERE, "..", "..", "sonde"),
            "module",
            "--smp",
            "1",
            os.path.join(HERE, "..", "..", "docs", "samples", "reads.c"),
            f"echo 'p:m reads:before_read' >> {lines}",
            f"echo 1 > {enable}",
            "cat /proc/version",
            f"cat {ROOT}kprobe_profile",
            "module del reads",
            f"cat {lines}",
            f"echo 0 > {enable}",
            f"echo '-:m' >> {lines}",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    tap.check(done.returncode == 0, "an event in a module, which goes before it")
    tap.check(re.search(r"^  m +[1-9]", done.stdout, re.M), "it is hit")
    tap.check("p:kprobes/m reads:before_read\n" in done.stdout, "and still listed then")


tap.run(events_are_recorded, events_in_a_module)
