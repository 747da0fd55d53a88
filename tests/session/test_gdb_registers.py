"""test_gdb_registers.py - hardware breakpoints, watchpoints and steps of the kernel's own
stub that are removed or cancelled while a CPU is on its way to report them; and those that
would hit themselves.
"""

import re
import threading
import time

import tap
from session import LIMIT
from sonde.guest import ELF
from sonde.hang import Symbols

from probes.gdb.host.rsp import Stub, fields

ROUNDS = 1000 if tap.LONG else 120
HOT = "run vfs"  # calls vfs_read and vfs_open often, on all CPUs
READS = "cat /proc/version"
IF, TF = 1 << 9, 1 << 8
IP, RDI, RSI = 16, 5, 4
FLAGS_OF_IMAGE = 19 * 8  # struct pt_regs
FAULT_HANDLER = 56  # struct kprobe
EXECUTE, ACCESS = 1, 4
REFUSED = "E.the program or the engine steps here: set a breakpoint and continue"


class Debugged:
    """A kernel with an attached debugger; the kernel is stopped after each method."""

    def __init__(self, stub):
        self.stub = stub
        self.attach()

    def attach(self):
        self.client = self.stub.connect()
        self.client.greet()
        self.client.without_acks()
        self.client.ask("?")

    def symbol(self, name):
        self.client.resume()
        addr = self.stub.symbol(name)
        self.client.interrupt()
        return addr

    def console(self, command):
        self.client.resume()
        reply = self.stub.ask_console(command)
        self.client.interrupt()
        return reply

    def set(self, kind, addr):
        return self.client.ask(f"Z{kind},{addr:x},{8 if kind > EXECUTE else 1}")

    def clear(self, kind, addr):
        return self.client.ask(f"z{kind},{addr:x},{8 if kind > EXECUTE else 1}")

    def stop(self):
        """Wait for a stop. Return its fields, the field `ip`, and the packet as `text`."""
        text = self.client.packet(LIMIT)
        where = fields(text)
        where["text"] = text
        where["ip"] = int.from_bytes(bytes.fromhex(where["10"]), "little")
        return where

    def register(self, number):
        return int.from_bytes(bytes.fromhex(self.client.ask(f"p{number:x}")), "little")

    def flags(self):
        return self.register(17)


class Hot:
    """Run the workload again and again, until the end of the block."""

    def __init__(self, debugged):
        self.debugged = debugged
        self.ends = False

    def run(self):
        while not self.ends:
            self.debugged.stub.ask_console(HOT)

    def __enter__(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.ends = True
        if not error[0]:
            self.thread.join(LIMIT)


def goes_while_cpus_come_there(d, kind, name, what):
    """The stop for one CPU finds the others anywhere on their way to their own report. The
    debugger removes what they are about to report, and lets them go on.
    """
    place, other = d.symbol(name), []
    with Hot(d):
        for _ in range(ROUNDS):
            if d.set(kind, place) != "OK":
                break
            d.client.resume()
            d.stop()
            d.clear(kind, place)
            d.client.resume()
            time.sleep(0.001)
            stop = d.client.interrupt()
            if not stop.startswith("T02"):
                other.append(stop)
                d.client.packet(LIMIT)
        d.client.resume()
    tap.equal(other, [], f"{what}: {ROUNDS} times no CPU reports it when it has gone")
    tap.equal(d.stub.ask_console(READS).errno, 0, f"{what}: the kernel runs")
    d.client.interrupt()


def a_debugger_takes_leave(d):
    place = d.symbol("vfs_read")
    with Hot(d):
        for _ in range(ROUNDS // 10):
            d.set(EXECUTE, place)
            d.client.resume()
            d.stop()
            d.client.ask("D")
            d.client.close()
            time.sleep(0.01)
            d.attach()
        d.client.ask("D")
        d.client.close()
    tap.equal(d.stub.ask_console(READS).errno, 0, "a debugger takes leave: nothing stops")
    d.attach()


def stand_before(d, place):
    """Let a thread come to @place, and stop there without a hit. Return the thread."""
    d.set(EXECUTE, place)
    d.client.resume()
    d.asking = threading.Thread(target=d.stub.ask_console, args=(READS,), daemon=True)
    d.asking.start()
    thread = d.stop()["thread"]
    d.clear(EXECUTE, place)
    d.client.ask("Hg" + thread)
    return thread


def ends(d, what):
    d.client.resume()
    d.asking.join(LIMIT)
    tap.check(not d.asking.is_alive(), f"{what}: the command ends")
    tap.equal(d.stub.ask_console(READS).errno, 0, f"{what}: the thread can sleep again")
    d.client.interrupt()


def a_step_is_cancelled_below_a_hit(d):
    """The thread steps alone over an instruction with a probe. In the handler of the probe
    it comes to a breakpoint, which cancels the step.
    """
    d.console("module load /boot/reads.o")
    place, handler = d.symbol("vfs_read"), d.symbol("before_read")
    thread = stand_before(d, place)
    tap.check(d.flags() & IF, "the program has interrupts on")
    d.client.ask(f"Z0,{handler:x},1")
    d.client.resume("s:" + thread)
    tap.equal(d.stop()["ip"], handler, "the step stops in a handler on top of it")
    flags = d.client.read(d.register(RSI) + FLAGS_OF_IMAGE, 8)
    tap.check(
        int.from_bytes(flags, "little") & IF,
        "the handler sees the program's interrupts on",
    )
    d.client.ask(f"z0,{handler:x},1")
    d.client.ask("Hg" + thread)
    no_step_beside_tf(d, thread, "on top of a step that is cancelled")
    ends(d, "cancelled below a hit")


def steps_back_into_a_cancelled_step(d):
    """As before, but the debugger makes steps in the handler until the thread is back in the
    program, and so comes back into the image of the first step.
    """
    place, handler = d.symbol("vfs_read"), d.symbol("before_read")
    thread = stand_before(d, place)
    d.client.ask(f"Z0,{handler:x},1")
    d.client.resume("s:" + thread)
    d.stop()
    d.client.ask(f"z0,{handler:x},1")
    steps, ip = 0, handler
    while steps < 2000 and not (place <= ip < place + 64):
        d.client.resume("s:" + thread)
        ip = d.stop()["ip"]
        steps += 1
    tap.check(
        place <= ip < place + 64, f"{steps} steps lead from a handler to the program"
    )
    tap.check(d.flags() & IF and not d.flags() & TF, "which has its own flags again")
    ends(d, "stepped out of a hit")


def a_step_over_a_fault_of_a_handler(d, in_copy, again=False):
    """The handler of the probe faults in the instruction that is stepped, or in its copy for
    a breakpoint, and then its fault handler may fault `again`. It is given up, and the thread
    goes on without TF.
    """
    for verb in ("del reads", "load /boot/reads.o"):
        d.console("module " + verb)
    place, handler = d.symbol("vfs_read"), d.symbol("before_read")
    faults = d.symbol("handler_sleeps") if again else 0
    thread = stand_before(d, place)
    d.client.ask(f"Z0,{handler:x},1")
    d.client.resume()
    tap.equal(d.stop()["ip"], handler, "the thread comes to the handler")
    d.client.ask(f"z0,{handler:x},1")
    d.client.ask("Hg" + thread)
    d.client.ask(
        f"M{d.register(RDI) + FAULT_HANDLER:x},8:{faults.to_bytes(8, 'little').hex()}"
    )
    d.client.ask(f"P{RSI:x}=" + "00" * 8)
    if in_copy:
        d.client.ask(f"Z0,{handler + 5:x},1")
    ip, steps = handler, 0
    while handler <= ip < handler + 64 and steps < 8:
        d.client.resume("s:" + thread)
        ip = d.stop()["ip"]
        steps += 1
    tap.equal(
        Symbols(ELF).at(ip), "trap_resume_hit+0x0", "a step over its fault ends behind it"
    )
    d.client.ask(f"z0,{handler + 5:x},1")
    ends(d, "stepped over a fault")


def pushf_of(d):
    """Return the address of a pushf that each command executes."""
    start = d.symbol("sched_block")
    return start + re.search(rb"\x9c\x41?[\x58-\x5f]", d.client.read(start, 128)).start()


def word_on_the_stack(d):
    """Return the address of the word, and its bytes."""
    rsp = int.from_bytes(bytes.fromhex(d.client.ask("p7")), "little")
    return rsp, d.client.read(rsp, 8)


def a_step_over_pushf_pushes_the_flags_of_the_program(d):
    thread = stand_before(d, pushf_of(d))
    d.client.resume("s:" + thread)
    d.stop()
    flags = int.from_bytes(word_on_the_stack(d)[1], "little")
    tap.check(flags & IF and not flags & TF, "a step over pushf pushes IF, and no TF")
    ends(d, "stepped over pushf")


def a_cancelled_pushf_has_pushed_nothing(d):
    """A breakpoint in the same place stops the thread again before it executes anything. The
    word on its stack is one that the end of a pushf would change. While a stopped thread has
    the lock of probes, the breakpoint takes a debug register, which a step from there passes.
    """
    place, word = pushf_of(d), TF.to_bytes(8, "little")
    for _ in range(50):
        thread = stand_before(d, place)
        rsp, before = word_on_the_stack(d)
        d.client.ask(f"M{rsp:x},8:{word.hex()}")
        d.client.ask(f"Z0,{place:x},1")
        d.client.resume("s:" + thread)
        ip = d.stop()["ip"]
        d.client.ask(f"z0,{place:x},1")
        if ip == place:
            break
        d.client.ask(f"M{rsp:x},8:{before.hex()}")
        ends(d, "stepped over a debug register")
    tap.equal(ip, place, "the step of a pushf is cancelled in front of it")
    tap.equal(d.client.read(rsp, 8), word, "the stack is as it was")
    tap.check(d.flags() & IF and not d.flags() & TF, "and so are the flags")
    d.client.ask(f"M{rsp:x},8:{before.hex()}")
    ends(d, "cancelled before the instruction")


def no_step_beside_tf(d, thread, where):
    """TF would be the program's and the debugger's at once, and one of the two would lose its
    trap.
    """
    flags = d.flags()
    d.client.ask(f"P11={(flags | TF).to_bytes(4, 'little').hex()}")
    d.client.resume("s:" + thread)
    tap.equal(
        d.client.packet(LIMIT),
        REFUSED,
        f"a program has TF set, {where}: a step is refused",
    )
    d.client.ask(f"P11={flags.to_bytes(4, 'little').hex()}")


def a_program_that_steps_itself(d):
    no_step_beside_tf(d, stand_before(d, d.symbol("vfs_read")), "in its text")
    ends(d, "refused to step")


def a_step_after_a_stop_in_a_storm_of_jumps(d):
    """A stop waits until the CPU is in no detour, where a step would be refused."""
    for name in ("vfs_read", "vfs_open", "work_hash_text", "file_get"):
        d.console("probe ret " + name)
    found, late = set(), 0
    with Hot(d):
        for _ in range(ROUNDS):
            d.client.resume()
            time.sleep(0.002)
            began = time.monotonic()
            thread = fields(d.client.interrupt())["thread"]
            late += time.monotonic() - began > 0.5
            d.client.resume("s:" + thread)
            found.add(d.client.packet(LIMIT)[:3])
        d.client.resume()
    tap.equal(found, {"T05"}, f"after {ROUNDS} stops in a storm of jumps a step begins")
    tap.check(late < ROUNDS // 10, f"{late} of these stops come late")
    d.client.interrupt()
    d.console("probe del all")


def stand_behind_an_access(d, word):
    """Let a thread access @word, and stop behind the first access. Return the stop."""
    d.set(ACCESS, word)
    d.client.resume()
    d.asking = threading.Thread(target=d.stub.ask_console, args=(READS,), daemon=True)
    d.asking.start()
    stop = d.stop()
    d.clear(ACCESS, word)
    return stop


def a_step_out_of_a_copy(d):
    """A watched access by the copy of a probed instruction stops the thread behind that copy.
    A step from there executes the next instruction, and not only the jump back.
    """
    d.console("echo 0 > /proc/sys/debug/kprobes-optimization")
    word = d.symbol("vfs_mutex")
    behind = stand_behind_an_access(d, word)["ip"]
    ends(d, "stopped behind an access")
    tried = (f"{behind - len:#x}" for len in range(2, 12))
    at = next(at for at in tried if not d.console(f"probe add {at}").errno)
    stop = stand_behind_an_access(d, word)
    tap.equal(stop["ip"], behind, "a thread stops behind the copy of an instruction")
    no_step_beside_tf(d, stop["thread"], "in a copy")
    d.client.resume("s:" + stop["thread"])
    tap.check(d.stop()["ip"] != behind, "a step from there executes the next one")
    ends(d, "stepped out of a copy")
    d.console(f"probe del {at}")
    a_step_of_the_engine(d, word, at)
    d.console("echo 1 > /proc/sys/debug/kprobes-optimization")


def a_step_of_the_engine(d, word, at):
    """Behind a copy that ends with an int3 the next trap is that of the engine."""
    d.console(f"probe add --post {at}")
    d.client.resume("s:" + stand_behind_an_access(d, word)["thread"])
    tap.equal(d.client.packet(LIMIT), REFUSED, "a step of the engine: a step is refused")
    ends(d, "refused behind a copy")
    d.console(f"probe del {at}")


def steps_among_others(d):
    """A thread is stepped through a range, and other threads come to a breakpoint: after
    each of these stops the debugger sees the thread in the range or behind it, and
    goes on with the step.
    """
    start, others = d.symbol("work_hash_text"), d.symbol("vfs_read")
    end = start + int(d.console("sym work_hash_text").text.rsplit("/", 1)[1], 16)
    ends, disturbed = [], 0
    with Hot(d):
        while len(ends) < 4 or disturbed < 40:
            d.set(EXECUTE, start)
            d.client.resume()
            thread, ip = d.stop()["thread"], start
            d.clear(EXECUTE, start)
            d.client.ask(f"Z0,{others:x},1")
            while start <= ip < end:
                d.client.resume(f"r{start:x},{end:x}:{thread};c")
                disturbed += d.stop()["thread"] != thread
                d.client.ask("Hg" + thread)
                ip = d.register(IP)
            ends.append(Symbols(ELF).at(ip).partition("+")[0])
            d.client.ask(f"z0,{others:x},1")
        d.client.resume()
    tap.equal(
        set(ends) - {"file_get", "work_hash"},  # a call, if it is not inlined
        set(),
        f"{len(ends)} steps that others disturb end behind their range",
    )
    d.client.interrupt()


def what_would_hit_itself(d):
    for name in (
        "exc_int3",
        "db_entry",
        "trap_exit",
        "registry_find",
        "watch_debug_handler",
        "debug_reg_hits",
    ):
        answer = d.set(EXECUTE, d.symbol(name))
        tap.equal(
            answer,
            "E.this code is the way into a hit, or out of it",
            f"hbreak {name}: refused with its reason",
        )
    tap.equal(
        d.set(EXECUTE, d.symbol("gdb_step_trap")),
        "E.the stub itself runs this code",
        "hbreak in the stub's own code: refused with its reason",
    )
    tap.equal(
        d.set(ACCESS, d.symbol("watch_slots")),
        "E.each hit uses these bytes itself, so it would be hit again without end",
        "awatch of what each hit reads: refused with its reason",
    )


def what_the_way_to_the_stub_touches(d):
    """The handling of a hit comes to the place itself. This is no hit."""
    d.console("probe add trap_dispatch")
    place = d.symbol("vfs_read")
    for kind, name in ((ACCESS, "breaks"), (EXECUTE, "trap_dispatch")):
        own = d.symbol(name)
        tap.equal(d.set(kind, own), "OK", f"{name}: taken")
        tap.equal(d.client.ask(f"Z0,{place:x},1"), "OK", "beside a breakpoint")
        d.client.resume()
        asking = threading.Thread(target=d.stub.ask_console, args=(READS,), daemon=True)
        asking.start()
        stops = 0
        while d.stop()["ip"] != place and stops < 50:
            d.client.resume()
            stops += 1
        tap.check(
            stops < 50, f"{name}: the kernel comes to the breakpoint, {stops} stops"
        )
        d.clear(kind, own)
        d.client.ask(f"z0,{place:x},1")
        d.client.resume()
        asking.join(LIMIT)
        d.client.interrupt()
    d.console("probe del all")


def on(cpus):
    with Stub(smp=cpus) as stub:
        stub.guest.wait_prompt(LIMIT)
        d = Debugged(stub)
        goes_while_cpus_come_there(d, EXECUTE, "vfs_read", f"{cpus} CPUs: hbreak")
        goes_while_cpus_come_there(d, ACCESS, "vfs_mutex", f"{cpus} CPUs: awatch")
        a_debugger_takes_leave(d)
        what_would_hit_itself(d)
        what_the_way_to_the_stub_touches(d)
        a_step_over_pushf_pushes_the_flags_of_the_program(d)
        a_cancelled_pushf_has_pushed_nothing(d)
        a_program_that_steps_itself(d)
        a_step_after_a_stop_in_a_storm_of_jumps(d)
        a_step_out_of_a_copy(d)
        a_step_is_cancelled_below_a_hit(d)
        steps_back_into_a_cancelled_step(d)
        steps_among_others(d)
        a_step_over_a_fault_of_a_handler(d, in_copy=False)
        a_step_over_a_fault_of_a_handler(d, in_copy=True)
        a_step_over_a_fault_of_a_handler(d, in_copy=False, again=True)


def on_any_number_of_cpus():
    for cpus in (1, 2, 4) if tap.LONG else (2,):
        on(cpus)


tap.run(on_any_number_of_cpus)
