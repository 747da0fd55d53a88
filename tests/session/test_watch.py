"""test_watch.py - tests the command `probe watch`, and events that are watches."""

import re

import tap
from session import ask, at_prompt


def reply_of(guest, command):
    return guest.machine.request(command, 30, may_fail=True)


def is_refused(guest, command, name, *texts):
    reply = reply_of(guest, command)
    tap.equal(reply.name, name, f"{command}: {name}")
    missing = [text for text in texts if text not in reply.text]
    if not tap.check(not missing, f"{command}: it says why"):
        tap.note(f"{missing} not in {reply.text}")


def row_of(guest, name):
    """Return (hits, misses, rest of the line) of the watch @name in `probe list`."""
    found = re.search(
        rf"^{name} +[0-9a-f]{{16}} w (dr\d) +(\d+) +(\d+)  (.*)$",
        ask(guest, "probe list"),
        re.M,
    )
    return (int(found[2]), int(found[3]), found[4]) if found else None


def what_a_watch_says():
    with at_prompt() as guest:
        reply = reply_of(guest, "probe watch jiffies w")
        tap.equal(
            reply.text, "w1 at jiffies+0x0, w 8, in dr0\n", "its length is the object's"
        )
        ask(guest, "run sleep")
        hits, misses, rest = row_of(guest, "w1")
        tap.check(hits > 0 and misses == 0, "the timer writes")
        tap.check(
            re.match(r"jiffies\+0x0 w 8 last=sched_tick\+0x\w+ value=0x\w+$", rest),
            "the list says where, and what",
        )
        tap.note(rest)
        reply = reply_of(guest, "probe watch vfs_read x")
        tap.equal(reply.errno, 0, "an instruction can be watched")
        calls = re.search(r"calls (\d+) of vfs_read", ask(guest, "run vfs"))
        tap.equal(row_of(guest, "w2")[0], int(calls[1]), "hits are calls")
        tap.check(
            "watched    by w2 in dr1: x 1" in ask(guest, "probe explain vfs_read"),
            "explain tells of it",
        )
        tap.check(
            "verdict    can be watched" in ask(guest, "probe explain jiffies"),
            "explain tells of data",
        )
        ask(guest, "probe off w1")
        tap.check("[DISABLED]" in row_of(guest, "w1")[2], "it is switched off")
        ask(guest, "probe on w1")
        tap.check(
            "watch.registers 2\n" in ask(guest, "probe stat"), "stat counts registers"
        )
        ask(guest, "probe watch jiffies+4 w 4 upper")
        ask(guest, "probe watch jiffies rw 2")
        is_refused(
            guest,
            "probe watch sched_idle_threads w",
            "EBUSY",
            "four debug registers",
            "dr0 has w1",
            "dr1 has w2",
            "dr2 has upper",
            "dr3 has w3",
        )
        more = reply_of(guest, "probe watch sched_idle_threads w").text
        tap.equal(re.findall(r"dr\d", more), ["dr0", "dr1", "dr2", "dr3"], "all of them")
        ask(guest, "probe del all")
        tap.check("watch.registers 0\n" in ask(guest, "probe stat"), "all are given back")


def what_is_refused():
    with at_prompt() as guest:
        is_refused(
            guest, "probe watch jiffies r", "EINVAL", "no watchpoint for reads alone"
        )
        is_refused(guest, "probe watch jiffies w 3", "EINVAL", "1, 2, 4 or 8 bytes")
        is_refused(guest, "probe watch jiffies+1 w 2", "EINVAL", "multiple of the length")
        is_refused(guest, "probe watch vfs_read+1 x", "EILSEQ", "no instruction begins")
        is_refused(guest, "probe watch vfs_read x 2", "EINVAL", "the length must be 1")
        is_refused(guest, "probe watch exc_int3 x", "EPERM", "the way into a hit")
        is_refused(guest, "probe watch trap_db_handler rw", "EPERM", "without end")
        is_refused(
            guest, "probe watch no_such_thing w", "ENOENT", "no symbol has this name"
        )
        is_refused(guest, "probe watch jiffies", "EINVAL", "usage: probe watch")
        is_refused(guest, "probe watch jiffies q", "EINVAL", "usage: probe watch")
        is_refused(guest, "probe watch 0x1000 w 8", "EINVAL", "no address of the kernel")
        tap.check("watch.registers 0\n" in ask(guest, "probe stat"), "nothing was taken")


TRACING = "/sys/kernel/tracing"


def write(guest, text, path):
    reply = reply_of(guest, f"echo '{text}' >> {TRACING}/{path}")
    if reply.errno:
        tap.note(f"{text}: {reply.name}")
    return reply.name


def lines_of(guest, event):
    """Return [(number, line)] of the records of @event, in order."""
    text = ask(guest, f"cat {TRACING}/trace")
    rows = [row for row in text.splitlines() if not row.startswith("#")]
    return [(i, row) for i, row in enumerate(rows) if f": {event}: " in row]


def an_event_records_accesses():
    with at_prompt() as guest:
        line = "w:tick w@jiffies:8 addr=$addr value=$value:u64"
        tap.equal(write(guest, line, "dynamic_events"), "OK", "a watch is defined")
        tap.equal(
            ask(guest, f"cat {TRACING}/dynamic_events"),
            "w:wprobes/tick w@jiffies:8 addr=$addr value=$value:u64\n",
            "and listed",
        )
        tap.check(
            "watch.registers 0" in ask(guest, "probe stat"), "it has no register yet"
        )
        write(guest, "value & 1", "events/wprobes/tick/filter")
        write(guest, "1", "events/wprobes/tick/enable")
        ask(guest, "run sleep")
        write(guest, "0", "events/wprobes/tick/enable")
        tap.check("watch.registers 0" in ask(guest, "probe stat"), "nor any more")
        rows = lines_of(guest, "tick")
        values = [int(re.search(r"value=(\d+)$", row)[1]) for _, row in rows]
        tap.check(
            rows and all("(sched_tick+0x" in row for _, row in rows),
            "in the timer's tick",
        )
        tap.check(
            all(value % 2 for value in values) and values == sorted(set(values)),
            "each odd value once, by the filter",
        )
        hits = re.search(r"tick +(\d+) +0", ask(guest, f"cat {TRACING}/kprobe_profile"))
        tap.check(hits and int(hits[1]) >= 2 * len(rows) - 1, "the profile has all hits")


def four_events_at_a_time():
    with at_prompt() as guest:
        for i in range(5):
            write(guest, f"w:e{i} w@sched_idle_threads+{8 * i}:8", "dynamic_events")
        names = [write(guest, "1", f"events/wprobes/e{i}/enable") for i in range(5)]
        tap.equal(names, ["OK"] * 4 + ["EBUSY"], "four can be enabled at a time")
        tap.equal(
            re.findall(r"trace: (dr\d+ has .*)", ask(guest, "dmesg")),
            [f"dr{i} has wprobes/e{i}" for i in range(4)],
            "the log names them",
        )
        tap.equal(
            write(guest, "-:wprobes/e0", "dynamic_events"), "EBUSY", "not while enabled"
        )
        write(guest, "0", "events/wprobes/enable")
        tap.equal(
            write(guest, "w:e0 w@jiffies", "dynamic_events"),
            "EBUSY",
            "a second probe of an event is refused",
        )
        tap.equal(reply_of(guest, f"echo > {TRACING}/dynamic_events").errno, 0, "all go")


def define_object(guest):
    """Define events for the beginning and the end of an object's life. Return the size of
    such an object: the node of a file below /tmp.
    """
    write(guest, "w:obj rw@-1:8 addr=$addr", "dynamic_events")
    write(guest, "r:born kzalloc p=$retval len=$arg1:u64", "dynamic_events")
    write(guest, "p:gone kfree p=$arg1", "dynamic_events")
    write(guest, "1", "events/kprobes/born/enable")
    ask(guest, "echo x > /tmp/abcd")
    ask(guest, "rm /tmp/abcd")
    write(guest, "0", "events/kprobes/born/enable")
    found = re.search(r"node_alloc\+.* len=(\d+)", ask(guest, f"cat {TRACING}/trace"))
    ask(guest, f"echo > {TRACING}/trace")
    return int(found[1])


def an_object_is_watched_from_allocation_to_release():
    with at_prompt() as guest:
        born, gone = "events/kprobes/born/trigger", "events/kprobes/gone/trigger"
        size = define_object(guest)
        tap.equal(
            write(guest, f"set_wprobe:obj:p if len == {size}", born), "OK", "set_wprobe"
        )
        tap.equal(write(guest, "clear_wprobe:obj:p", gone), "OK", "clear_wprobe")
        tap.equal(
            ask(guest, f"cat {TRACING}/{born}"),
            f"set_wprobe:obj:p+0:unlimited if len == {size}\n",
            "it is listed",
        )
        tap.equal(
            ask(guest, f"cat {TRACING}/events/wprobes/obj/enable"),
            "0*\n",
            "the watch is armed, and not recorded",
        )
        write(guest, "1", "events/kprobes/enable")
        for _ in range(3):
            for line in (
                "echo x > /tmp/abcd",
                "echo y > /tmp/wxyz",
                "cat /tmp/abcd",
                "rm /tmp/wxyz",
                "rm /tmp/abcd",
            ):
                ask(guest, line)
        write(guest, "0", "events/kprobes/enable")
        look_at_lives(guest, size)
        another_setter_leaves_the_address(guest, gone)
        refusals_of_triggers(guest, born)
        write(guest, "!set_wprobe:obj:p", born)
        write(guest, "!clear_wprobe:obj", gone)
        tap.check("watch.registers 0" in ask(guest, "probe stat"), "the register is free")
        tap.equal(
            ask(guest, f"cat {TRACING}/events/wprobes/obj/enable"), "0\n", "it is off"
        )


def another_setter_leaves_the_address(guest, gone):
    ask(guest, f"echo > {TRACING}/trace")
    write(guest, "1", "events/kprobes/enable")
    ask(guest, "echo x > /tmp/abcd")
    write(guest, "set_wprobe:obj:p if p == 1", gone)
    ask(guest, "cat /tmp/abcd")
    write(guest, "0", "events/kprobes/enable")
    tap.check(list(lines_of(guest, "obj")), "another set_wprobe comes: the watch goes on")
    write(guest, "!set_wprobe:obj:p if p == 1", gone)
    ask(guest, "rm /tmp/abcd")


def refusals_of_triggers(guest, born):
    for line, name in (
        ("set_wprobe:no:p", "ENOENT"),
        ("set_wprobe:obj:q", "ENOENT"),
        ("set_wprobe:obj:common_pid", "ENOEXEC"),
        ("set_wprobe:obj:p", "EEXIST"),
        ("set_wprobe:obj", "EINVAL"),
    ):
        tap.equal(write(guest, line, born), name, f"{line}: {name}")
    log = ask(guest, f"cat {TRACING}/error_log")
    tap.check(
        "wprobe_trigger: error: The event has no such field\n"
        "  Command: set_wprobe:obj:q\n                          ^" in log,
        "the log has the line and a caret",
    )


def lives_of(guest, size):
    """Yield (address, number of first line, of last line) of each object of @size."""
    ends = [(i, re.search(r" p=(0x\w+)$", row)[1]) for i, row in lines_of(guest, "gone")]
    for i, row in lines_of(guest, "born"):
        addr = re.search(r" p=(0x\w+) ", row)[1]
        later = [end for end, p in ends if p == addr and end > i]
        if f"len={size}" in row and later:
            yield addr, i, later[0]


def look_at_lives(guest, size):
    lives = list(lives_of(guest, size))
    tap.check(len(lives) >= 6, "several objects have lived")
    hits = [(i, re.search(r"addr=(0x\w+)", row)[1]) for i, row in lines_of(guest, "obj")]
    inside = [
        i for i, p in hits for addr, start, end in lives if p == addr and start < i < end
    ]
    tap.check(hits and len(inside) == len(hits), "each access is inside of a life")
    counted = re.search(r" obj +(\d+) ", ask(guest, f"cat {TRACING}/kprobe_profile"))
    tap.equal(int(counted[1]), len(hits), "and none was a hit outside")
    seen = [
        life
        for life in lives
        if any(p == life[0] and life[1] < i < life[2] for i, p in hits)
    ]
    tap.check(len(seen) >= 3, "one object after the other is watched")
    overlap = [1 for a in seen for b in seen if a[1] < b[1] < a[2]]
    tap.check(not overlap, "of those that live at a time the first one is")
    tap.note(f"{len(lives)} lives, {len(hits)} accesses, {len(inside)} inside")


tap.run(
    what_a_watch_says,
    what_is_refused,
    an_event_records_accesses,
    four_events_at_a_time,
    an_object_is_watched_from_allocation_to_release,
)
