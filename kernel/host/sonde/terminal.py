"""terminal.py - gives a terminal back as it was."""

import contextlib
import termios


@contextlib.contextmanager
def kept(terminal):
    """At the end give @terminal the settings of the start, unless it is closed by then."""
    state = termios.tcgetattr(terminal)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSADRAIN, state)
