GDB := \
    kernel/gdb/gdb_packet.c \
    kernel/gdb/gdb_wire.c \
    kernel/gdb/gdb_line.c \
    kernel/gdb/gdb_stop.c \
    kernel/gdb/gdb_threads.c \
    kernel/gdb/gdb_regs.c \
    kernel/gdb/gdb_memory.c \
    kernel/gdb/gdb_step.c \
    kernel/gdb/gdb_rings.c \
    kernel/gdb/gdb_output.c \
    kernel/gdb/gdb_monitor.c \
    kernel/gdb/gdb_code.c \
    kernel/gdb/gdb_break.c \
    kernel/gdb/gdb_collect.c \
    kernel/gdb/gdb_frame.c \
    kernel/gdb/gdb_place.c \
    kernel/gdb/gdb_define.c \
    kernel/gdb/gdb_trace.c \
    kernel/gdb/gdb_transfer.c \
    kernel/gdb/gdb_session.c \
    kernel/gdb/gdb_stub.c
