#!/usr/bin/env python3
"""params.py - notes in modules what debug data tells of their functions' parameters.

    kernel/module/params.py FILE.o...

The section .sonde_params gets a line for each function: its name, then the words of
kernel/debug/gen_params.py, then a NUL. elf_params() reads it. Debug data is removed: the
kernel does not read it. A file without debug data stays as it is.
"""

import collections
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../debug"))
import elf64
import gen_params

SECTION = ".sonde_params"
# Debug data of an object refers to sections by relocations, which a link fills in. Where
# the sections then lie is of no importance.
LINK = ["ld", "--unresolved-symbols=ignore-all", "-e", "0", "-z", "noexecstack"]
LINK += ["-z", "max-page-size=4096", "--no-warn-rwx-segments"]


def has_debug_data(path):
    return elf64.load(path).section(".debug_info") is not None


def lines(path):
    """Return the lines for the object @path. A name that two of its functions have gets no
    line.
    """
    with tempfile.TemporaryDirectory() as folder:
        linked = os.path.join(folder, "linked")  # ld removes it if the link fails
        subprocess.run([*LINK, path, "-o", linked], check=True)
        elf = elf64.load(linked)
    known = gen_params.params_of(elf)
    functions = [s for s in elf.symbols() if s.type == elf64.STT_FUNC]
    count = collections.Counter(s.name for s in functions)
    return [
        f"{s.name} {known[s.value]}"
        for s in functions
        if s.value in known and count[s.name] == 1
    ]


def note(path):
    if not has_debug_data(path):
        return
    words = ["objcopy", "--strip-debug", "--remove-section", SECTION]
    with tempfile.NamedTemporaryFile() as section:
        section.write("".join(line + "\0" for line in lines(path)).encode())
        section.flush()
        words += ["--add-section", f"{SECTION}={section.name}", path]
        subprocess.run(words, check=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        note(name)
