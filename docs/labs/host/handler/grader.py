"""grader.py - grades lab 2: compares what the student's handler has counted with what the
handler of the solution has counted.
"""

import re

from docs.labs.host.in_guest import GuestWorkshop

NUMBER = r"(\d{1,20})"  # no longer one: a student's module may print anything
CALLER = re.compile(rf"(\w+): {NUMBER} calls, {NUMBER} bytes")
ALL = re.compile(rf"all: {NUMBER} calls, {NUMBER} bytes, {NUMBER} missed")
FORGOTTEN = re.compile(r"handler: its probe at .* is taken out")
OFF = re.compile(r"probe at .* is off: its handler (?:faulted|was about to sleep).*")
CALLS = re.compile(r"calls (\d+) of both")
MOVED = re.compile(r"bytes (\d+)\n")
BLOCKS = re.compile(r"^HeapBlocks: +(\d+)", re.M)

WORK = {
    "arguments": "readers {seed}",
    "callers": "readers {seed}",
    "cpus": "readers {seed} spread",
    "many": "storm {seed}",
    "nmi": "storm {seed} nmi",
    "leave": "readers {seed}",
}
MORE = {"arguments": "wide", "cpus": "new"}  # then `run storm SEED` with this word


class Workshop(GuestWorkshop):
    SOURCE = "handler.c"
    MODULES = ("docs/labs/handler/start/readers.c", "docs/labs/host/handler/storm.c")

    def facts(self, ask, line, seed):
        done = ask("run " + WORK[line].format(seed=seed))
        if line in MORE:
            ask(f"run storm {seed} {MORE[line]}")
        if line == "callers":  # what it prints is what it has seen so far, also next time
            ask("run handler", is_shown=False)
            ask("run " + WORK[line].format(seed=seed), is_shown=False)
        said = ask("run handler").text
        callers = sorted(
            (name, int(calls), int(size))
            for name, calls, size in CALLER.findall(said)
            if name != "all"
        )
        whole = ALL.search(said)
        if not whole:
            yield "no line 'all: N calls, N bytes, N missed'"
            return
        calls, size, missed = map(int, whole.groups())
        if line == "arguments":
            yield f"all: {calls} calls, {size} bytes, {missed} missed"
        elif line == "nmi":
            yield from after_nmis(done.text, callers, calls, missed)
            done = ask(f"run storm {seed} apart")
            yield from after_both(done.text, ask("run handler").text, missed)
        elif line == "leave":
            yield from what_is_left(ask, f"run {WORK[line].format(seed=seed)}")
        else:
            for seen in callers:
                yield "%s: %d calls, %d bytes" % seen
            yield f"all: {calls} calls, {size} bytes, {missed} missed"
        ask("module del handler", may_fail=True)

    def warnings(self, ask):
        """Return the lines of the log about handlers that the engine has switched off
        because they faulted.
        """
        return OFF.findall(ask("dmesg", is_shown=False).text)


def after_nmis(done, callers, calls, missed):
    happened = int(CALLS.search(done).group(1))
    yield f"calls that are neither counted nor missed: {happened - calls - missed}"
    yield f"calls that no caller's line has: {calls - sum(seen[1] for seen in callers)}"
    yield f"callers: {', '.join(sorted({seen[0] for seen in callers}))}"
    yield f"more are counted than missed: {calls > missed}"


def after_both(done, said, missed):
    """No probe was hit while its handler ran: so none of these hits is missed."""
    seen = [row for row in CALLER.findall(said) if row[0] == "in_both"]
    calls, size = map(int, seen[0][1:]) if seen else (0, 0)
    whole = ALL.search(said)
    yield f"calls by in_both() that are not counted: {int(CALLS.search(done)[1]) - calls}"
    yield f"bytes that are not counted: {int(MOVED.search(done)[1]) - size}"
    yield f"hits that are missed: {int(whole[3]) - missed if whole else 'not said'}"


def what_is_left(ask, work):
    """Run `module del`. If the module has left probes, the kernel removes them and writes
    that to the log. Then load, use and remove the module again: that may not take memory.
    """
    before = len(FORGOTTEN.findall(ask("dmesg").text))
    yield "module del: " + ask("module del handler", may_fail=True).name
    count = len(FORGOTTEN.findall(ask("dmesg").text)) - before
    yield f"probes that were forgotten: {count}"
    blocks = heap_blocks(ask)
    ask.load(ask.loaded)
    ask(work)
    ask("run handler")
    ask("module del handler", may_fail=True)
    yield f"blocks of memory that are left: {heap_blocks(ask) - blocks}"


def heap_blocks(ask):
    return int(BLOCKS.search(ask("cat /proc/meminfo").text).group(1))
