"""test_questions_all.py - questions about all functions: the calls below one, long tables,
tables while the command runs. session/questions has shorter ones.
"""

import collections
import re
import time

import tap
from sonde.guest import PROMPT
from session import LIMIT, ask, shared, typed
from test_questions import TRACING, counts, refuses, tree


MORE = re.compile(r"^(\d+) more rows; `top N`, or > FILE, has them\r?$", re.M)


def a_long_table():
    with shared(smp=1) as guest:

        def rows(words):
            said = "\n".join(typed(guest, f"trace {words}"))
            shown = re.findall(r"^ +\d+  \S+$", said, re.M)
            return len(shown), [int(n) for n in MORE.findall(said)]

        shown, more = rows("count '*' -- run vfs")
        tap.check(shown == 100 and more[0] > 0, f"a terminal has the first: {more} more")
        shown, none = rows("'* { count by func top 120 }' -- run vfs")
        tap.equal((shown, none), (120, []), "or as many as are asked for")
        ask(guest, "trace count '*' -- run vfs > /tmp/table")
        said = ask(guest, "cat /tmp/table")
        whole = counts(said)
        tap.check(100 < len(whole) and not MORE.search(said), "a file has all")


PAGE = b"\x1b[H\x1b[J"  # what begins a page on a terminal


def while_the_command_runs():
    with shared(smp=2) as guest:
        guest.console.send("trace -w 'sched_tick { count by func }'\r")
        grown = [
            int(guest.console.expect(b"  sched_tick", 60).split()[-1]) for _ in range(3)
        ]
        tap.check(0 < grown[0] and grown == sorted(grown), f"-w: {grown}")
        guest.console.send("\x03")
        said = guest.console.expect(b"\n" + PROMPT, 60) or b""
        at_end = said.partition(b"^C")[2]
        tap.check(b"  sched_tick" in at_end, "Ctrl-C: it prints what it has counted")
        plain = counts(ask(guest, "trace count 'work_*' -- run vfs"))
        said = ask(guest, "trace -w count 'work_*' -- run vfs")
        tap.equal(counts(said), plain, "-w counts the same")
        tap.check("checksum" in said, "what the command prints is printed")
        said = ask(guest, "trace -w 'seq_printf { count }' -- sleep 2")
        tap.check("nothing was hit" in said, "what prints the table is not in it")
        guest.console.send("trace -w '* { count by func }'\r")
        pages = [guest.console.expect(PAGE, 60) for _ in range(3)][1:]
        rows = [page.count(b"\n") for page in pages]
        tap.check(all(10 < n <= 24 for n in rows), f"pages, none of them scrolls: {rows}")
        guest.console.send("\x03")
        guest.console.expect(b"\n" + PROMPT, 60)
        guest.console.send("trace -w 'vfs_* { count }' -- sleep 100\r")
        guest.console.expect(PAGE, 60)
        guest.console.send("\x03")
        said = guest.console.expect(b"\n" + PROMPT, 60) or b""
        at_end = said.partition(b"^C")[2]
        tap.check(b"COUNT" in at_end or b"nothing" in at_end, "and ends the command")
        guest.console.send("trace 'sched_tick { count }' -- sleep 100 | wc -l\r")
        time.sleep(1)
        guest.console.send("\x03")
        said = guest.console.expect(b"\n" + PROMPT, 60) or b""
        tap.check(re.search(rb"\^C\s+[2-9]\r", said), f"into a pipe, too: {said}")


def the_calls_below_a_function():
    with shared(smp=1) as guest:
        for place in ("vfs_read", "vfs_node_child"):  # which vfs_read does not call
            line = f"r:d_{place} {place} d=$depth(vfs_read):s32"
            ask(guest, f"echo '{line}' >> {TRACING}/kprobe_events")
            ask(guest, f"echo 1 > {TRACING}/events/kprobes/d_{place}/enable")
        ask(guest, "run vfs")
        said = ask(guest, f"cat {TRACING}/kprobe_profile")
        hits = dict(re.findall(r"^ +d_(\w+) +(\d+) +0$", said, re.M))
        tap.equal(hits.get("vfs_read"), "720", f"calls of the function of $depth: {hits}")
        for place in ("vfs_read", "vfs_node_child"):
            ask(guest, f"echo 0 > {TRACING}/events/kprobes/d_{place}/enable")
        trace = ask(guest, f"cat {TRACING}/trace")
        tap.check("d_vfs_read: " in trace, "they are recorded")
        tap.check("d_vfs_node_child: " not in trace, "calls outside of it are no hits")
        ask(guest, f"echo > {TRACING}/trace")
        ask(guest, f"echo > {TRACING}/kprobe_events")
        asked = ("graph vfs_read", "graph vfs_read { count }")
        shown, table = (
            guest.machine.request(f"trace '{one}' -- run vfs", 2 * LIMIT).text
            for one in asked
        )
        calls, wanted = tree(shown), counts(table)
        names = collections.Counter(name for _, _, name in calls)
        for name, n in (("vfs_read", 720), ("memcpy", 656)):
            tap.equal((names[name], wanted[name]), (n, n), f"{name}: both count {n}")
        tap.check(all(d == 0 for _, d, name in calls if name == "vfs_read"), "outermost")
        direct = [d for _, d, name in calls if name == "memcpy"]
        tap.equal(set(direct), {1}, "vfs_read calls memcpy itself")
        tap.equal(len({thread for thread, _, _ in calls}), 8, "in each of its threads")
        calls = tree(ask(guest, "trace 'graph vfs_open' -- cat /proc/version"))
        tap.equal(calls[0][1:], (0, "vfs_open"), "the outermost call is the first")
        found = next(
            i for i, call in enumerate(calls) if call[2] == "vfs_node_find_parent"
        )
        depth = calls[found][1]
        above = [name for _, d, name in calls[:found] if d == depth - 1]
        tap.equal((depth, above[-1]), (2, "vfs_node_find"), "its caller is above it")
        asked = "trace 'graph vfs_open if depth == 1 { count }' -- cat /proc/version"
        only = counts(ask(guest, asked))
        wanted = collections.Counter(n for _, d, n in calls if d == 1)
        tap.equal(only["vfs_node_find"], wanted["vfs_node_find"], "a depth can be asked")
        tap.equal("strlen" in only, "strlen" in wanted, "and no other one is in it")
        ask(guest, "module load /boot/guarded.o")
        calls = tree(ask(guest, "trace 'graph swap' -- run guarded"))
        tap.equal(calls[0][1:], (0, "swap"), "a function of a module, by its own name")
        refuses(
            guest,
            ("graph vfs_*", 6, "graph takes the name of one function"),
            (
                "graph guarded:swap",
                6,
                "graph takes the name of one function, without its",
            ),
            ("graph vfs_open x", 15, "here comes one of: with if {"),
            ("graph vfs_open { print }", 17, "a graph without { } prints its calls"),
        )


tap.run(
    the_calls_below_a_function,
    a_long_table,
    while_the_command_runs,
)
