"""pack.py - makes of this folder what pip installs: a wheel. The package sonde needs a tree
of the kernel, so the wheel says from which tree it was made (sonde/tree.py reads that).

Source: the practice of Python's packaging (PEP 427: the wheel; PEP 517, PEP 660: the
functions that pip calls).
"""

import base64
import hashlib
import os
import tomllib
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.abspath(os.path.join(HERE, "../.."))
TAG = "py3-none-any"
WHEEL = f"Wheel-Version: 1.0\nGenerator: sonde\nRoot-Is-Purelib: true\nTag: {TAG}\n"


def project():
    with open(os.path.join(HERE, "pyproject.toml"), "rb") as file:
        return tomllib.load(file)["project"]


def modules():
    """Return {name in the wheel: bytes} of the package."""
    found = {"sonde/tree.txt": TREE.encode() + b"\n"}
    for name in sorted(os.listdir(os.path.join(HERE, "sonde"))):
        if name.endswith(".py"):
            with open(os.path.join(HERE, "sonde", name), "rb") as file:
                found["sonde/" + name] = file.read()
    return found


def described(about):
    """Return {name in the wheel: bytes} of what pip reads."""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {about['name']}",
        f"Version: {about['version']}",
        f"Summary: {about['description']}",
        f"Requires-Python: {about['requires-python']}",
    ]
    points = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in row.items())
        for group, row in about["entry-points"].items()
    ]
    folder = f"{about['name']}-{about['version']}.dist-info/"
    return {
        folder + "METADATA": "\n".join([*lines, ""]).encode(),
        folder + "WHEEL": WHEEL.encode(),
        folder + "entry_points.txt": "".join(points).encode(),
        folder + "RECORD": b"",
    }


def record(files):
    """Return the list of all files, with their sums."""
    for name, data in files.items():
        if not data:
            yield f"{name},,\n"
            continue
        digest = (
            base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        )
        yield f"{name},sha256={digest},{len(data)}\n"


def write_wheel(folder, files):
    """Write a wheel with these files. Return its name."""
    about = project()
    files = {**files, **described(about)}
    files[list(files)[-1]] = "".join(record(files)).encode()
    name = f"{about['name']}-{about['version']}-{TAG}.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(path, data)
    return name


# The names and the arguments are pip's.


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, modules())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {"sonde.pth": HERE.encode() + b"\n"})
