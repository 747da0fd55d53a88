"""test_gdb_trace.py - tests tracepoints of the kernel's stub, packet by packet. The
collected data must be what the kernel has done, also at instructions of one byte. Lost
frames must be counted.
"""

import re
import time

import tap
from probes.gdb.host.rsp import Stub
from session import LIMIT, stat

END = "27"
COUNT = "260003"  # rdx, gdb's register 3
EACH_HIT = range(1, 9)  # the numbers of several tracepoints at one place
ADD = "2c0001" + "2201" + "02" + "2d0001" + "2e0001" + END  # $1 = $1 + 1; collect it
ADD_BOTH = "2e0001" + ADD  # $1 is collected before that, too


def answers(client, packet, pattern):
    text = client.ask(packet)
    good = re.fullmatch(pattern, text, re.S)
    tap.check(good, f"{packet[:40]}: {pattern[:40]}")
    if not good:
        tap.note(text[:200])


def starts(client):
    """Start the trace. Where the kernel has stopped in the middle of a change of text, the
    stub refuses, and asks the debugger to let the kernel run for a moment.
    """
    for _ in range(100):
        reply = client.ask("QTStart")
        if "the text is being changed" not in reply:
            break
        client.resume()
        time.sleep(0.05)
        client.interrupt()
    tap.equal(reply, "OK", "QTStart: OK")


def status(client):
    """Return (does a trace run?, the fields of qTStatus)."""
    text = client.ask("qTStatus")
    pairs = dict(pair.split(":", 1) for pair in text[3:].split(";") if pair)
    return text[:2] == "T1", pairs


def number(pairs, name):
    return int(pairs[name], 16)


def run(stub, client, command):
    """Let the kernel run, run a console command, and stop the kernel again."""
    client.resume()
    reply = stub.ask_console(command)
    client.interrupted()
    return reply


def define(client, number, place, actions, condition="", rest="E:0:0"):
    """Define a tracepoint. Return the answers to all packets for it."""
    more = "-" if actions else ""
    said = [client.ask(f"QTDP:{number:x}:{place:x}:{rest}{condition}{more}")]
    for n, action in enumerate(actions, 1):
        more = "-" if n < len(actions) else ""
        said.append(client.ask(f"QTDP:-{number:x}:{place:x}:{action}{more}"))
    return said


def program(code):
    return f"X{len(code) // 2:x},{code}"


def offers(client, features):
    for word in (
        "ConditionalTracepoints",
        "FastTracepoints",
        "TracepointSource",
        "tracenz",
        "EnableDisableTracepoints",
        "InstallInTrace",
        "QTBuffer:size",
        "qXfer:traceframe-info:read",
    ):
        tap.equal(features.get(word), "+", f"{word} is offered")
    answers(client, "qTMinFTPILen", "1")
    answers(client, "qTStatus", "T0;tnotrun:0;tframes:0;tcreated:0;.*")
    answers(client, "qTfP", "l")
    answers(client, "qTfV", "l")
    answers(client, "QTDV:1:5:0:61", "OK")
    answers(client, "QTDV:2:6:1:62", "OK")
    answers(client, "qTfV", "2:6:1:62")
    answers(client, "qTsV", "1:5:0:61")
    answers(client, "qTsV", "l")
    answers(client, "QTFrame:0", "F-1")


def frames_are_what_happened(stub, client, place):
    """Trace vfs_read, which `run vfs` calls 720 times, and look at the frames."""
    answers(client, "QTinit", "OK")
    answers(client, "QTDV:1:5:0:6869747", "OK")
    said = define(client, 1, place, ["R0", "M7,0,10", program(ADD)])
    tap.equal(said, ["OK"] * 4, "a tracepoint with registers, memory and a program")
    starts(client)
    tap.equal(status(client)[0], True, "the trace runs")
    tap.equal(run(stub, client, "run vfs").errno, 0, "720 calls")
    runs, pairs = status(client)
    tap.equal(
        (runs, number(pairs, "tframes"), number(pairs, "tcreated")),
        (True, 720, 720),
        "make 720 frames",
    )
    answers(client, "QTStop", "OK")
    answers(client, f"qTP:1:{place:x}", "V2d0:[1-9a-f][0-9a-f]*")
    answers(client, "qTV:1", "V2d5")
    live = client.ask("g")
    answers(client, "QTFrame:5", "F5T1")
    registers = client.ask("g")
    tap.check(registers != live and len(registers) == len(live), "g is the frame's")
    rip = int.from_bytes(bytes.fromhex(registers[256:272]), "little")
    rsp = int.from_bytes(bytes.fromhex(registers[112:128]), "little")
    tap.equal(rip, place, "with the tracepoint's address")
    tap.check(
        re.fullmatch("[0-9a-f]{32}", client.ask(f"m{rsp:x},10")), "m is the frame's"
    )
    answers(client, f"m{rsp + 16:x},10", "E..*")
    answers(client, f"m{rsp + 8:x},10", "[0-9a-f]{16}")
    answers(client, f"m{place:x},4", "E..*")
    answers(client, f"QTro:{place:x},{place + 16:x}", "OK")
    answers(client, f"m{place:x},4", "0f1f4400")
    # Two threads can hit at the same time. Then the frames may have the sums the other
    # way round.
    value = client.ask("qTV:1")
    tap.check(
        re.fullmatch("V[0-9a-f]+", value) and 5 < int(value[1:], 16) <= 5 + 720,
        f"the variable is the frame's: {value}",
    )
    answers(client, "qTV:2", "U")
    answers(
        client,
        "qXfer:traceframe-info:read::0,fff",
        f'l.*<memory start="0x{rsp:x}" length="0x10"/>.*<tvar id="0x1"/>.*',
    )
    answers(client, "P0=0000000000000000", "E.*tfind none")
    answers(client, f"M{rsp:x},1:00", "E.*tfind none")
    answers(client, "QTFrame:ffffffff", "F-1")
    tap.check(client.ask("g") == live, "without a frame g is the CPU's again")
    looking_for_frames(client, place)


def looking_for_frames(client, place):
    answers(client, f"QTFrame:pc:{place:x}", "F0T1")
    answers(client, f"QTFrame:pc:{place:x}", "F1T1")
    answers(client, "QTFrame:tdp:1", "F2T1")
    answers(client, "QTFrame:tdp:2", "F-1")
    answers(client, f"QTFrame:range:{place - 1:x}:{place:x}", "F3T1")
    answers(client, f"QTFrame:range:{place + 1:x}:{place + 9:x}", "F-1")
    answers(client, f"QTFrame:outside:{place + 1:x}:{place + 9:x}", "F4T1")
    answers(client, f"QTFrame:outside:{place:x}:{place:x}", "F-1")
    answers(client, "QTFrame:2d0", "F-1")
    answers(client, "QTFrame:2cf", "F2cfT1")
    answers(client, "QTFrame:0", "F0T1")
    answers(client, "QTFrame:", "E..*")
    answers(client, "QTFrame:-1", "E.QTFrame wants a number.*")
    client.ask("QTFrame:ffffffff")


def all_frames_for_a_file(client):
    """Fetch all frames as gdb's tsave does. Return [(tracepoint, blocks)]."""
    data = b""
    while (piece := client.ask(f"qTBuffer:{len(data):x},1000")) != "l":
        data += bytes.fromhex(piece)
    at, frames = 0, []
    while at < len(data):
        length = int.from_bytes(data[at + 2 : at + 6], "little")
        frames.append(
            (int.from_bytes(data[at : at + 2], "little"), data[at + 6 : at + 6 + length])
        )
        at += 6 + length
    return frames


def the_file_has_all(client, cpus):
    frames = all_frames_for_a_file(client)
    tap.equal(len(frames), 720, "qTBuffer gives all frames")
    tap.check(
        all(
            n == 1 and blocks[:1] == b"R" and blocks[333:334] == b"M"
            for n, blocks in frames
        ),
        "with their blocks",
    )
    values = [int.from_bytes(blocks[-8:], "little") for _, blocks in frames]
    if cpus == 1:
        tap.equal(values, list(range(6, 726)), "in the order of time")
    else:
        tap.check(min(values) >= 6 and max(values) == 725, "and values of all CPUs")


def definitions(client):
    """Return the answers that describe all tracepoints."""
    lines, text = [], client.ask("qTfP")
    while text != "l":
        lines.append(text)
        text = client.ask("qTsP")
    return lines


def conditions_and_sets(stub, client, place):
    """Two tracepoints are at one place, one with a condition. A third one is off."""
    answers(client, "QTinit", "OK")
    code = COUNT + "2240" + "15" + END  # count < 64
    said = define(client, 1, place, ["R0"], ":" + program(code))
    tap.equal(said, ["OK"] * 2, "a tracepoint with a condition")
    tap.equal(define(client, 2, place, ["R0"]), ["OK"] * 2, "another one at its address")
    tap.equal(
        define(client, 3, place + 5, ["R0"], "", "D:0:0:F1"),
        ["OK"] * 2,
        "a fast one at an instruction of one byte, which is off",
    )
    starts(client)
    run(stub, client, "run vfs")
    answers(client, f"QTEnable:3:{place + 5:x}", "OK")
    run(stub, client, "cat /proc/version")
    answers(client, f"QTDisable:2:{place:x}", "OK")
    run(stub, client, "cat /proc/version")
    answers(client, "QTStop", "OK")
    hits = [
        client.ask(f"qTP:{n}:{at:x}").split(":")[0]
        for n, at in ((1, place), (2, place), (3, place + 5))
    ]
    tap.equal(hits[1:], ["V2d2", "V4"], "each counts while it is on")
    frames = all_frames_for_a_file(client)
    rdx = [int.from_bytes(b[1 + 24 : 1 + 32], "little") for n, b in frames if n == 1]
    tap.check(rdx and all(value < 64 for value in rdx), "the condition has held")
    tap.equal(hits[0], f"V{len(rdx):x}", "for each of its frames")
    client.ask("qSupported")
    ups = definitions(client)
    tap.equal([t[0] for t in ups], list("TATATA"), "another debugger is told all of them")
    tap.equal(ups[4], f"T3:{place + 5:x}:E:0:0:F1", "as they are now")
    tap.equal(
        definitions(client)[4],
        f"T3:{place + 5:x}:E:0:0",
        "a file is not: gdb opens no file with a fast one at less than five bytes",
    )


def ends(stub, client, place):
    """A pass count ends a trace, and so does a full buffer, if it is not circular."""
    answers(client, "QTinit", "OK")
    define(client, 1, place, ["R0"], "", "E:0:9")
    starts(client)
    run(stub, client, "run vfs")
    runs, pairs = status(client)
    tap.equal(
        (runs, pairs.get("tpasscount"), pairs["tframes"]),
        (False, "1", "9"),
        "a pass count ends the trace",
    )
    answers(client, "QTBuffer:size:8000", "OK")
    answers(client, "QTBuffer:size:ffffffff", "E.the buffer has at most .*")
    answers(client, "QTinit", "OK")
    define(client, 1, place, ["R0", "M7,0,100"])
    starts(client)
    run(stub, client, "run vfs")
    runs, pairs = status(client)
    tap.check(
        not runs and "tfull" in pairs and 0 < number(pairs, "tframes") < 100,
        "a full buffer ends it",
    )
    tap.check(b"frames lost" in bytes.fromhex(pairs["notes"]), "which is told as a loss")
    answers(client, "QTBuffer:size:-1", "OK")
    answers(client, "QTBuffer:circular:1", "OK")
    answers(client, "QTinit", "OK")
    define(client, 1, place, ["R0", f"M-1,{place:x},800"])
    starts(client)
    answers(client, f"QTDP:-1:{place:x}:R0", "OK")  # a hit still collects for it once
    for _ in range(4):
        run(stub, client, "run vfs")
    runs, pairs = status(client)
    tap.check(
        runs and number(pairs, "tcreated") == 2880 > number(pairs, "tframes") > 100,
        "a circular buffer keeps the latest",
    )
    answers(client, "QTFrame:0", "F0T1")
    a_small_circle(stub, client, place)
    answers(client, "QTBuffer:circular:0", "OK")


def a_small_circle(stub, client, place):
    """A circular buffer keeps the latest frames, and as many as fit into the size that
    was asked for.
    """
    answers(client, "QTBuffer:size:1000", "OK")
    answers(client, "QTinit", "OK")
    answers(client, "QTDV:1:0:0:6869747", "OK")
    define(client, 1, place, [program(ADD_BOTH)])
    starts(client)
    run(stub, client, "run vfs")
    pairs = status(client)[1]
    answers(client, "QTStop", "OK")
    frames = all_frames_for_a_file(client)
    size = 24 + 2 * 13  # struct gdb_record and two values
    tap.equal(
        (number(pairs, "tcreated"), number(pairs, "tframes"), len(frames)),
        (720, 0x1000 // size, 0x1000 // size),
        "a small circle has so many frames",
    )
    values = [int.from_bytes(blocks[-8:], "little") for _, blocks in frames]
    tap.equal(max(values), 720, "and the latest")
    answers(client, f"QTFrame:{len(frames) - 1:x}", f"F{len(frames) - 1:x}T1")
    answers(client, "p0", "x{16}")
    answers(client, "qTV:1", f"V{values[-1]:x}")
    client.ask("QTFrame:ffffffff")
    answers(client, "QTBuffer:size:-1", "OK")


def what_fails(stub, client, place):
    """Test programs that fault, wrong programs, a tracepoint in the code that collects,
    and wrong packets.
    """
    answers(client, "QTinit", "OK")
    null = "2200" + "19" + "29" + END  # *(u32 *)0
    define(client, 1, place, ["R0", program(null), "M-1,0,4", f"M-1,{place:x},2000"])
    define(client, 2, place, [], ":" + program("2200" + "19" + END))
    collects = stub_symbol(stub, client, "agent_run")
    define(client, 3, collects, ["R0"])
    starts(client)
    run(stub, client, "cat /proc/version")
    runs, pairs = status(client)
    notes = bytes.fromhex(pairs["notes"]).decode()
    tap.check(runs and number(pairs, "tframes") == 2, "programs that fault end nothing")
    faults = int(re.search(r"\[(\d+) pieces or conditions", notes).group(1))
    tap.equal(faults, 2 * 3, "each is counted")
    answers(client, "QTFrame:1", "F1T1")
    text = client.ask(f"m{place:x},1ff0")
    tap.equal(len(text) // 2, 0x1FF0, "a frame is longer than a page")
    answers(client, "QTStop", "OK")
    for bad in (
        "QTDP:4:1000:E:x:0",
        "QTDP:4",
        "QTDP:4:1000:E:0:0:S",
        "QTDP:-9:1000:R0",
        "QTDP:4:1000:E:0:0:X3,2600",
        "QTDP:4:1000:E:0:0:X1,15",
        "QTDPsrc:9:9:x",
        "QTDV:1",
        "QTEnable:9:9",
        "qTV:",
        "qTBuffer:x",
    ):
        answers(client, bad, "E..*")
    answers(client, f"QTDP:5:{place:x}:E:0:0-", "OK")
    answers(client, f"QTDP:-5:{place:x}:SR0,L", "E..*")
    answers(client, f"QTDP:6:{place + 1:x}:E:0:0", "OK")
    answers(client, "QTStart", "E.tracepoint 6 at .*")
    tap.equal(status(client)[0], False, "one place that is refused refuses the trace")


def steps(stub, client):
    """Behind a hit the next instructions are collected one by one: also those that push the
    flags, up to the switch of threads, and until the trace ends.
    """
    count = 10
    said = run(stub, client, "probe listing vfs_read").text
    code = re.findall(r'^{"address":"([0-9a-f]+)","original":"(..)', said, re.M)
    begin = 2 * (code[1][1] == "e8")  # a call that checks the contract
    code = [int(at, 16) for at, _ in code[begin:]]
    place = code[0]
    answers(client, "QTinit", "OK")
    define(client, 1, place, ["R0", "SM7,0,8", "R0"], rest=f"E:{count:x}:0")
    answers(client, "qTfP", f"T1:{place:x}:E:{count:x}:0")
    for letter, action in ("A", "R0"), ("S", "M7,0,8"), ("S", "R0"):
        answers(client, "qTsP", f"{letter}1:{place:x}:{action}")
    starts(client)
    run(stub, client, "cat /proc/version")
    first = [ip_of_frame(client, frame) for frame in range(count + 1)]
    tap.equal(first, code[: count + 1], f"a hit, and {count} steps")
    client.ask("QTFrame:ffffffff")
    for name, count, command in (
        ("frame_alloc", 40 + 300 * begin, "run vfs"),
        ("leave_cpu", 300, "run sleep"),
    ):
        answers(client, "QTinit", "OK")
        place = stub_symbol(stub, client, name)
        define(client, 1, place, ["SR0", "M7,0,8"], rest=f"E:{count:x}:0")
        answers(client, "QTBuffer:circular:1", "OK")
        starts(client)
        tap.equal(run(stub, client, command).errno, 0, f"{name}: the program goes on")
        pairs = status(client)[1]
        hits = int(client.ask(f"qTP:1:{place:x}")[1:].split(":")[0], 16)
        lost = "steps lost" in bytes.fromhex(pairs["notes"]).decode()
        whole = number(pairs, "tcreated") == hits * (count + 1)
        tap.equal(
            (whole, lost),
            (not lost, name == "leave_cpu"),
            "a hit has all its steps, or else that is counted",
        )
        if name == "frame_alloc":
            the_program_sees_no_step(stub, client)
    inside, behind = [stub_symbol(stub, client, n) for n in ("switch_to", "thread_entry")]
    answers(client, f"QTFrame:range:{inside:x}:{inside:x}", "F[0-9a-f]+T1")
    answers(client, f"QTFrame:range:{inside + 1:x}:{behind - 1:x}", "F-1")
    client.ask("QTFrame:ffffffff")
    client.resume()
    console = stub.in_background("run all")
    client.interrupted()
    answers(client, "QTStop", "OK")
    client.resume()
    console.join()
    client.interrupted()
    answers(client, "QTBuffer:circular:0", "OK")


def steps_of_a_repeated_instruction(stub, client):
    """Each round is a step, the first one too."""
    said = run(stub, client, "probe listing memset").text
    place = int(re.search(r'"address":"([0-9a-f]+)","original":"f348ab"', said)[1], 16)
    answers(client, "QTinit", "OK")
    many = ":" + program("2207" + "260002" + "15" + END)  # 7 < rcx
    define(client, 1, place, ["R0", "SR0"], many, rest="E:3:0")
    starts(client)
    run(stub, client, "run vfs")
    rounds = []
    for frame in range(4):
        client.ask(f"QTFrame:{frame:x}")
        rounds.append(int.from_bytes(bytes.fromhex(client.ask("g")[32:48]), "little"))
    tap.equal(rounds, [rounds[0] - n for n in range(4)], "each round is a step")
    client.ask("QTFrame:ffffffff")
    answers(client, "QTStop", "OK")


def the_program_sees_no_step(stub, client):
    """The flags that spin_lock_irqsave() pushes have no TF, although it is stepped."""
    said = run(stub, client, "probe listing spin_lock_irqsave").text
    pushf = int(re.search(r'"address":"([0-9a-f]+)","original":"9c"', said)[1], 16)
    answers(client, f"QTFrame:pc:{pushf + 1:x}", "F[0-9a-f]+T1")
    rsp = int.from_bytes(bytes.fromhex(client.ask("g")[112:128]), "little")
    flags = int.from_bytes(bytes.fromhex(client.ask(f"m{rsp:x},8")), "little")
    tap.equal(flags & 0x102, 2, f"flags {flags:#x}")
    client.ask("QTFrame:ffffffff")


def ip_of_frame(client, frame):
    client.ask(f"QTFrame:{frame:x}")
    return int.from_bytes(bytes.fromhex(client.ask("g")[256:272]), "little")


def stub_symbol(stub, client, name):
    client.resume()
    addr = stub.symbol(name)
    client.interrupted()
    return addr


def with_a_breakpoint(stub, client, place):
    """A tracepoint and a breakpoint are at one address: both work. Then the debugger
    dies, and the trace goes on.
    """
    answers(client, "QTinit", "OK")
    define(client, 1, place, ["R0", "M7,0,40"])
    starts(client)
    answers(client, f"Z0,{place:x},1", "OK")
    client.resume()
    console = stub.in_background("cat /proc/version")
    stops = 0
    for _ in range(2):
        stops += "swbreak" in client.packet()
        client.ask(f"z0,{place:x},1")
        client.ask(f"Z0,{place:x},1")
        client.resume()
    console.join()
    client.interrupted()
    pairs = status(client)[1]
    tap.equal((stops, number(pairs, "tframes")), (2, 2), "two stops, and two frames")
    answers(client, f"z0,{place:x},1", "OK")
    client.resume()
    tap.equal(stub.ask_console("run vfs").errno, 0, "the breakpoint is gone")
    client.close()
    tap.equal(
        stub.ask_console("run vfs").errno, 0, "without a debugger the trace goes on"
    )
    client = stub.connect()
    features = client.greet()
    client.without_acks()
    runs, pairs = status(client)
    tap.equal((runs, number(pairs, "tframes")), (True, 1442), "and the next one finds it")
    answers(client, "D", "OK")
    client.close()
    client = stub.connect()
    client.greet()
    client.without_acks()
    tap.check("tdisconnected" in status(client)[1], "detach ends it")
    tap.equal(features.get("ConditionalTracepoints"), "+", "features come again")
    return client


def stops_between_frames(stub, client, place, cpus):
    """Each hit makes several long frames, and stops come meanwhile. A CPU completes all
    frames of its hit before it stands.
    """
    answers(client, "QTinit", "OK")
    answers(client, "QTBuffer:circular:1", "OK")
    for one in EACH_HIT:
        define(client, one, place, ["R0", f"M-1,{place:x},1800", f"M-1,{place:x},1800"])
    starts(client)
    halves, stops = [], (20 if tap.LONG else 5) * cpus
    client.resume()
    console = stub.in_background("run vfs")
    for _ in range(stops):
        client.interrupted()
        made = number(status(client)[1], "tcreated")
        each = [client.ask(f"qTP:{one:x}:{place:x}").split(":")[0] for one in EACH_HIT]
        if set(each) != {f"V{made // len(EACH_HIT):x}"}:
            halves.append((made, each))
        client.resume()
    console.join()
    client.interrupted()
    tap.equal(
        number(status(client)[1], "tcreated"),
        720 * len(EACH_HIT),
        f"{len(EACH_HIT)} long frames at each of 720 hits",
    )
    tap.equal(halves, [], f"none of {stops} stops finds one half done")
    answers(client, "QTBuffer:circular:0", "OK")


def in_nmis_and_interrupts(stub, client):
    """Trace in NMIs and in the timer's interrupt. Ctrl-C and each stop of another CPU are
    NMIs, and a probe at the same place counts them. In the interrupt, the values of
    jiffies show that no tick is missing.
    """
    names = ("nmi_dispatch", "serial_poll_all", "jiffies")
    nmi, polls, jiffies = [stub_symbol(stub, client, name) for name in names]
    run(stub, client, "probe add nmi_dispatch")
    answers(client, "QTinit", "OK")
    define(client, 1, nmi, ["R0", "M7,0,20"])
    define(client, 2, polls, ["R0", f"M-1,{jiffies:x},8"])
    before = hits_of_probe(client, "nmi_dispatch")
    starts(client)
    for _ in range(10):
        client.resume()
        client.interrupted()
    for _ in range(3):  # a few ticks come in each run, if the host is not busy
        run(stub, client, "run sleep")
    hits = hits_of_probe(client, "nmi_dispatch") - before
    answers(client, "QTStop", "OK")
    frames = all_frames_for_a_file(client)
    notes = bytes.fromhex(status(client)[1]["notes"]).decode()
    lost = sum(int(n) for n in re.findall(r"\[(\d+) ", notes))
    recorded = sum(number == 1 for number, _ in frames)
    tap.check(hits >= 10, "each Ctrl-C is an NMI")
    tap.equal(recorded + lost, hits, "in NMIs each hit is a frame, or lost and counted")
    ticks = [int.from_bytes(blocks[-8:], "little") for n, blocks in frames if n == 2]
    tap.check(len(ticks) >= 10, f"{len(ticks)} ticks come meanwhile")
    tap.equal(ticks, list(range(ticks[0], ticks[0] + len(ticks))), "and each is a frame")
    run(stub, client, "probe del all")


def hits_of_probe(client, name):
    """Return the hits in `probe list`, while all CPUs stand. The command is postponed if
    a thread holds the lock that it needs. Then the kernel runs on and is stopped again.
    """
    while True:
        text, _ = client.told("qRcmd," + b"probe list".hex())
        found = re.search(rf"^p\d+ .* (\d+) +(\d+)  {name}", text, re.M)
        if found:
            return int(found[1]) + int(found[2])
        client.resume()
        client.interrupted()


def is_gone(stub, client):
    client.ask("QTinit")
    client.resume()
    left = None
    for _ in range(200):
        left = stat(stub.guest)["probes"]
        if not left:
            break
        time.sleep(0.05)
    tap.equal(left, 0, "no probe is left")


def all_of_it():
    for cpus in (1, 4):
        with Stub(smp=cpus) as stub:
            stub.guest.wait_prompt(LIMIT)
            client = stub.connect()
            features = client.greet()
            client.without_acks()
            place = stub_symbol(stub, client, "vfs_read")
            offers(client, features)
            frames_are_what_happened(stub, client, place)
            if cpus == 1 or tap.LONG:  # the line is slow, and slower if more CPUs stand
                the_file_has_all(client, cpus)
                conditions_and_sets(stub, client, place)
            ends(stub, client, place)
            steps(stub, client)
            if cpus == 1:  # else frames of other CPUs come between
                steps_of_a_repeated_instruction(stub, client)
            what_fails(stub, client, place)
            client = with_a_breakpoint(stub, client, place)
            stops_between_frames(stub, client, place, cpus)
            in_nmis_and_interrupts(stub, client)
            is_gone(stub, client)


tap.run(all_of_it)
