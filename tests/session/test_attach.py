"""test_attach.py - tests `./sonde attach`, and the sockets of `./sonde run`, by which
other programs reach a running guest.
"""

import json
import os
import socket
import subprocess
import tempfile
import time

import tap
from sonde.guest import BUILD, ROOT
from sonde.machine import Machine
from session import LIMIT

SONDE = os.path.join(ROOT, "sonde")


def wait_for(path):
    """Wait until a socket is there."""
    deadline = time.monotonic() + LIMIT
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.05)


def connect(path):
    wait_for(path)
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(LIMIT)
    line.connect(path)
    return line


def the_console_of_a_guest_under_gdb():
    console = os.path.join(BUILD, "console.sock")
    if os.path.exists(console):
        os.unlink(console)
    log = tempfile.NamedTemporaryFile()
    gdb = subprocess.Popen(
        [SONDE, "gdb", "--log", log.name, "--", "-batch", "-ex", "continue"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    wait_for(console)
    deadline = time.monotonic() + LIMIT
    while b"sonde> " not in log.read() and time.monotonic() < deadline:
        log.seek(0)
        time.sleep(0.05)
    attach = subprocess.Popen(
        [SONDE, "attach"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    text = b""
    while b"sonde> " not in text:
        data = attach.stdout.read1()
        if not data:
            break
        text += data
    tap.check(b"sonde> " in text, "the prompt is seen from the second terminal")
    tap.check(b"\r" not in text and b"\x1b" not in text, "as text, on a pipe")
    attach.stdin.write(b"poweroff\r")
    attach.stdin.flush()
    tap.equal(attach.wait(LIMIT), 0, "attach ends with the guest")
    gdb.communicate(timeout=LIMIT)
    tap.check(gdb.returncode is not None, "and so does gdb")
    status = subprocess.run([SONDE, "attach"], capture_output=True, check=False)
    tap.check(status.returncode == 1 and b"no guest" in status.stderr, "nothing left")


def tools_talk_to_a_guest_that_stays_up():
    with tempfile.TemporaryDirectory() as folder:
        path, qmp = os.path.join(folder, "tools"), os.path.join(folder, "qmp")
        words = [SONDE, "run", "--boot", "pvh", "--socket", path, "--qmp", qmp]
        run = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        text = b""
        while b"sonde> " not in text:
            text += run.stdout.read1()
        for turn in ("first", "second"):
            with connect(path) as line:
                reply = Machine(line).request("cat /proc/version", LIMIT)
                tap.check(reply.text.startswith("sonde"), f"the {turn} tool is answered")
        with connect(qmp) as line:
            tap.check("QMP" in json.loads(line.makefile().readline()), "QMP greets")
        run.stdin.close()
        run.stdout.read()
        tap.equal(run.wait(LIMIT), 0, "end of input switches it off")


def what_is_sent_before_the_guest_listens_is_answered():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tools")
        words = [SONDE, "run", "--boot", "pvh", "--socket", path, "--qemu", "-S"]
        words[-1] += f" -monitor unix:{folder}/monitor,server=on,wait=off"
        run = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with connect(path) as line, connect(f"{folder}/monitor") as monitor:
            line.sendall(b"".join(b"@%d echo %d\n" % (i, i) for i in range(1, 9)))
            monitor.sendall(b"cont\n")
            line.settimeout(LIMIT)
            text = b""
            while b"#8=" not in text or not text.endswith(b"\n"):
                text += line.recv(4096)
            text = text.replace(b"\r", b"").partition(b"version 1\n")[2]
            wanted = b"".join(b"#%d|%d\n#%d=0 OK\n" % (i, i, i) for i in range(1, 9))
            tap.equal(text, wanted, "eight requests, before it runs")
        run.stdin.close()
        run.stdout.read()
        tap.equal(run.wait(LIMIT), 0, "and the guest goes on")


tap.run(
    the_console_of_a_guest_under_gdb,
    tools_talk_to_a_guest_that_stays_up,
    what_is_sent_before_the_guest_listens_is_answered,
)
