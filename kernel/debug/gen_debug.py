#!/usr/bin/env python3
"""gen_debug.py - makes the tables that come from debug data, which is read once.

    gen_debug.py IMAGE INLINES.asm PARAMS.asm LINES.asm
"""

import gc
import sys

gc.disable()  # nothing of what is read goes before the end
sys.dont_write_bytecode = True
import elf64
import gen_inlines
import gen_lines
import gen_params
import nasm_table


def main():
    if len(sys.argv) != 5:
        sys.exit("usage: gen_debug.py IMAGE INLINES.asm PARAMS.asm LINES.asm")
    image, inlines, params, lines = sys.argv[1:]
    try:
        elf = elf64.load(image)
        nasm_table.write(inlines, gen_inlines.source_lines(gen_inlines.places_of(elf)))
        nasm_table.write(params, gen_params.source_lines(gen_params.params_of(elf)))
        nasm_table.write(lines, gen_lines.source_lines(gen_lines.lines_of(elf)))
    except (OSError, elf64.ElfError) as error:
        sys.exit(f"gen_debug: {image}: {error}")


if __name__ == "__main__":
    main()
