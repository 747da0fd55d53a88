MARKER := \
    probes/marker/marker.c \
    probes/marker/marker_command.c
