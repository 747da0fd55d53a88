"""nasm_table.py - writes a table of an image as NASM source, to be linked into the image.
The programs that make such tables share this file.
"""

import argparse
import struct
import sys

sys.dont_write_bytecode = True
import elf64

SECTION = ".ksyms"


def head(what, program, reader):
    return [
        f"; {what}, made by {program}. See {reader}.",
        f"section {SECTION} progbits alloc noexec nowrite align=8",
        "",
    ]


def table(label, lines):
    """The lines of a global object @label, with its size."""
    return [
        f"global {label}:data ({label}.end - {label})",
        f"{label}:",
        *lines,
        f"{label}.end:",
        "",
    ]


def low(addr):
    """The low half of an address; all addresses of an image have the same high half."""
    return f"{addr & 0xFFFFFFFF:#x}"


def string(text):
    if text.isprintable() and text.isascii() and '"' not in text:
        return f'db "{text}", 0'
    return "db " + ", ".join(map(str, text.encode() + b"\0"))


def content(data):
    """Words as far as they go, since the assembler reads them sooner than bytes."""
    whole = len(data) // 32 * 32
    for words in struct.iter_unpack("<4Q", data[:whole]):
        yield "dq %#x, %#x, %#x, %#x" % words
    if data[whole:]:
        yield "db " + ", ".join(map(str, data[whole:]))


def write(path, lines):
    """Write @lines to the file @path, or to standard output."""
    source = "".join(line + "\n" for line in lines)
    if path:
        with open(path, "w", encoding="ascii") as file:
            file.write(source)
    else:
        sys.stdout.write(source)


def main(program, what, found_in, lines_of, nothing, tool=None):
    """Write lines_of(found_in(IMAGE)), or lines_of(@nothing) with --empty. @tool: an option
    and its help text; found_in() gets the value of the option, too."""
    parser = argparse.ArgumentParser(description=what + " as NASM source")
    parser.add_argument("-o", metavar="FILE", help="where to write it, default stdout")
    parser.add_argument("--empty", action="store_true", help="a table of nothing")
    if tool:
        parser.add_argument(tool[0], dest="tool", metavar="PROGRAM", help=tool[1])
    parser.add_argument("image", nargs="?", help="ELF file, linked")
    args = parser.parse_args()
    if args.empty == bool(args.image):
        parser.error("give either an image or --empty")
    if tool and args.empty == bool(args.tool):
        parser.error(f"{tool[0]} goes with an image")
    words = [args.image, args.tool] if tool else [args.image]
    try:
        found = nothing if args.empty else found_in(*words)
    except (OSError, ValueError, elf64.ElfError) as error:
        sys.exit(f"{program}: {args.image}: {error}")
    write(args.o, lines_of(found))
