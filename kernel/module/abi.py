#!/usr/bin/env python3
"""abi.py - computes a number from all headers with which modules and the
kernel are compiled.

    kernel/module/abi.py [-o FILE.asm]

A module knows the kernel from its headers: layouts, prototypes, numbers. So each object
has the checksum of all headers in its section .sonde_abi (abi.h), and the kernel has it
in a constant. The kernel refuses an object that was compiled with other headers. Without
-o this program prints the options for the compiler.
"""

import argparse
import glob
import hashlib
import os
import signal

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ("kernel", "probes", "drivers", "libc/include")

ASM = """; Made by kernel/module/abi.py.
section .rodata
align 8
global module_abi:data (8)
module_abi: dq 0x{:016x}
"""


def headers(root):
    found = (
        glob.glob(os.path.join(folder, "**", "*.h"), root_dir=root, recursive=True)
        for folder in FOLDERS
    )
    return sorted(path for paths in found for path in paths)


def value(root=ROOT):
    """Return a checksum of 64 bits of the names and the bytes of all headers."""
    digest = hashlib.sha256()
    for path in headers(root):
        with open(os.path.join(root, path), "rb") as file:
            digest.update(path.encode() + b"\0" + hashlib.sha256(file.read()).digest())
    return int.from_bytes(digest.digest()[:8], "little")


def words(root=ROOT):
    return ["-include", "kernel/module/abi.h", f"-DSONDE_ABI=0x{value(root):016x}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", dest="output")
    output = parser.parse_args().output
    if not output:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # make may end while it reads
        print(" ".join(words()))
        return
    with open(output, "w", encoding="utf-8") as file:
        file.write(ASM.format(value()))


if __name__ == "__main__":
    main()
