"""errors.py - the base of all errors that this package raises, and what is said of others."""

import contextlib
import errno
import os
import subprocess
import sys
import traceback

from sonde import exits

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# A program of the host has failed, or has not ended in time.
PROGRAM_FAILED = (subprocess.CalledProcessError, subprocess.TimeoutExpired)
WHOLE_MAX = 64 << 20  # bytes of a file that is read as a whole


class SondeError(Exception):
    """Something that was asked of a guest, of the build or of ./sonde cannot be done.
    status: what ./sonde exits with     lines: the end of the guest's log
    """

    status = exits.HOST
    lines = ()


def say(text, begin="sonde: "):
    """Tell the user. If standard error cannot be written, the exit status still tells."""
    with contextlib.suppress(OSError):
        print(begin + text, file=sys.stderr, flush=True)


def show_lines(lines):
    for line in lines:
        say(line, "  | ")


def say_failure(command, reply, commands):
    """Tell that a command of the guest has failed. @commands: all that the user has given;
    maybe the shell has divided one.
    """
    hint = ""
    if len(commands) > 1 and not any(" " in one for one in commands):
        hint = " (each argument is a command of its own; this is one: "
        hint += f"'{' '.join(commands)}')"
    say(f"'{command}' failed: {reply.errno} {reply.name}{hint}")


def read_whole(file):
    """All that an open file has. A file without an end, such as /dev/zero, is too large."""
    data = file.read(WHOLE_MAX + 1)
    if len(data) > WHOLE_MAX:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), file.name)
    return data


def read_named(name):
    """All of a file; for -, what standard input still has."""
    is_input = name == "-"
    with open(0 if is_input else name, "rb", closefd=not is_input) as file:
        return read_whole(file)


def write_whole(path, data, mode=0o666):
    """Write a file so that it has all of @data, or is what it was: the disk may be full.
    @mode: of a new file
    """
    path = os.path.realpath(path)  # of a link, the file to which it leads
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name}.{os.urandom(4).hex()}")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT, mode), "wb") as file:
            file.write(data)
        if os.path.exists(path):
            there = os.stat(path)
            with contextlib.suppress(PermissionError):  # only root can give a file away
                os.chown(beside, there.st_uid, there.st_gid)
            os.chmod(beside, there.st_mode & 0o7777)
        os.replace(beside, path)
    except OSError as error:
        error.filename, error.filename2 = path, None
        raise
    finally:
        with contextlib.suppress(OSError):
            os.unlink(beside)


@contextlib.contextmanager
def writing(path):
    """Let an error name the file that is written inside; Python names it only in open()."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise


def words_of(error):
    """An error as the user reads it: of a file, its name and the reason; of a program of the
    host, its last line, or how it has ended.
    """
    if isinstance(error, PROGRAM_FAILED):
        said = error.stderr or b""
        said = said.decode(errors="replace") if isinstance(said, bytes) else said
        name = os.path.basename(error.cmd[0])
        how = said.strip().rpartition("\n")[2] or str(error).rpartition("' ")[2]
        return f"{name}: {how.removeprefix(name + ': ')}"
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    name = error.filename2 or error.filename  # of a copy, the second is what is written
    if name is None and error.errno in FULL:
        name = "the output cannot be written"
    return f"{name}: {error.strerror}" if name is not None else str(error)


def places(error):
    """The places in the code through which an exception came, the innermost last."""
    return [
        f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}()"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
