"""compile.py - makes a module of the kernel from a program of gdb's test-suite.

    compile.py object|executable TARGET WORDS...

WORDS are sources, objects and words for the compiler. An executable is two files. The
kernel loads TARGET.module. gdb reads TARGET, which has the same sections with debug data,
at the addresses that the kernel gives to the first module that it loads. suite/guest.py
checks these addresses.
"""

import os
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path[:0] = [
    ROOT,
    os.path.join(ROOT, "kernel/host"),
    os.path.join(ROOT, "kernel/debug"),
]

import elf64
from sonde.guest import BUILD, ELF

LARGE_PAGE, PAGE = 0x200000, 0x1000
TEXT_GAP = 16  # ELF_TEXT_GAP
SOURCES = (".c", ".S", ".s")
# The compiler flags of the kernel without which a program could not run at its address in
# the kernel. Other flags are as on the host, where the compiler knows the types of
# malloc() and other functions that a program has not declared.
NEEDED = ("-std=gnu11", "-ffreestanding", "-fbuiltin", "-fno-builtin-printf",
          "-fno-builtin-fprintf", "-fno-pic", "-fno-pie", "-fno-stack-protector",
          "-mcmodel=kernel", "-mno-red-zone", "-fcf-protection=none",
          "-nostdinc")  # fmt: skip

# Merges all sections of a kind into one, so that PLACES has one address for each kind.
MERGE = """SECTIONS {
.text : { *(.text .text.*) }
.rodata : { *(.rodata .rodata.*) }
.init_array : { *(.init_array .init_array.*) }
.data : { *(.data .data.*) }
.bss : { *(.bss .bss.* COMMON) }
.eh_frame : { *(.eh_frame) }
}"""


def kernel_words():
    with open(os.path.join(BUILD, "flags.stamp"), encoding="utf-8") as file:
        return shlex.split(file.readline())


def must(words, **more):
    done = subprocess.run(words, check=False, **more)
    if done.returncode:
        sys.exit(done.returncode)
    return done


def compile_one(source, target, words):
    given = kernel_words()
    include = given[len(given) - 1 - given[::-1].index("-isystem") + 1]
    compiler = given[0]
    must(
        [
            compiler,
            *NEEDED,
            "-w",
            "-I",
            os.path.join(HERE, "include"),
            "-I",
            ROOT,
            "-isystem",
            os.path.join(ROOT, "libc/include"),
            "-isystem",
            include,
            *words,
            "-c",
            "-o",
            target,
            source,
        ]
    )
    return target


def runtime(folder):
    """Compile program.c as the kernel is compiled, but without
    -fpatchable-function-entry, which adds a table to a module.
    """
    target = os.path.join(folder, "program.o")
    words = [*kernel_words(), "-fpatchable-function-entry=0"]
    must(
        [
            *words,
            "-g0",
            "-w",
            "-I",
            os.path.join(HERE, "include"),
            "-c",
            "-o",
            target,
            os.path.join(HERE, "program.c"),
        ],
        cwd=ROOT,
    )
    return target


# Where the kernel puts the sections: kernel/module/elf_link.c, kernel/mm/window.c.
PLACES = """SECTIONS {
. = %(base)#x;
.text . + %(gap)d : { *(.text) }
. = ALIGN(%(page)d);
.rodata : { *(.rodata) }
.init_array : { *(.init_array) }
. = ALIGN(%(page)d);
.data : { *(.data) }
.bss : { *(.bss) }
. = ALIGN(%(page)d) + %(page)d;
.eh_frame : { *(.eh_frame) }
}"""


def outside_names(path):
    """Return {name: value} of the kernel's symbols that an object uses."""
    done = must(["nm", "-u", path], capture_output=True, text=True)
    wanted = {line.split()[-1] for line in done.stdout.splitlines()}
    return {
        s.name: s.value
        for s in elf64.load(ELF).symbols()
        if s.name in wanted and s.bind != elf64.STB_LOCAL
    }


def script(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def link(objects, target):
    """Make TARGET.module and TARGET."""
    folder = os.path.dirname(target)
    merge = script(target + ".merge", MERGE)
    module = target + ".module"
    must(["ld", "-r", "-T", merge, "-o", module, *objects, runtime(folder)])
    end = next(s.value for s in elf64.load(ELF).symbols() if s.name == "_end")
    text = PLACES % {
        "base": (end + LARGE_PAGE - 1) // LARGE_PAGE * LARGE_PAGE,
        "gap": TEXT_GAP,
        "page": PAGE,
    }
    outside = outside_names(module)
    text += "".join(f"\n{name} = {value:#x};" for name, value in outside.items())
    must(
        [
            "ld",
            "-nostdlib",
            "-z",
            "noexecstack",
            "--no-warn-rwx-segments",
            "-e",
            "main",
            "-T",
            script(target + ".places", text),
            "-o",
            target,
            module,
        ]
    )
    must(["strip", "-g", module])


def main(kind, target, *words):
    sources = [w for w in words if w.endswith(SOURCES) and not w.startswith("-")]
    objects = [w for w in words if w.endswith(".o") and not w.startswith("-")]
    files = sources + objects
    words = [w for w in words if w not in files and not w.startswith(("-l", "-Wl,"))]
    target = os.path.abspath(target)
    if kind == "object":
        compile_one(sources[0], target, words)
        return
    for number, source in enumerate(sources):
        objects.append(compile_one(source, f"{target}.{number}.o", words))
    link(objects, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
