"""test_questions.py - the counts of `trace`: a function is counted the same alone and
together with all others, and what the tracer does itself is not in an answer.
"""

import json
import os
import random
import re
import time

import tap
from probes.trace.host import write_folded
from recorded import CPUS, OUTERMOST, Recorded
from sonde.guest import ROOT
from session import LIMIT, ask, at_prompt, shared, sonde

ALONE = 10  # functions that are asked alone
# By the tracer and the optimizer, too. memset() is none of them: the heap calls it more often
# if it is so full that the workload makes it take memory, which depends on what is probed.
USED_BY_ALL = ("memcpy", "kmalloc")
TRACING = "/sys/kernel/tracing"


def refuses(guest, *rows, errno="EINVAL", words="trace"):
    """Each of @rows: a question, where the caret stands, and what the answer says."""
    for asked, caret, text in rows:
        reply = guest.machine.request(f"{words} '{asked}'", 30, may_fail=True)
        tap.check(text in reply.text, f"{asked}: {text}")
        tap.equal(reply.name, errno, "its errno")
        tap.equal(reply.lines[1].index("^"), len("trace: ") + caret, "at its place")


def counts(text):
    return {name: int(n) for n, name in re.findall(r"^ +(\d+)  (\S+)$", text, re.M)}


def alone_and_together():
    with at_prompt(smp=1) as guest:
        both = [counts(ask(guest, "trace count '*' -- run vfs")) for _ in range(2)]
        steady = sorted(
            f
            for f, n in both[0].items()
            if both[1].get(f) == n and re.match(r"vfs_|work_|seq_|str|mem(?!set)", f)
        )
        tap.check(len(steady) >= 20, f"{len(steady)} functions have the same count twice")
        said = ask(guest, "run vfs")
        calls = re.search(r"calls (\d+) of vfs_read", said)
        tap.equal(
            both[0].get("vfs_read"), int(calls[1]), "that of vfs_read is what it says"
        )
        wrong = {}
        for name in [*USED_BY_ALL, *random.sample(steady, ALONE)]:
            got = counts(ask(guest, f"trace count {name} -- run vfs"))
            if got != {name: both[0][name]}:
                wrong[name] = got, both[0][name]
        tap.equal(wrong, {}, f"{ALONE} of them, and {USED_BY_ALL}, have it alone, too")


STACK, CPU = "stacktrace", "common_cpu"


def the_tracers_own_hits_are_misses():
    """By stack, C records a hit; by CPU, it is a program."""
    with shared(smp=1) as guest:
        for x, y in ((STACK, STACK), (STACK, CPU), (CPU, CPU)):
            for name, place, keys in (("x", "vfs_read", x), ("y", "memcpy", y)):
                ask(guest, f"echo 'p:own/{name} {place}' >> {TRACING}/kprobe_events")
                ask(
                    guest,
                    f"echo 'hist:keys={keys}' > {TRACING}/events/own/{name}/trigger",
                )
            ask(guest, "run vfs")
            row = ask(guest, f"cat {TRACING}/kprobe_profile").splitlines()[1]
            table = ask(guest, f"cat {TRACING}/events/own/y/hist")
            found = re.match(r" +y +(\d+) +(\d+)(.*)$", row)
            own = re.search(r" own=(\d+)$", found[3])
            hits = int(re.search(r"Hits: (\d+)", table)[1])
            what = f"x by {x}, y by {y}"
            tap.equal(bool(own), x == STACK, f"{what}: they have a cause: {row.strip()}")
            tap.check(hits < 2000, f"{what}: the table is without them: {hits}")
            if own:
                tap.check(int(found[2]) >= int(own[1]) > 5000, "they are misses")
            for name in ("x", "y"):
                ask(
                    guest,
                    f"echo '!hist:keys={x if name == 'x' else y}' "
                    f"> {TRACING}/events/own/{name}/trigger",
                )
            ask(guest, f"echo > {TRACING}/kprobe_events")


def several_places_and_the_top():
    with shared(smp=1) as guest:
        one = counts(ask(guest, "trace count vfs_write -- run vfs"))
        both = counts(
            ask(guest, "trace 'vfs_write, work_* { count by func }' -- run vfs")
        )
        tap.equal(both.pop("vfs_write"), one["vfs_write"], "the first place is asked")
        tap.check(both and all(f.startswith("work_") for f in both), "and the second one")
        top = counts(ask(guest, "trace 'work_* { count by func top 2 }' -- run vfs"))
        first = sorted(both.items(), key=lambda row: -row[1])[:2]
        tap.equal(sorted(top.values()), sorted(n for _, n in first), "the first two rows")
        twice = counts(
            ask(guest, "trace 'vfs_*, vfs_write { count by func }' -- run vfs")
        )
        tap.equal(
            twice["vfs_write"],
            one["vfs_write"],
            "a place that is asked twice counts once",
        )
        refuses(
            guest,
            ("vfs_read, { count }", 10, "a function, or a pattern, is missing"),
            ("mark kmalloc, vfs_read { count }", 14, "a marker is the only place"),
            ("vfs_read", 8, "here comes one of: , with if {"),
            ("vfs_read x { count }", 9, "here comes one of: , with if {"),
            ("vfs_read with a=%di x { count }", 20, "here comes one of: , if {"),
            ("vfs_read if count > 4", 21, "here comes: {"),
            ("mark kmalloc x", 13, "here comes one of: if {"),
            ("from vfs_open to vfs_close x", 27, "here comes one of: by with if {"),
            ("profile 99 x", 11, "here comes one of: by with if {"),
            ("profile by func x", 16, "nothing is expected here"),
            ("vfs_read { count x }", 17, "here comes one of: by top percent ; }"),
            ("vfs_read { count by func x }", 25, "here comes one of: , top percent ; }"),
            ("vfs_read { count top 2 x }", 23, "here comes one of: percent ; }"),
            ("vfs_read { count percent x }", 25, "here comes one of: ; }"),
            ("vfs_read { print; count }", 16, "print is the only answer"),
            ("vfs_read { count; print }", 18, "print is the only answer"),
            ("vfs_read { lhist(count) }", 11, "it is lhist(ARG,MIN,MAX,STEP)"),
            ("vfs_read { lhist(count,1,8,2) }", 11, "both are multiples of STEP"),
            ("vfs_read { lhist(count,8,8,2) }", 11, "MIN is below MAX"),
            ("vfs_read { lhist(count,0,202,2) }", 11, "at most 100 rows"),
            ("vfs_read { count;count;count;count;count }", 35, "at most four answers"),
            ("vfs_read { cont by func }", 11, "one of: count print hist lhist"),
            ("vfs_read { count top x }", 21, "top wants a number of rows"),
            ("vfs_read { print count x }", 23, "here comes one of: , }"),
            ("vfs_read { print count by cpu }", 23, "print has no keys"),
            ("vfs_read { count by cpu,count,cpu }", 30, "this key is there already"),
            ("vfs_read { max(comm) }", 11, "comm is a text, and no number"),
            ("vfs_read { lhist(count,-8,8,8) }", 11, "numbers from 0"),
            (f"vfs_read {{ lhist(count,0,{2**64},{2**64 - 1}) }}", 11, "numbers from 0"),
            ("vfs_read { count top -1 }", 21, "top wants a number of rows"),
            (f"vfs_read {{ count top {2**64} }}", 21, "top wants a number of rows"),
            ("vfs_read { sum(count)x }", 21, "here comes one of: by top"),
            ("vfs_read { hist(count) top 2 }", 23, "here comes one of: by ; }"),
            ("vfs_read { lhist(count,0,8,8) by cpu percent }", 37, "one of: , ; }"),
        )


def what_the_tracer_refuses():
    """The caret stands in the question, although the mistake is found behind it."""
    with shared(smp=1) as guest:
        refuses(
            guest,
            ("vfs_open { hist(path) }", 16, "it is a text, and no number"),
            ("vfs_open { count; hist(path) by path }", 23, "it is a text"),
            ("mark vfs_open { hist(path) }", 21, "it is a text, and no number"),
            ("mark vfs_open { count; lhist(path,0,8,8) }", 29, "it is a text"),
            ("vfs_open with x=+0(%di):string { sum(x) }", 37, "it is a text"),
            ("vfs_read { count by %dx,+0(%si):u32[2] }", 24, "it is an array"),
            ("vfs_read with a=+0(%si):u8[4] { count; sum(a) }", 14, "it is an array"),
            (
                "from vfs_open to vfs_close by +0(%di):x8[4] { count }",
                30,
                "it is an array",
            ),
            ("from vfs_open to vfs_close by path=file { count }", 30, "not of one type"),
            ("vfs_read { sum(+0(0):u64) }", 18, "Invalid fetch argument"),
            ("ret vfs_read+5 { count }", 4, "must be an function entry"),
        )
        for words in ("trace", "trace -w"):  # which asks for more than the condition
            refuses(
                guest,
                ("vfs_read if count > { count }", 20, "Invalid value"),
                ("vfs_read if count/0 > 1 { print count }", 18, "Invalid operator"),
                words=words,
            )
        refuses(
            guest,
            ("ret vfs_close { hist(retval) }", 21, "vfs_close returns nothing"),
            ("vfs_read if retval > 4 { count }", 12, "only ret vfs_read has it"),
            ("vfs_read { sum(ns) }", 15, "no parameter ns: it has file, buf, count, pos"),
            ("nosuch { count }", 0, "cannot probe nosuch"),
            ("vfs_open, nosuch { count }", 10, "cannot probe nosuch"),
            ("ret nosuch { count }", 4, "cannot probe nosuch"),
            ("from vfs_open to nosuch { count }", 17, "cannot probe nosuch"),
            ("count { count }", 0, "cannot probe count"),
            ("vfs_open, nosuch_* { count }", 10, "no function matches nosuch_*"),
            ("vfs_* { count by nosuch }", 0, "no function of vfs_* can answer"),
            ("mark nosuch { count }", 5, "no marker is called nosuch"),
            ("mark mark { count }", 5, "no marker is called mark"),
            ("ret ret { count }", 4, "cannot probe ret"),
            ("vfs_read { sum(func) by func }", 15, "no parameter func"),
            ("mark kmaloc { count }", 5, "kmalloc"),
            ("nosuch.c:1 { count }", 0, "no file nosuch.c has code"),
            errno="ENOENT",
        )
        refuses(
            guest,
            ("mark kmalloc { count by nosuch }", 24, "has no field nosuch"),
            ("vfs_open+, vfs_read { count }", 0, "vfs_open+ is no place"),
            (
                "vfs_open, irq_dispatch { count }",
                10,
                "irq_dispatch: this code is the way",
            ),
        )
        for words, errno, says in (
            ("'vfs_read { count }' for -1", "EINVAL", "usage: "),
            ("'vfs_read { count }' for 1x", "EINVAL", "usage: "),
            ("'vfs_read { count }' for", "EINVAL", "usage: "),
            ("vfs_read { count } for 1", "EINVAL", "trace: { comes behind the question"),
            ("'vfs_* { count by nosuch }'", "ENOENT", "no function of vfs_* can answer"),
            ("count irq_dispatch", "EINVAL", "irq_dispatch: this code is the way"),
            ("count 'nosuch_*'", "ENOENT", "no function matches nosuch_*"),
            ("count 'nosuch:*'", "ENOENT", "no function matches nosuch:*"),
        ):
            reply = guest.machine.request(f"trace {words}", 30, may_fail=True)
            tap.check(says in reply.text, f"{words}: {says}")
            tap.equal(reply.name, errno, "its errno")
        said = ask(guest, "trace 'thread_sleep_ns { sum(ns)by pid top 2 }' -- run sleep")
        tap.check(re.search(r"^ +\d{6,}  \d+$", said, re.M), "a parameter is called ns")


GUARDED = "trace count 'guarded:*' -- run guarded"  # two functions cannot be probed


def functions_of_a_module():
    with at_prompt(smp=1, append="modules=guarded") as guest:
        said = ask(guest, GUARDED)
        tap.equal(counts(said), {"guarded_run": 1, "count": 10, "swap": 10}, "are asked")
        left_out = "2 functions of guarded:* are not among them"
        tap.check(left_out in said, "those without a probe are skipped, and counted")
        said = ask(guest, "trace args guarded:count -- run guarded")
        numbers = re.findall(r"\(count\+0x0/0x\w+ \[guarded\]\) n=(\d+)$", said, re.M)
        tap.equal([int(n) for n in numbers], [*range(1, 11)], "their parameters")
        reply = guest.machine.request("trace count 'guarded:add*'", LIMIT, may_fail=True)
        tap.check(
            reply.errno and "no function of guarded:add* can answer" in reply.text,
            "a pattern that has no other functions is refused",
        )
    status, out, _ = sonde(
        "trace", "--append", "modules=guarded", "count guarded:*", "--", "run guarded"
    )
    tap.check(re.search(r"^guarded_run +1 ", out, re.M), "from the host")
    tap.check(status == 0 and left_out in out, "those without a probe, too")


TRIGGER = f"{TRACING}/events/kprobes/{{}}/trigger"


def take_out(guest, name):
    """Take a module out. A word that an interrupt has left on an idle stack may look like a
    place in it, until other words lie there.
    """
    for _ in range(50):
        reply = guest.machine.request(f"module del {name}", LIMIT, may_fail=True)
        if reply.name != "EBUSY":
            break
        time.sleep(0.1)
    tap.equal(reply.errno, 0, f"{name} is out: {reply.text}")


def a_module_goes_meanwhile():
    asked = "trace 'ret reads:* { count by func }' -- module del reads"
    with at_prompt(smp=2, append="modules=reads,guarded") as guest:
        gone = r"\[reads\]\+0x[0-9a-f]+"
        said = ask(guest, asked)
        tap.check(re.search(rf"^ +1  {gone}$", said, re.M), f"hit as it goes: {said}")
        for line in ("p:c guarded:count n=%di:u64", "r:r guarded:count"):
            ask(guest, f"echo '{line}' >> {TRACING}/kprobe_events")
        ask(guest, f"echo hist:keys=__probe_ip.sym > {TRIGGER.format('c')}")
        ask(guest, f"echo hist:keys=stacktrace > {TRIGGER.format('r')}")
        for hits, name in ((10, "count"), (20, "count")):
            ask(guest, "run guarded")
            table = ask(guest, f"cat {TRACING}/events/kprobes/c/hist")
            row = re.search(r"\] (\S+) +\} hitcount: +(\d+)$", table, re.M)
            tap.equal(row.groups(), (name, str(hits)), "counted")
            take_out(guest, "guarded")
            table = ask(guest, f"cat {TRACING}/events/kprobes/c/hist")
            row = re.search(r"\] (\S+) +\} hitcount: +(\d+)$", table, re.M)
            tap.check(re.match(r"\[guarded\]\+0x", row[1]), f"it has gone: {row[1]}")
            tap.equal(int(row[2]), hits, "and its hits are kept")
            stack = ask(guest, f"cat {TRACING}/events/kprobes/r/hist")
            tap.check(re.search(r"^ +\[guarded\]\+0x", stack, re.M), "in stacks as well")
            if hits == 10:
                ask(guest, "module load /boot/guarded.o")
        for name in "cr":
            keys = "__probe_ip.sym" if name == "c" else "stacktrace"
            ask(guest, f"echo '!hist:keys={keys}' > {TRIGGER.format(name)}")
        ask(guest, f"echo > {TRACING}/kprobe_events")
        ask(guest, "module load /boot/guarded.o")
        said = ask(guest, GUARDED)
        tap.equal(counts(said)["count"], 10, "taken out while it was gone")
    status, out, _ = sonde(
        *"trace --append modules=reads".split(),
        "reads:* { count by func }",
        "--",
        "module del reads",
    )
    tap.check(status == 0 and re.search(rf"^{gone} +1 ", out, re.M), "from the host")


WAY = "trap_dispatch, take_fault, extable_find, extable_fixup"  # of each fault


def values_that_cannot_be_read():
    """The way of a fault is asked as well, and has values that fault: no hit of it is one
    of the program's.
    """
    with shared(smp=2) as guest:
        for place, value in (
            ("vfs_read", "+0(%dx):u64"),
            ("vfs_read", "+0(%dx):string"),
            ("vfs_read", "+0(+8(%dx)):u8"),
            ("vfs_read", "+0x12345678(%dx):s16"),
            ("ret vfs_read", "+0($retval):u64"),
            ("ret vfs_read", "+0($retval):string"),
        ):
            asked = f"{place}, {WAY} with a={value} {{ count by func; count by a }}"
            said = ask(guest, f"trace '{asked}' -- run vfs")
            found = re.findall(r"^ +(\d+)  (\S*)$", said, re.M)
            nothing = "" if "string" in value else "0"
            tap.equal(found, [("720", "vfs_read"), ("720", nothing)], f"{place} {value}")
            tap.check("fault: 720\n" in said, "each fault is counted")
        said = ask(guest, "trace '* with a=+0(%dx):u64 { sum(a) by func }' -- run vfs")
        tap.check(re.search("^fault: [0-9]+$", said, re.M), "in all functions")


def several_answers():
    """Each answer is the table that it is alone."""
    with shared(smp=1) as guest:
        ask(guest, "trace 'vfs_read { count }' -- run vfs")
        alone = [
            ask(guest, f"trace 'vfs_read {{ {one} }}' -- run vfs").splitlines()[1:]
            for one in ANSWERS
        ]
        for mark in ("; ", ", "):
            both = ask(guest, f"trace 'vfs_read {{ {mark.join(ANSWERS)} }}' -- run vfs")
            tap.equal(both.splitlines()[1:], sum(alone, []), f"divided by {mark!r}")
        rows = re.findall(r"^ +(\S.*?) \|@* +(\d+)$", "\n".join(alone[1]), re.M)
        exact = ask(guest, "trace 'vfs_read { count by count }' -- run vfs")
        counted = {
            int(key): int(n) for n, key in re.findall(r"^ *(\d+)  (\d+)$", exact, re.M)
        }
        want = {"< 32": 0, "[32, 40)": 0, "[40, 48)": 0, ">= 48": 0}
        for key, n in counted.items():
            want[list(want)[sum(key >= bound for bound in (32, 40, 48))]] += n
        tap.equal({key: int(n) for key, n in rows}, want, "lhist has the right rows")
        shares = re.findall(
            r"(\d+\.\d\d)  vfs_",
            ask(
                guest, "trace 'vfs_read, vfs_write { count by func percent }' -- run vfs"
            ),
        )
        tap.equal(shares, ["98.90", "1.10"], "shares of all hits")
        four = "sum(count) by comm; avg(count) by comm; count; count top 1 percent"
        said = ask(guest, f"trace 'vfs_read {{ {four} }}' -- run vfs")
        heads = re.findall(r"^ +([A-Z]+) +(?:% +)?(?:comm|func)$", said, re.M)
        tap.equal(heads, ["SUM", "AVERAGE", "COUNT", "COUNT"], "two with one histogram")
        said = ask(guest, "trace 'do_exit { count by caller; stack }' -- run vfs")
        whole = re.findall(r"^ .* thread_start\+(0x\w+)$", said, re.M)
        tap.equal(len(whole), 2, "an address behind the end of a function has its name")
        said = ask(guest, "trace 'ret vfs_open { print *, retval }' -- cat /proc/version")
        tap.equal(said.count("retval="), 1, "print *, retval: the value once")
        ask(guest, "echo 4 > /sys/kernel/tracing/buffer_size_kb")
        said = ask(guest, "trace 'vfs_read { print * }' -- run vfs")
        tap.check("\nrecords were lost: " in said, "a small buffer is named")
        ask(guest, "echo 1408 > /sys/kernel/tracing/buffer_size_kb")
        for q in ("print *, path, comm", "print file, *"):
            line = ask(guest, f"trace 'vfs_open {{ {q} }}' -- cat /proc/version")
            tap.equal(line.count("file="), 1, f"{q}: each value once")


def filters_of_questions():
    """A name is a parameter if the function has it, whatever the answer is."""
    stats = f"cat {TRACING}/per_cpu/cpu0/stats {TRACING}/per_cpu/cpu1/stats"
    with shared(smp=2) as guest:
        for answer in ("count", "max(cpu); count", "count by cpu"):
            spec = f"trace 'buffer_stats if cpu == 1 || cpu == 7 {{ {answer} }}'"
            hits = ask(guest, f"{spec} -- {stats}").splitlines()[-1]
            tap.equal(hits.split()[0], "1", f"the parameter, not the CPU: {answer}")
        with_cpu = "vfs_read with {}=$stack0 {{ count }}"
        rows = [(with_cpu.format(x), 14, "is a key") for x in ("cpu", "comm", "caller")]
        refuses(guest, *rows)
        for condition, want in (
            ("CPU & CPUS{0-1}", 720),
            ("CPU == CPUS{0} || (CPU & CPUS{1})", 720),
            ("c.function == file_get", 720),
            ("c.function!=file_get && count > 0", 0),
            ('common_pid > 0 && comm ~ "work/*"', 720),
        ):
            for places in ("vfs_read", "vfs_rea[d]"):
                spec = f"{places} with c=$stack0 if {condition} {{ count }}"
                said = ask(guest, f"trace '{spec}' -- run vfs")
                tap.equal(sum(counts(said).values()), want, f"{places}: {condition}")
        for condition in ("CPU & CPUS{0}", "file.function != vfs_read"):
            spec = f"vfs_read if {condition} {{ count }}"  # no C: none is compiled
            status, out, _ = sonde("trace", "--smp", "1", spec, "--", "run vfs")
            tap.equal((status, " 720 " in out), (0, True), f"from the host: {condition}")
        refuses(guest, ("vfs_read if CPU & CPUS{0 { count }", 34, "here comes: {"))


def large_numbers_and_full_tables():
    with shared(smp=1) as guest:
        four = "with x=\\-1:u64,y=\\-1:s64 { sum(x); sum(y); max(x); avg(y) }"
        said = ask(guest, f"trace 'vfs_read {four}' -- run vfs")
        numbers = [int(n) for n in re.findall(r"^ *(-?\d+)$", said, re.M)]
        tap.equal(numbers, [2**64 - 720, -720, 2**64 - 1, -1], "a sum has 64 bits")
        whole = counts(ask(guest, "trace count work_next -- run write"))["work_next"]
        asked = "work_next with x=+0(%di):u64 { count by x top 3 }"  # another x each time
        said = ask(guest, f"trace '{asked}' -- run write")
        lost = int(re.search(r"^(\d+) hits had no room in the table$", said, re.M)[1])
        tap.equal(whole - lost, 8192, "hits without room in the table are told")


def histogram(guest, event):
    """Return {key: hits} of a histogram with one key."""
    text = ask(guest, f"cat {TRACING}/events/{event}/hist")
    return {
        key: int(n) for key, n in re.findall(r"^{ \w+: +(\d+) +}.*: +(\d+)$", text, re.M)
    }


def write(guest, text, *files):
    for file in files:
        ask(guest, f"echo '{text}' >> {TRACING}/{file}")


def a_line_that_made_a_histogram_removes_it():
    """Both have a variable x. The line of the second is read anew, and finds x in both."""
    lines = ["hist:keys=common_pid:x=common_timestamp"]
    lines.append(lines[0] + "-$x")
    with shared(smp=1) as guest:
        write(guest, "p:a1 vfs_open", "kprobe_events")
        write(guest, "p:b1 vfs_close", "kprobe_events")
        for line, event in zip(lines, ("a1", "b1")):
            write(guest, line, f"events/kprobes/{event}/trigger")
        for line, event in zip(reversed(lines), ("b1", "a1")):
            undo = f"echo '!{line}' >> {TRACING}/events/kprobes/{event}/trigger"
            reply = guest.machine.request(undo, 30, may_fail=True)
            tap.equal(reply.name, "OK", f"it goes: {event}")
            write(guest, f"-:{event}", "kprobe_events")


def a_table_of_two_events():
    """Its keys are those of the event that has counted, whichever event shows them."""
    with shared(smp=1) as guest:
        both = [f"events/{event}/trigger" for event in ("kprobes/pe", "synthetic/syn")]
        write(guest, "p:pe vfs_read count=$arg3:u64", "kprobe_events")
        write(guest, "syn u64 count", "synthetic_events")
        write(guest, "hist:name=h:keys=count", *both)
        ask(guest, "run vfs")
        tables = [histogram(guest, event) for event in ("synthetic/syn", "kprobes/pe")]
        for table in tables:
            table.pop("4096", None)  # those of `cat`
        tap.equal(tables[0], tables[1], "two events show the table that they share")
        tap.equal(sum(tables[0].values()), 720, "with the hits of the probe")
        write(guest, "!hist:name=h:keys=count", *both)
        write(guest, "!syn", "synthetic_events")
        write(guest, "-:pe", "kprobe_events")


def a_table_becomes_full():
    with shared(smp=1) as guest:
        write(guest, "p:k kmalloc n=%di:u64", "kprobe_events")
        write(guest, "hist:keys=n:size=128", "events/kprobes/k/trigger")
        before = histogram(guest, "kprobes/k").keys()
        ask(guest, "run heap")
        now = histogram(guest, "kprobes/k").keys()
        tap.equal((len(before) > 0, len(now)), (True, 128), "all entries are used")
        tap.equal(before - now, set(), "and keys that were shown stay")
        write(guest, "!hist:keys=n:size=128", "events/kprobes/k/trigger")
        write(guest, "-:k", "kprobe_events")


ANSWERS = ("count by cpu", "lhist(count,32,48,8)", "sum(count) by func", "max(count)")


SPEC = "from vfs_open to vfs_close by file { count by comm }"


def the_time_between_two_places():
    """Each of 8 threads opens, and closes, 9 files, and reads 90 times."""
    with shared(smp=2) as guest:
        nine = {f"work/{i}": 9 for i in range(8)}
        tap.equal(
            counts(ask(guest, f"trace '{SPEC}' -- run vfs")), nine, "by a parameter"
        )
        spec = SPEC.replace("by file", "by %si=%di")
        tap.equal(counts(ask(guest, f"trace '{spec}' -- run vfs")), nine, "by registers")
        said = ask(guest, "trace 'from vfs_read to vfs_read { count }' -- run vfs")
        for what in (r"^ +712$", "^8 starts had no end$", "^8 ends had no start$"):
            tap.check(re.search(what, said, re.M), f"the time between two reads: {what}")
        said = ask(
            guest,
            "trace 'from vfs_read to ret vfs_read if count > 40 { count; max(ns) by "
            "count,caller; sum(ns) by func }' -- run vfs",
        )
        whole = ask(
            guest, "trace 'vfs_read if count > 40 { count by count,caller }' -- run vfs"
        )
        rows = re.findall(r"^ +\d+  (\d+ +file_get\+\S+)$", said, re.M)
        tap.equal(
            sorted(rows),
            sorted(re.findall(r"^ +\d+  (\d+ +file_get\+\S+)$", whole, re.M)),
            "keys of the second place",
        )
        tap.check(re.search(r"^ +\d+  vfs_read$", said, re.M), "and its function")
        said = ask(
            guest, "trace 'from vfs_open to vfs_close { print ns, file }' -- run vfs"
        )
        tap.equal(len(re.findall(r": q1: ns=\d+ file=", said)), 72, "print")
        for x, shown in ((r"\1000:b16@0/64", "1000"), ("$stack0:symstr", r"\w+\+0x.*")):
            spec = f"from vfs_open to vfs_close with x={x} {{ count by x }}"
            said = ask(guest, f"trace '{spec}' -- run vfs")
            tap.check(re.search(rf"^ +(?:64|72)  {shown}$", said, re.M), f"a field: {x}")
        lines = ask(guest, f"trace -n '{SPEC}'").splitlines()
        for line in lines:
            ask(guest, line)
        ask(guest, "run vfs")
        table = ask(guest, f"cat {TRACING}/events/synthetic/q1/hist")
        rows = re.findall(r"^\{ comm: (work/\d) +\} hitcount: +9$", table, re.M)
        tap.equal(sorted(rows), sorted(nine), "the lines of -n do the same")
        for line in reversed(lines):
            for said, undone in (("p:", "-:"), ("q", "!q"), ("hist", "!hist")):
                if line.startswith(f"echo '{said}"):
                    undo = line.replace(f"'{said}", f"'{undone}", 1)
                    ask(guest, re.sub(r"(?<='-:trace/)(\w+).*'", r"\1'", undo))
        left = set(ask(guest, f"ls {TRACING}/events").split())
        tap.equal(left & {"trace/", "synthetic/"}, set(), "nothing is left")
        refuses(
            guest,
            ("from vfs_open { count }", 14, "here comes: to PLACE"),
            ("from vfs_* to vfs_open { count }", 5, "a single place each"),
            ("from vfs_open to { count }", 17, "a function is missing"),
            ("from vfs_open to vfs_close by { count }", 30, "thread pid cpu"),
            ("from vfs_open to vfs_close by a= { count }", 30, "by ARG=ARG"),
        )


# Questions, and how many hits each has while `cat /proc/version` runs. The tracer itself
# calls trace_lock() before and after that, and the host reads files.
IN_THE_WINDOW = {
    "trace_lock, vfs_open { count by func }": 1,
    "trace_lock, vfs_open { hist(%di) }": 1,
    "trace_lock, vfs_open { stack }": 1,
    "ret trace_lock, vfs_open { count by func }": 1,
    "from trace_lock to trace_unlock { count }": 0,
    "from trace_lock to vfs_open { count }": 0,
    "from vfs_close to trace_lock { count }": 0,
    "from vfs_open to vfs_close { count }": 1,
    "mark vfs_open { count }": 1,
}
BEHIND_THE_WINDOW = {"graph trace_lock { count }": 0}
ROW = re.compile(r"^ +(\d+)(?:  |$)|\|@* +(\d+)$", re.M)  # of a table, of a distribution


def only_the_command():
    """What is before its first instruction and behind its last is not in an answer."""
    command = "cat /proc/version"
    with shared(smp=1) as guest:
        for question, wanted in (IN_THE_WINDOW | BEHIND_THE_WINDOW).items():
            rows = ROW.findall(ask(guest, f"trace '{question}' -- {command}"))
            tap.equal(sum(int(a or b) for a, b in rows), wanted, question)
        said = ask(guest, f"trace 'trace_lock, vfs_open {{ print %di }}' -- {command}")
        tap.equal(said.count(": q1: "), 1, "print")
        calls = tree(ask(guest, f"trace graph vfs_open -- {command}"))
        tap.equal([depth for _, depth, _ in calls].count(0), 1, "the tree of a graph")
        said = ask(guest, "trace -n 'graph vfs_open { count }'")
        tap.check("functions of the kernel are not among them" in said, "without some")
        said = ask(guest, "trace 'profile 10000 { count by func }' -- sleep 1")
        own = [name for name in counts(said) if re.match("trace_|live_|hist_", name)]
        tap.check(counts(said) and not own, f"a profile: {own}")
    status, out, _ = sonde("trace", "--json", *IN_THE_WINDOW, "--", command)
    tap.equal(status, 0, "from the host")
    rows = [json.loads(line) for line in out.splitlines()]
    tables = {row["table"]: row for row in rows if "table" in row}
    for question, wanted in IN_THE_WINDOW.items():
        table = tables[question]
        at = {name: i for i, name in enumerate(table["columns"])}
        hits = sum(row[at["hits"]] for row in table["rows"])
        tap.equal(hits, wanted, f"from the host: {question}")


def a_profile():
    with Recorded() as recorded:
        guest = recorded.guest
        said = ask(guest, "trace 'profile 10000 { count by cpu }' -- run all")
        tap.equal(len(re.findall(r"^ +\d+  \d$", said, re.M)), CPUS, "of all CPUs")
        said = ask(guest, "trace profile 10000 by stack -- run all")
        tap.check(
            "nmi_" not in said and "thread_entry+" in said, "stacks without the sampler"
        )
        said = ask(guest, "trace profile by thread -- run all")
        tap.check(re.search(r"^ +\d+ +\d+\.\d\d  idle", said, re.M), "by thread")
        refuses(
            guest,
            ("profile 18 { count }", 8, "HZ is a number from 19 to 10000"),
            ("profile 4294967395 { count }", 8, "HZ is a number from 19 to 10000"),
            ("profile by cpu", 11, "here comes one of: stack func thread"),
            ("profile { count by caller }", 19, "a sample knows no caller"),
        )
        tap.equal(ask(guest, f"cat {TRACING}/profile_hz"), "0\n", "it has ended")
        recorded.begin("profile 10000 { stack percent; count by func, regs->ss }")
        ask(guest, "run all")
        result = recorded.capture.finish()
        tap.equal(ask(guest, f"cat {TRACING}/profile_hz"), "0\n", "the host has ended it")
        tables = result.tables[0][1]
        tap.check(all(len(table.rows) > 5 for table in tables), "the host has tables")
        stacks = write_folded.stacks(result)
        tap.check(stacks.total() > 100, f"{stacks.total()} stacks")
        whole = [stack for stack in stacks if stack[-1] in ("memset", "block_free_check")]
        tap.check(
            whole
            and all(stack[0] in OUTERMOST and stack[-2] != stack[-1] for stack in whole),
            "from where a thread begins to the function that was interrupted",
        )
        tap.check(not any("nmi_dispatch" in stack for stack in stacks), "and no further")


def keys_that_are_no_texts():
    """A buffer is a key: a newline in it must not end the row."""
    question = "vfs_read { count by buf }"
    with shared(smp=1) as guest:
        said = ask(guest, f"trace '{question}' -- run vfs").splitlines()[2:]
    status, out, _ = sonde("trace", "--smp", "1", question, "--", "run vfs")
    told = out.splitlines()[3:]
    tap.equal(status, 0, "the host answers, too")
    for rows, form, where in (
        (said, r" +(\d+)  [ -~]*", "of the console"),
        (told, r"[ -~]* +(\d+)  █+", "of the host"),
    ):
        found = [re.fullmatch(form, row) for row in rows]
        odd = [row for row, match in zip(rows, found) if not match]
        tap.equal(odd, [], f"rows {where}")
        hits = sum(int(match[1]) for match in found if match)
        tap.equal(hits, 720, f"hits {where}")


def numbers_that_are_keys():
    """They are as `print` shows them: u64 in base 10, x64 and pointers in base 16."""
    question = r"vfs_read with x=\-1:u64,y=\-1:x64 { count by x,y; count by file }"
    with shared(smp=1) as guest:
        said = ask(guest, f"trace '{question}' -- run vfs")
    status, out, _ = sonde("trace", "--smp", "1", question, "--", "run vfs")
    for text, where in ((said, "on the console"), (out, "from the host")):
        both = re.findall(rf"^ *(?:\d+  )?{2**64 - 1} +{2**64 - 1:#x}\b", text, re.M)
        tap.equal((status, len(both)), (0, 1), f"numbers {where}")
        files = re.findall(r"^ *(?:\d+  )?0xf{4,}[0-9a-f]+(?: +\d+  █+)?$", text, re.M)
        tap.check(len(files) > 1, f"pointers {where}: {len(files)}")


def tree(said):
    """Return the calls of `trace graph` as (thread, depth, name)."""
    calls, thread = [], None
    for line in said.splitlines():
        call = re.fullmatch(r" *\d+ +\d+  ( *)(\S+)", line)
        if call:
            calls.append((thread, len(call[1]) // 2, call[2]))
        thread = line if re.fullmatch(r"\S+-\d+", line) else thread
    return calls


def each_twin_is_answered():
    """Each row of the table: a line of bpftrace or DTrace, and what answers it."""
    with open(os.path.join(ROOT, "docs/trace.md"), encoding="utf-8") as file:
        table = file.read().partition("| bpftrace, DTrace | here |\n")[2]
    rows = re.findall(r"^\| `.*` \| `(trace .*)` \|$", table.partition("\n\n")[0], re.M)
    tap.check(len(rows) >= 25, f"{len(rows)} lines of bpftrace and DTrace")
    with shared(smp=1) as guest:
        for twin in rows:
            load = "run all" if "profile" in twin else "run vfs"
            reply = guest.machine.request(f"{twin} -- {load}", 60, may_fail=True)
            answer = re.sub(r"^\w+: checksum .*\n", "", reply.text, flags=re.M)
            tap.check(
                not reply.errno and re.search(r"\d", answer) and "nothing" not in answer,
                twin,
            )


NO_TWIN = (
    """trace 'vfs_read { printf("%d", count) }'""",
    "trace 'vfs_read { @x = count }'",
    "trace 'BEGIN { count }'",
    "trace 'interval 1 { count }'",
    "trace 'vfs_read { speculate }'",
    "trace 'vfs_read { signal(9) }'",
    "trace 'hardware:cache-misses:100 { count }'",
    f"echo 'p /bin/sh:0x10' >> {TRACING}/uprobe_events",
    f"echo 'e:x sched/sched_switch' >> {TRACING}/dynamic_events",
    f"echo 'f:x vfs_read' >> {TRACING}/dynamic_events",
    f"echo irqsoff > {TRACING}/current_tracer",
    f"mkdir {TRACING}/instances/x",
)


def what_has_no_twin_is_refused():
    with shared(smp=1) as guest:
        for line in NO_TWIN:
            tap.check(guest.machine.request(line, 30, may_fail=True).errno, line)


if __name__ == "__main__":
    tap.run(
        the_time_between_two_places,
        each_twin_is_answered,
        what_has_no_twin_is_refused,
        several_places_and_the_top,
        what_the_tracer_refuses,
        functions_of_a_module,
        a_module_goes_meanwhile,
        values_that_cannot_be_read,
        several_answers,
        large_numbers_and_full_tables,
        filters_of_questions,
        a_line_that_made_a_histogram_removes_it,
        a_table_becomes_full,
        a_table_of_two_events,
        only_the_command,
        a_profile,
        keys_that_are_no_texts,
        numbers_that_are_keys,
        alone_and_together,
        the_tracers_own_hits_are_misses,
    )
