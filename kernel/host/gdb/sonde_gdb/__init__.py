"""sonde_gdb - the parts of what sonde adds to gdb. ../kprobes.py loads them.

    fields.py    the kernel's names that are used here: no other file knows any
    kernel.py    memory, structures, symbols, the build
    sites.py     probed addresses, the cells and pads of their code, hits
    shadow.py    return addresses that return probes have exchanged
    cfi.py       call frame information, read from the image
    place.py     the place in the program, and the registers, of a CPU in generated code
    walk.py      the way from a frame to its caller
    frames.py    an unwinder and a filter for gdb's backtraces
    lines.py     lines of source for generated code, so that steps lead through it
    modules.py   the symbols of loaded modules
    objects.py   files of symbols for gdb, made in memory
    text.py      a hook for gdb's disassembler: original text
    threads.py   threads and CPUs
    ring.py      the tracer's records
    image.py     compare-sections and gcore
    commands.py  the commands
    back.py      the commands for a replay

Only frames.py, lines.py, modules.py, text.py, image.py, commands.py and back.py register
something with gdb. Only kbreak writes memory: it writes a probed byte, and writes it back at
once.
"""
