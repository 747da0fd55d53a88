TRACE := \
    probes/trace/ring.c \
    probes/trace/page.c
