"""test_gdb_stub.py - tests the kernel's own stub on COM2, with a client that sends single
packets: each kind of packet, its errors, noise on the line, and a debugger that dies
while all CPUs are stopped.
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import image
import tap
from sonde.guest import ELF, EXIT_POWEROFF, EXIT_TESTS_FAILED, ROOT
from sonde.hang import Symbols
from probes.gdb.host.rsp import Stub, fields, frame, text_of
from session import LIMIT, stat

sys.path.insert(0, ROOT)
from kernel.module import send as modules

NOISE = 1 << 16 if tap.LONG else 1 << 12  # bytes
NOISE_LIMIT = 600  # seconds in which the kernel must have read all of the noise
TEXT = "ffffffff80200000"
BREAKPOINTS = 60  # the stub has 64
IDLE = 1000000
STACK_AREA = 0xFFFFC00000000000  # kernel/memmap.h


def symbol(stub, name):
    """Return the address of a symbol from the kernel's own table."""
    reply = stub.guest.machine.request(f"sym {name}", LIMIT)
    return int(reply.text.split()[0], 16)


def boot_text():
    """Return an address in the code that only the boot needed; it has been freed."""
    symbols = Symbols(ELF)
    return symbols.starts[symbols.names.index("_init_text")]


def registers(client):
    """Return (rip, rsp) of the thread that the client has chosen by Hg."""
    data = bytes.fromhex(client.ask("g").replace("x", "0"))
    return (
        int.from_bytes(data[128:136], "little"),
        int.from_bytes(data[56:64], "little"),
    )


def answers(client, packet, pattern):
    text = client.ask(packet)
    tap.check(re.fullmatch(pattern, text, re.S), f"{packet[:30]}: {pattern[:40]}")
    if not re.fullmatch(pattern, text, re.S):
        tap.note(text[:200])


def packets_one_by_one(stub, cpus):
    client = stub.connect()
    features = client.greet()
    tap.equal(
        features.get("PacketSize"), "4000", f"{cpus} CPUs: the stub says what it can"
    )
    stop = client.ask("?")
    where = fields(stop)
    tap.check(
        stop.startswith("T02") and int(where["core"], 16) < cpus,
        "? tells a thread and its CPU",
    )
    answers(client, "qC", "QC" + where["thread"])
    answers(client, "qAttached", "1")
    answers(client, "vMustReplyEmpty", "")
    tap.equal(client.without_acks(), "OK", "acknowledgements can be switched off")
    threads = client.ask("qfThreadInfo")[1:].split(",")
    tap.check(
        len(threads) >= cpus + 4 and len(set(threads)) == len(threads),
        "each thread has a number of its own",
    )
    tap.equal(
        [f"{IDLE + n:x}" in threads for n in range(cpus + 1)],
        [True] * cpus + [False],
        "an idle thread for each CPU",
    )
    answers(client, "qsThreadInfo", "l")
    name = bytes.fromhex(client.ask("qThreadExtraInfo,3")).decode()
    tap.check(name.startswith("optimizer, "), "a thread has a name and a state")
    document = client.ask("qXfer:threads:read::0,3fff")
    tap.equal(document.count(' core="'), cpus, "so many threads are on a CPU")
    pieces = [client.ask(f"qXfer:threads:read::{at:x},40") for at in range(0, 4000, 0x40)]
    last = [piece[0] for piece in pieces].index("l")
    tap.equal(
        "".join(piece[1:] for piece in pieces[: last + 1]),
        document[1:],
        "the document is the same in pieces",
    )
    answers(
        client, "qXfer:features:read:target.xml:0,3fff", "l.*i386.core.*org.sonde.cr.*"
    )
    for thread in threads:
        answers(client, "T" + thread, "OK")
    answers(client, "T123456", "E..*")
    return client


def memory_and_registers(stub, client):
    client.ask("Hg0")
    answers(client, "m0,4", "E0e")
    answers(client, f"m{TEXT},0", "")
    answers(client, "m", "E..*")
    answers(client, "mffffffffffffffff,10", "E0e")
    answers(client, "m8000000000000000,8", "E0e")
    answers(client, "g", "([0-9a-f]{328})x{224}([0-9a-f]{112})")
    answers(client, "p10", "[0-9a-f]{16}")
    answers(client, "p18", "x{20}")
    answers(client, "p2c", "[0-9a-f]{16}")
    answers(client, "p2f", "E..*")
    answers(client, "pz", "E..*")
    tap.check(registers(client)[0] >= int(TEXT, 16), "rip is in the kernel's text")
    for at, value in ((0, "1122334455667788"), (15, "8877665544332211")):
        before = client.ask(f"p{at:x}")
        answers(client, f"P{at:x}={value}", "OK")
        tap.equal(client.ask(f"p{at:x}"), value, "P changes a register")
        answers(client, f"P{at:x}={before}", "OK")
    answers(client, "P10", "E..*")
    answers(client, "P10=12", "E.too few digits")
    answers(client, "P2c=1122334455667788", "E..*")
    for number in range(0x28, 0x2F):  # fs_base to efer: gdb writes them back after a call
        answers(client, f"P{number:x}=" + client.ask(f"p{number:x}"), "OK")
    answers(client, "G" + client.ask("g"), "OK")
    answers(client, "G00", "E..*")


def sleepers_have_registers(client):
    client.ask("Hg3")  # the optimizer sleeps
    general = client.ask("g")
    tap.equal(len(general), 664, "a thread that sleeps has registers")
    tap.check("x" in general, "of which some are not known")
    rip, rsp = registers(client)
    tap.check(rip >= int(TEXT, 16) and rsp, "its rip and rsp are those of its switch")
    answers(client, "P10=0000000000000000", "E..*not on a CPU.*")
    client.ask("Hg0")


def memory_is_written(stub, client):
    """Write memory that no code uses: free space of a stack, 0x400 bytes below rsp."""
    stack = registers(client)[1] - 0x400 & ~7
    answers(client, f"M{stack:x},8:0102030405060708", "OK")
    answers(client, f"m{stack:x},8", "0102030405060708")
    answers(client, f"X{stack:x},0:", "OK")
    client.send(frame(f"X{stack:x},4:".encode() + b"}\x03}]\x00\x7f"))
    tap.equal(client.packet(), "OK", "X takes any bytes")
    answers(client, f"m{stack:x},4", "237d007f")
    answers(client, f"X{stack:x},4:ab", "E..*")
    answers(client, f"M{stack:x},2:01", "E..*")
    answers(client, f"M{TEXT},1001:" + client.ask(f"m{TEXT},1001"), "OK")
    answers(client, "M0,1:00", "E..*")


def cpus_that_stand_halt(stub, cpus):
    """The serving CPU waits for bytes. All others leave the host's time to QEMU and gdb."""

    def halted():
        return stub.guest.qmp.monitor("info registers -a").count("HLT=1") == cpus - 1

    tap.check(eventually(halted), f"{cpus} CPUs: all but the serving CPU halt")


def running_and_stopping(stub, client, cpus):
    client.resume()
    for _ in range(3):
        reply = stub.guest.machine.request("cat /proc/version", LIMIT, may_fail=True)
        tap.check(reply.errno == 0, "the console works while the stub is attached")
    stop = client.interrupt()
    tap.check(stop.startswith("T02"), "Ctrl-C stops")
    thread = fields(stop)["thread"]
    places = []
    for _ in range(5):
        client.resume(f"s:{thread}")
        stop = client.packet()
        places.append(fields(stop)["10"])
        tap.check(stop.startswith("T05"), "a step stops behind an instruction")
    tap.equal(len(set(places)), 5, "each step goes on")
    answers(client, "vCont?", r"vCont;c;C;s;S;r")
    answers(client, "vCont;x", "E..*")
    answers(client, "vCont;s:3", "E..*not on a CPU.*")
    answers(client, "vCont;c:ffff", "E.no such thread")
    client.resume("c")
    client.interrupt()


def ask_console(stub, text):
    return stub.guest.machine.request(text, LIMIT, may_fail=True)


def damage_and_noise(client, cpus):
    """Send damaged packets and noise, with acknowledgements on. The CPUs that stand use
    up the processors of the host, and then the line is slow. So more than two CPUs get
    only a quarter of the noise.
    """
    noise = NOISE >> (2 if cpus > 2 else 0)
    client.greet()
    client.acks = True
    client.came = b""
    client.send(b"$g#00")
    tap.equal(client.byte(), b"-", "a wrong sum is answered with -")
    client.send(frame(b"qC"))
    tap.equal(client.byte(), b"+", "the right one with +")
    first = client.packet()
    client.send(b"-")
    tap.equal(client.packet(), first, "- has the answer sent again")
    client.send(frame(b"m" + b"1" * 0x4000))
    tap.equal(client.packet(), "E.the packet is too long", "a long packet is refused")
    client.send(b"$m0,4" + b"}" * (noise + 0x4000), NOISE_LIMIT)
    answers(client, "qC", first)
    client.send(
        bytes(n & 0xFF for n in range(noise) if n & 0xFF not in b"$"), NOISE_LIMIT
    )
    client.send(frame(b"qAttached"))
    while client.packet() != "1":
        pass
    tap.check(True, "and noise changes nothing")


def noise_does_not_stop_a_kernel_that_runs(stub):
    client = stub.connect()
    client.send(bytes(n & 0xFF for n in range(NOISE)), NOISE_LIMIT)
    tap.check(
        ask_console(stub, "run vfs").errno == 0,
        f"without a debugger {NOISE >> 10} KiB of noise stop nothing",
    )
    client.close()


def breakpoints(stub, client):
    """Set a breakpoint on vfs_read, which `cat` calls twice, and step from it."""
    client.without_acks()
    client.resume()
    place = symbol(stub, "vfs_read")
    client.interrupt()
    answers(client, f"Z0,{place:x},1", "OK")
    client.resume()
    console = threading.Thread(target=ask_console, args=(stub, "cat /proc/version"))
    console.start()
    stop = client.packet()
    where = fields(stop)
    tap.check("swbreak" in where, "a breakpoint stops")
    tap.equal(
        int.from_bytes(bytes.fromhex(where["10"]), "little"), place, "at its address"
    )
    tap.equal(
        client.read(place, 5).hex(), "0f1f440000", "memory is shown as it was built"
    )
    answers(client, f"z0,{place:x},1", "OK")
    client.resume(f"s:{where['thread']}")
    where = fields(client.packet())
    tap.equal(
        int.from_bytes(bytes.fromhex(where["10"]), "little"),
        place + 5,
        "a step leads to the next instruction",
    )
    answers(client, f"Z0,{place:x},1", "OK")
    client.resume()
    tap.check("swbreak" in fields(client.packet()), "the next call stops as well")
    answers(client, f"z0,{place:x},1", "OK")
    answers(client, f"z0,{place:x},1", "OK")
    client.resume()
    console.join()
    tap.check(
        eventually(lambda: not probes(stub)), "a breakpoint that is taken out is gone"
    )
    client.interrupt()
    return place


def a_step_ends_in_its_thread(stub, client, place):
    """Interrupts come between all steps, since a step takes longer than a tick. No step
    ends in one, though all threads run.
    """
    client.resume()
    jiffies = symbol(stub, "jiffies")
    client.interrupt()
    answers(client, f"Z0,{place:x},1", "OK")
    client.resume()
    console = stub.in_background("cat /proc/version")
    where = fields(client.packet())
    answers(client, f"z0,{place:x},1", "OK")
    thread, symbols = where["thread"], Symbols(ELF)
    entries, others, ticks = set(), set(), set()
    for _ in range(60):
        client.resume(f"s:{thread};c")
        where = fields(client.packet())
        ip = int.from_bytes(bytes.fromhex(where["10"]), "little")
        name = symbols.at(ip).partition("+")[0]
        entries |= {name} & {"irq_entry", "entry_stubs", "irq_dispatch", "sched_tick"}
        others |= {where["thread"]} - {thread}
        ticks.add(client.ask(f"m{jiffies:x},8"))
    tap.equal((entries, others), (set(), set()), "60 steps end in their thread")
    tap.check(len(ticks) > 1, "while interrupts come")
    client.resume()
    console.join()
    client.interrupt()


def many_in_one_stop(stub, client):
    """Set many breakpoints while all CPUs stand: the kernel has memory in reserve for each
    of the sizes of cells. Instructions that write all flags have another size than others.
    """
    symbols = Symbols(ELF)
    function = symbols.starts[symbols.names.index("vfs_write")]
    text = client.read(function, 512)
    objdump = subprocess.run(
        [
            "objdump",
            "-d",
            f"--start-address={function}",
            f"--stop-address={function + 400}",
            ELF,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    places = re.findall(r"^([0-9a-f]{16}):", objdump.stdout, re.M)[:BREAKPOINTS]
    said = {client.ask(f"Z0,{place},1") for place in places}
    tap.equal((said, len(places)), ({"OK"}, BREAKPOINTS), "many breakpoints in one stop")
    said = {client.ask(f"z0,{place},1") for place in places}
    tap.equal(
        (said, client.read(function, 512)), ({"OK"}, text), "they are taken out again"
    )
    client.resume()
    tap.check(eventually(lambda: not probes(stub)), "and gone")
    client.interrupt()


def probes(stub):
    """Return the number of all probes. (`probe list` has only the console's probes.)"""
    return stat(stub.guest)["probes"]


def eventually(holds):
    end = time.monotonic() + LIMIT
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


def conditions(stub, client, place):
    """Test conditions. The first one is count == 4096: reg 3 (gdb's number of rdx),
    const16 4096, equal, end. `cat` calls vfs_read with this count.
    """

    def condition(code):
        return f"Z0,{place:x},1;X{len(code) // 2:x},{code}"

    answers(client, condition("260003231000" + "13" + "27"), "OK")
    client.resume()
    tap.check(ask_console(stub, "run vfs").errno == 0, "a false condition stops nothing")
    console = threading.Thread(target=ask_console, args=(stub, "cat /proc/version"))
    console.start()
    tap.check("swbreak" in fields(client.packet()), "a true one does")
    answers(client, condition("2200172627"), "E..*")
    for code, name in (
        ("26ff0027", "an unknown register"),
        ("", "no code"),
        ("13", "an empty stack"),
        ("2103", "no end"),
        ("ff27", "no opcode"),
        ("21000027", "rubbish behind"),
        ("21ff" * 40 + "27", "a deep stack"),
    ):
        tap.check(client.ask(condition(code)).startswith("E."), f"refused: {name}")
    answers(client, f"Z0,{place:x},1;X4,2222", "E.*cut short")
    answers(client, f"Z0,{place:x},1;X800,22", "E.*too long")
    answers(client, condition("2200" + "19" + "27"), "OK")  # *(u64 *)0
    client.resume()
    said = text_of(client.packet())
    tap.equal(
        said,
        f"[at 0x{place:x}: ref32 at 2: memory cannot be read]\n",
        "a condition that fails says why",
    )
    tap.check("swbreak" not in fields(client.packet()), "and stops")
    answers(client, f"z0,{place:x},1", "OK")
    client.resume()
    console.join()
    client.interrupt()


def places_that_are_refused(stub, client, place):
    client.resume()
    handler, entry = symbol(stub, "gdb_stop"), symbol(stub, "exc_int3")
    core = symbol(stub, "registry_find")
    stub.guest.machine.request("module load /boot/guarded.o", LIMIT)
    marked = symbol(stub, "guarded:add")
    variable = symbol(stub, "jiffies")
    client.interrupt()
    answers(client, f"Z0,{handler:x},1", "E.the stub itself runs this code")
    answers(client, f"Z0,{entry:x},1", "E.entry code, before the registers are saved")
    answers(
        client,
        f"Z0,{core:x},1",
        "E.this code is the way into a hit, or out of it",
    )
    answers(client, f"Z0,{marked:x},1", "E.its author has marked it")
    answers(client, f"Z0,{place + 1:x},1", "E.not an instruction boundary")
    for nowhere in (0x1000, variable, boot_text()):
        answers(client, f"Z0,{nowhere:x},1", "E.the address is not kernel text")
    stack = STACK_AREA + 0x8000  # a function that gdb calls returns to a stack
    for kind, anywhere in ((1, place + 1), (1, 0x1000), (0, stack)):
        answers(client, f"Z{kind},{anywhere:x},1", "OK")  # by a debug register
        answers(client, f"z{kind},{anywhere:x},1", "OK")
    answers(client, "Z0", "E.Z0 to Z4 want an address and a length")
    answers(client, "Z7,0,1", "E.Z0 to Z4 want an address and a length")


def an_nmi_is_a_stop_once(stub, client):
    """Ctrl-C arrives as an NMI. A breakpoint in the code of NMIs stops the CPU, and this
    stop is the answer to the Ctrl-C. Here the byte arrives in the moment in which the
    kernel goes on, so the tick finds it.
    """
    client.resume()
    place = symbol(stub, "nmi_dispatch")
    client.interrupt()
    unasked = []
    for _ in range(5):
        answers(client, f"Z1,{place:x},1", "OK")
        client.resume()
        where = fields(client.interrupt())
        tap.check("hwbreak" in where, "a breakpoint stops inside an NMI")
        answers(client, f"vCont;s:{where['thread']}", "E.the code of an NMI cannot .*")
        answers(client, f"z1,{place:x},1", "OK")
        client.resume()
        console = stub.in_background("cat /proc/version")
        unasked += stub.disturbed(client, console)
        client.interrupt()
    tap.equal(unasked, [], "each Ctrl-C is one stop")


def a_change_of_text_delays_a_stop(stub, client):
    """A Ctrl-C during a change of text stops the kernel when the change ends. Until then
    the kernel notes the wish to stop in a variable. Here a breakpoint in the change has
    this variable as its condition. So it stops after the Ctrl-C and before the end of the
    change, and the kernel must forget the wish.
    """
    client.resume()
    place, wish = symbol(stub, "registry_insert"), symbol(stub, "stop_wanted")
    names = ("vfs_read", "vfs_open", "vfs_node_find", "shell_read_file", "serial_write")
    places = [symbol(stub, name) for name in names]
    code = f"25{wish:016x}" + "17" + "27"  # *(u8 *)wish
    for _ in range(20):
        client.interrupt()
        answers(client, f"Z0,{place:x},1", "OK")
        client.resume()
        console = stub.in_background("probe all vfs_*")
        client.packet()
        four_more_at_a_change(client, places)
        answers(client, f"Z0,{place:x},1;X{len(code) // 2:x},{code}", "OK")
        client.resume()
        where = fields(client.interrupt())
        answers(client, f"z0,{place:x},1", "OK")
        client.resume()
        tap.equal(stub.disturbed(client, console), [], "one Ctrl-C, one stop")
        ask_console(stub, "probe del all")
        if "swbreak" in where:
            break
    tap.check("swbreak" in where, "by a breakpoint in the middle of a change of text")
    client.interrupt()


def four_more_at_a_change(client, places):
    """The thread that changes text is stopped while it holds the engine's locks. So new
    breakpoints use debug registers, and there are only four.
    """
    for place in places[:4]:
        answers(client, f"Z0,{place:x},1", "OK")
    answers(
        client,
        f"Z0,{places[4]:x},1",
        "E.the text is being changed: let the kernel run for a moment",
    )
    answers(client, f"Z0,{boot_text():x},1", "E.the address is not kernel text")
    for place in places[:4]:
        answers(client, f"z0,{place:x},1", "OK")


def one_cpu_runs_alone(stub, client):
    """One CPU runs, and the other CPUs stand in an NMI. If the running CPU takes an NMI
    for another reason, it must not stand, too. Here the reason is a text of a dprintf:
    the tick finds it and sends an NMI to its own CPU, which sends the text. The dprintf
    is in the tick itself, before the tick looks for texts, because a stop between the two
    would send the text.
    """
    client.resume()
    tick, polls = symbol(stub, "sched_tick"), symbol(
        stub, "serial_poll_all"
    )  # in this order
    client.interrupt()
    text = b"tick\n\0"
    code = "2200" + "2200" + f"3400{len(text):04x}" + text.hex() + "27"
    answers(client, f"Z0,{polls:x},1", "OK")
    client.resume()
    where = fields(client.packet())
    answers(client, f"z0,{polls:x},1", "OK")
    answers(client, f"Z0,{polls:x},1;cmds:1,X{len(code) // 2:x},{code}", "OK")
    answers(client, f"Z0,{tick:x},1", "OK")
    stops, printed = [], ""
    while len(stops) < 3:
        client.resume(f"c:{where['thread']}")
        said, stop = client.stopped()
        printed += said
        where = fields(stop)
        stops.append(where["core"])
    tap.equal(
        (stops, printed),
        (["0"] * 3, "tick\n" * 2),  # it began behind polls
        "a CPU that runs alone goes on when an NMI has come",
    )
    for place in (tick, polls):
        answers(client, f"z0,{place:x},1", "OK")


def watchpoints(stub, client):
    client.resume()
    jiffies = symbol(stub, "jiffies")
    client.interrupt()
    answers(client, f"Z2,{jiffies:x},3", "E.a debug register watches .*")
    answers(client, f"Z2,{jiffies + 1:x},4", "E.*not a multiple.*")
    for length in (1, 2, 4, 8):
        answers(client, f"Z2,{jiffies:x},{length}", "OK")
    answers(client, f"Z2,{jiffies - 64:x},8", "E.all four debug registers are taken")
    for length in (1, 2, 4):
        answers(client, f"z2,{jiffies:x},{length}", "OK")
    client.resume()
    where = fields(client.packet())
    tap.equal(where.get("watch"), f"{jiffies:x}", "a watchpoint stops behind the store")
    for n in range(3):
        answers(client, f"Z3,{jiffies - 64 * n - 64:x},8", "OK")
    answers(client, f"Z4,{jiffies - 512:x},8", "E.all four debug registers are taken")
    for n in range(3):
        answers(client, f"z3,{jiffies - 64 * n - 64:x},8", "OK")
    answers(client, f"z2,{jiffies:x},8", "OK")


def with_a_probe_there(stub, client, place):
    """A probe that counts and a breakpoint are at one address: each call is one hit."""
    client.resume()
    tap.check(
        ask_console(stub, "probe add vfs_read").errno == 0, "a probe at that address"
    )
    before = hits(stub)
    client.interrupt()
    answers(client, f"M{place + 1:x},1:90", "E.there is a probe.*")
    answers(client, f"Z0,{place:x},1", "OK")
    client.resume()
    console = threading.Thread(target=ask_console, args=(stub, "cat /proc/version"))
    console.start()
    for _ in range(2):
        where = fields(client.packet())
        answers(client, f"z0,{place:x},1", "OK")
        answers(client, "P2b=8877665544332211", "OK")
        answers(client, "m0,4", "E0e")  # the stub's own page fault
        client.resume(f"s:{where['thread']}")
        client.packet()
        answers(client, "p2b", "8877665544332211")
        answers(client, f"Z0,{place:x},1", "OK")
        client.resume()
    console.join()
    tap.equal(hits(stub) - before, 2, "it counts each call once")
    client.interrupt()
    answers(client, f"z0,{place:x},1", "OK")
    client.resume()
    ask_console(stub, "probe del all")
    client.interrupt()


def a_round_is_a_step(stub, client):
    """Behind a watchpoint's stop in a repeated instruction that carries a probe."""
    client.resume()
    said = ask_console(stub, "probe listing memset").text
    place = int(re.search(r'"address":"([0-9a-f]+)","original":"f348ab"', said)[1], 16)
    offset = place - symbol(stub, "memset")
    ask_console(stub, f"probe add memset+{offset:#x}")
    client.interrupt()
    answers(client, f"Z0,{place:x},1;X7,22072600021527", "OK")  # 7 < rcx
    client.resume()
    console = stub.in_background("run vfs")
    step = f"s:{fields(client.packet())['thread']}"
    left, aim = string_registers(client)
    answers(client, f"z0,{place:x},1", "OK")
    answers(client, f"Z2,{aim + 8:x},8", "OK")
    for rounds, action in enumerate(("c", step, step), 2):
        client.resume(action)
        client.packet()
        tap.equal(string_registers(client), (left - rounds, aim + 8 * rounds), action)
    answers(client, f"z2,{aim + 8:x},8", "OK")
    client.resume()
    console.join()
    ask_console(stub, "probe del all")
    client.interrupt()


def string_registers(client):
    """Return rcx and rdi."""
    data = bytes.fromhex(client.ask("g").replace("x", "0"))
    return tuple(int.from_bytes(data[8 * n : 8 * n + 8], "little") for n in (2, 5))


def hits(stub):
    """Return the hits of the probe that the console has added."""
    lines = ask_console(stub, "probe list").text.splitlines()
    return next(int(line.split()[4]) for line in lines if re.match(r"p\d+ ", line))


def a_debugger_dies(stub, client, cpus):
    stop = client.ask("?")
    client.send(b"$m" + TEXT.encode())
    client.close()
    client = stub.connect()
    client.greet()
    tap.equal(client.ask("?"), stop, "the next one finds the kernel where it stood")
    client.resume()
    client.close()
    client = stub.connect()
    client.greet()
    tap.check(client.ask("?").startswith("T02"), "and stops it when it ran")
    answers(client, "D", "OK")
    client.close()
    tap.check(ask_console(stub, "run vfs").errno == 0, "D lets it go")


def the_kernel_ends(stub):
    """The machine is switched off while a debugger waits for a stop."""
    client = stub.connect()
    client.greet()
    client.without_acks()
    client.resume()
    stub.guest.console.send(b"poweroff\n")
    tap.equal(
        client.stopped()[1], "W00", "a debugger hears that the machine is switched off"
    )
    tap.equal(stub.guest.wait_end(LIMIT), EXIT_POWEROFF, "and it is")


def greet_until_answered(client):
    """Send gdb's first packet each second, as gdb does: the kernel may not listen yet."""
    first = b""
    while not first:
        client.send(frame(b"qSupported:swbreak+"))
        with contextlib.suppress(TimeoutError):
            first = client.packet(1)
    client.send(frame(b"qC"))
    while not client.packet().startswith("QC"):
        pass  # an answer to an earlier packet


def the_tests_of_a_kernel_fail():
    """The debugger comes when the kernel says that it waits, or before that. Either way it
    stops the kernel once.
    """
    for when in ("waiting for a debugger", "CPUs online", ""):
        with Stub("gdbwait tests=no_such_test", elf=image.TESTS) as stub:
            tap.check(
                stub.guest.console.expect(when.encode(), LIMIT) is not None,
                f"the kernel has printed '{when}'",
            )
            client = stub.connect()
            greet_until_answered(client)
            client.without_acks()
            client.resume()
            tap.equal(
                client.stopped()[1], "W01", "a debugger hears of the end with its status"
            )
            tap.equal(
                stub.guest.wait_end(LIMIT),
                EXIT_TESTS_FAILED,
                "which is that tests failed",
            )


def without_tracepoints():
    """With more than 16 CPUs there are no tracepoints, but the rest of the stub works."""
    with Stub(smp=17) as stub:
        stub.guest.wait_prompt(LIMIT)
        client = stub.connect()
        features = client.greet()
        tap.equal(features.get("PacketSize"), "4000", "17 CPUs: the stub is there")
        answers(client, "QTinit", "")
        answers(client, "qTStatus", "")
        tap.equal(
            client.ask("qXfer:threads:read::0,3fff").count(' core="'),
            17,
            "and sees all of them",
        )


NAPS = 6000
NAPPING = f"""
#include "kernel/thread/thread.h"
static int nap(void *unused)
{{
    (void)unused;
    thread_sleep_ns(UINT64_C(1) << 60);
    return 0;
}}
__attribute__((constructor)) static void come(void)
{{
    for (int i = 0; i < {NAPS}; i++)
        kernel_clone(&(struct clone_args){{ .fn = nap, .stack_len = 8192, .detached = 1 }});
}}
"""


def more_threads_than_a_packet_lists():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "naps.c")
        with open(path, "w", encoding="ascii") as file:
            file.write(NAPPING)
        brought = f"-fw_cfg name=opt/sonde/module/naps.o,file={modules.compiled(path)}"
        with Stub("modules=naps", qemu=brought) as stub:
            stub.guest.wait_prompt(LIMIT)
            client = stub.connect()
            client.greet()
            packets = [client.ask("qfThreadInfo")]
            while packets[-1] != "l":
                packets.append(client.ask("qsThreadInfo"))
            found = sorted(
                int(tid, 16) for packet in packets[:-1] for tid in packet[1:].split(",")
            )
            tap.check(len(packets) > 2, "the list of threads takes several packets")
            first = next(tid for tid in found if tid + NAPS - 1 in found)
            is_whole = set(range(first, first + NAPS)) <= set(found)
            tap.check(
                is_whole and len(set(found)) == len(found), "each thread is in it once"
            )


def all_of_it():
    for cpus in (1, 2, 4) if tap.LONG else (1, 4):
        with Stub(smp=cpus) as stub:
            stub.guest.wait_prompt(LIMIT)
            noise_does_not_stop_a_kernel_that_runs(stub)
            client = packets_one_by_one(stub, cpus)
            memory_and_registers(stub, client)
            sleepers_have_registers(client)
            cpus_that_stand_halt(stub, cpus)
            memory_is_written(stub, client)
            running_and_stopping(stub, client, cpus)
            place = breakpoints(stub, client)
            a_step_ends_in_its_thread(stub, client, place)
            many_in_one_stop(stub, client)
            conditions(stub, client, place)
            places_that_are_refused(stub, client, place)
            an_nmi_is_a_stop_once(stub, client)
            a_change_of_text_delays_a_stop(stub, client)
            one_cpu_runs_alone(stub, client)
            watchpoints(stub, client)
            with_a_probe_there(stub, client, place)
            a_round_is_a_step(stub, client)
            damage_and_noise(client, cpus)
            a_debugger_dies(stub, client, cpus)
            the_kernel_ends(stub)


tap.run(
    all_of_it,
    the_tests_of_a_kernel_fail,
    without_tracepoints,
    more_threads_than_a_packet_lists,
)
