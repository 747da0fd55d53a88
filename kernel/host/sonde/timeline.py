"""timeline.py - records a run, so that it can be replayed to the last instruction.

QEMU records everything that comes from outside, with a clock that counts instructions. So
a recorded guest has one CPU, and its input is a script in fw_cfg, which belongs to the
machine. A recording is one file: QEMU's log, a disk with the state at the start, and the
settings.
"""

import contextlib
import json
import os
import subprocess
import sys
import tarfile

from sonde.building import HostError
from sonde.errors import writing
from sonde.guest import BUILD, ELF, ROOT, Setup, comma, die_with_parent, qemu_words

sys.path.insert(0, os.path.join(ROOT, "kernel/debug"))
import elf64

SETTINGS = ("build", "image", "qemu", "append", "memory")
PARTS = ("about.json", "script", "log", "disk.qcow2")
CONSOLE = "com1.log"


def build_id(path=ELF):
    elf = elf64.load(path)
    notes = elf.content(elf.section(".notes"))
    return notes[notes.index(b"GNU\0") + 4 :][:20].hex()


def qemu_version():
    done = subprocess.run(
        ["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise HostError(f"QEMU does not start: {done.stderr.strip()}")
    return done.stdout.splitlines()[0]


class Timeline:
    """A recording, unpacked in a folder."""

    def __init__(self, folder, about):
        self.folder, self.about = folder, about

    @property
    def elf(self):
        return os.path.join(BUILD, self.about["image"])

    def path(self, name):
        return os.path.join(self.folder, name)

    def words(self, mode, gdb=None):
        """QEMU's command line. mode: record, replay"""
        append = "console=plain " + self.about["append"]
        setup = Setup(
            smp=1,
            memory=self.about["memory"],
            append=append.strip(),
            icount=True,
            gdb=gdb,
            elf=self.elf,
        )
        words = qemu_words(
            setup,
            f"file,path={comma(self.path(CONSOLE))}",
            "null",
            "null",
            "/dev/null",
            "/dev/null",
        )
        at = words.index("-icount") + 1
        words[at] += f",rr={mode},rrfile={comma(self.path('log'))},rrsnapshot=init"
        words += ["-fw_cfg", f"name=opt/sonde/script,file={comma(self.path('script'))}"]
        return words + [
            "-drive",
            f"file={comma(self.path('disk.qcow2'))},if=none,id=state",
        ]

    def console(self):
        """What came on the console. QEMU makes the file when it starts."""
        with contextlib.suppress(FileNotFoundError), open(
            self.path(CONSOLE), "rb"
        ) as file:
            return file.read()
        return b""


def record(folder, commands, append, memory, limit, elf=ELF):
    """Record a run. Return (Timeline, QEMU's exit status or None, QEMU's messages)."""
    about = {
        "build": build_id(elf),
        "image": os.path.relpath(elf, BUILD),
        "qemu": qemu_version(),
        "append": append,
        "memory": memory,
    }
    line = Timeline(folder, about)
    with open(line.path("about.json"), "w", encoding="utf-8") as file:
        json.dump(about, file)
    with open(line.path("script"), "wb") as file:
        file.write(b"".join(os.fsencode(c) + b"\n" for c in [*commands, "poweroff"]))
    disk = ["qemu-img", "create", "-q", "-f", "qcow2", line.path("disk.qcow2"), "16G"]
    subprocess.run(disk, check=True, capture_output=True)
    try:
        done = subprocess.run(
            line.words("record"),
            stdin=subprocess.DEVNULL,
            timeout=limit,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=die_with_parent(),
        )
    except subprocess.TimeoutExpired:
        return line, None, ""
    return line, done.returncode, done.stderr


def pack(line, path):
    with writing(path), tarfile.open(path, "w") as tar:
        for name in PARTS:
            tar.add(line.path(name), name)


def unpack(path, folder):
    """The Timeline in a file. HostError: it cannot be replayed here."""
    try:
        with tarfile.open(path, "r:") as tar:
            for name in PARTS:
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(tar.extractfile(name).read())
        with open(os.path.join(folder, "about.json"), encoding="utf-8") as file:
            read = json.load(file)
        about = {name: read[name] + "" for name in SETTINGS}  # each is a text
    except (tarfile.TarError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise HostError(f"{path} is no recording: {error}") from None
    line = Timeline(folder, about)
    here = {"build": build_id(line.elf), "qemu": qemu_version()}
    for what, name in (("build", "another build"), ("qemu", "another QEMU")):
        if about[what] != here[what]:
            raise HostError(
                f"{path} was recorded with {name}: {about[what]}; "
                f"here it is {here[what]}"
            )
    return line
