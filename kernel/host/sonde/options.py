"""options.py - checks the values of ./sonde's options. Impossible values are refused
before anything is built or started. Each function takes the text and returns the value,
or raises ArgumentTypeError with the reason.
"""

import argparse
import errno
import math
import os
import re
import socket
import stat
import subprocess

from sonde import exits
from sonde.errors import SondeError
from sonde.guest import APPEND_MAX, BUILD, further_words, refusal

UNITS = {
    "": 2**20,
    "K": 2**10,
    "M": 2**20,
    "G": 2**30,
    "T": 2**40,
}  # as QEMU has them
MEMORY_MIN = 8 * 2**20
SECONDS_MAX = 1e6
SOCKET_PATH_MAX = 107  # bytes; Linux's sockaddr_un
KERNELS = b"\2\0\x3e\0", b"\2\0\3\0"  # e_type and e_machine of an ELF file
UNLIMITED = "smp boot image accel icount append memory log qmp qemu"
GUEST = UNLIMITED + " timeout"
# {command: {option: what may stand beside it}}. The first option that is given decides;
# without any of them the last row, "", holds. Of `film` they are not options, but words.
WAYS = {
    "module": {"socket": "timeout json words", "": GUEST + " json words"},
    "gdb": {"socket": UNLIMITED + " stub", "": UNLIMITED + " stub commands"},
    "check": {"list": "files", "": GUEST + " junit files"},
    "test": {"list": "long tools accel names", "": "junit long tools accel names"},
    "film": {"play": "films", "text": "films output", "html": "films output",
             "svg": "films output frames", "record": "films output timeout"},
    "lab": {"hint": "lab", "": "lab folder"},
    "grade": {"case": "lab folder seed tree json",
              "": "lab folder seed tree json progress"},
    "class": {"guests": "memory", "collect": "roster output json jobs",
              "": "roster output"},
}  # fmt: skip
PLAIN_CONSOLE = "console=plain "  # put in front of the words if there is no terminal


class UsageError(SondeError):
    """The command line is wrong."""

    status = exits.USAGE


def fail(text):
    raise argparse.ArgumentTypeError(text)


def cpus(text):
    if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= 64:
        fail(f"{text!r} is not a number from 1 to 64")
    return int(text)


def port(text):
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65535:
        fail(f"{text!r} is not a number from 0 to 65535")
    return int(text)


def seed(text):
    """A seed, or the number of a case."""
    if not re.fullmatch(r"[0-9]{1,18}", text):
        fail(f"{text!r} is not a number from 0 on")
    return int(text)


def memory(text):
    match = re.fullmatch(r"([0-9]{1,15})([KMGT]?)", text, re.IGNORECASE)
    if not match:
        fail(f"{text!r} is no size like 512M or 2G")
    if int(match[1]) * UNITS[match[2].upper()] < MEMORY_MIN:
        fail(f"{text} is less than {MEMORY_MIN >> 20}M, the least the kernel boots with")
    return text


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= SECONDS_MAX:
        fail(
            f"{text!r} is no number of seconds, more than 0 and at most {SECONDS_MAX:.0f}"
        )
    return value


def words(text):
    """Words for QEMU, quoted as a shell has them."""
    try:
        further_words(text)
    except ValueError as error:
        fail(f"{text!r}: {error}")
    return text


def boot_words(text):
    if not text.isprintable():
        fail(f"{text!r} has a character that cannot be printed")
    return text


def buffer_size(text):
    if not re.fullmatch(r"[0-9]{1,6}", text) or not 8 <= int(text) <= 261120:
        fail(f"{text!r} is not a number of KiB from 8 to 261120")
    return int(text)


def named(path):
    return path or fail("an empty name")


def can_make(path):
    """Try it: /proc looks writable to root, but no file can be made there."""
    try:
        with open(path, "xb"):
            os.unlink(path)
    except OSError:
        return False
    return True


def check_folder(path):
    folder = os.path.dirname(named(path)) or "."
    if len(os.fsencode(os.path.basename(path))) > os.pathconf("/", "PC_NAME_MAX"):
        fail(f"{path}: the name is too long")
    if not os.path.isdir(folder):
        fail(f"{path}: there is no directory {folder}")
    if not os.path.lexists(path) and not can_make(path):
        fail(f"{path}: {folder} cannot be written to")


def input_file(path):
    if not os.path.exists(named(path)):
        fail(f"{path}: no such file")
    if os.path.isdir(path) or not os.access(path, os.R_OK):
        fail(f"{path} cannot be read" + " (a directory)" * os.path.isdir(path))
    return path


def output_file(path):
    check_folder(path)
    if os.path.isdir(path):
        fail(f"{path} is a directory")
    if os.path.exists(path) and not os.access(path, os.W_OK):
        fail(f"{path} cannot be written to")
    return path


def folder_to_make(path):
    """A folder that is there, or that can be made, with those above it."""
    there = os.path.abspath(named(path))
    if os.path.isdir(there):
        return path
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        fail(f"{there} is no directory")
    if not can_make(os.path.join(there, f".sonde-{os.getpid()}")):
        fail(f"{path}: {there} cannot be written to")
    return path


def address(text):
    """A name or address of this host."""
    try:
        socket.getaddrinfo(text or None, 0)
    except (OSError, UnicodeError) as error:
        fail(f"{text!r}: {getattr(error, 'strerror', None) or 'no name'}")
    return text


def checked(check, path):
    """As an option of argparse, but for a value that is known only later."""
    try:
        return check(path)
    except argparse.ArgumentTypeError as error:
        raise UsageError(str(error)) from None


def image(path):
    """The path of a kernel's ELF file. A file in the build folder will be built."""
    path = os.path.abspath(named(path))
    if path.startswith(BUILD + "/"):
        return path
    with open(input_file(path), "rb") as file:
        head = file.read(20)
    if head[:4] != b"\x7fELF":
        fail(f"{path} is no kernel: it is no ELF file")
    if head[16:20] not in KERNELS:
        fail(f"{path} is no kernel: it is no executable for x86 with fixed addresses")
    return path


def empty_folder(path):
    """A folder to mount files at. A ./sonde that was killed may have left its mount there."""
    path = os.path.realpath(named(path))
    try:
        os.stat(path)
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            subprocess.run(["fusermount", "-u", "-z", path], check=False)
    if not os.path.isdir(path):
        fail(f"{path} is no directory")
    if os.listdir(path):
        fail(f"{path} is not empty")
    return path


def is_served(path):
    """Does a process listen on this socket?"""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(path)
        except OSError:
            return False
    return True


def new_socket(path):
    """A path for a socket of QEMU. QEMU would remove any file that is there already."""
    check_folder(path)
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        fail(f"{path} is longer than {SOCKET_PATH_MAX} bytes, the most a socket may have")
    if not os.path.lexists(path):
        return path
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        fail(f"{path} is there and is no socket")
    if is_served(path):
        fail(f"{path} is the socket of another guest")
    return path


def check_kvm():
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise UsageError("--accel kvm: /dev/kvm is not there, or not for this user")


def check_ways(options):
    """Raise UsageError if an option would do nothing beside the others, or without one."""
    ways = WAYS.get(options.command, {"": " ".join(options.given)})
    given = dict(options.given)
    if "way" in given:  # of film
        del given["way"]
        given[options.way] = options.way
    way = next(name for name in ways if name in given or not name)
    for name, written in given.items():
        if name == way or name in ways[way].split():
            continue
        wrong = f"{options.command}: {written}"
        if way:
            raise UsageError(f"{wrong} does not go with {given[way]}")
        others = [other for other in ways if name in ways[other].split()]
        raise UsageError(f"{wrong} goes with --{' or --'.join(others)}")


def check_together(options):
    """Raise UsageError if options do not fit together, or to the host."""
    check_ways(options)
    if hasattr(options, "boot"):
        check_guest(options)
    if hasattr(options, "append"):
        check_append(options)


def check_guest(options):
    if options.image and "boot" in options.given and options.boot != "pvh":
        raise UsageError(f"--image: it boots as pvh, so --boot {options.boot} is refused")
    if options.accel == "kvm" and options.icount:
        raise UsageError("--icount: KVM does not count instructions")
    if options.accel == "kvm":
        check_kvm()


def check_append(options):
    boot = getattr(options, "boot", "pvh")
    limit = APPEND_MAX[boot] - len(PLAIN_CONSOLE)
    if len(options.append.encode()) > limit:
        raise UsageError(f"--append: more than {limit} bytes, the most for {boot}")


def check_with_qemu(setup):
    """Raise UsageError if QEMU refuses the words that are passed on to it."""
    said = refusal(setup)
    if said:
        raise UsageError("QEMU does not take these options:\n" + said)
