PROBE_CONSOLE := \
    probes/console/place.c \
    probes/console/place_line.c \
    probes/console/console_probe.c \
    probes/console/program_line.c \
    probes/console/commands.c \
    probes/console/boot_probes.c \
    probes/console/commands_watch.c \
    probes/console/commands_all.c \
    probes/console/commands_list.c \
    probes/console/commands_stat.c \
    probes/console/commands_explain.c \
    probes/console/commands_text.c \
    probes/console/commands_cost.c \
    probes/console/commands_listing.c \
    probes/console/commands_region.c \
    probes/console/commands_xmc.c \
    probes/console/trace_line.c \
    probes/console/trace_define.c \
    probes/console/trace_interval.c \
    probes/console/trace_table.c \
    probes/console/trace_graph.c \
    probes/console/trace_command.c \
    probes/console/files.c
