"""errors.py - the base of all errors that this package raises."""


class SondeError(Exception):
    """Something that was asked of a guest, of the build or of ./sonde cannot be done."""
