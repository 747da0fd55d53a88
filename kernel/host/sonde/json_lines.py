"""json_lines.py - what --json prints: one object on each line, for programs."""

import base64
import json
import sys
import time

from sonde import exits
from sonde.errors import words_of


def show(**fields):
    """Print an object. It is one write, because two threads may print."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def text_of(data):
    """Return bytes, or a str that may have bytes of no character, as text. A byte that is
    no UTF-8 is \\xHH."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    return data.decode("utf-8", "backslashreplace")


def show_reply(command, reply, begun):
    """Print the reply to a command, which began at the time @begun. Output that is no
    UTF-8 is given without loss as well.
    """
    fields = {"output": reply.text}
    try:
        reply.output.decode()
    except UnicodeDecodeError:
        fields["base64"] = base64.b64encode(reply.output).decode()
    show(
        command=text_of(command),
        status=reply.errno,
        name=reply.name,
        **fields,
        seconds=round(time.monotonic() - begun, 3),
    )


def show_error(error):
    """Print the last object of a command that could not do its work."""
    status, lines = getattr(error, "status", exits.HOST), getattr(error, "lines", ())
    show(error=text_of(words_of(error)), exit=status, log=list(lines))
