"""errors.py - the base of all errors that this package raises, and what is said of others."""

import os
import traceback


class SondeError(Exception):
    """Something that was asked of a guest, of the build or of ./sonde cannot be done."""


def places(error):
    """The places in the code through which an exception came, the innermost last."""
    return [
        f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}()"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
