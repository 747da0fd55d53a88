"""play.py - plays a film in a terminal: space plays and pauses, arrows step, q leaves."""

import contextlib
import os
import select
import sys
import textwrap
import time
import tty

from sonde import terminal

from . import film as films

SECONDS = 1.2  # that a frame is shown
KEYS = {b"\x1b[C": "next", b"\x1b[D": "back", b"\x1b[H": "first", b"\x1b[F": "last",
        b" ": "pause", b"q": "leave", b"\x03": "leave", b"\x1b[1~": "first",
        b"\x1b[4~": "last", b"n": "next", b"p": "back"}  # fmt: skip


def cell(values, width):
    return "|".join(values)[:width].center(width)


def lines_of(film, frame, count, width=80):
    """A frame as lines of text of at most @width columns."""
    columns = film.cpus + 1
    wide = max(8, min(18, (width - 8) // columns))
    shown = max(1, min(columns, (width - 8) // wide))
    names = ["memory"] + [f"CPU {cpu}" for cpu in range(film.cpus)]
    yield f"{film.title}  [{frame.number}/{count}]"[:width]
    yield ""
    yield (" " * 8 + "".join(name.center(wide) for name in names[:shown])).rstrip()
    for i, label in enumerate(film.labels):
        row = [frame.memory[i]] + ["|".join(one[i]) for one in frame.fetched]
        mark = ">" if ("byte", i) in frame.lit else " "
        values = "".join(text[: wide - 1].center(wide) for text in row[:shown])
        yield f"{mark}{label:6} {values}".rstrip()
    yield ""
    for cpu, where in enumerate(frame.stands):
        mark = ">" if ("cpu", cpu) in frame.lit else " "
        yield f"{mark}CPU {cpu}: {where}"[:width]
    yield ""
    yield from textwrap.wrap(frame.said, width)


class Player:
    """Knows which frame is shown, and changes that for each key."""

    def __init__(self, film):
        self.film, self.frames = film, film.frames()
        self.at, self.playing, self.over = 0, True, False

    def tick(self):
        if self.playing and self.at + 1 < len(self.frames):
            self.at += 1
        else:
            self.playing = False

    def press(self, key):
        last = len(self.frames) - 1
        if key == "leave":
            self.over = True
        elif key == "pause":
            if self.at == last:
                self.at = 0
            self.playing = not self.playing
        else:
            self.playing = False
            self.at = {
                "next": min(self.at + 1, last),
                "back": max(self.at - 1, 0),
                "first": 0,
                "last": last,
            }[key]

    def lines(self, width):
        yield from lines_of(self.film, self.frames[self.at], len(self.frames) - 1, width)
        yield ""
        yield "space: play or pause   left, right: step   Home, End   q: leave"[:width]


def on_terminal(film):
    player = Player(film)
    with terminal.kept(sys.stdin):
        tty.setcbreak(sys.stdin)
        sys.stdout.write("\x1b[?25l\x1b[2J")
        try:
            while not player.over:
                show(player)
                until = time.monotonic() + SECONDS if player.playing else None
                key = read_key(until)
                if key:
                    player.press(key)
                elif key is None:
                    player.tick()
        except KeyboardInterrupt:
            pass
        finally:
            with contextlib.suppress(OSError):  # it may be closed
                sys.stdout.write("\x1b[?25h\n")


def show(player):
    width = os.get_terminal_size().columns or 80
    sys.stdout.write(
        "\x1b[H" + "".join(line + "\x1b[K\n" for line in player.lines(width))
    )
    sys.stdout.write("\x1b[J")
    sys.stdout.flush()


def read_key(until):
    """The next key; "" for a key without a meaning; None when the time is over."""
    left = None if until is None else max(0, until - time.monotonic())
    if not select.select([sys.stdin], [], [], left)[0]:
        return None
    data = os.read(sys.stdin.fileno(), 16)
    return KEYS.get(data, "leave" if not data else "")


def play(film):
    """Play @film if this is a terminal; else print it as text."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        on_terminal(film)
    else:
        print("\n".join(films.as_text(film)))
