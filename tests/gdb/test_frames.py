"""test_frames.py - checks, with QEMU's stub, that gdb's backtraces lead through probes.

The test first asks for the frames without probes. Then they must be the same with probes of
all kinds: at a breakpoint in a handler, in the probed function, and at each instruction on
the way from the function's entry through pads, cells and detours back to its caller.
"""

import re
import time

import under
from session import LIMIT
from under import Under, frames

import tap

HANDLER, TAIL = "count_post", [
    "run_words",
    "serve_lines",
    "shell_thread",
    "thread_start",
    "thread_entry",
]
READ = "cat /proc/version"
BY_INT3 = "echo off > /proc/sys/debug/kprobes-jump"
BY_REGION = "echo region > /proc/sys/debug/kprobes-jump"
TRACING = "/sys/kernel/tracing"
BY_JUMP = "echo pun > /proc/sys/debug/kprobes-jump"


def boundaries(gdb, name):
    """Return the offsets of a function's first instructions, without the entry. In the
    functions of this test a CPU executes these instructions one after the other.
    """
    text = gdb.ask(f"x/12i {name}")
    return [int(offset) for offset in re.findall(rf"<{name}\+(\d+)>:", text)]


def callers_of(text, name):
    """Return the functions of a backtrace from @name to the outermost one."""
    found = frames(text)
    return found[found.index(name) :] if name in found else found


def handlers(u):
    """gdb stops in a handler: backtrace and place are right. The probes are breakpoints,
    jumps and regions, at the function's entry, at a push (which the engine emulates after
    an int3) and in the middle.
    """
    u.run_to("break vfs_read", READ)
    want = callers_of(u.gdb.ask("bt"), "vfs_read")
    tap.check(set(TAIL) < set(want), "without probes the callers are known")
    u.go_on()
    push, _, middle = boundaries(u.gdb, "vfs_read")[:3]
    for how, way in ((BY_INT3, "int3"), (BY_JUMP, "jump"), (BY_REGION, "region")):
        u.console(how)
        for offset in (0, push, middle):
            place = f"vfs_read+{offset}" if offset else "vfs_read"
            u.console(f"probe add --post {place}")
            u.run_to(f"break {HANDLER}", READ)
            text = u.gdb.ask("bt")
            tap.equal(
                callers_of(text, "vfs_read"),
                want,
                f"{way}, {place}: below the handler are the program's callers",
            )
            tap.check(
                "symtab" not in text and "?? ()" not in text,
                f"{way}, {place}: gdb has nothing to complain of",
            )
            if tap.failed:
                tap.note(text)
            check_place(u, text, offset, f"{way}, {place}")
            u.go_on()
            u.console("probe del all")
    u.console(BY_JUMP)


def check_place(u, text, offset, way):
    """Check that the frame of the probed function is right behind the probed instruction,
    because a post-handler is running.
    """
    number = re.search(r"^#(\d+) .*vfs_read", text, re.M)
    if not tap.check(number, f"{way}: the function is there"):
        return
    numbers = [int(n) for n in re.findall(r"^#(\d+) .*?vfs_read \(", text, re.M)]
    if not numbers:
        return
    at = u.gdb.ask(f"frame {numbers[0]}", "p (long)$pc - (long)vfs_read", "p *file")
    places = boundaries(u.gdb, "vfs_read")
    behind = places[places.index(offset) + 1] if offset else places[0]
    tap.equal(
        re.findall(r"^\$\d+ = (\d+)$", at, re.M)[:1],
        [str(behind)],
        f"{way}: it is right behind the instruction that the post-handler saw",
    )
    tap.check("node = 0x" in at, f"{way}: its arguments are readable")


def returns(u):
    """A return probe has exchanged return addresses: bt, up and finish work."""
    u.run_to("break vfs_node_find", READ)
    want = frames(u.gdb.ask("bt"))
    u.go_on()
    u.console("probe ret vfs_open", "probe ret vfs_node_find", "probe ret vfs_node_find")
    u.run_to("break vfs_node_find", READ)
    tap.equal(
        frames(u.gdb.ask("bt")), want, "return: the callers are those without probes"
    )
    text = u.gdb.ask("up", "up", "finish")
    caller = want[want.index("vfs_open") + 1]
    tap.check(
        re.search(rf"^(0x[0-9a-f]+ in )?{caller} \(", text, re.M)
        and "Value returned" in text,
        "return: finish leads to the real caller",
    )
    if tap.failed:
        tap.note(text)
    u.go_on()
    u.console("probe del all")


def entries_by_int3(u):
    """In a pre-handler the program is at the probed instruction, though the ip in the
    image is one byte behind its start.
    """
    u.console(BY_INT3, "probe ret vfs_open")
    u.run_to("break kretprobe_entry", READ)
    text = u.gdb.ask("bt", "disassemble vfs_open,+1")
    number = re.search(r"^#(\d+) .*vfs_open \(", text, re.M)
    tap.check(number, "int3: a pre-handler has the probed function below it")
    at = u.gdb.ask(
        f"frame {number[1]}", "p (long)$pc - (long)vfs_open", "up", "info frame"
    )
    tap.check("= 0\n" in at, "int3: it is at its first instruction")
    tap.check(
        "0x0f" not in text and "nopl" in text, "int3: which is shown as the original"
    )
    text = u.gdb.ask(
        "frame function kretprobe_entry",
        "p $there = regs->ip",
        "set var regs->ip = (unsigned long)sort_compare",
        "bt",
        "set var regs->ip = $there",
    )
    tap.check(
        re.search(r"<int3> \(\)\n#\d+ .*sort_compare \(", text),
        "int3: where a handler sends the program, it is",
    )
    if tap.failed:
        tap.note(text)
    u.go_on()
    u.console("probe del all", BY_JUMP)


def step_through(u, setup, what, place="vfs_open", least=100, count=150):
    if setup:
        u.console(*setup)
    u.run_to(f"break *({place})", READ)
    text = u.gdb.ask("delete", f"steps {max(count, 300) if tap.LONG else count}")
    counted = re.search(r"^steps (\d+) wrong (\d+)", text, re.M)
    tap.check(
        counted and int(counted[1]) > least and counted[2] == "0",
        f"{what}: the callers are there at each single instruction",
    )
    if not counted or counted[2] != "0":
        tap.note(text)
    u.go_on()
    u.console("probe del all", BY_JUMP)
    return text


def single_steps(u):
    places = boundaries(u.gdb, "vfs_open")
    ways = [
        (["probe ret vfs_open"], "return"),
        ([f"probe add --post vfs_open+{places[2]}"], "jump with handlers, middle"),
    ]
    if tap.LONG:
        for how, way in ((BY_INT3, "int3"), (BY_JUMP, "jump"), (BY_REGION, "region")):
            for place in ["vfs_open"] + [f"vfs_open+{p}" for p in places[:4]]:
                ways += [
                    ([how, f"probe add {place}"], f"{way}, {place}"),
                    ([how, f"probe add --post {place}"], f"{way}, post, {place}"),
                ]
            ways.append(([how, "probe ret vfs_open"], f"{way}, return"))
    else:
        ways += [
            ([f"probe add vfs_open+{p}" for p in places[:4]], "jumps that count"),
            ([BY_INT3, f"probe add --post vfs_open+{places[1]}"], "int3, middle"),
        ]
    for setup, what in ways:
        step_through(u, setup, what)


def markers(u):
    """gdb stops in the function that a marker calls, without a probe and with a probe at
    the marker's `mov`. Then gdb steps from the marker to the function's caller.
    """
    text = u.gdb.ask("disassemble vfs_read")
    place = "vfs_read+" + re.search(r"<\+(\d+)>:\s+mov +\$0x0,%al", text)[1]
    u.run_to("break vfs_read", READ)
    want = callers_of(u.gdb.ask("bt"), "vfs_read")
    u.go_on()
    for setup, way in (
        ((), "no probe"),
        ((BY_INT3,), "int3"),
        ((BY_JUMP,), "jump"),
        ((BY_REGION,), "region"),
    ):
        probe = (f"probe add --post {place}",) if setup else ()
        u.console(*setup, *probe, "marker on vfs_read")
        u.run_to("break tally_call", READ)
        text = u.gdb.ask("bt", "frame function vfs_read", "p *file")
        tap.equal(
            callers_of(text, "vfs_read")[: len(want)],
            want,
            f"marker, {way}: below its function are the program's callers",
        )
        tap.check(
            "symtab" not in text and "?? ()" not in text and "node = 0x" in text,
            f"marker, {way}: and its arguments",
        )
        if tap.failed:
            tap.note(text)
        u.go_on()
        if tap.LONG or way == "jump":  # a step is slow
            step_through(u, (), f"marker, {way}", place, 20)
        u.console("probe del all", "marker off vfs_read", BY_JUMP)


def stored_registers(u):
    """The detour of an event that stores registers is longer than its pattern; backtraces
    in this longer part are right, too.
    """
    u.console(
        f"echo 'p:stored vfs_open a=%di b=%si c=%dx' >> {TRACING}/kprobe_events",
        f"echo 1 > {TRACING}/events/kprobes/stored/enable",
    )
    deadline = time.monotonic() + LIMIT
    while "with code of its own" not in u.gdb.ask("explain vfs_open"):
        if time.monotonic() > deadline:
            raise TimeoutError(u.gdb.ask("explain vfs_open"))
        u.console("sleep 1")
    text = step_through(u, (), "jump that stores registers", count=900)
    behind = re.search(r"^behind (\d+)", text, re.M)
    tap.check(
        behind and int(behind[1]) > 5, "of which some are behind its pattern's length"
    )
    u.console(
        f"echo 0 > {TRACING}/events/kprobes/stored/enable",
        f"echo '-:stored' >> {TRACING}/kprobe_events",
    )


def lines(u):
    """`next`, `step` and `until` over a place with a jump end where they do without it."""
    places = boundaries(u.gdb, "vfs_read")
    far = u.gdb.ask("x/40i vfs_read")
    called = re.search(r"<vfs_read\+(\d+)>:\s+call +\S+ <memcpy>", far)[1]
    want = {}
    for place in (None, 0, places[0], places[4], called):
        if place is not None:
            u.console(f"probe add vfs_read+{place}")
            tap.check(" jump " in u.gdb.ask("probes"), f"a jump at vfs_read+{place}")
        for command in ("next", "step", "until"):
            u.run_to("break vfs_read", READ)
            text = u.gdb.ask("delete", f"lines {command}", "info line")
            u.go_on()
            found = re.search("^lines (.*)", text, re.M)
            found = found[1] if found else text
            if place is None:
                want[command] = found
                tap.check(
                    found.count("vfs_read:") > 3, f"{command} goes from line to line"
                )
            else:
                tap.equal(found, want[command], f"{command} over vfs_read+{place}")
        u.console("probe del all")
    line = re.findall(r"vfs_read:(\d+)", want["next"])[2]
    post = f"probe add --post vfs_read+{places[0]}"
    for setup in ([post], [BY_INT3, post], ["probe ret vfs_read"]):
        u.console(*setup)
        u.run_to("break vfs_read", READ)
        text = u.gdb.ask("delete", f"advance vfs.c:{line}")
        tap.check(re.search(f"^{line}\t", text, re.M), f"advance over {setup}")
        u.go_on()
        u.console("probe del all", BY_JUMP)


def lines_on_one_cpu(_u):
    with Under(smp=1) as one:
        one.gdb.ask("source tests/gdb/steps.py")
        lines(one)


TESTS = (handlers, entries_by_int3, returns, single_steps, stored_registers, markers, lines,
         lines_on_one_cpu)  # fmt: skip


with Under() as guest:
    guest.gdb.ask("source tests/gdb/steps.py")
    under.run_on(guest, *TESTS)
