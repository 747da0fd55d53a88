WATCH := \
    probes/watch/watch.c \
    probes/watch/watch_hit.c
