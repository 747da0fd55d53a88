"""tree.py - finds the tree of the kernel, which this package builds and boots."""

import os

HERE = os.path.dirname(os.path.abspath(__file__))
INSTALLED = os.path.join(HERE, "tree.txt")  # written by kernel/host/setup.py


def root():
    """Return the tree that SONDE_ROOT names; or the tree in which this file stands, or from
    which pip has installed it.
    """
    if "SONDE_ROOT" in os.environ:
        return os.path.abspath(os.environ["SONDE_ROOT"])
    if os.path.exists(INSTALLED):
        with open(INSTALLED, encoding="utf-8") as file:
            return file.read().rstrip("\n")
    return os.path.abspath(os.path.join(HERE, "../../.."))
