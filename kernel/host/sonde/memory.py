"""memory.py - reads a guest's memory, and the text that it should have.

    with tempfile.TemporaryDirectory() as folder:
        with Guest(Setup(qmp=folder + "/qmp")) as guest:
            guest.wait_prompt(60)
            with Memory(folder + "/qmp") as memory:
                memory.read(0xffffffff80200000, 4096)
"""

import os
import socket
import subprocess
import tempfile

from sonde.errors import SondeError
from sonde.guest import ELF
from sonde.hang import Qmp


class Unreadable(SondeError):
    """There is no memory at an address."""


class Memory:
    """The memory at the kernel's virtual addresses. qmp: the socket of the guest's QEMU,
    which accepts one client at a time. Use with `with`.
    """

    def __init__(self, qmp):
        self.folder = tempfile.TemporaryDirectory()
        self.control = socket.socket(socket.AF_UNIX)
        self.control.connect(qmp)
        self.qmp = Qmp(self.control)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.control.close()
        self.folder.cleanup()

    def read(self, address, size):
        if not size:
            return b""
        signed = address - (address >> 63 << 64)  # QEMU takes a signed number
        name = os.path.join(self.folder.name, "memory")
        if self.qmp.execute("memsave", val=signed, size=size, filename=name) is None:
            raise Unreadable(f"QEMU cannot read {size} bytes at {address:#x}")
        with open(name, "rb") as file:
            return file.read()

    def text_is_whole(self):
        """Is the kernel's text, as CPUs execute it, that of the image?"""
        done = subprocess.run(["nm", ELF], capture_output=True, text=True, check=True)
        rows = [line.split() for line in done.stdout.splitlines()]
        found = {name: int(address, 16) for address, _, name in rows}
        start, end = found["_text"], found["_etext"]
        return self.read(start, end - start) == text_of_image(start, end)


def text_of_image(start, end):
    """The bytes of text in the image file."""
    with tempfile.NamedTemporaryFile() as file:
        words = ["objcopy", "-O", "binary", "--only-section=.text", ELF, file.name]
        subprocess.run(words, check=True)
        text = file.read()
    assert len(text) >= end - start  # the text of boot is behind it
    return text[: end - start]
