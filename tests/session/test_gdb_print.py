"""test_gdb_print.py - tests what the kernel's stub prints for gdb: the output of console
commands (`monitor`), and of dprintf, for which the kernel runs bytecode at each hit.
"""

import time

import tap
from probes.gdb.host.rsp import Stub, output
from session import LIMIT

FORMAT = b"count %lu of %s\n\0"
LONG = b"count %lu of %s" + 100 * b" ." + b"\n\0"
FALSE, TRUE = "260003" + "2201" + "13" + "27", "260003" + "231000" + "13" + "27"


def monitor_at_once(client):
    client.stand_quietly()
    text, answer = client.monitor("ps")
    tap.check(
        answer == "OK" and " optimizer " in text and "PREEMPTED" in text,
        "monitor ps runs while all CPUs stand",
    )
    tap.equal(client.monitor("probe list")[1], "OK", "and so does probe list")
    text, answer = client.monitor("sym vfs_read")
    tap.check("T vfs_read" in text, "and sym")
    text, answer = client.monitor("probe explain nothing_of_the_kind")
    tap.check(
        answer == "OK" and "nothing_of_the_kind" in text,
        "a command that fails says why, and gdb adds nothing",
    )
    for line in ("vmstat", "vmstat -s", "ps | vmstat", "vmstat>/tmp/x"):
        text, answer = client.monitor(line)
        tap.check(
            answer == "OK" and "unknown command vmstat" in text,
            f"{line}: there is no such command, and it does not wait",
        )
    tap.check("did you mean `ps`" in client.monitor("pss")[0], "a near one is named")
    text, answer = client.monitor("help")
    tap.check(answer == "OK" and len(text) > 1000, "a long output comes whole")
    text, answer = client.monitor("x" * 600)
    tap.check(answer == "OK" and "at most 511" in text, "one that is too long is refused")


def monitor_later(stub, client):
    text, answer = client.monitor("probe add vfs_read")
    tap.check(
        answer == "OK" and "runs when the kernel does" in text,
        "a command that changes something waits, and is said to",
    )
    listed = client.monitor("probe list")[0]
    tap.check("vfs_read" not in listed, "it has not run yet")
    # On a loaded host a CPU may stand late, holding a lock: then the list waits, too.
    failing = 6 if "runs when the kernel does" in listed else 7
    for _ in range(failing):
        client.monitor("run nothing_of_the_kind")
    tap.check(
        "eight commands wait" in client.monitor("run vfs")[0], "not more than eight"
    )
    client.resume()
    texts = output(client, lambda text: text.count("it has failed: ") == failing)
    tap.equal(
        texts.count("nothing_of_the_kind"),
        failing,
        "then they run, and failures are told",
    )
    client.interrupted()
    client.stand_quietly()
    tap.check("vfs_read" in client.monitor("probe list")[0], "all of them")
    client.resume()
    tap.equal(stub.ask_console("probe del all").errno, 0, "the console works on")
    client.interrupted()


def printing(place, condition="", text=FORMAT):
    """Return the packet for a dprintf that prints count (rdx, gdb's register 3), and the
    text at address 8, which cannot be read.
    """
    code = "260003" + "2200" + "2200"  # push count, a channel (0), a function (0)
    code = "2208" + code
    code += f"3402{len(text):04x}" + text.hex() + "27"
    return f"Z0,{place:x},1{condition};cmds:1,X{len(code) // 2:x},{code}"


def dprintf(stub, client, cpus):
    client.resume()
    place = stub.symbol("vfs_read")
    client.interrupt()
    tap.equal(client.ask(printing(place)), "OK", "a breakpoint with a command")
    client.resume()
    console = stub.in_background("cat /proc/version")
    text = output(client, lambda text: text.count("\n") >= 2)
    console.join()
    tap.equal(
        text, "count 4096 of (fault)\n" * 2, "prints at each hit, and does not stop"
    )
    client.interrupted()
    tap.equal(
        client.ask(f"Z0,{place:x},1;cmds:1,X1,15"),
        "E.less_unsigned at 0: the stack is empty",
        "a command is verified",
    )
    tap.check(
        client.ask(f"Z0,{place:x},1;cmds:1,X4,2601").startswith("E."),
        "one that is cut short is refused",
    )
    tap.check(client.ask(f"Z0,{place:x},1;cmds").startswith("E."), "and rubbish")
    tap.check(
        client.ask(printing(place, ";X6,260003220113")).startswith("E."),
        "and a condition without an end",
    )
    tap.equal(client.ask(printing(place, f";X7,{FALSE}")), "OK", "with a condition")
    client.resume()
    stub.ask_console("cat /proc/version")
    stop = client.interrupt()
    tap.check(stop.startswith("T02"), "which is false: nothing is printed")
    client.ask(printing(place, f";X7,{FALSE};X8,{TRUE}"))
    client.resume()
    stub.ask_console("cat /proc/version")
    text = client.interrupted()[1]
    tap.equal(
        text, "count 4096 of (fault)\n" * 2, "one of two conditions holds: it prints"
    )
    tap.equal(client.ask(f"z0,{place:x},1"), "OK", "it is taken out")
    losses(stub, client, place, cpus)
    return place


def accounted(text):
    lines = text.splitlines()
    lost = sum(int(line[1:].split()[0]) for line in lines if line[:1] == "[")
    return sum(line.startswith("count ") for line in lines) + lost


def losses(stub, client, place, cpus):
    """The hits come faster than the line sends texts. A CPU's ring for texts has 16 KiB,
    so texts are lost. The stub must count each lost text.
    """
    answer = client.ask(printing(place, text=LONG))
    tap.equal(answer, "OK", "printing 150 KB while 720 calls come")
    client.resume()
    console = stub.in_background("run vfs")
    try:
        text = output(client, lambda text: accounted(text) >= 720)
    except TimeoutError:
        tap.note("run vfs " + ("does not end" if console.is_alive() else "has ended"))
        raise
    console.join()
    tap.equal(accounted(text), 720, "each call is printed, or counted as lost")
    if cpus == 1:  # with more CPUs another CPU sends meanwhile, and may be fast enough
        tap.check("texts are lost]" in text, "and some are lost")
    client.interrupted()
    client.ask(f"z0,{place:x},1")


def a_debugger_that_reads_late(stub, client, place):
    """The debugger does not read for seconds, so the line takes only a part of a packet.
    The kernel must work on, and send the rest later.
    """
    client.ask(printing(place, text=LONG))
    client.resume()
    stub.ask_console("run vfs")
    stub.ask_console("run vfs")
    time.sleep(2)
    tap.equal(stub.ask_console("echo on").errno, 0, "the kernel works on meanwhile")
    client.send(b"\x03\x03\x03")
    text, stop = client.stopped()
    tap.check(
        stop.startswith("T02"), "Ctrl-C more than once stops it, and is answered once"
    )
    client.resume()
    if accounted(text) < 1440:
        text += output(client, lambda rest: accounted(text + rest) >= 1440)
    tap.equal(accounted(text), 1440, "each packet comes whole, each loss is told")
    client.interrupted()
    client.ask(f"z0,{place:x},1")


def all_of_it():
    for cpus in (1, 4):
        with Stub(smp=cpus) as stub:
            stub.guest.wait_prompt(LIMIT)
            client = stub.connect()
            client.greet()
            client.without_acks()
            monitor_at_once(client)
            monitor_later(stub, client)
            place = dprintf(stub, client, cpus)
            a_debugger_that_reads_late(stub, client, place)


tap.run(all_of_it)
