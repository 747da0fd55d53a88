#!/usr/bin/env -S python3 -S
"""fake_qemu.py - stands for QEMU with a guest, for tests of the launcher.

It takes QEMU's own command line, finds the sockets in it, prints a prompt on COM1, and
answers requests on COM3. The request says what it does:

    say TEXT        one line of output        bare TEXT      output without a line feed
    bytes           every byte there is       fail N NAME    the errno
    noise           log lines in between      lines N        N lines of output
    log TEXT        a line of the log on COM1, the time before it
    console TEXT    the text on COM1, where \\n is the end of a line
    forever         answers to Ctrl-C only
    panic  hang  off  poweroff  exit  reset  reboot  triple        how a guest may end

FAKE in the environment changes this. "silent" prints no prompt, "broken" ends at once.
"console" serves COM1 instead of COM3, and shows each line that it gets; "console panic",
"console hang" and so on end in that way after the first line, "end off" and so on before
the prompt. "words" refuses its command line. "record refused" and "record hang" have a
version, and never begin to record. "stress WORD CPUS" prints two rounds of
tests/stress in which nothing differs; on CPUS CPUs they end as WORD says: differs, or a
way listed above.
"""

import os
import re
import socket
import sys
import time

ENDS = (b"panic", b"stuck-panic", b"hang", b"off", b"poweroff", b"exit", b"reset", b"reboot",
        b"triple")  # fmt: skip
STATUS = {"off": 33, "poweroff": 33, "exit": 33, "tests-failed": 35, "command-failed": 39}


def line_of(name):
    for word in sys.argv:
        match = re.fullmatch(rf"socket,fd=(\d+),id={name}", word)
        if match:
            return socket.socket(fileno=int(match.group(1)))
    sys.exit(f"fake: no socket for {name}")


def escape(data):
    text = "".join(
        "\\\\" if b == 0x5C else chr(b) if b == 9 or 0x20 <= b <= 0x7E else "\\x%02x" % b
        for b in data
    )
    return text.encode()


def end(com1, how):
    if how == "panic":
        com1.sendall(b"\npanic: asked for\nCPU 0, which panicked:\nend of panic\n")
        os._exit(37)
    if how == "stuck-panic":
        com1.sendall(b"\npanic: no way out\nCPU 0, which panicked:\n")
    if how in ("hang", "stuck-panic"):
        time.sleep(60)
    if how in STATUS:
        os._exit(STATUS[how])
    if how == "triple":
        with open(sys.argv[sys.argv.index("-D") + 1], "w") as file:
            file.write("CPU Reset (CPU 0)\nEIP=0000fff0\n")
            file.write("Triple fault\nCPU Reset (CPU 0)\nRIP=ffffffff80200000\n")
    os._exit(0)


def answer(command, tag):
    """The reply's lines and its status, as bytes."""
    word, _, rest = command.partition(b" ")
    mark = b"#%d" % tag
    ok = mark + b"=0 OK\n"
    if word == b"say":
        return mark + b"|" + escape(rest) + b"\r\n" + ok
    if word == b"bare":
        return mark + b"~" + escape(rest) + b"\n" + ok
    if word == b"bytes":
        lines = bytes(range(256)).split(b"\n")
        return (
            mark
            + b"|"
            + escape(lines[0])
            + b"\n"
            + mark
            + b"~"
            + escape(lines[1])
            + (b"\n" + ok)
        )
    if word == b"noise":
        return b"[    0.1] C0: log\n%s|a\n#%d|not ours\nsonde> \n%s|b\n%s" % (
            mark,
            tag * 10,
            mark,
            ok,
        )
    if word == b"lines":
        return b"".join(b"%s|%d\n" % (mark, n) for n in range(int(rest))) + ok
    if word == b"fail":
        return mark + b"|no such thing\n" + mark + b"=" + rest + b"\n"
    return mark + b"=38 ENOSYS\n"


def show_prompt(com1):
    """Print the prompt. Report earlier input, because a real guest would lose it."""
    time.sleep(0.3)
    com1.setblocking(False)
    try:
        com1.sendall(b"too early: %s\n" % com1.recv(100))
    except BlockingIOError:
        com1.sendall(b"\x1b[2J\x1b[01;01H\r\x1b[=3hfake\r\nsonde> ")
    com1.setblocking(True)


def serve_console(com1, then):
    show_prompt(com1)
    lines = com1.makefile("rb", buffering=0)
    while line := lines.readline():
        if line.split()[:1] == [b"reboot"]:
            com1.sendall(line[:-1] + b"\r\n")
            show_prompt(com1)
            continue
        com1.sendall(b"<%s>\r\nsonde> " % line[:-1])
        if then:
            end(com1, then)
        if line == b"poweroff\n":
            end(com1, "off")


def listen_at_com2():
    """A debugger may come to COM2. It finds that the guest has gone."""
    for match in re.finditer(r"path=([^, ]+)[^ ]*,id=com2", " ".join(sys.argv)):
        socket.socket(socket.AF_UNIX).bind(match[1])


def serve_stress(com1, then, cpus):
    """Print two rounds, numbered from the word round= of the command line on."""
    listen_at_com2()
    first = int(re.search(r"round=(\d+)", " ".join(sys.argv))[1])
    fails = sys.argv[sys.argv.index("-smp") + 1] == cpus
    line = (
        b"    # round %d: pun, calls 10 hits 20 missed 3 returns 4 faults 5 locks 6: %s\n"
    )
    com1.sendall(b"    ok 1 - the classes are known\n" + line % (first, b"same"))
    if fails and then != "differs":
        end(com1, then)
    com1.sendall(line % (first + 1, b"differs" if fails else b"same"))
    if fails:
        com1.sendall(b"    # differs: sites 1, not 0\n    # p0: pre at there\n")
        com1.sendall(b"    #     hits 7\n    not ok 2 - all is the same\n")
    os._exit(35 if fails else 33)


def main():
    fake = os.environ.get("FAKE", "")
    if "null,id=com1" in sys.argv:  # the call is from guest.refusal()
        sys.exit("fake: no such option" if fake == "words" else 0)
    if sys.argv[1:] == ["--version"] and fake.startswith("record"):
        print("fake 1.0")
        sys.exit(0)
    if fake.startswith("record"):
        time.sleep(60 if fake == "record hang" else 0)
        sys.exit("fake: refused")
    com1, com3 = line_of("com1"), line_of("com3")
    line_of("control").close()
    if fake == "broken":
        sys.exit("fake: broken")
    com1.sendall(b"[    0.000001] C0: fake\n")
    if fake.startswith("end "):
        end(com1, fake[4:])
    if fake.startswith("console"):
        serve_console(com1, fake[8:])
    if fake.startswith("stress"):
        serve_stress(com1, *fake.split()[1:])
    if fake != "silent":
        com1.sendall(b"sonde> ")
    requests = com3.makefile("rb")
    for request in requests:
        match = re.fullmatch(rb"@(\d+) (.*)\n", request)
        tag, command = int(match.group(1)), match.group(2)
        if command.split()[0] in ENDS:
            end(com1, command.split()[0].decode())
        if command == b"forever":
            while requests.read(1) != b"\x03":
                pass
            com3.sendall(b"#%d=4 EINTR\n" % tag)
            continue
        if command.startswith(b"log "):
            com1.sendall(b"[    1.234567] C1: %s\n" % command[4:])
            command = b"lines 0"
        if command.startswith(b"console "):
            com1.sendall(command[8:].replace(b"\\n", b"\n"))
            command = b"lines 0"
        com3.sendall(answer(command, tag))


if __name__ == "__main__":
    main()
