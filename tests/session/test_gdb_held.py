"""test_gdb_held.py - the context `held` (docs/architecture.md): all other CPUs stand, and
one CPU is in the kernel's own stub for gdb. What the stub calls there must not wait for
other CPUs or for threads, whatever the user has switched on.
"""

import contextlib
import json
import re
import time

import rows
import tap
from probes.gdb.host.rsp import Stub, fields, output
from session import LIMIT, stat

READS = "cat /proc/version"  # calls vfs_read
POKE_ALIAS = 0xFFFFC20000000000 >> 40  # kernel/memmap.h: here a CPU writes text
RDI, RSP = 5, 7  # gdb's numbers


class Held:
    """A kernel that stands when a test begins and when it ends."""

    def __init__(self, stub):
        self.stub = stub
        stub.guest.wait_prompt(LIMIT)
        self.vfs_read = stub.symbol("vfs_read")
        self.client = stub.connect()
        self.client.greet()
        self.client.without_acks()

    def console(self, *commands):
        """Let the kernel run for some commands. Return the output of the last one."""
        self.client.resume()
        replies = [self.stub.ask_console(command) for command in commands]
        self.client.interrupt()
        for command, reply in zip(commands, replies):
            if reply.errno:
                raise AssertionError(f"{command}: {reply.name}: {reply.text}")
        return replies[-1].text

    def breakpoint_stops(self, what, place=None, command=READS):
        """Set a breakpoint while all CPUs stand, come to it, and remove it."""
        place = place or self.vfs_read
        tap.equal(self.client.ask(f"Z0,{place:x},1"), "OK", f"{what}: Z0")
        self.client.resume()
        calling = self.stub.in_background(command)
        where = fields(self.stub_stops(calling))
        tap.check("swbreak" in where, f"{what}: a CPU stops there")
        self.client.ask(f"z0,{place:x},1")
        self.client.resume()
        self.stub.disturbed(self.client, calling)
        while stat(self.stub.guest)["probes"]:
            time.sleep(0.05)
        self.client.interrupt()

    def stub_stops(self, calling):
        """Return the next stop, or no field if a command ends without one."""
        while calling.is_alive():
            with contextlib.suppress(TimeoutError):
                return self.client.packet(0.1)
        return ""


def explain_needs_no_other_cpu(held):
    """To explain a place makes copies of its instruction, on new pages. While the kernel
    stands, no hit can be measured: only that line is another one.
    """
    held.client.stand_quietly()
    said, answer = held.client.monitor("probe explain -v vfs_read")
    running = held.console("probe explain -v vfs_read")
    differ = set(facts_of(said)) ^ set(facts_of(running))
    tap.equal(
        (answer, {line.split()[0] for line in differ}),
        ("OK", {"cost"}),
        "monitor probe explain says what probe explain says",
    )
    tap.check("copy       detour" in said, "it has made the copies")


def facts_of(explained):
    """Return the lines of `probe explain` but the bytes of copies: they have the address of
    a probe that is only made for the answer.
    """
    return [line for line in explained.splitlines() if not re.match(r" +0x\w+ ", line)]


def each_engine_writes_breakpoints(held):
    """The user may also want text to be changed with the machine stopped, and it is."""
    first, *others = rows.engines()
    for name in (*others, first):
        held.console(f"echo {name} > /proc/sys/debug/text-poke")
        held.breakpoint_stops(f"text-poke is {name}")


def a_film_does_not_wait(held):
    """A film shows the stores, but asks no CPU where it is. The time of a stop does not
    count, so the events have the order in which they came.
    """
    held.console("film start vfs_read 1")
    time.sleep(1)  # longer than the breakpoint will be there
    held.breakpoint_stops("a film is made")
    film = held.console("film stop", "cat /tmp/film").splitlines()[1:]
    stores = [event for event in map(json.loads, film) if event["ev"] == "store"]
    tap.equal(
        (stores[0]["bytes"], stores[-1]["bytes"]),
        ("cc", "0f"),
        "it has the stores, in their order",
    )


def a_command_waits_for_a_mutex(held):
    """A thread stands where it is about to release a mutex, which a command may need."""
    held.client.resume()
    place = held.stub.symbol("mutex_unlock")
    held.client.interrupt()
    tap.equal(held.client.ask(f"Z0,{place:x},1"), "OK", "a breakpoint at mutex_unlock")
    held.client.resume()
    reading = held.stub.in_background("cat /proc/modules")
    tap.check("swbreak" in fields(held.stub_stops(reading)), "a thread holds a mutex")
    said, answer = held.client.monitor("sym vfs_read")
    tap.equal(
        (said, answer),
        (
            "monitor: a thread that stands holds a mutex; the command runs when the kernel"
            " does\n",
            "OK",
        ),
        "a command waits for it",
    )
    held.client.ask(f"z0,{place:x},1")
    held.client.resume()
    output(held.client, lambda text: "vfs_read" in text)
    reading.join(LIMIT)
    held.client.interrupt()


def a_command_waits_at_each_instruction(held):
    """A thread goes through mutex_lock() and mutex_unlock() step by step. Where it owns the
    mutex, a command waits, whatever the two have still to note.
    """
    client = held.client
    for function in ("mutex_lock", "mutex_unlock"):
        steps, wrong, kept = 0, [], 0
        client.resume()
        place = held.stub.symbol(function)
        client.interrupt()
        client.ask(f"Z0,{place:x},1")
        client.resume()
        reading = held.stub.in_background("cat /proc/modules")
        thread = fields(held.stub_stops(reading))["thread"]
        client.ask(f"z0,{place:x},1")
        mutex, top = register(client, RDI), register(client, RSP)
        while register(client, RSP) <= top:
            said, _ = client.monitor("sym vfs_read")
            kept += "runs when the kernel does" in said
            if any(client.read(mutex, 8)) and "monitor: " not in said:
                wrong.append(f"step {steps}: {said}")
            client.resume(f"s:{thread}")
            client.packet()
            steps += 1
        tap.equal(wrong, [], f"no command runs where {function} has an owner")
        tap.check(kept and steps > 20, f"{steps} instructions of {function}")
        client.resume()
        output(client, lambda text, kept=kept: text.count("vfs_read") >= kept)
        reading.join(LIMIT)
        client.interrupt()


def register(client, number):
    return int.from_bytes(bytes.fromhex(client.ask(f"p{number:x}")), "little")


def text_is_written_inside_a_write(held):
    """A CPU stands in the middle of a write of text: in memcpy(), with its alias open. The
    debugger writes other text by the same alias.
    """
    client = held.client
    client.resume()
    memcpy, other = held.stub.symbol("memcpy"), held.stub.symbol("film_fixture") + 2
    client.interrupt()
    before = client.ask(f"m{other:x},2")
    code = f"26{RDI:04x}" + "2228" + "0b" + f"24{POKE_ALIAS:08x}" + "13" + "27"
    tap.equal(
        client.ask(f"Z0,{memcpy:x},1;X{len(code) // 2:x},{code}"),
        "OK",
        "a breakpoint where rdi is in the alias",
    )
    client.resume()
    adding = held.stub.in_background("probe add vfs_read")
    tap.check(
        "swbreak" in fields(held.stub_stops(adding)), "a CPU stops in a write of text"
    )
    for text in ("9090", before):
        client.ask(f"M{other:x},2:{text}")
        tap.equal(client.ask(f"m{other:x},2"), text, f"{text} is written meanwhile")
    client.ask(f"z0,{memcpy:x},1")
    client.resume()
    held.stub.disturbed(client, adding)
    client.interrupt()
    tap.check(
        "calls 720" in held.console("run vfs", "probe del all", "run vfs"),
        "the write goes on",
    )


def a_cpu_that_runs_alone_can_be_stopped(held):
    """The CPU that has talked to the debugger runs alone: another one hears Ctrl-C."""
    client = held.client
    client.ask(f"Z0,{held.vfs_read:x},1")
    client.resume()
    reading = held.stub.in_background(READS)
    where = fields(client.packet())
    client.ask(f"z0,{held.vfs_read:x},1")
    client.resume("c:" + where["thread"])
    time.sleep(0.1)
    tap.check(client.interrupt().startswith("T02"), "Ctrl-C stops a CPU that runs alone")
    client.resume()
    reading.join()
    client.interrupt()


def a_command_in_an_nmi_meets_a_breakpoint(held):
    """The CPU stands in an NMI, where no IRET may set RF, and a command comes to a
    breakpoint of a debug register.
    """
    client = held.client
    in_nmi, allocates = (
        int(held.console(f"sym {name}").split()[0], 16)
        for name in ("nmi_dispatch", "kmalloc")
    )
    held.console("echo 100 > /sys/kernel/tracing/profile_hz")
    for _ in range(20):  # the sample may come where a CPU holds a lock
        client.ask(f"Z1,{allocates:x},1")
        client.ask(f"Z0,{in_nmi:x},1")
        client.resume()
        where = fields(client.stopped()[1])
        client.ask(f"z0,{in_nmi:x},1")
        said = client.monitor("ps")[0]
        client.ask(f"z1,{allocates:x},1")
        if "runs when the kernel does" in said:
            client.resume()
            output(client, lambda text: "PREEMPTED" in text)
            client.interrupted()
        elif "swbreak" in where:
            break
    tap.check("swbreak" in where, "a sample stops")
    tap.check("PREEMPTED" in said, "a command ends")
    held.console("echo 0 > /sys/kernel/tracing/profile_hz")


def a_breakpoint_that_is_accepted_stops(held):
    """Probes are switched off; or the module has gone, and comes back, while a breakpoint
    is there.
    """
    held.console("echo 0 > /sys/kernel/debug/kprobes/enabled")
    held.breakpoint_stops("kprobes are switched off")
    held.console(
        "echo 1 > /sys/kernel/debug/kprobes/enabled", "module load /boot/marks.o"
    )
    held.client.resume()
    place = held.stub.symbol("marks_run")
    held.client.interrupt()
    tap.equal(held.client.ask(f"Z0,{place:x},1"), "OK", "a breakpoint in a module")
    again = held.console("module del marks", "module load /boot/marks.o", "sym marks_run")
    tap.equal(int(again.split()[0], 16), place, "the module is at the same place again")
    held.client.ask(f"z0,{place:x},1")
    held.breakpoint_stops("in the module", place, "run marks")
    held.console("module del marks")


def all_of_it():
    with Stub(smp=2) as stub:
        held = Held(stub)

        def on(test):
            def run():
                test(held)

            run.__name__ = test.__name__
            return run

        tap.run(
            *[
                on(test)
                for test in (
                    explain_needs_no_other_cpu,
                    each_engine_writes_breakpoints,
                    a_film_does_not_wait,
                    a_command_waits_for_a_mutex,
                    a_command_waits_at_each_instruction,
                    text_is_written_inside_a_write,
                    a_cpu_that_runs_alone_can_be_stopped,
                    a_command_in_an_nmi_meets_a_breakpoint,
                    a_breakpoint_that_is_accepted_stops,
                )
            ]
        )


all_of_it()
