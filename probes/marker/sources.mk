MARKER := \
    probes/marker/marker.c \
    probes/marker/static_key.c \
    probes/marker/marker_command.c
