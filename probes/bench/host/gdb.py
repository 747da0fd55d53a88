#!/usr/bin/env python3
"""gdb.py - measures what the kernel's own stub for gdb costs, and what gdb costs with
QEMU's stub.

    probes/bench/host/gdb.py

Both stubs run on the same host, one after the other, so their ratio is also right on a
busy host. Instructions are counted in a guest whose clock counts instructions.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path[:0] = [os.path.join(ROOT, "kernel/host"), ROOT]
import icount
from probes.gdb.host.rsp import Stub, fields

LIMIT = 600
FALSE = "260003" + "240001869f" + "13" + "27"  # rdx == 99999
CONDITION = f";X{len(FALSE) // 2:x},{FALSE}"
FIGURE = re.compile(r"^sonde\.hit\.\w+\.cycles (\d+\.\d+) ", re.M)
GDB = ["./sonde", "gdb", "run vfs", "cat /proc/version", "--", "-batch",
       "-ex", "break shell_read_file"]  # fmt: skip


def row(what, value, goal):
    print(f"{what:64} {value:>12}   goal {goal}", flush=True)


def connected(stub):
    stub.guest.wait_prompt(LIMIT)
    client = stub.connect()
    client.greet()
    client.ask("QStartNoAckMode")
    client.acks = False
    return client


def must(client, packet):
    answer = client.ask(packet)
    if answer != "OK":
        raise SystemExit(f"{packet}: {answer}")


def stat(guest):
    """Return {name: number or word} of `probe stat`."""
    text = guest.machine.request("probe stat", LIMIT).text
    rows = (line.split()[:2] for line in text.splitlines())
    return {name: int(word) if word.isdigit() else word for name, word in rows}


def wait_for_jumps(stub):
    """Wait until the optimizer has made jumps of all armed probes."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        now = stat(stub.guest)
        if now["jumps"] == now["armed"]:
            return
        time.sleep(0.1)
    raise SystemExit("what is armed does not become jumps")


def running(client, stub, command):
    client.resume()
    wait_for_jumps(stub)
    start = time.monotonic()
    text = stub.ask_console(command).text
    spent = time.monotonic() - start
    client.interrupted()
    return text, spent


def targets(stub, client):
    client.resume()
    found, n = [], 0
    while not (reply := stub.ask_console(f"sym bench_lea_{n}")).errno:
        found.append(int(reply.text.split()[0], 16))
        n += 1
    client.interrupted()
    return found


def cost(client, stub, kind="base_call"):
    return float(FIGURE.search(running(client, stub, f"bench hit.{kind}")[0])[1])


def hits_by_jumps(stub, client):
    """The hits of all probes, all of which are gdb's. Each hit must have come by a jump."""
    client.resume()
    now = stat(stub.guest)
    client.interrupted()
    if now["hits"] != now["hits.jump"]:
        raise SystemExit(f"{now['hits.jump']} of {now['hits']} hits came by a jump")
    return now["hits"]


def ask_falsely(stub, client):
    for place in targets(stub, client):
        must(client, f"Z0,{place:x},1{CONDITION}")


def trace_registers(stub, client):
    must(client, "QTBuffer:circular:1")
    for n, place in enumerate(targets(stub, client), 1):
        must(client, f"QTDP:{n:x}:{place:x}:E:0:0-")
        must(client, f"QTDP:-{n:x}:{place:x}:R2003")
    must(client, "QTStart")


def counted(prepare):
    """How many instructions a hit takes at the places that @prepare has set up."""
    with Stub(smp=1, icount=True, qemu="-icount shift=0,sleep=off") as stub:
        client = connected(stub)
        base = cost(client, stub)
        prepare(stub, client)
        hit = cost(client, stub) - base
        hits_by_jumps(stub, client)
        return int(hit)


def figures():
    """The figures, under their names in probes/bench/host/icount.tsv."""
    return {"gdb_condition": counted(ask_falsely), "gdb_frame": counted(trace_registers)}


def instructions():
    """Compare a trace frame of registers with the tracer's event with three registers."""
    known = icount.recorded(icount.RECORD)
    found, event = figures(), known["event_opt_3regs"]
    row("a false condition, instructions", found["gdb_condition"], known["gdb_condition"])
    row("a trace frame, instructions", found["gdb_frame"], 2 * event)
    row(
        "a trace frame / the tracer's event with three registers",
        f"{found['gdb_frame'] / event:.2f}",
        "2",
    )


def false_condition_here():
    """How many seconds a hit by a jump takes, with a condition that is false."""
    with Stub(smp=1) as stub:
        client = connected(stub)
        cost(client, stub)  # the first `bench` loads its module
        without = running(client, stub, "bench hit.base_call")[1]
        ask_falsely(stub, client)
        spent = running(client, stub, "bench hit.base_call")[1]
        return (spent - without) / hits_by_jumps(stub, client)


def under_qemu(*words):
    start = time.monotonic()
    done = subprocess.run(
        GDB + list(words) + ["-ex", "continue"],
        cwd=ROOT,
        timeout=LIMIT,
        capture_output=True,
        text=True,
        check=True,
    )
    if "shell_read_file" not in done.stdout:
        raise SystemExit(done.stdout + done.stderr)
    return time.monotonic() - start


def false_condition():
    here = false_condition_here()
    without = under_qemu()
    there = (under_qemu("-ex", "break vfs_read if count == 99999") - without) / 720
    row("a false condition, gdb at QEMU's stub, us", f"{there * 1e6:.0f}", "-")
    row("a false condition, the kernel's stub, us", f"{here * 1e6:.2f}", "-")
    row("a false condition, how many times faster", f"{there / here:.0f}", "2000")


STOPS = """python
import gdb, time
times = []
gdb.events.stop.connect(lambda event: times.append(time.monotonic()))
end
set pagination off
break vfs_read
commands
silent
continue
end
continue
"""
SHOW = 'python print("stops", len(times), (times[-1] - times[0]) / (len(times) - 1))'
READS = 20


def stops_of(*stub):
    """How many seconds gdb takes for a stop at which its commands let the guest go on."""
    with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
        script.write(STOPS)
        script.flush()
        words = ["./sonde", "gdb", *stub, *["cat /proc/version"] * READS, "--", "-batch"]
        done = subprocess.run(
            words + ["-x", script.name, "-ex", SHOW],
            cwd=ROOT,
            timeout=LIMIT,
            capture_output=True,
            text=True,
            check=False,
        )
    found = re.search(r"^stops (\d+) (\S+)$", done.stdout, re.M)
    if not found or int(found[1]) < READS:
        raise SystemExit(done.stdout + done.stderr)
    return float(found[2])


def stops():
    there, here = stops_of(), stops_of("--stub")
    row("a stop with `commands`, gdb at QEMU's stub, ms", f"{there * 1e3:.1f}", "-")
    row("a stop with `commands`, the kernel's stub, ms", f"{here * 1e3:.1f}", "-")
    row("a stop with `commands`, how many times slower", f"{here / there:.1f}", "3")


def next_line():
    """Count how often gdb lets the kernel go on for one `next`."""
    words = [
        "./sonde",
        "gdb",
        "--stub",
        "run vfs",
        "--",
        "-batch",
        "-ex",
        "break vfs_read",
        "-ex",
        "continue",
        "-ex",
        "delete",
        "-ex",
        "set debug remote 1",
        "-ex",
        "next",
        "-ex",
        "set debug remote 0",
    ]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=True
    )
    count = len(re.findall(r"Sending packet: \$vCont;[^?]", done.stderr + done.stdout))
    row("`next` over a line, round trips that let the kernel go", count, "1")


def stop_latency():
    with Stub(smp=4) as stub:
        client = connected(stub)
        spent = []
        for _ in range(30):
            client.resume()
            time.sleep(0.02)
            start = time.monotonic()
            stop, _ = client.interrupted()
            spent.append(time.monotonic() - start)
            fields(stop)
        row(
            "Ctrl-C to the stop reply, 4 CPUs, median, ms",
            f"{statistics.median(spent) * 1e3:.1f}",
            "50",
        )
        row("the same, the longest of 30, ms", f"{max(spent) * 1e3:.1f}", "-")


if __name__ == "__main__":
    parts = {
        part.__name__: part
        for part in (instructions, false_condition, stops, next_line, stop_latency)
    }
    for name in sys.argv[1:] or parts:
        parts[name]()
