"""test_launcher.py - tests of ./sonde with a fake guest: output, status, messages."""

import base64
import contextlib
import errno
import io
import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from unittest import mock

from sonde import building
from sonde import guest
from sonde import options as values
from sonde import plain
from sonde import suggest
import tap
from fake import (
    PROGRAM,
    heed_interrupts,
    is_gone,
    load_launcher,
    run_in_shell,
    run_launcher,
    with_fake_qemu,
)

LIMIT = ("--timeout", "20")


def output_and_nothing_else():
    status, out, err = run_launcher("exec", "--smp", "3", "say a", "bare b", "say c")
    tap.equal((status, out, err), (0, b"a\nbc\n", ""), "output of three commands")
    status, out, err = run_launcher("exec", "say a", "say b", "--smp", "3")
    tap.equal((status, out, err), (0, b"a\nb\n", ""), "options may come last")


def verbose_tells_the_time_to_the_prompt():
    status, out, err = run_launcher("exec", "-v", "say a")
    tap.equal((status, out), (0, b"a\n"), "-v leaves the output alone")
    words = err.split()
    tap.check(
        words[:3] == ["sonde:", "prompt", "after"] and words[3].isdigit(), "and says it"
    )


def commands_come_from_a_file():
    script = b"# a comment\n\nsay a\n  say b\n"
    status, out, _ = run_launcher("exec", "-f", "-", stdin=script)
    tap.equal((status, out), (0, b"a\nb\n"), "-f - reads standard input")
    with tempfile.NamedTemporaryFile() as file:
        file.write(script)
        file.flush()
        status, out, _ = run_launcher("exec", "-f", file.name)
    tap.equal((status, out), (0, b"a\nb\n"), "-f FILE reads a file")
    status, _, err = run_launcher("exec", "-f", "/does/not/exist")
    tap.check(status == 2 and "/does/not/exist" in err, "a file that is not there")
    status, _, err = run_launcher("exec")
    tap.check(status == 2 and "no command" in err, "no command at all")


def the_first_failure_ends_it():
    status, out, err = run_launcher("exec", "say a", "fail 2 ENOENT", "say b")
    tap.equal((status, out), (1, b"a\nno such thing\n"), "nothing runs after it")
    tap.check("'fail 2 ENOENT'" in err and "2 ENOENT" in err, "command and errno named")


def a_panic_is_told():
    status, _, err = run_launcher("exec", "panic")
    tap.equal(status, 3, "a panic has its own status")
    tap.check("panic: asked for" in err, "with the last lines of the log")
    tap.check("panicked, in 'panic'" in err, "and the command")


def a_panic_that_cannot_end_is_told():
    start = time.monotonic()
    status, _, err = run_launcher("exec", "stuck-panic")
    tap.check(status == 3 and "panicked" in err, "a panic that hangs is a panic")
    tap.check(time.monotonic() - start < 60, "and does not wait for the time limit")


def text_that_looks_like_a_panic_is_none():
    cpu = "\\nCPU 1, which panicked:\\n"
    with mock.patch.object(guest, "PANIC_GRACE", 0.2):
        for texts, lives, what in (
            ([cpu], True, "a line of a report"),
            (["\\npanic: x" + cpu + "sonde> "], True, "a report before a prompt"),
            (["\\npanic: x" + cpu, "\\nsonde> "], True, "in two pieces"),
            (["\\npanic: x", cpu], False, "a report behind which nothing comes"),
        ):
            with guest.Guest(elf=__file__) as one:
                for text in texts:
                    one.request("console " + text)
                status = one.wait_end(1 if lives else 20)
                tap.equal((status is None, one.panicked), (lives, not lives), what)


class StoppedGuest(guest.Guest):
    """A guest whose machine QEMU has stopped because it cannot go on."""

    def stopped(self):
        return "internal-error"


def a_machine_that_cannot_go_on_is_told():
    os.environ["FAKE"] = "silent"
    start = time.monotonic()
    with StoppedGuest(elf=__file__) as one:
        try:
            one.wait_prompt(120)
            error = None
        except guest.GuestError as raised:
            error = raised
    del os.environ["FAKE"]
    tap.equal(
        error.status, 3, "a machine that QEMU has stopped has the status of a panic"
    )
    tap.check("stopped the machine (internal-error)" in str(error), "and QEMU's word")
    tap.check(time.monotonic() - start < 60, "and does not wait for the time limit")


def exec_can_keep_going():
    status, out, err = run_launcher("exec", "-k", "fail 2 ENOENT", "say a", "fail 5 EIO")
    want = b"no such thing\na\nno such thing\n"
    tap.equal((status, out), (1, want), "the commands behind a failure are run")
    tap.check("'fail 2 ENOENT' failed: 2 ENOENT\n" in err, "the first failure is told")
    tap.check("'fail 5 EIO' failed: 5 EIO\n" in err, "and the second")
    status, out, _ = run_launcher("exec", "fail 2 ENOENT", "say a")
    tap.equal((status, out), (1, b"no such thing\n"), "only if asked to")
    status, _, err = run_launcher("exec", "-k", "fail 2 ENOENT", "panic")
    tap.check(status == 3 and "panicked" in err, "a panic is the end all the same")


def exec_prints_json():
    status, out, _ = run_launcher("exec", "--json", "say a", "fail 2 ENOENT", "say b")
    rows = [json.loads(line) for line in out.splitlines()]
    tap.equal(status, 1, "the status is as without it")
    tap.check(all(row.pop("seconds") >= 0 for row in rows), "how long each took")
    tap.equal(
        rows,
        [
            {"command": "say a", "status": 0, "name": "OK", "output": "a\n"},
            {
                "command": "fail 2 ENOENT",
                "status": 2,
                "name": "ENOENT",
                "output": "no such thing\n",
            },
        ],
        "a line for each that was run",
    )
    _, out, _ = run_launcher("exec", "--json", b"say \xff")
    row = json.loads(out)
    tap.equal(base64.b64decode(row["base64"]), b"\xff\n", "bytes that are no UTF-8")
    tap.equal((row["command"], row["output"]), ("say \\xff", "\\xff\n"), "and as text")
    for command in ("poweroff", "reboot"):
        status, out, _ = run_launcher("exec", "--json", command)
        told = out and json.loads(out)["command"]
        tap.equal((status, told), (0, command), "a line for one that ends the guest")
    for command, want in (("panic", 3), ("hang", 124)):
        status, out, _ = run_launcher(
            "exec", "--json", "--timeout", "1", "say a", command
        )
        row = json.loads(out.splitlines()[-1])
        tap.equal((status, row["exit"]), (want, want), f"{command}: the last object")
        tap.check(f"in '{command}'" in row["error"] and row["log"], "says why")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "handler.c"), "w", encoding="ascii"):
            pass
        for words, fake, want in (
            (["exec", "say a"], "broken", 4),
            (["grade", "handler", folder], "end panic", 5),
            (["class", "/dev/null"], "", 2),
        ):
            status, out, err = run_launcher(words[0], "--json", *words[1:], fake=fake)
            *_, row = [json.loads(line) for line in out.splitlines()]
            tap.equal((status, row["exit"]), (want, want), f"{words[0]}: the last object")
            tap.check(row["error"] in err, "says what standard error says")


def a_broken_qemu_is_told():
    with tempfile.TemporaryDirectory() as folder:
        status, _, err = run_launcher("record", os.path.join(folder, "r"), "say a")
    tap.check(status == 5 and "QEMU does not start: fake" in err, "by record")


def a_recording_that_cannot_begin_is_told():
    """The fake QEMU says its version, or refuses the words; none makes a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "r")
        for words, fake, want in (
            ((), "record refused", (5, "QEMU cannot record: fake: refused\n")),
            (("--timeout", "0.5"), "record hang", (124, "within 0.5 s; nothing is rec")),
        ):
            status, out, err = run_launcher("record", *words, path, "say a", fake=fake)
            tap.equal((status, out, want[1] in err), (want[0], b"", True), fake)
        tap.equal(os.listdir(folder), [], "no recording is written")


def a_hang_is_told():
    status, _, err = run_launcher("exec", "--timeout", "1", "hang")
    tap.check(status == 124 and "within 1 s, in 'hang'" in err, "a hung command")
    os.environ["FAKE"] = "silent"
    status, _, err = run_launcher("exec", "--timeout", "1", "say a")
    tap.check(status == 124 and "before its prompt" in err, "no prompt")
    tap.check("C0: fake" in err, "with the last lines of the log")
    os.environ["FAKE"] = "broken"
    status, _, err = run_launcher("exec", "say a")
    del os.environ["FAKE"]
    tap.check(status == 4 and "fake: broken" in err, "QEMU's own words are shown")


def resets_are_told():
    status, _, err = run_launcher("exec", "triple")
    tap.check(status == 4 and "triple fault, in" in err, "triple fault")
    status, _, err = run_launcher("exec", "reset")
    tap.check(status == 4 and "reset itself" in err, "a reset that was not asked for")
    status, _, err = run_launcher("exec", "off", "say a")
    tap.check(status == 4 and "switched itself off" in err, "off before the last command")
    for word in ("off", "reboot", " reboot  # again"):
        status, _, err = run_launcher("exec", "say a", word)
        tap.equal((status, err), (0, ""), f"'{word}' as the last command was asked for")
    status, _, err = run_launcher("exec", "reboot", "say a")
    tap.check(status == 4 and "in 'reboot'" in err, "not in front of others")


def an_end_elsewhere_is_as_asked():
    """Only the command tells, in a guest of another ./sonde."""
    launcher = load_launcher()
    guest = launcher.Elsewhere(None)
    for command in ("poweroff", " exit # now", "reboot"):
        tap.check(launcher.ended_as_asked(guest, command), command)
    for command in ("exits", "echo exit"):
        tap.check(not launcher.ended_as_asked(guest, command), command)


def a_file(text=b""):
    file = tempfile.NamedTemporaryFile()
    file.write(text)
    file.flush()
    return file


def usages():
    """Yield wrong command lines, each with a part of the message."""
    yield [], "COMMAND"
    yield ["fly"], "command is called fly"
    yield ["exce"], "(did you mean `exec`?)"
    for words in (["check"], ["exec", "-f"]):
        yield [*words, "/dev/zero"], "/dev/zero: File too large"
    yield ["exec", "--tmeout", "3", "say a"], "--tmeout (did you mean `--timeout`?)"
    yield ["exec"], "no command"
    yield [
        "exec",
        "--smp",
        "two",
        "say",
    ], "sonde: --smp: 'two' is not a number from 1 to 64"
    for option, value in (("--port", "x"), ("--port", "65536"), ("--port", "-1")):
        yield ["web", option, value], f"{option}: '{value}' is not a number"
    yield ["web", "--guests", "-5"], "--guests: '-5' is not a number"
    yield ["replay", "/no/such/file"], "/no/such/file: no such file"
    yield ["replay", "/tmp"], "a directory"
    yield ["record", "", "echo x"], "FILE: an empty name"
    for option in ("--log", "--image", "--qmp", "--socket"):
        yield ["run", option, ""], f"{option}: an empty name"
    for path, why in (
        ("/tmp", "a directory"),
        ("/dev/null", "no ELF file"),
        (__file__, "no ELF file"),
        ("/bin/true", "no executable for x86 with fixed addresses"),
    ):
        for verb in ("exec", "gdb"):
            yield [verb, "--image", path, "say a"], why
    yield ["record", "/no/such/dir/file", "echo x"], "no directory /no/such/dir"
    yield ["record", "/proc/x", "echo x"], "/proc/x: /proc cannot be written to"
    yield ["test", "--junit", "/proc/x"], "/proc/x: /proc cannot be written to"
    yield ["module", "/no/x.txt", "echo x"], "no FILE.c or FILE.o given, but '/no/x.txt'"
    yield ["film", "play", "/no/such/film"], "/no/such/film is neither a file nor a film"
    yield ["film", "play", "pok"], "neither a file nor a film (did you mean `poke`?)"
    yield ["film", "play", "/dev/null"], "/dev/null: it is no film"
    for words in (["exec"], ["gdb"], ["trace", "--"], ["record", "/tmp/x"]):
        yield [*words, "a\3"], "a request is one line"
    yield ["film", "text"], "of which film?"
    yield ["film", "record", "x"], "x is none of"
    yield [
        "film",
        "svg",
        "hit",
        "--frames",
        "1," + "9" * 5000,
    ], "the frames of hit are 0 to"
    yield ["film", "svg", "hit", "-o", "/no/such/dir/x"], "no directory /no/such/dir"
    yield ["module", "-k", "x.c"], "no option -k; ./sonde module --help"
    yield ["module", "--jsno", "x.c"], "(did you mean `--json`?)"
    yield ["exec", "--jsno", "x"], "(did you mean `--json`?)"
    yield ["module", b"\xff.c"], "module: \\xff.c: no such file"
    yield ["attach", "--smp", "2"], "--smp"
    yield ["test", "no_such_test"], "no test is called no_such_test (--list shows them)"
    yield ["test", "run/luncher"], "run/luncher (did you mean `run/launcher`?)"
    yield [
        "grade",
        "handler",
        "/no/such",
    ], "there is no folder /no/such; begin with: ./sonde lab 2"
    yield ["grade", "2", "/usr", "--case", "0"], "grade --case: /usr has no handler.c"
    yield ["grade", "1", "/usr"], "/usr has no seed: --seed N, or ./sonde lab 1 /usr"
    yield ["film", "record", "jump", "poke"], "film record: one FILM at a time"
    yield ["class"], "a ROSTER"
    yield ["class", "/no/such"], "/no/such: No such file"
    yield ["class", "/dev/null", "--collect", "/no/such"], "there is no folder /no/such"
    yield [
        "class",
        "/dev/null",
        "-o",
        "/proc/x/y",
    ], "/proc/x/y: /proc cannot be written to"
    yield ["class", "/dev/null", "-o", __file__], "is no directory"
    yield ["class", "r", "--collect", "/tmp", "-o", "/no/x"], "there is no directory /no"
    yield ["lab", "3", __file__ + "/x"], "is no directory"
    yield ["web", "--bind", "no.such.host.invalid"], "'no.such.host.invalid': "
    yield ["class", "/dev/null", "--collect", "/tmp"], "no students"
    for words in (
        ["module", __file__ + ".c", "--socket"],
        ["class", "/dev/null", "--collect"],
        ["class", "/dev/null", "-o"],
        ["film", "svg", "hit", "--frames"],
        ["web", "--token"],
        ["grade", "3"],
    ):
        yield [*words, ""], "an empty name"
    yield ["exec", "--append", "a=1 tests=all", "say a"], "use run"
    yield ["exec", "a\rb"], "one line"
    for value in ("0", "65", "-1", "two", "1.5", ""):
        yield ["exec", "--smp", value, "say a"], "--smp"
    for value in ("abc", "", "1Q", "-1G", "7M", "4096K", "0", "1 G"):
        yield ["exec", "--memory", value, "say a"], "--memory"
    for value in ("0", "-1", "nan", "inf", "1e9", "soon"):
        yield ["exec", "--timeout", value, "say a"], "--timeout"
    yield ["run", "--boot", "tape"], "--boot"
    yield ["run", "--accel", "fast"], "--accel"
    yield ["run", "--qemu", "-name 'x"], "quotation"
    for word in ("-daemonize", "--daemonize"):
        yield ["exec", "--qemu", f"-S {word}", "say a"], f"{word}: ./sonde could not end"
    yield ["run", "--append", "a\nb"], "--append"
    yield ["run", "--append", "x" * 1020], "bytes"
    yield ["exec", "--boot", "pvh", "--append", "x" * 4090, "say a"], "bytes"
    yield ["record", "--append", "x" * 4090, "/tmp/none", "say a"], "bytes"
    yield ["gdb", "--socket", "/tmp/none", "say a"], "does not go with --socket"
    yield ["gdb", "--log", "/dev/null", "say a"], "regular file, not --log /dev/null"
    yield ["run", "--accel", "kvm", "--icount"], "--icount"
    yield ["run", "--log", "/no/such/dir/log"], "/no/such/dir"
    yield ["run", "--log", "/tmp"], "directory"
    yield ["exec", "-f", "/no/such/file"], "/no/such/file"
    yield ["exec", "-f", "/tmp"], "directory"
    for option in ("--socket", "--qmp"):
        yield ["run", option, "/no/such/dir/socket"], "/no/such/dir"
        yield ["run", option, "/tmp/" + "x" * 103], "107 bytes"
    with a_file() as file:
        yield ["run", "--qmp", file.name], "no socket"
        tap.check(os.path.exists(file.name), "what is no socket is not removed")
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as line:
        path = os.path.join(folder, "socket")
        line.bind(path)
        line.listen()
        yield ["gdb", "--socket", path], "another guest"


def wrong_usage_is_refused():
    """Wrong command lines are refused before a tool is installed, or a guest started."""
    folder = tempfile.mkdtemp()
    os.environ["LAUNCHED"] = launched = os.path.join(folder, "launched")
    for words, reason in usages():
        status, out, err = run_launcher(*words)
        what = tap.shortened(" ".join(["./sonde", *map(os.fsdecode, words)]))
        if not tap.check(status == 2 and reason in err and not out, f"{what} is refused"):
            tap.note(f"status {status}\n{err}")
        at_once = not os.path.exists(launched)
        tap.check("Traceback" not in err and at_once, "in words, at once")
    del os.environ["LAUNCHED"]
    os.rmdir(folder)


# A value of each option and word in WAYS, and the words that a command always has.
VALUES = {
    "socket": "--socket=/tmp/none", "timeout": "--timeout=9", "json": "--json",
    "words": "x.c", "smp": "--smp=3", "boot": "--boot=iso", "image": "--image=build/x",
    "accel": "--accel=tcg", "icount": "--icount", "append": "--append=x=1",
    "memory": "--memory=64M", "log": "--log=/tmp/none", "qmp": "--qmp=/tmp/none",
    "qemu": "--qemu=-snapshot", "list": "--list", "files": "a.md",
    "junit": "--junit=/tmp/none",
    "long": "--long", "tools": "--tools", "names": "unit", "films": "poke",
    "output": "--output=/tmp/none", "frames": "--frames=0", "lab": "3", "folder": "/tmp",
    "hint": "--hint=1", "seed": "--seed=1", "tree": "--tree", "case": "--case=0",
    "progress": "--progress", "roster": "r.csv", "collect": "--collect=/tmp",
    "jobs": "--jobs=2", "guests": "--guests=2", "stub": "--stub", "commands": "say a",
}  # fmt: skip
NEEDED = {"module": {"words"}, "check": {"files"}, "grade": {"lab"}, "lab": {"lab"}}
REFUSED = {"boot", "image"}, {"long", "tools"}  # also where a way has both


def goes(command, names):
    """Is there a way of a command in which each of these options and words has an effect?"""
    return not any(pair <= names for pair in REFUSED) and any(
        names <= {first, *beside.split()} and (not first or first in names)
        for first, beside in values.WAYS[command].items()
    )


def refusal_of(words):
    """The sentence with which ./sonde refuses a command line, without doing anything."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            values.check_together(load_launcher().parse(words))
        except values.UsageError as error:
            return str(error)
        except SystemExit as end:
            return end.code and said.getvalue()
    return ""


def options_stand_together_or_are_refused():
    """With each way of a command, and each pair of its options and words: where one would
    do nothing, the command line is refused in one sentence."""
    for command, ways in values.WAYS.items():
        every = {name for beside in ways.values() for name in beside.split()}
        every |= set(ways) & set(VALUES)
        shown = run_launcher(command, "--help")[1].decode()
        options = set(re.findall(r"^  .*--(\w+)", shown, re.M)) - {"help"}
        wrong = sorted(options - every)
        pairs = itertools.combinations_with_replacement(sorted(every), 2)
        for way, pair in itertools.product(ways, pairs):
            names = {way, *pair, *NEEDED.get(command, ())} - {""}
            order = sorted(names, key=lambda name: (name != way, name != "lab", name))
            words = [command, *(VALUES.get(name, name) for name in order)]
            said = refusal_of(words)
            if bool(said) == goes(command, names) or said.count("\n") > 1:
                wrong.append(f"{' '.join(words)}: {said}")
        tap.equal(wrong, [], f"{command}: pairs of {len(every)} options and words")


# Of each option of a guest, what it brings into QEMU's command line, or into the Setup.
EFFECTS = {
    "--smp=3": "-smp 3", "--boot=iso": guest.ISO, "--boot=uefi": "if=pflash",
    f"--image={guest.BUILD}/x": "build/x", "--icount": "-icount", "--append=x=1": "x=1",
    "--memory=64M": "-m 64M", "--log=/tmp/l": "log='/tmp/l'",
    "--qmp=/tmp/none": "unix:/tmp/none",
    "--qemu=-snapshot": "-snapshot",
}  # fmt: skip


def options_of_a_guest_take_effect_in_pairs():
    launcher, wrong = load_launcher(), []
    for pair in itertools.permutations(EFFECTS, 2):
        try:
            options = launcher.parse(["exec", *pair, "say a"])
            values.check_together(options)
        except values.UsageError:
            continue
        setup = launcher.setup_of(options)
        text = " ".join(guest.qemu_words(setup, *"abcde", image=True)) + repr(setup)
        same = len({option.partition("=")[0] for option in pair}) == 1
        wrong += [(pair, one) for one in pair if EFFECTS[one] not in text and not same]
    tap.equal(wrong, [], "no option of a guest hides another one")


def options_are_shown_to_qemu_first():
    for words in (["--qemu", "-x"], ["--memory", "2G"]):
        status, out, err = run_launcher("exec", *words, "say a", fake="words")
        tap.check(
            status == 2 and "no such option" in err and not out,
            f"{words[0]}: what QEMU does not take",
        )
        status, out, _ = run_launcher("exec", *words, "say a")
        tap.equal((status, out), (0, b"a\n"), f"{words[0]}: what it takes")
    for words in (["record", "/tmp/none", "say a"], ["class", "--guests=1"], ["web"]):
        status, out, err = run_launcher(*words, "--memory=2G", fake="words")
        tap.check(status == 2 and "no such option" in err and not out, f"by {words[0]}")


def words_of_other_programs_stay_as_they_are():
    parse, words = load_launcher().parse, ["prog", "--qemu", "-s", "--", "x"]
    for begin in (["python"], ["pytest"], ["gdb", "--"], ["replay", "/dev/null", "--"]):
        tap.equal(parse(begin + words).arguments, words, " ".join(begin))
    words = ["prog", "--qemu", "-s"]
    for begin in (["trace", "--qemu", "-S", "--"], ["exec", "--qemu", "-S", "--"]):
        options = parse(begin + words)
        got = options.commands, options.qemu
        tap.equal(got, (words, "-S"), " ".join(begin))


def piped_input_comes_after_the_prompt():
    status, out, err = run_launcher("run", *LIMIT, stdin=b"hello\nworld", fake="console")
    tap.equal((status, err), (0, ""), "the end of input is a poweroff")
    lines = b"<hello>\nsonde> <world>\nsonde> <poweroff>"
    tap.check(lines in out, "all lines arrived, and in order")
    status, out, err = run_launcher("run", *LIMIT, stdin=b"hello\n", fake="console panic")
    tap.check(status == 3 and "panicked" in err, "a panic on the way is told")
    tap.check(b"panic: asked for" in out and "asked for" not in err, "its report once")
    status, out, err = run_launcher(
        "run", "--timeout", "1", stdin=b"hello\n", fake="console hang"
    )
    tap.check(status == 124 and "end of its input" in err, "so is a guest that hangs")


def a_run_ends_as_its_guest():
    for end, want, words in (
        ("off", 0, ""),
        ("tests-failed", 1, "tests failed"),
        ("command-failed", 1, "a command failed"),
        ("triple", 4, "triple fault"),
    ):
        for fake in ("end " + end, "console " + end):
            status, _, err = run_launcher("run", *LIMIT, stdin=b"hello\n", fake=fake)
            tap.check(
                status == want and words in err and bool(err) == bool(want),
                f"{fake}: status {want}",
            )


def a_reboot_starts_again():
    text = b"reboot\ntwo\n reboot # again\nthree\n"
    status, out, err = run_launcher("run", *LIMIT, stdin=text, fake="console")
    tap.equal((status, err), (0, ""), "what was asked for is no failure")
    prompt = b"fake\nsonde> "
    tap.check(
        b"too early" not in out and out.count(prompt) == 3, "input waits for its prompt"
    )
    tap.check(out.endswith(b"<three>\nsonde> <poweroff>\nsonde> "), "and comes then")
    status, out, err = run_launcher("run", *LIMIT, stdin=b"one\nreboot", fake="console")
    tap.equal((status, err), (0, ""), "a reboot as the last line, which has no line feed")
    tap.check(out.endswith(prompt + b"<poweroff>\nsonde> "), "the poweroff waits as well")


def a_pipe_gets_text():
    _, out, _ = run_launcher("run", *LIMIT, stdin=b"hello\n", fake="console")
    tap.check(b"\x1b" not in out and b"\r" not in out, "no escape sequences, no CR")
    tap.check(b"fake\nsonde> <hello>" in out, "but the lines")


def closed_streams_are_no_trouble():
    for words, out in (
        ("sonde exec 'say a' <&-", b"a\n"),
        ("sonde exec 'say a' 2>&-", b"a\n"),
        ("sonde exec 'say a' >&-", b""),
    ):
        tap.equal(run_in_shell(words), (0, out, ""), words)
    status, out, err = run_in_shell("sonde run <&-", fake="console")
    tap.check((status, err) == (0, "") and b"<poweroff>" in out, "sonde run <&-")


def the_reader_has_gone():
    environment = os.environ.pop("PYTHONUNBUFFERED", None)  # argparse is silent with it
    for words, fake in (
        ("exec 'lines 100000'", ""),
        ("run </dev/zero", "console"),
        ("--help", ""),
    ):
        status, out, err = run_in_shell(
            f"(sleep 0.5; sonde {words}) | true; exit ${{PIPESTATUS[0]}}", fake
        )
        tap.equal((status, out, err), (141, b"", ""), f"sonde {words} | true")
    if environment:
        os.environ["PYTHONUNBUFFERED"] = environment


def a_guest_may_end_with_keys_unread():
    """./sonde attach ends as usual. The guest has typed keys, and more are typed."""
    ours, theirs = socket.socketpair()
    ours.sendall(b"unread")
    theirs.sendall(b"last words")
    theirs.close()
    shown, stdin = [], sys.stdin
    with tempfile.TemporaryFile("w+") as sys.stdin:
        sys.stdin.write("more")
        sys.stdin.seek(0)
        status = load_launcher().pass_through(ours, shown.append)
    sys.stdin = stdin
    tap.equal((status, shown), (0, [b"last words"]), "attach ends with its guest")


def a_socket_without_a_guest_is_named():
    for path, why in (("/no/such", "No such file"), ("/tmp/" + "x" * 108, "too long")):
        with tempfile.NamedTemporaryFile(suffix=".c") as file:
            status, _, err = run_launcher("module", "--socket", path, file.name)
        told = err.startswith(f"sonde: no guest listens at {path}: ") and why in err
        tap.check(status == 1 and told, err.strip())


def an_object_that_is_none_is_named():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("empty.o", b""), ("text.o", b"text\n" * 100)):
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(text)
            status, _, err = run_launcher("module", path)
            tap.equal((status, err.count(f"sonde: {path}: ")), (1, 1), f"module {name}")


FULL = "sonde: {}: No space left on device\n"


def a_full_disk_is_told():
    for words, fake in (
        ("exec 'say a'", ""),
        ("exec --json 'say a'", ""),
        ("run </dev/null", "console"),
        ("test --list", ""),
        ("film text poke", ""),
        ("--help", ""),
        ("run --help", ""),
    ):
        ways = ["PYTHONUNBUFFERED=1", "-u PYTHONUNBUFFERED"]
        for unbuffered in ways if tap.LONG or "exec" in words else ways[1:]:
            got = run_in_shell(f"env {unbuffered} sonde {words} >/dev/full", fake)
            want = 5, b"", FULL.format("the output cannot be written")
            tap.equal(got, want, f"{unbuffered} sonde {words} > /dev/full")
    for words, fake in (
        ("exec --log /dev/full 'say a'", ""),
        ("run --log /dev/full </dev/null", "console"),
        ("film svg -o /dev/full poke", ""),
        ("film html -o /dev/full poke", ""),
    ):
        status, _, err = run_in_shell(f"sonde {words}", fake)
        tap.equal((status, err), (5, FULL.format("/dev/full")), f"sonde {words}")
    for words, status in (("exec panic", 3), ("run --memory abc", 2), ("exec -f /no", 2)):
        got = run_in_shell(f"sonde {words} 2>/dev/full")[0]
        tap.equal(got, status, f"sonde {words} 2>/dev/full")
    with tempfile.TemporaryDirectory() as folder:
        status, _, err = run_in_shell(f"ulimit -f 1; sonde lab int3 {folder}")
        told = f"sonde: {folder}/int3.h: File too large\n"
        got = status, err, os.listdir(folder)
        tap.equal(got, (5, told, ["int3.c"]), "of a student's file there is no half")


def signals_end_it():
    for words in (["exec", "hang"], ["run"]):
        for number in (signal.SIGINT, signal.SIGTERM):
            pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
            process = subprocess.Popen(
                PROGRAM + words,
                stdout=subprocess.DEVNULL,
                preexec_fn=heed_interrupts,
                **pipes,
            )
            child = first_child(process.pid)
            time.sleep(0.5)
            process.send_signal(number)
            tap.equal(process.wait(20), 128 + number, f"{words[0]}: {number.name}")
            tap.equal(process.stderr.read(), b"", "without a word")
            tap.check(is_gone(child), "the guest is gone")
            process.stdin.close()


INTERRUPTED = """
import os, runpy, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "sonde.timeline":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def an_interrupt_of_the_imports_is_silent():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, os.path.join(guest.ROOT, "sonde"), "lab"],
        capture_output=True,
        preexec_fn=heed_interrupts,
        check=False,
    )
    tap.equal((done.returncode, done.stderr), (-signal.SIGINT, b""), "without a word")


def an_interrupt_before_the_first_line_is_silent():
    """Python itself runs the module sitecustomize, before it has read ./sonde."""
    with tempfile.TemporaryDirectory() as folder:
        with open(
            os.path.join(folder, "sitecustomize.py"), "w", encoding="ascii"
        ) as file:
            file.write("import os; os.kill(os.getpid(), 2)")
        done = subprocess.run(
            [os.path.join(guest.ROOT, "sonde"), "help"],
            env=dict(os.environ, PYTHONPATH=folder),
            capture_output=True,
            preexec_fn=heed_interrupts,
            check=False,
        )
    got = done.returncode, done.stdout, done.stderr
    tap.equal(got, (-signal.SIGINT, b"", b""), "without a word")


def an_interrupt_of_a_test_is_silent():
    code = "import os, tap; tap.run(lambda: os.kill(os.getpid(), 2))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=os.path.dirname(os.path.abspath(__file__)),
        capture_output=True,
        preexec_fn=heed_interrupts,
        check=False,
    )
    tap.equal((done.returncode, done.stderr), (-signal.SIGINT, b""), "without a word")


def strange_bytes_are_passed_on():
    with a_file(b"say \xff\xfe\nsay \xe2\x80\xa8x\n") as file:
        status, out, err = run_launcher("exec", "-f", file.name, b"say \xff")
    tap.equal(
        (status, out, err), (0, b"\xff\n\xff\xfe\n\xe2\x80\xa8x\n", ""), "as they are"
    )


def a_bug_is_told():
    """An exception that no code expects is told in words, as what it is."""
    for function, words in (("parse", ()), ("run_commands", ("exec", "say a"))):
        status, _, err = run_launcher(*words, BUG=function)
        *places, last = err.splitlines()
        tap.check(
            "Traceback" not in err and status == 6, f"{function}: a status of its own"
        )
        tap.check("a bug of ./sonde" in last and "CONTRIBUTING.md" in last, "named so")
        tap.check(last.endswith("KeyError: 'no such key'"), "with what it is")
        tap.check("in has_bug()" in places[-1], "and where it is")


def any_text_can_be_printed():
    """./sonde prints what its streams have no character for in another way."""
    words = "env PYTHONIOENCODING=ascii sonde film text '\u2588\u20ac'"
    status, out, err = run_in_shell(words)
    tap.check(status == 2 and out == b"" and "film: #? is neither a file" in err, "ASCII")


def a_folder_named_like_a_film():
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.mkdir("poke")
        status, out, err = run_launcher("film", "text", "poke")
    tap.check(status == 0 and b"CPU" in out, f"is not meant: {err}")


def time_without_end():
    for value in ("inf", "nan", "1e20", "-inf", "x"):
        words = ("grade", "3", guest.ROOT + "/docs/labs/int3/start", "--tree")
        status, _, err = run_launcher(*words, GRADE_SCALE=value)
        wanted = "sonde: GRADE_SCALE is a number, at most 1000\n"
        tap.equal((status, err), (2, wanted), f"{value} is refused")


def a_seed_that_is_damaged():
    """The keys that a student has found are of the bomb of this seed."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "seed")
        with open(path, "w", encoding="ascii") as file:
            file.write("x\n")
        status, _, err = run_launcher("lab", "1", folder)
        tap.check(status == 2 and f"{path} has no seed" in err, f"another bomb: {err}")


# Values that no option and no word of ./sonde is made for.
ODD = ("", "-1", "0", "1.5", "99999999999", "x" * 5000, "a b'\"\\", "\u20ac\u2588", b"\xff",
       b"/tmp/\xff", b"\xed\xa0\x80", "/proc/no/such/x", "/proc/x", "/tmp", "/dev/full",
       "/dev/null", "%s{0}", "a\nb", "a,b=c")  # fmt: skip
# The words of each command beside which one value is odd.
BESIDE = {
    "exec": ["say a"], "module": ["/dev/null"], "trace": ["--", "say a"],
    "record": ["/dev/null", "say a"], "replay": ["/dev/null"],
    "check": ["--list", guest.ROOT + "/README.md"],
    "grade": ["3", "/no/such"], "lab": ["3", "/dev/null"], "class": ["/dev/null"],
    "film": ["text", "hit"], "test": ["no_such_test"], "gdb": ["--", "-batch"],
    "tracefs": ["/tmp", "--", "true"], "web": [], "run": [], "attach": [], "python": [],
    "pytest": [],
}  # fmt: skip
SECONDS = 60  # for one command line


def parsers():
    """Return {command: its parser}."""
    found = {}

    class Noted(suggest.Parser):
        def hide_defaults(self):
            found[self.prog.split()[-1]] = self
            super().hide_defaults()

    with mock.patch.object(suggest, "Parser", Noted):
        load_launcher().make_parser.__wrapped__()
    return found


def odd_lines(command, options, odd):
    """Yield command lines in which one of @options, or one of the words, is @odd."""
    beside = BESIDE[command]
    for option in options:
        yield [command, option.encode() + b"=" + odd, *beside]
    if command not in ("python", "pytest"):  # all of their words are for another program
        for i in [i for i, word in enumerate(beside) if not word.startswith("-")]:
            yield [command, *beside[:i], odd, *beside[i + 1 :]]


def odd_values_are_no_bugs():
    """Each option and word of each command gets values of all kinds, and standard streams
    that have only ASCII. ./sonde works, or refuses in words. An option that several commands
    share is tried with one of them. The usual run takes a hundred command lines.
    """
    found, lines, tried = parsers(), [], set()
    tap.equal(set(BESIDE), set(found), "all commands have words")
    with socket.create_server(("127.0.0.1", 0)) as busy:
        BESIDE["web"] = [f"--port={busy.getsockname()[1]}"]
        for command, parser in found.items():
            options = {
                (action.option_strings[-1], action.type)
                for action in parser._actions
                if action.option_strings and action.nargs != 0
            }
            names = sorted(name for name, _ in options - tried)
            tried |= options
            for odd in ODD:
                odd = odd if isinstance(odd, bytes) else odd.encode()
                lines += odd_lines(command, names, odd)
        tap.check(len(lines) > 700, f"there are {len(lines)} command lines")
        if not tap.LONG:
            seed = int(os.environ.get("SEED", random.randrange(1 << 31)))
            tap.note(f"seed {seed}")
            lines = random.Random(seed).sample(lines, 100)
        tap.equal([wrong for words in lines for wrong in wrong_of(words)], [], "no bug")


def wrong_of(words):
    """Return what is wrong with the answer to a command line, as a list."""
    fake = "" if words[0] == "exec" else "broken"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        status, out, err = run_launcher(
            *words, fake=fake, limit=SECONDS, PYTHONIOENCODING="ascii", SONDE_LABS=folder
        )
    told = [line for line in err.splitlines() if line.startswith("sonde: ")]
    told += [line for line in out.splitlines() if line.startswith(b"Score: ")]
    if status in range(6) and "Traceback" not in err and (told or not status):
        return []
    shown = b" ".join(w if isinstance(w, bytes) else w.encode() for w in words)
    return [(shown[:90], status, err[-300:])]


def help_is_given():
    status, out, _ = run_launcher("--help")
    tap.check(status == 0 and b"exit status:" in out, "--help")
    tap.equal(run_launcher("help")[1], out, "help")
    tap.equal(
        run_launcher("help", "run")[1], run_launcher("run", "--help")[1], "help run"
    )


class Watch:
    """A clock that is set by hand."""

    now = 0

    def __call__(self):
        return self.now


def a_build_says_how_far_it_is():
    lines, watch = [], Watch()
    progress = building.Progress(lines.append, lines.append, watch)
    progress.end()
    tap.equal(lines, [], "nothing where there is nothing to do")
    for watch.now in range(200):
        progress.take(f"  CC      kernel/{watch.now}.c\n")
    progress.end()
    tap.check(lines[0].startswith("building"), "it begins with a line")
    tap.check(2 < len(lines) < 8 and "199 s" in lines[-1], "and gets by with a few")
    tap.check("11 steps done, now CC kernel/10.c" in lines[1], "that say what is done")
    progress.take("kernel/a.c differs\n")
    tap.equal(lines[-1], "kernel/a.c differs\n", "other lines of make's are shown")


FAKE_MAKE = """#!/bin/sh
echo "  CC      kernel/a.c"
echo "make: 'b' is up to date."
echo "make[1]: 'b' is up to date."
echo "kernel/b.c: something is wrong" >&2
exit $MADE
"""


def a_build_that_fails_is_told():
    script = (
        "from sonde import building\n"
        "building.build(['b'], lambda t: print('say', t, flush=True))"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "make")
        with open(path, "w", encoding="ascii") as file:
            file.write(FAKE_MAKE)
        os.chmod(path, 0o755)
        runs = ((0, folder), (2, folder), (0, "/proc/none"), (2, "/proc/none"))
        for status, build in runs:
            environment = dict(os.environ, B=build, MADE=str(status))
            environment["PATH"] = folder + ":" + os.environ["PATH"]
            environment["PYTHONPATH"] = os.path.join(building.ROOT, "kernel/host")
            done = subprocess.run(
                [sys.executable, "-c", script],
                env=environment,
                text=True,
                capture_output=True,
                check=False,
            )
            told = [line.split()[1] for line in done.stdout.splitlines()]
            want = ["building"] if status else ["building", "built"]
            tap.equal(told, want, "that it begins, and ends")
            tap.check("something is wrong" in done.stderr, "make's complaints are shown")
            why = "the build failed (make ended with status 2)"
            if build != folder:
                why = "/proc/none cannot be written to; with B=DIR, DIR has the build"
            tap.equal("HostError: " + why in done.stderr, status == 2, "a failure is one")


def a_checkout_with_a_blank_is_refused():
    with tempfile.TemporaryDirectory(prefix="a b") as folder:
        words = ["make", "-C", folder, "-f", os.path.join(guest.ROOT, "Makefile")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    tap.check("path of this folder has a blank" in done.stderr, "a blank in the path")
    tap.equal(done.stderr.count("\n"), 1, "in one sentence")
    words = ["make", "-C", guest.ROOT, "B=a b"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    tap.check("name of the build folder has a blank" in done.stderr, "a blank in B=")
    tap.equal(done.stderr.count("\n"), 1, "in one sentence")


def a_checkout_with_a_quote_is_built():
    with tempfile.TemporaryDirectory(prefix="it's") as folder:
        for name in os.listdir(guest.ROOT):
            if name not in ("build", "compile_commands.json"):
                os.symlink(os.path.join(guest.ROOT, name), os.path.join(folder, name))
        words = ["make", "-s", "-C", folder, "B=build", "compile_commands.json"]
        tap.equal(subprocess.run(words, check=False).returncode, 0, "a quote in the path")
        with open(
            os.path.join(folder, "compile_commands.json"), encoding="utf-8"
        ) as file:
            rows = json.load(file)
        tap.equal({row["directory"] for row in rows}, {folder}, "what editors read")


def a_closed_build_is_told():
    """An error about a file in the build folder names B=, an error about another none."""
    inside = os.path.join(guest.BUILD, "labs", "int3.lock")
    for kind in (errno.EACCES, errno.EROFS):
        tap.equal(building.hint(OSError(kind, "", inside)), building.ELSEWHERE, "B=")
        tap.equal(building.hint(OSError(kind, "", "/etc/x")), "", "a file elsewhere")
    tap.equal(building.hint(OSError(errno.ENOSPC, "", inside)), "", "another error")


def a_program_that_refuses_is_told():
    """Git refuses a checkout of another user, qemu-img a disk that is full: the sentence of
    each says what helps.
    """
    with tempfile.TemporaryDirectory() as folder:
        refuses = "#!/bin/sh\necho 'fatal: dubious ownership' >&2\nexit 128\n"
        for name, text in (
            ("git", refuses),
            ("qemu-img", refuses),
            ("qemu-system-x86_64", "#!/bin/sh\necho QEMU\n"),
        ):
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(text)
            os.chmod(file.name, 0o755)
        path = folder + ":" + os.environ["PATH"]
        for words, told in (
            (("grade", "int3", folder), "git says: fatal: dubious ownership\n"),
            (
                ("record", folder + "/x", "ps"),
                "sonde: qemu-img: fatal: dubious ownership\n",
            ),
        ):
            status, _, err = run_launcher(*words, PATH=path)
            tap.check(status == 5 and err.endswith(told), f"{words[0]}: {err!r}")


def a_folder_is_spelled_in_one_way():
    """With two spellings, make would not know that a built file is the same file."""
    rule = "--eval=spelled: ; @echo $$B"  # as what make starts sees it
    code = "from sonde import building, guest; print(building.spelled(guest.BUILD))"
    environment = {k: v for k, v in os.environ.items() if k not in ("B", "MAKEFLAGS")}
    for name, want in (
        ("", "build"),
        ("build", "build"),
        ("build/", "build"),
        ("./build/", "build"),
        (os.path.join(guest.ROOT, "build", "core"), "build/core"),
        ("/tmp/elsewhere", "/tmp/elsewhere"),
    ):
        for words in (
            ["make", "-s", "-C", guest.ROOT, rule, "spelled", f"B={name}"],
            ["env", f"B={name}", sys.executable, "-c", code],
        ):
            done = subprocess.run(
                words,
                env=dict(environment, PYTHONPATH=guest.ROOT + "/kernel/host"),
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            told = f"B={name} is {want} to {os.path.basename(words[0])}"
            tap.equal(done.stdout.strip(), want, told)


def a_folder_of_others_is_no_build_folder():
    """make clean removes the whole build folder, and a build parts of it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("empty", "built", "graded", "graded/labs"):
            os.mkdir(os.path.join(folder, name))
        for name in ("a.txt", "built/flags.stamp", "graded/film.html"):
            with open(os.path.join(folder, name), "w", encoding="ascii"):
                pass
        os.symlink(guest.ROOT, os.path.join(folder, "link"))
        names = ("none", "empty", "graded", "built", "built/bench")
        ours = ["build", "build/none", *(os.path.join(folder, name) for name in names)]
        others = [folder, os.path.join(folder, "link"), os.path.join(folder, "a.txt")]
        others += [".", "..", "/", ".git", "kernel", "docs/samples", "iso", "README.md"]
        for name in ours + others:
            done = subprocess.run(
                ["make", "-n", "-C", guest.ROOT, "clean", f"B={name}"],
                capture_output=True,
                text=True,
                check=False,
            )
            refused = " is there and is no build folder; name one" in done.stderr
            got = done.returncode, "rm -rf" in done.stdout, refused
            want = (2, False, True) if name in others else (0, True, False)
            tap.equal(got, want, f"make clean B={name}")


def pieces_become_text():
    whole = (
        b"\x1b[2J\x1b[01;01H\r\x1b[=3hBds\r\n\x1b[0m\x1b[37mGRUB!\r\n\n\r1 of 2\x1b[K"
        b"\r2 of 2\x1b[K\r\x1b[Kdone\r\r\nend\x1b7\x1bx\r"
    )
    want = b"Bds\nGRUB!\n\n1 of 2\n2 of 2\ndone\nend"
    for size in range(1, len(whole) + 1):
        text = plain.Plain()
        got = b"".join(text.take(whole[i : i + size]) for i in range(0, len(whole), size))
        if got != want:
            tap.equal(got, want, f"pieces of {size} bytes")
            return
    tap.check(True, "in pieces of any size")


def a_log_is_written():
    with tempfile.NamedTemporaryFile() as file:
        run_launcher("exec", "--log", file.name, "say a")
        tap.check(b"C0: fake" in file.read(), "--log FILE holds the console")
    status, out, err = run_in_shell("sonde exec --log /dev/stderr 'say a'")
    tap.equal((status, out), (0, b"a\n"), "a pipe can be the log")
    tap.check("C0: fake" in err, "and gets it")
    with tempfile.TemporaryDirectory() as folder:
        fifo = os.path.join(folder, "log")
        os.mkfifo(fifo)
        with guest.Guest(elf=__file__, console="stdio", log=fifo) as one:
            error = one.failure("at its start", 1)
        tap.equal(error.status, 4, "of a guest on a terminal as well")


def first_child(pid):
    """Wait until the process @pid starts a process, and return that one."""
    for _ in range(600):
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
        if children:
            return int(children[0])
        time.sleep(0.1)
    raise TimeoutError("no guest was started")


def nothing_is_left_behind():
    process = subprocess.Popen([*PROGRAM, "exec", "hang"])
    child = first_child(process.pid)
    process.kill()
    process.wait()
    tap.check(is_gone(child), "a killed launcher takes its guest along")


def words_of_qemu():
    setup = guest.Setup(smp=3, boot="iso", append="a=1,2 b")
    words = guest.qemu_words(setup, "x", "y", "c", "z", "w")
    tap.check(
        "name=opt/sonde/append,string=a=1,,2 b" in words,
        "commas are doubled for fw_cfg",
    )
    tap.check("-no-reboot" in words, "a reset ends QEMU")
    for boot, most in (("pvh", 4095), ("iso", 1023), ("uefi", 1023)):
        setup = guest.Setup(boot=boot, append="x" * most)
        guest.qemu_words(setup, *"abcde")
        setup.append += "y"
        try:
            guest.qemu_words(setup, *"abcde")
            told = ""
        except guest.GuestError as error:
            told = str(error)
        tap.check(f"more than {most} bytes" in told, f"{boot}: too many boot arguments")
    try:
        guest.qemu_words(guest.Setup(qemu="-daemonize"), "x", "y", "c", "z", "w")
        why = ""
    except ValueError as error:
        why = str(error)
    tap.check("could not end" in why, "a script, too, has no QEMU that outlives it")


if __name__ == "__main__":
    with_fake_qemu(
        lambda: tap.run(
            output_and_nothing_else,
            verbose_tells_the_time_to_the_prompt,
            commands_come_from_a_file,
            the_first_failure_ends_it,
            a_panic_is_told,
            a_panic_that_cannot_end_is_told,
            text_that_looks_like_a_panic_is_none,
            a_machine_that_cannot_go_on_is_told,
            exec_can_keep_going,
            exec_prints_json,
            a_broken_qemu_is_told,
            a_recording_that_cannot_begin_is_told,
            a_hang_is_told,
            resets_are_told,
            an_end_elsewhere_is_as_asked,
            wrong_usage_is_refused,
            options_stand_together_or_are_refused,
            options_of_a_guest_take_effect_in_pairs,
            options_are_shown_to_qemu_first,
            words_of_other_programs_stay_as_they_are,
            piped_input_comes_after_the_prompt,
            a_run_ends_as_its_guest,
            a_reboot_starts_again,
            a_pipe_gets_text,
            closed_streams_are_no_trouble,
            the_reader_has_gone,
            a_guest_may_end_with_keys_unread,
            a_socket_without_a_guest_is_named,
            an_object_that_is_none_is_named,
            a_full_disk_is_told,
            signals_end_it,
            an_interrupt_of_the_imports_is_silent,
            an_interrupt_before_the_first_line_is_silent,
            an_interrupt_of_a_test_is_silent,
            strange_bytes_are_passed_on,
            a_bug_is_told,
            any_text_can_be_printed,
            a_folder_named_like_a_film,
            time_without_end,
            a_seed_that_is_damaged,
            odd_values_are_no_bugs,
            help_is_given,
            a_build_says_how_far_it_is,
            a_build_that_fails_is_told,
            a_checkout_with_a_blank_is_refused,
            a_checkout_with_a_quote_is_built,
            a_closed_build_is_told,
            a_program_that_refuses_is_told,
            a_folder_is_spelled_in_one_way,
            a_folder_of_others_is_no_build_folder,
            pieces_become_text,
            a_log_is_written,
            nothing_is_left_behind,
            words_of_qemu,
        )
    )
