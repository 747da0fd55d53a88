"""test_machine.py - tests of the client of the machine interface, with a fake guest."""

import contextlib
import os
import socket
import tempfile
import threading
import types

import tap
from fake import with_fake_qemu
from sonde import json_lines
from sonde.guest import Guest, GuestError, Setup
from sonde.machine import Gone, Late, Machine, ProtocolError, Refused
from sonde.machine import one_line, quote, unescape


def fake_guest():
    guest = Guest(Setup())
    guest.wait_prompt(10)
    return guest


def the_first_prompt_stays_the_first():
    with fake_guest() as guest:
        guest.wait_prompt(1)
        tap.equal(guest.request("say a").text, "a\n", "it is waited for twice")


def output_comes_line_by_line():
    with fake_guest() as guest:
        pieces = []
        reply = guest.machine.request("lines 3", 10, pieces.append)
        tap.equal(reply.output, b"0\n1\n2\n", "the lines of a reply, ends put back")
        tap.equal(pieces, [b"0\n", b"1\n", b"2\n"], "each was passed on as it came")
        tap.equal((reply.errno, reply.name), (0, "OK"), "the status is OK")
        reply = guest.machine.request("bare x", 10)
        tap.equal(reply.output, b"x", "output without a line feed stays without")


def an_object_of_json_is_one_write():
    """Two threads may print objects, each on a line of its own."""
    writes = []
    out = types.SimpleNamespace(write=writes.append, flush=lambda: None)
    with contextlib.redirect_stdout(out):
        json_lines.show(name="x", values=[1, 2])
    tap.equal(writes, ['{"name": "x", "values": [1, 2]}\n'], "its line feed as well")


def every_byte_survives():
    with fake_guest() as guest:
        reply = guest.machine.request("bytes", 10)
        tap.equal(reply.output, bytes(range(256)), "all 256 bytes, as they were")
        text = "a'b\\c\t\xe9"
        tap.equal(quote(text), "'a\\x27b\\x5cc\\x09\\xc3\\xa9'", "quote() hides them")
        tap.equal(unescape(quote(text)[1:-1].encode()).decode(), text, "and they return")


def other_text_on_the_line_is_skipped():
    with fake_guest() as guest:
        reply = guest.machine.request("noise", 10)
        tap.equal(reply.output, b"a\nb\n", "only lines of the open request count")


def a_refusal_is_a_reply():
    with fake_guest() as guest:
        reply = guest.machine.request("fail 2 ENOENT", 10, may_fail=True)
        tap.equal((reply.errno, reply.name), (2, "ENOENT"), "errno and name")
        tap.equal(reply.text, "no such thing\n", "what it said is kept")
        reply = guest.machine.request("say still there", 10)
        tap.equal(reply.text, "still there\n", "the next request is answered")
        tap.equal(
            (str(reply), repr(reply)),
            ("still there", "<Reply 0 OK 'still there\\n'>"),
            "it prints itself",
        )
        try:
            guest.machine.request("fail 2 ENOENT", 10)
            tap.check(False, "a refusal is an error, if it is not expected")
        except Refused as error:
            tap.equal(
                (str(error), error.reply.errno),
                ("'fail 2 ENOENT' failed: 2 ENOENT: no such thing", 2),
                "a refusal is an error, if it is not expected",
            )


def a_long_reply_is_whole():
    with fake_guest() as guest:
        reply = guest.machine.request("lines 100000", 30)
        tap.equal(len(reply.lines), 100000, "100000 lines arrived")
        reply = guest.machine.request("say " + "x" * 100000, 30)
        tap.equal(len(reply.output), 100001, "so did a line of 100000 bytes")


def a_silent_guest_is_a_timeout():
    with fake_guest() as guest:
        try:
            guest.machine.request("hang", 0.3)
            tap.check(False, "a hung guest is noticed")
        except TimeoutError:
            tap.check(True, "a hung guest is noticed")


def a_late_command_can_be_ended():
    with fake_guest() as guest:
        tap.equal(guest.machine.interrupt(), None, "no command runs")
        try:
            guest.machine.request("forever", 0.3)
        except Late as error:
            tap.equal(str(error), "'forever' has not ended within 0.3 s", "it is named")
        tap.equal(guest.machine.interrupt().name, "EINTR", "it ends")
        tap.equal(
            guest.machine.request("say x").text, "x\n", "the next request is answered"
        )


def a_second_request_waits_for_a_late_one():
    """Ctrl-C ends the first one, and the guest drops the line that waits: it has no reply."""
    ours, theirs = socket.socketpair()
    with theirs, Machine(ours) as machine:
        tap.equal(machine.wait(1), None, "there is no request to wait for")
        for command in ("sleep 9", "echo second"):
            with contextlib.suppress(Late):
                machine.request(command, 0.1)
        theirs.sendall(b"#1|so far\n#1=4 EINTR\n")
        try:
            reply = machine.interrupt(1)
        except Late as error:
            reply = error
        tap.equal(repr(reply), r"<Reply 4 EINTR 'so far\n'>", "the first one is ended")
        tap.equal(machine.interrupt(1), None, "and none is left")
        theirs.sendall(b"#2=4 EINTR\n#3|x\n#3=0 OK\n#13=0 OK\n")
        tap.equal(machine.request("echo x", 1).text, "x\n", "the next one has its own")
        tap.equal(machine.wait(1), None, "it has ended")


def a_late_reply_is_of_another_connection():
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = os.path.join(folder, "machine")
        server.bind(path)
        server.listen()

        def serve():  # one connection after the other, as QEMU does
            with server.accept()[0] as line:
                late = line.recv(100)[1:].split()[0]
            with server.accept()[0] as line:
                tag = line.recv(100)[1:].split()[0]
                line.sendall(b"#%s=0 OK\n#%s|mine\n#%s=0 OK\n" % (late, tag, tag))

        threading.Thread(target=serve, daemon=True).start()
        with contextlib.suppress(Gone), Machine.connect(path) as machine:
            machine.request("first", 10)
        with Machine.connect(path) as machine:
            tap.equal(machine.request("second", 10).text, "mine\n", "it is not ours")


def a_guest_that_ends_is_gone():
    with fake_guest() as guest:
        try:
            guest.request("panic")
            tap.check(False, "a guest tells how it has ended")
        except GuestError as error:
            told = "panicked" in str(error) and error.lines
            tap.check(told, "a guest tells how it has ended")
    with fake_guest() as guest:
        try:
            guest.machine.request("panic", 10)
            tap.check(False, "the end of the guest ends the request")
        except Gone:
            tap.check(True, "the end of the guest ends the request")


def what_is_no_line_is_refused():
    for command in ("a\nb", "a\rb", "a\0b"):
        try:
            one_line(command)
            tap.check(False, f"{command!r} is not sent")
        except ValueError:
            tap.check(True, f"{command!r} is not sent")
    try:
        unescape(b"\\q")
        tap.check(False, "a bad escape is reported")
    except ProtocolError:
        tap.check(True, "a bad escape is reported")
    with fake_guest() as guest, contextlib.suppress(ProtocolError):
        said = guest.machine.request("fail no NUMBER", 10, may_fail=True)
        tap.check(False, f"a bad status is reported: {said!r}")


if __name__ == "__main__":
    with_fake_qemu(
        lambda: tap.run(
            the_first_prompt_stays_the_first,
            output_comes_line_by_line,
            every_byte_survives,
            other_text_on_the_line_is_skipped,
            a_refusal_is_a_reply,
            a_long_reply_is_whole,
            a_silent_guest_is_a_timeout,
            a_late_command_can_be_ended,
            a_second_request_waits_for_a_late_one,
            a_late_reply_is_of_another_connection,
            a_guest_that_ends_is_gone,
            what_is_no_line_is_refused,
            an_object_of_json_is_one_write,
        )
    )
