"""test_pairs.py - what a user may switch, with what may come meanwhile, two at a time.

Each row of a covering array sets all switches, and then one event comes: a packet of the
kernel's stub for gdb, a command of the console, or a write to a control file. The tables
below must have an example of each; they are compared with the stub's source and with the
guest. An event answers as it does in a row of defaults, or is refused; the hits of a probe
are counted; and when all is undone, text and memory are as before.

The usual run has each event once, on two CPUs. --long: all pairs, on 1, 2 and 4 CPUs, and
with one instruction in each translation block. SEED=N: other rows.
"""

import errno
import os
import re
import tempfile

import pairwise
import rows
import tap
from probes.gdb.host.rsp import Stub, frame
from session import LIMIT
from sonde.memory import Memory

SEED = int(os.environ.get("SEED", "1"))
TRACE = "/sys/kernel/debug/tracing/"
DEBUG = "/proc/sys/debug/"
READS = "cat /proc/version"  # calls vfs_read, whose hits are counted
PLACE = "vfs_read"


def written(path, values):
    return {value: [f"echo {value} > {path}"] for value in values}


# {switch: {value: commands that set it}}; the first value is the default.
SWITCHES = {
    "engine": written(DEBUG + "text-poke", rows.engines()),
    "jump": written(DEBUG + "kprobes-jump", ("pun", "region", "off")),
    "optimization": written(DEBUG + "kprobes-optimization", "10"),
    "enabled": written("/sys/kernel/debug/kprobes/enabled", "10"),
    "probe": {"no": ["probe del seen"], "yes": [f"probe add {PLACE} seen"]},
    "watch": {"no": ["probe del watched"], "yes": ["probe watch vfs_mutex w 8 watched"]},
    "film": {"no": ["film stop"], "yes": ["film start vfs_write 1"]},
    "marker": {"off": ["marker off vfs_open"], "on": ["marker on vfs_open"]},
    "tracer": {
        "off": [f"echo 0 > {TRACE}events/kprobes/pair/enable",
                f"echo -:pair >> {TRACE}kprobe_events"],
        "on": [f"echo p:pair vfs_open >> {TRACE}kprobe_events",
               f"echo 1 > {TRACE}events/kprobes/pair/enable"],
    },
    "module": {"gone": ["module del times"], "there": ["module load /boot/times.o"]},
}  # fmt: skip

# A packet for each word of the stub's table, with the memory of vfs_read for @.
PACKETS = {
    "?": "?", "H": "Hg0", "T": "T2", "g": "g", "G": "G{g}", "p": "p10", "P": "P10={p10}",
    "m": "m{at},10", "M": "M{at},1:{byte}", "X": "X{at},0:", "Z": "Z0,{at},1",
    "z": "z0,{at},1", "c": "c", "s": "s", "vCont?": "vCont?", "vCont": "vCont;s",
    "QStartNoAckMode": "QStartNoAckMode", "qSupported": "qSupported:swbreak+",
    "qRcmd,": "qRcmd," + b"probe list".hex(), "qC": "qC", "qAttached": "qAttached",
    "qfThreadInfo": "qfThreadInfo", "qsThreadInfo": "qsThreadInfo",
    "qXfer:features:read:target.xml:": "qXfer:features:read:target.xml:0,40",
    "qXfer:threads:read::": "qXfer:threads:read::0,40",
    "qXfer:traceframe-info:read::": "qXfer:traceframe-info:read::0,40",
    "QT": "QTinit", "qThreadExtraInfo,": "qThreadExtraInfo,2", "qT": "qTStatus",
}  # fmt: skip
PACKETS_END = ("D", "k", "vKill")  # the debugger, or the machine, goes
RUNNING = ("c", "s", "vCont")  # the kernel runs, and is stopped again

COMMANDS = {
    "cat": READS, "cpus": "cpus", "dmesg": "dmesg | tail -n 1", "echo": "echo a",
    "film": "film start vfs_read 1", "grep": "cat /proc/version | grep s",
    "head": "ps | head -n 1", "help": "help probe", "ls": "ls /proc", "marker": "marker list",
    "mem": "mem", "mkdir": "mkdir /tmp/d", "module": "module list",
    "probe": "probe explain vfs_read", "ps": "ps", "rm": "rm /tmp/f",
    "rmdir": "rmdir /tmp/e", "run": "run vfs", "sleep": "sleep 0",
    "sort": "ps | sort", "stat": "stat /proc/version", "sym": "sym vfs_read",
    "tail": "ps | tail -n 1", "trace": "trace 'vfs_open { count }' -- cat /proc/version",
    "trace-pages": "trace-pages on", "wc": "ps | wc",
}  # fmt: skip
# Commands that come before and after a command; the guest may refuse them.
AROUND = {
    "film": ("echo", "film stop"), "mkdir": ("echo", "rmdir /tmp/d"),
    "rm": ("echo a > /tmp/f", "echo"), "rmdir": ("mkdir /tmp/e", "echo"),
}  # fmt: skip
COMMANDS_END = ("bench", "exit", "panic", "poweroff", "reboot")  # or it takes minutes

# For each file of these folders that can be written: a text, and its counterpart.
FOLDERS = (DEBUG, "/sys/kernel/debug/kprobes/", TRACE)
WRITES = {
    "text-poke": None, "kprobes-jump": None, "kprobes-optimization": None, "enabled": None,
    "kprobes-step": ("tf", "int3"), "buffer_size_kb": ("64", "1408"),
    "dynamic_events": ("p:dyn vfs_write", "-:dyn"),
    "kprobe_events": ("r:ret vfs_open", "-:ret"),
    "set_event": ("markers:kfree", "!markers:kfree"), "set_event_pid": ("1", ""),
    "synthetic_events": ("held u64 ns", "!held"),
    "set_event_notrace_pid": ("1", ""), "snapshot": ("1", "0"), "trace": ("", ""),
    "trace_clock": ("global", "local"), "trace_marker": ("hello", ""),
    "trace_options": ("nooverwrite", "overwrite"), "tracing_cpumask": ("1", "{cpus}"),
    "tracing_on": ("0", "1"), "profile_hz": ("100", "0"),
    "current_tracer": ("nop", "nop"), "error_log": ("", ""),
}  # fmt: skip
LISTS = (
    "dynamic_events",
    "kprobe_events",
    "set_event",
    "synthetic_events",
)  # a plain > would empty them
RIGHT = (0, "OK", "T", "data")
REFUSED = {
    errno.EBUSY,
    errno.EDEADLK,
    errno.EINVAL,
    errno.ENOENT,
    errno.EEXIST,
    errno.EPERM,
}


class Pairs:
    def __init__(self, stub, smp):
        self.stub = stub
        self.smp = smp
        self.stub.guest.wait_prompt(LIMIT)
        self.at = stub.symbol(PLACE)
        self.client = stub.connect()
        self.client.greet()
        self.client.without_acks()
        self.client.resume()
        self.now = {}
        self.usual = {}
        self.other = []

    def console(self, line):
        return self.stub.ask_console(line)

    def must(self, line):
        reply = self.console(line)
        if reply.errno:
            raise AssertionError(f"{line}: {reply.name}: {reply.text}")
        return reply.text

    def set(self, row):
        """Set the switches that differ from those of the row before."""
        for name, values in SWITCHES.items():
            if self.now.get(name, next(iter(values))) != row[name]:
                for command in values[row[name]]:
                    self.must(command)
            self.now[name] = row[name]

    # ---- events: each returns what came, as a word, and the whole of it ----

    def packet(self, word):
        self.client.interrupt()
        values = {"at": f"{self.at:x}", "g": "", "p10": "", "byte": ""}
        if word in ("G", "P"):
            values.update(g=self.client.ask("g"), p10=self.client.ask("p10"))
        if word == "M":
            values["byte"] = self.client.ask(f"m{self.at:x},1")
        text = PACKETS[word].format(**values)
        if word in RUNNING:
            self.client.send(frame(text.encode()))
            answer = self.client.interrupt() if word == "c" else self.client.packet()
        else:
            answer = self.client.told(text)[1]
        if word == "Z":
            self.client.ask("z" + text[1:])
        self.client.resume()
        kind = answer[:1] if answer[:1] in "TE" else "OK" if answer == "OK" else "data"
        return kind if answer else "none", answer

    def command(self, word):
        before, after = AROUND.get(word, ("echo", "echo"))
        self.must(before)
        reply = self.console(COMMANDS[word])
        if not reply.errno:
            self.must(after)
        return reply.errno, f"{reply.name}: {reply.text[:200]}"

    def write(self, path):
        name = path.rpartition("/")[2]
        if WRITES[name]:
            new, old = (
                text.format(cpus=f"{(1 << self.smp) - 1:x}") for text in WRITES[name]
            )
        else:  # a switch: the same value once more
            new = old = self.must(f"cat {path}").split()[0]
        to = ">>" if name in LISTS else ">"
        reply = self.console(f"echo '{new}' {to} {path}")
        undone = self.console(f"echo '{old}' {to} {path}")
        return reply.errno, f"{reply.name}: {reply.text}; undone: {undone.name}"

    def event(self, event):
        kind, _, what = event.partition(" ")
        return {"packet": self.packet, "command": self.command, "write": self.write}[
            kind
        ](what)

    def comes(self, row):
        """Let the event of @row come. It answers as usual, or is refused."""
        got, text = self.event(row["event"])
        usual = self.usual.setdefault(row["event"], got)
        if got == usual:
            return
        self.other.append(row)
        if got not in ("E", *REFUSED):
            raise AssertionError(f"{row}: {text} (usual: {usual})")

    def hits_are_counted(self, row):
        if row["probe"] == "no":
            return
        before = self.hits()
        self.must(READS)
        more = self.hits() > before
        if more != (row["enabled"] == "1"):
            raise AssertionError(f"{row}: hits come: {more}")

    def hits(self):
        line = next(x for x in self.must("probe list").splitlines() if "seen" in x)
        return int(re.search(r"hits[= ](\d+)|\s(\d+)\s", line)[0].split()[-1])


def writable(pairs):
    for folder in FOLDERS:
        for name in pairs.must(f"ls {folder}").split():
            if name.endswith("/"):
                continue
            mode = int(pairs.must(f"stat {folder}{name}").split()[1], 8)
            if mode & 0o222:
                yield folder + name


def events_of(pairs):
    """All events. The tables have an example of each that is there."""
    source = rows.read("probes/gdb/gdb_session.c")
    words = re.findall(r'^    \{ "(.*?)", \w+ \},$', source, re.M)
    tap.equal(
        set(words), {*PACKETS, *PACKETS_END}, "each packet of the stub has an example"
    )
    known = set(re.findall(r"^([a-z-]+) +[a-z]", pairs.must("help"), re.M))
    tap.equal(known, {*COMMANDS, *COMMANDS_END}, "each command of the console has one")
    files = list(writable(pairs))
    names = {path.rpartition("/")[2] for path in files}
    tap.equal(names - set(WRITES), set(), "each control file has one")
    return [
        *(f"packet {word}" for word in PACKETS),
        *(f"command {word}" for word in COMMANDS),
        *(f"write {path}" for path in files),
    ]


def left(pairs):
    """(blocks of the heap, probes, sites), without the file of the last film, and with rings
    that got their size while no event was enabled: these are small.
    """
    pairs.must("rm /tmp/film")
    for size in (64, 1408):
        pairs.must(f"echo {size} > {TRACE}buffer_size_kb")
    stat = dict(line.split()[:2] for line in pairs.must("probe stat").splitlines())
    blocks = re.search(r"HeapBlocks: +(\d+)", pairs.must("cat /proc/meminfo"))[1]
    return blocks, stat["probes"], stat["sites"]


def run_rows(pairs, qmp, what):
    defaults = {name: next(iter(values)) for name, values in SWITCHES.items()}
    events = events_of(pairs)
    factors = {name: list(values) for name, values in SWITCHES.items()}
    for name, values in factors.items():  # what is allocated once is there from here on
        for value in (*values, defaults[name]):
            pairs.set({**defaults, name: value})
    for event in events:
        pairs.comes({**defaults, "event": event})
    wrong = {event: got for event, got in pairs.usual.items() if got not in RIGHT}
    tap.equal(wrong, {}, f"{what}: with no switch changed, each event has an answer")
    before = left(pairs)
    factors["event"] = events
    array = list(pairwise.rows(factors, SEED, None if tap.LONG else "event"))
    for row in array:
        pairs.set(row)
        pairs.comes(row)
        pairs.hits_are_counted(row)
    pairs.set(defaults)
    met = len(set().union(*map(pairwise.pairs_of, array)))
    tap.note(f"{len(factors)} factors, {len(events)} events, seed {SEED}")
    tap.check(
        True,
        f"{what}: {met} of {pairwise.count(factors)} pairs in {len(array)} rows; "
        f"{len(pairs.other)} refusals",
    )
    tap.equal(left(pairs), before, f"{what}: all memory is given back")
    with Memory(qmp) as memory:
        tap.check(memory.text_is_whole(), f"{what}: the text is as before")


def on(smp, **more):
    what = f"{smp} CPUs" + ", stepped" * bool(more)
    with tempfile.TemporaryDirectory(prefix="sonde-") as folder:
        qmp = os.path.join(folder, "qmp")
        with Stub(smp=smp, qmp=qmp, **more) as stub:
            run_rows(Pairs(stub, smp), qmp, what)


def pairs_of_a_user():
    on(2)
    if tap.LONG:
        on(1)
        on(4)
        on(2, qemu="-singlestep")


tap.run(pairs_of_a_user)
