PORT := \
    probes/port/port_detour.c \
    probes/port/port_rooms.c \
    probes/port/port_kernel.c \
    probes/port/port_held.c \
    probes/port/port_text.c \
    probes/port/port_pads.c \
    probes/port/port_symbols.c \
    probes/port/port_module.c \
    probes/port/port_watch.c \
    probes/port/port_shadow.c \
    probes/port/port_optimizer.c \
    probes/port/unprobe.c \
    probes/port/report.c
