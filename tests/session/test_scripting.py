"""test_scripting.py - tests docs/scripting.md: its script and its tests for pytest run, also
where pip has installed the package, and the package has what the document says.
"""

import dataclasses
import inspect
import json
import os
import re
import subprocess
import tempfile

import sonde
import tap
from session import LIMIT, sonde as launched
from sonde.guest import ROOT, Guest, Setup

DOCUMENT = "docs/scripting.md"
# The Python with pip and pytest, which kernel/host/need.sh installs.
PYTHON = "/usr/bin/python3"
SONDE = [PYTHON, os.path.join(ROOT, "sonde")]
FAILS = "def test_fails(guest):\n    assert guest.request('echo x').text == 'y'\n"


def read():
    with open(os.path.join(ROOT, DOCUMENT), encoding="utf-8") as file:
        return file.read()


def fenced(mark):
    return re.search(rf"```{mark}\n(.*?)```", read(), re.S)[1]


def run(*words, folder, path="", **more):
    environment = dict(os.environ, PYTHONPATH=path, **more)
    return subprocess.run(
        words,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def the_script_prints_what_is_shown():
    with tempfile.TemporaryDirectory() as folder:
        script = write(folder, "reads.py", fenced("python"))
        done = run(*SONDE, "python", script, folder=folder)
        tap.equal((done.returncode, done.stdout), (0, fenced("text")), "./sonde python")
        tap.note(done.stderr)
        done = run(*SONDE, "python", "none.py", folder=folder)
        tap.equal(
            (done.returncode, done.stderr),
            (2, "sonde: python: none.py: no such file\n"),
            "a script that is not there",
        )


def pytest_has_the_fixture():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "test_document.py", fenced("python pytest"))
        done = run(*SONDE, "pytest", "-q", folder=folder)
        passed = done.returncode == 0 and "2 passed" in done.stdout
        if not tap.check(passed, "./sonde pytest"):
            tap.note(done.stdout + done.stderr)
        write(folder, "test_fails.py", FAILS)
        done = run(*SONDE, "pytest", "-q", "test_fails.py", folder=folder)
        said = done.stdout.partition("- the guest's console -")[2]
        tap.check(
            done.returncode == 1 and "\nsonde> " in said,
            "a failure shows what the guest has printed",
        )


def a_guest_is_brought_back():
    with Guest(snapshots=True) as guest:
        guest.save()
        guest.request("probe add vfs_read reads")
        guest.save("armed")
        for name, want in (("prompt", False), ("armed", True), ("prompt", False)):
            guest.restore(name)
            listed = "reads" in guest.request("probe list").text
            tap.equal(listed, want, f"{name}: the probe is as it was")
        try:
            guest.request("run sleep", timeout=0.001)
            tap.check(False, "the command has ended already")
        except sonde.Late:
            guest.restore()
        tap.equal(guest.request("echo x").text, "x\n", "a command that ran is gone")
        for name in ("nosuch", "a b"):
            try:
                guest.restore(name)
                tap.check(False, f"{name!r} is refused")
            except sonde.GuestError as error:
                tap.check(name in str(error), f"{name!r} is refused: {error}")
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "test_document.py", fenced("python snapshots"))
        done = run(*SONDE, "pytest", "-q", folder=folder)
        if not tap.check("2 passed" in done.stdout, "same_guest, as in the document"):
            tap.note(done.stdout + done.stderr)


def the_last_object_tells_how_it_ended():
    """module and trace as exec does: tests/run/test_launcher.py."""
    sample = os.path.join(ROOT, "docs/samples/reads.c")
    for words in (["module", sample], ["trace", "vfs_read { count }", "--"]):
        for command, want in (("panic", 3), ("sleep 1000", 124)):
            status, out, err = launched(
                *words[:1], "--json", "--timeout", "5", *words[1:], command
            )
            *before, last = [json.loads(line) for line in out.splitlines()]
            tap.equal((status, last["exit"]), (want, want), f"{words[0]}: {command}")
            tap.check(
                last["log"] and f"sonde: {last['error']}\n" in err, "with the reason"
            )
            kinds = [
                kind for row in before for kind in ("module", "table") if kind in row
            ]
            tap.equal(
                kinds, ["module" if words[0] == "module" else "table"], "what was done"
            )


def pip_installs_it():
    """The installed package needs no path, and knows its tree."""
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "installed")
        done = run(
            PYTHON,
            "-m",
            "pip",
            "install",
            "--no-index",
            "--no-build-isolation",
            "--no-deps",
            "--quiet",
            "--target",
            target,
            os.path.join(ROOT, "kernel/host"),
            folder=folder,
        )
        if not tap.equal(
            done.returncode, 0, "pip install ./kernel/host, without a network"
        ):
            tap.note(done.stderr)
            return
        script = write(folder, "reads.py", fenced("python"))
        done = run(PYTHON, script, folder=folder, path=target)
        tap.equal((done.returncode, done.stdout), (0, fenced("text")), "python3 reads.py")
        tap.note(done.stderr)
        asked = "import sonde.tree; print(sonde.tree.root())"
        for where, want in ((target, "/none"), (os.path.join(ROOT, "kernel/host"), ROOT)):
            done = run(PYTHON, "-c", asked, folder=folder, path=where, SONDE_ROOT="/none")
            tap.equal(done.stdout, want + "\n", f"SONDE_ROOT, and {want} is used")
        write(folder, "test_document.py", fenced("python pytest"))
        for words in ([PYTHON, "-m", "pytest"], [*SONDE, "pytest"]):
            done = run(*words, "-q", folder=folder, path=target)
            tap.check(
                "2 passed" in done.stdout, f"{' '.join(words[-2:])}, with it installed"
            )


def the_document_names_what_is_there():
    text = read().partition("## What scripts can use")[2]
    table = text.partition("### `Setup`")[2]
    told = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", table, re.M))
    there = {field.name: field.default for field in dataclasses.fields(Setup)}
    wrong = [
        name
        for name, value in told.items()
        if name not in there or repr(there[name]) != value.replace('"', "'")
    ]
    tap.equal(wrong, [], f"{len(told)} fields of Setup, with their defaults")
    lost = [name for name in sonde.__all__ if f"`{name}" not in text]
    tap.equal(lost, [], "each name of the package is described")
    wrong = [
        name
        for name, kind in vars(sonde).items()
        if name in sonde.__all__
        and inspect.isclass(kind)
        and issubclass(kind, Exception)
        and not issubclass(kind, sonde.SondeError)
    ]
    tap.equal(wrong, [], "each error is a SondeError")


def a_guest_does_what_the_document_says():
    with Guest(smp=1) as guest:
        version = str(guest.request("cat /proc/version"))
        tap.check(
            re.match(r"sonde version \S+ \(\S+@\S+\) \(.+\) #1 SMP ", version),
            "a reply; tools for Linux can read this one",
        )
        refused = guest.request("probe on nothing", may_fail=True)
        tap.equal(refused.name, "ENOENT", "a reply of a command that has failed")
        for path in ("/tmp/a", "/tmp/a b's"):
            guest.machine.write(path, "one ' two\n")
            said = guest.machine.read(path)
            tap.equal(said, "one ' two\n", f"{path} is written and read")
            guest.machine.truncate(path)
            tap.equal(guest.machine.read(path), "", "and made empty")
        try:
            guest.request("sleep 100", 0.3)
            tap.check(False, "a command is late")
        except sonde.Late as error:
            told = str(error)
            tap.equal(told, "'sleep 100' has not ended within 0.3 s", "a command is late")
        tap.equal(guest.machine.interrupt().name, "EINTR", "it is ended")
        tap.equal(guest.machine.interrupt(), None, "no other command runs")
        tap.equal(guest.request("echo x").text, "x\n", "and the next one is answered")
        guest.console.send("echo a string\n")
        before = guest.console.expect("sonde> ")
        tap.equal(before, "echo a string\r\na string\r\n", "expect takes a string")
        try:
            guest.request("panic asked")
            tap.check(False, "a panic is an error")
        except sonde.SondeError as error:
            tap.check("panicked" in str(error) and error.lines, "a panic is an error")


def an_image_that_is_missing():
    try:
        Guest(elf="/no/such/image")
        tap.check(False, "no image: an error")
    except sonde.SondeError as error:
        tap.check("`make`" in str(error), "no image: an error")


tap.run(
    the_script_prints_what_is_shown,
    pytest_has_the_fixture,
    a_guest_is_brought_back,
    the_last_object_tells_how_it_ended,
    pip_installs_it,
    the_document_names_what_is_there,
    a_guest_does_what_the_document_says,
    an_image_that_is_missing,
)
