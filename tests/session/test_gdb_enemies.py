"""test_gdb_enemies.py - sets breakpoints of the kernel's own stub in difficult places.

The places are handlers, generated code, interrupts and NMIs, the driver of a console,
changes of text, places with probes of other kinds, and a function that all CPUs execute
at once. The last test is about the breakpoints of a debugger that dies.
"""

import re
import threading
import time

import tap
from probes.gdb.host.rsp import Stub, fields
from session import LIMIT

READS = "cat /proc/version"  # calls vfs_read twice
STOPS = 5
SERIAL, TICK = "serial_write", "sched_tick"
BP, SP, IP = 6, 7, 16  # gdb's numbers


class Enemy:
    """A kernel with an attached debugger. Before and after each method the kernel is
    stopped, unless the method says that it runs.
    """

    def __init__(self, stub, cpus):
        self.stub, self.cpus = stub, cpus
        self.attach()

    def attach(self):
        self.client = self.stub.connect()
        self.client.greet()
        self.client.without_acks()
        self.client.ask("?")

    def tell(self, holds, what):
        return tap.check(holds, f"{self.cpus} CPUs: {what}")

    def console(self, *commands):
        """Run commands to their end, without a stop. Return the output of all of them."""
        self.client.resume()
        said = "".join(self.ask(command) for command in commands)
        self.client.interrupt()
        return said

    def ask(self, command):
        return self.stub.guest.machine.request(command, LIMIT, may_fail=True).text

    def begin(self, command):
        """Let the kernel run, and start a command on the console."""
        self.replies = []
        self.asking = threading.Thread(target=self.reply, args=(command,), daemon=True)
        self.client.resume()
        self.asking.start()

    def reply(self, command):
        self.replies.append(self.stub.ask_console(command))

    def end(self):
        """Run on until the command of begin() has ended. Has the command succeeded?"""
        self.client.resume()
        self.asking.join(LIMIT)
        self.client.interrupt()
        return not self.asking.is_alive() and self.replies[0].errno == 0

    def symbol(self, name):
        return int(self.console(f"sym {name}").split()[0], 16)

    def set(self, place, kind=0, length=1):
        return self.client.ask(f"Z{kind},{place:x},{length:x}")

    def clear(self, place, kind=0, length=1):
        return self.client.ask(f"z{kind},{place:x},{length:x}")

    def stop(self):
        """Wait for the next stop. Return its fields, and the field `ip`."""
        text = self.client.packet(LIMIT)
        where = fields(text)
        where["ip"] = int.from_bytes(bytes.fromhex(where["10"]), "little")
        return where

    def stops_at(self, place, times, command, what, shown=None, kind=0):
        """Set a breakpoint and run a command that comes to it. Each stop must be reported
        at the breakpoint, or at the address @shown.
        """
        if not self.tell(self.set(place, kind) == "OK", f"{what}: takes a breakpoint"):
            return
        self.begin(command)
        seen = []
        for n in range(times):
            seen.append(self.stop()["ip"])
            if n < times - 1:
                self.client.resume()
        self.clear(place, kind)
        tap.equal(
            [f"{ip:x}" for ip in seen],
            [f"{shown or place:x}"] * times,
            f"{self.cpus} CPUs: {what}: stops there, {times} times",
        )
        self.tell(self.end(), f"{what}: and the kernel goes on")

    def jumps(self, wanted, place="vfs_read"):
        """The number of jumps whose place begins so; it may take a while until there are so
        many as @wanted."""
        end = time.monotonic() + LIMIT
        while True:
            listed = self.console("run sleep", "cat /sys/kernel/debug/kprobes/list")
            found = len(re.findall(rf" {re.escape(place)}.*\[OPT", listed))
            if found >= wanted or time.monotonic() > end:
                return found


def in_a_handler(e):
    """A handler of a module can have a breakpoint. The engine's own handlers belong to
    the hit, so a breakpoint there is a miss and does not stop.
    """
    e.console("module load /boot/reads.o")
    e.stops_at(e.symbol("before_read"), 2, READS, "a probe's handler")
    e.console("module del reads", "probe add --post vfs_read+5")
    place = e.symbol("count_post")
    e.tell(
        e.set(place) == "OK" and e.console(READS).startswith("sonde"),
        "a handler of the engine's: a breakpoint there is not met in a hit",
    )
    e.clear(place)
    e.console("probe del all")


def in_generated_code(e):
    """A breakpoint in generated code uses a debug register. The stub reports the place in
    the program for which the engine made this code.
    """
    e.console("probe add --post vfs_read+5", "run vfs", "run sleep")
    text = e.console("probe explain -v vfs_read+5")
    found = re.search(r"detour, at (0x[0-9a-f]+)", text)
    if not e.tell(found, "the probe is a jump to a detour"):
        tap.note(text)
        return
    e.stops_at(int(found[1], 16), 2, READS, "a detour", e.symbol("vfs_read") + 5)
    e.console("probe del all")


def in_jumps(e):
    """A debug register stops CPUs that come to an instruction. So no jump may displace this
    instruction, and no link may lead past it. Afterwards the jumps come back.
    """
    start = e.symbol("vfs_read")
    for command, offsets in (
        ("probe add vfs_read+5", (6, 9)),  # one jump displaces the instructions there
        ("probe all vfs_read", (5, 6, 9, 12, 14, 17, 18)),  # jumps, linked
    ):
        e.console(command, "run vfs", "run sleep")
        before = e.jumps(1)
        for offset in offsets:
            what = f"'{command}': hbreak at +{offset}"
            e.stops_at(start + offset, 2, READS, what, kind=1)
        tap.equal(e.jumps(before), before, f"{e.cpus} CPUs: '{command}': jumps come back")
        e.console("probe del all")


def under_a_jump(e):
    """A debugger sends a CPU to an instruction that the jump of a region displaces. Where
    the CPU stops, at the start of vfs_read, it first does the push in front of it.
    """
    start, method = e.symbol("vfs_read"), "/proc/sys/debug/kprobes-jump"
    before = e.console(f"cat {method}").strip()
    e.console(f"echo region > {method}", "probe add vfs_read+5")
    e.tell(e.jumps(1, "vfs_read+0x5") == 1, "a jump displaces vfs_read+6")
    for kind in (0, 1):
        e.set(start, kind)
        e.begin(READS)
        e.stop()
        e.clear(start, kind)
        words = {
            number: int.from_bytes(bytes.fromhex(e.client.ask(f"p{number:x}")), "little")
            for number in (BP, SP)
        }
        e.client.ask(f"M{words[SP] - 8:x},8:{word(words[BP])}")
        for number, value in ((SP, words[SP] - 8), (IP, start + 6)):
            e.tell(
                e.client.ask(f"P{number:x}={word(value)}") == "OK",
                f"Z{kind}: register {number} takes a value",
            )
        e.tell(e.end(), f"Z{kind}: and the CPU goes on under the jump")
    e.console("probe del all", f"echo {before} > {method}")


def word(value):
    return value.to_bytes(8, "little").hex()


def in_changed_code(e):
    """A debugger changes code, but no byte that a probe uses: in bytes of the jump, and in
    bytes that the jump reads. Then it sets a breakpoint by the new boundaries.
    """
    start, method = e.symbol("vfs_read"), "/proc/sys/debug/kprobes-jump"
    before = e.console(f"cat {method}").strip()
    code = e.client.read(start + 6, 6)
    for name, used in (("pun", 4), ("region", 6)):
        e.console(f"echo {name} > {method}", "probe add vfs_read+5")
        e.tell(e.jumps(1, "vfs_read+0x5") == 1, f"a jump, by {name}")
        taken = [
            at
            for at in range(used)
            if e.client.ask(f"M{start + 6 + at:x},1:{code[at] ^ 1:02x}") == "OK"
        ]
        tap.equal(taken, [], f"{e.cpus} CPUs: {name}: bytes that a probe uses stay")
        e.console("probe del all")
    e.console(f"echo {before} > {method}", "probe add vfs_read+0")
    wrong = e.set(start + 7)
    push_pop = "564158"  # in place of mov %rsi,%r8
    e.tell(wrong.startswith("E") and code[:3].hex() == "4989f0", "no boundary is at +7")
    e.tell(e.client.ask(f"M{start + 6:x},3:{push_pop}") == "OK", "code is changed")
    e.stops_at(start + 7, 2, READS, "a boundary that is new")
    end = time.monotonic() + LIMIT  # the probe of the breakpoint is taken out later
    while e.client.ask(f"M{start + 6:x},3:{code[:3].hex()}") != "OK":
        if time.monotonic() > end:
            raise AssertionError("the code cannot be changed back")
        e.console("run sleep")
    e.tell(e.set(start + 7).startswith("E"), "the boundary has gone")
    e.console("probe del all")


def in_interrupts(e):
    e.stops_at(e.symbol(TICK), STOPS, READS, "the timer's interrupt")


def in_nmis(e):
    """Ctrl-C arrives as an NMI. On its way the CPU meets the breakpoint, and this stop is
    the answer to the Ctrl-C. The NMIs that stop the other CPUs come there, too, but are
    not hits. The stub refuses breakpoints on code that it runs itself.
    """
    e.tell(
        e.set(e.symbol("take_nmi")) == "E.the stub itself runs this code",
        "the stub's handler of NMIs: refused with a reason",
    )
    place = e.symbol("nmi_dispatch")
    seen, unasked = [], []
    for _ in range(STOPS):
        e.set(place)
        e.client.resume()
        e.client.send(b"\x03")
        seen.append(e.stop()["ip"])
        e.clear(place)
        e.client.resume()
        console = e.stub.in_background(READS)
        unasked += e.stub.disturbed(e.client, console)
        e.client.interrupt()
    e.tell(seen == [place] * STOPS, "the dispatch of NMIs: Ctrl-C stops there")
    e.tell(unasked == [], "the dispatch of NMIs: each Ctrl-C is one stop")
    e.set(place)
    e.stops_at(e.symbol("vfs_read"), 2, READS, "beside a breakpoint in that dispatch")
    e.clear(place)


def in_the_driver(e):
    e.stops_at(e.symbol(SERIAL), 2, READS, "the driver of the consoles")


def in_the_middle_of_changes(e):
    """Ctrl-C comes while the engine arms, optimizes and removes many probes."""
    for command in ("probe all *_r*", "probe del all"):
        e.begin(command)
        for n in range(STOPS):
            e.client.send(b"\x03")
            where = e.stop()
            place = e.client.read(where["ip"], 4)
            e.tell(len(place) == 4, f"'{command}': stop {n + 1} in its middle")
            e.client.resume()
        e.client.send(b"\x03")
        e.stop()
        e.tell(e.end(), f"'{command}' ends")
    e.tell("calls 720 of vfs_read" in e.console("run vfs"), "the program is as before")


def beside_others(e):
    """One place has a breakpoint and something else: a probe, a return probe, a marker
    that is on, a watch.
    """
    place = e.symbol("vfs_read")
    for command, undo in (
        ("probe add vfs_read", "probe del all"),
        ("probe ret vfs_read", "probe del all"),
        ("marker on vfs_read", "marker off vfs_read"),
    ):
        e.console(command)
        e.stops_at(place, 2, READS, f"beside '{command}'")
        e.console(undo)
    jiffies = e.symbol("jiffies")
    e.console("probe watch jiffies")
    e.tell(e.set(jiffies, 2, 8) == "OK", "a watchpoint beside a watch")
    e.client.resume()
    e.tell(e.stop().get("watch") == f"{jiffies:x}", "stops")
    e.clear(jiffies, 2, 8)
    e.console("probe del all")


def all_cpus_at_once(e):
    """Threads on all CPUs come to one place with a breakpoint and a probe. The probe
    counts each call once.
    """
    e.console("probe add vfs_read")
    place = e.symbol("vfs_read")
    e.tell(e.set(place) == "OK", "a breakpoint that all CPUs meet")
    e.begin("run vfs")
    cores, stops, least, most, stand = set(), 0, 10 * e.cpus, 150 * e.cpus, set()
    while stops < least or len(cores) < e.cpus and stops < most:
        if stops:
            e.client.resume()
        where = e.stop()
        stops += 1
        cores.add(where["core"])
        stand.add(e.client.ask("qXfer:threads:read::0,3fff").count(' core="'))
        if where["ip"] != place:
            e.tell(False, f"a stop at {where['ip']:x}")
    e.tell(len(cores) == e.cpus, f"stops all of them, within {most} times")
    e.tell(stand == {e.cpus}, "at each stop all CPUs stand")
    e.clear(place)
    e.tell(e.end(), "a CPU that was about to stop there goes on without")
    e.tell(
        re.search(r"^p\d+ .* 720 +0  vfs_read", e.console("probe list"), re.M),
        "each call is a hit of the probe there, once",
    )
    e.console("probe del all")


def a_client_that_dies(e):
    place = e.symbol("vfs_read")
    e.set(place)
    e.client.resume()
    e.client.close()
    e.attach()
    e.stops_at(place, 2, READS, "a breakpoint of a debugger that has died")
    e.set(place)
    e.client.ask("D")
    e.client.close()
    e.tell("sonde" in e.ask(READS), "its successor takes leave: nothing stops any more")


def on(cpus):
    with Stub(smp=cpus) as stub:
        stub.guest.wait_prompt(LIMIT)
        e = Enemy(stub, cpus)
        for case in (
            in_a_handler,
            in_generated_code,
            in_jumps,
            under_a_jump,
            in_changed_code,
            in_interrupts,
            in_nmis,
            in_the_driver,
            in_the_middle_of_changes,
            beside_others,
            all_cpus_at_once,
            a_client_that_dies,
        ):
            try:
                case(e)
            except Exception as error:
                tap.note(f"{cpus} CPUs, in {case.__name__}")
                tap.note("\n".join(stub.guest.last_lines(5)))
                for line in stub.guest.places():
                    tap.note(line)
                raise error


def on_any_number_of_cpus():
    for cpus in (1, 2, 4) if tap.LONG else (2,):
        on(cpus)


tap.run(on_any_number_of_cpus)
