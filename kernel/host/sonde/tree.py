"""tree.py - finds the tree of the kernel, which this package builds and boots."""

import os

HERE = os.path.dirname(os.path.abspath(__file__))
INSTALLED = os.path.join(HERE, "tree.txt")  # written by kernel/host/setup.py


def root():
    """Return the tree in which this file stands. Where pip has installed it, return the tree
    that SONDE_ROOT names, or the tree from which it was installed.
    """
    if not os.path.exists(INSTALLED):
        return os.path.abspath(os.path.join(HERE, "../../.."))
    if "SONDE_ROOT" in os.environ:
        return os.path.abspath(os.environ["SONDE_ROOT"])
    with open(INSTALLED, encoding="utf-8") as file:
        return file.read().rstrip("\n")
