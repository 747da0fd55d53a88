"""send.py - for ./sonde module: compiles a source, and loads the object into a guest."""

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import subprocess

from kernel.module import abi, params
from sonde import exits
from sonde.building import must_have_room
from sonde.errors import SondeError
from sonde.guest import BUILD, ROOT
from sonde.machine import quote

CHUNK = 3500  # bytes in one request: a byte takes up to 4 characters, a line has 16 KiB
FOLDER = os.path.join(BUILD, "modules")
ENDINGS = (".c", ".o")


class ModuleError(SondeError):
    """The compiler or the guest has refused a module, and has printed the reason."""

    status = exits.FAILED


def flags():
    """Return the compiler and its options, which make has written down when it built the
    kernel. The checksum of the headers is computed now, because the headers may have
    changed since the guest was started.
    """
    with open(os.path.join(BUILD, "flags.stamp"), encoding="utf-8") as file:
        return shlex.split(file.readline()) + abi.words()


def name_of(path):
    """Return the name by which the guest knows the module of @path."""
    name = os.path.splitext(os.path.basename(path))[0]
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def compiled(path):
    """Compile a source. Return the path of its object, in which only the parameters of its
    functions are left of debug data: see params.py. The whole object is at
    with_debug_data(). An object without debug data stays as it is.
    """
    is_object = path.endswith(".o")
    try:
        if is_object and not params.has_debug_data(path):
            return path
    except params.elf64.ElfError as error:
        raise ModuleError(f"{path}: {error}") from None
    os.makedirs(FOLDER, exist_ok=True)
    whole = with_debug_data(name_of(path))
    target = os.path.join(FOLDER, name_of(path) + ".o")
    words = flags() + ["-Wno-error", "-c", "-o", whole, os.path.abspath(path)]
    open(whole, "wb").close()  # a folder that is read-only is no fault of the source
    try:
        if is_object:
            shutil.copyfile(path, whole)
        else:
            subprocess.run(words, cwd=ROOT, check=True)
        shutil.copyfile(whole, target)
        params.note(target)
    except subprocess.CalledProcessError as error:
        must_have_room(FOLDER, *filter(os.path.isdir, [os.environ.get("TMPDIR", "/tmp")]))
        refused = (
            "does not compile" if error.cmd is words else f"{error.cmd[0]} refuses it"
        )
        raise ModuleError(f"{path}{':' * is_object} {refused}") from None
    return target


def with_debug_data(name):
    """Return the path of the object from which the module @name was made, if compiled() has
    made it.
    """
    return os.path.join(FOLDER, name + ".debug.o")


def must(reply, what):
    if reply.errno:
        raise ModuleError(f"{what}: {reply.text.strip() or reply.name}")


def send(machine, data, path, timeout):
    """Write @data to the file @path of the guest."""
    must(machine.request(f"echo -n '' > {path}", timeout, may_fail=True), path)
    for at in range(0, len(data), CHUNK):
        command = f"echo -ne {quote(data[at : at + CHUNK])} >> {path}"
        must(machine.request(command, timeout, may_fail=True), path)


def lock_of(path):
    """Return a file: while it is open, no other ./sonde loads a module of this name, whose
    object would have the same path. A folder that cannot be written to has no lock.
    """
    try:
        os.makedirs(FOLDER, exist_ok=True)
        lock = open(os.path.join(FOLDER, name_of(path) + ".lock"), "wb")
    except OSError:
        return contextlib.nullcontext()
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def load(machine, path, timeout):
    """Compile, send and (re)load the module of @path. Remove its file from the guest."""
    with lock_of(path), open(compiled(path), "rb") as file:
        data = file.read()
    target = f"/tmp/{name_of(path)}.o"
    send(machine, data, target, timeout)
    reply = machine.request(f"module reload {target}", timeout, may_fail=True)
    machine.request(f"rm {target}", timeout, may_fail=True)
    must(reply, f"module reload {target}")
