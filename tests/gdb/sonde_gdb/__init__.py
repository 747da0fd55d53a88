"""sonde_gdb - what gdb is taught of sonde. ../kprobes.py loads it.

    fields.py    the names of the kernel's that are used: nothing else knows any
    kernel.py    memory, structures, symbols, the build
    sites.py     probed addresses, the cells and pads of their code, hits
    shadow.py    return addresses that were exchanged
    cfi.py       call frame information, read from the image
    place.py     where in the program a CPU in generated code is, and with which registers
    walk.py      from a frame to its caller
    frames.py    gdb's backtraces: an unwinder and a filter
    text.py      gdb's disassembler: original text
    threads.py   threads and CPUs
    ring.py      the tracer's records
    commands.py  the commands
    back.py      those of a replay

Only frames.py, text.py, commands.py and back.py are known to gdb. All of it only reads
memory, but for kbreak.
"""
