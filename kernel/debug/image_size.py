#!/usr/bin/env python3
"""image_size.py - `make size`: how large the image is that users boot, and the documents,
beside the aims.

    image_size.py IMAGE BOUNDARIES

BOUNDARIES is what `probe stat` prints on the image, in a file: the number of instructions
that accept a probe stands in it.
"""

import pathlib
import re
import signal
import sys

sys.dont_write_bytecode = True
import elf64

AIMS = {
    "KB of text and read-only data": 660,
    "functions": 2750,
    "places of `probe all`": 120000,
    "words of documents": 45000,
}


def functions(elf):
    """The symbols that nm prints as t or T."""
    return sum(
        1
        for s in elf.symbols()
        if s.section
        and s.section.flags & elf64.SHF_EXEC
        and s.type not in (elf64.STT_SECTION, elf64.STT_FILE)
    )


def words():
    """The words of all documents; the tree need not be a repository, and tools may have left
    hidden folders in it.
    """
    paths = [path for path in pathlib.Path().rglob("*.md") if path.parts[0][0] != "."]
    paths = [path for path in paths if path.parts[0] != "build"]
    return sum(len(path.read_text(encoding="utf-8").split()) for path in paths)


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `make size | head`
    elf = elf64.load(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        places = int(re.search(r"^jumps \d+ of (\d+)", file.read(), re.M)[1])
    size = sum(elf.section(name).size for name in (".text", ".rodata"))
    figures = (-(-size // 1000), functions(elf), places, words())
    for (what, aim), figure in zip(AIMS.items(), figures):
        print(f"{figure:9,} of {aim:9,} {what}{' - more than the aim' * (figure > aim)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
