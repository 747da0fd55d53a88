GDB := \
    probes/gdb/gdb_packet.c \
    probes/gdb/gdb_wire.c \
    probes/gdb/gdb_line.c \
    probes/gdb/gdb_stop.c \
    probes/gdb/gdb_threads.c \
    probes/gdb/gdb_regs.c \
    probes/gdb/gdb_memory.c \
    probes/gdb/gdb_step.c \
    probes/gdb/gdb_stepping.c \
    probes/gdb/gdb_rings.c \
    probes/gdb/gdb_output.c \
    probes/gdb/gdb_monitor.c \
    probes/gdb/gdb_code.c \
    probes/gdb/gdb_break.c \
    probes/gdb/gdb_collect.c \
    probes/gdb/gdb_frame.c \
    probes/gdb/gdb_place.c \
    probes/gdb/gdb_define.c \
    probes/gdb/gdb_trace.c \
    probes/gdb/gdb_transfer.c \
    probes/gdb/gdb_session.c \
    probes/gdb/gdb_stub.c
