"""send.py - ./sonde module: a source becomes an object, which a running guest loads."""

import os
import shlex
import subprocess

from guest import BUILD, ROOT
from kernel.module import abi
from machine import quote

CHUNK = 3500  # bytes of a file in one request: each may need four, and a line has 16 KiB
ENDINGS = (".c", ".o")


class ModuleError(Exception):
    """The compiler or the guest has refused it, and has said why."""


def flags():
    """The compiler and its words, as the kernel was built: what make has noted down. Which
    headers there are is looked at now: the guest may run for longer than they stay.
    """
    with open(os.path.join(BUILD, "flags.stamp"), encoding="utf-8") as file:
        return shlex.split(file.readline()) + abi.words()


def name_of(path):
    """As the guest calls it."""
    return os.path.splitext(os.path.basename(path))[0].replace("-", "_")


def compiled(path):
    """The object of a source: its path. What is an object already stays one."""
    if path.endswith(".o"):
        return path
    folder = os.path.join(BUILD, "modules")
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, name_of(path) + ".o")
    words = flags() + ["-Wno-error", "-g0", "-c", "-o", target, os.path.abspath(path)]
    if subprocess.run(words, cwd=ROOT, check=False).returncode:
        raise ModuleError(f"{path} does not compile")
    return target


def must(reply, what):
    if reply.errno:
        raise ModuleError(f"{what}: {reply.text.strip() or reply.name}")


def send(machine, data, path, timeout):
    """Write a file of the guest."""
    must(machine.truncate(path, timeout), path)
    for at in range(0, len(data), CHUNK):
        command = f"echo -ne {quote(data[at : at + CHUNK])} >> {path}"
        must(machine.request(command, timeout), path)


def load(machine, path, timeout):
    """Compile, send and (re)load the module of @path. Nothing is left in the guest's /tmp."""
    with open(compiled(path), "rb") as file:
        data = file.read()
    target = f"/tmp/{name_of(path)}.o"
    send(machine, data, target, timeout)
    reply = machine.request(f"module reload {target}", timeout)
    machine.request(f"rm {target}", timeout)
    must(reply, f"module reload {target}")
