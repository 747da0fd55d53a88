LATE_TEXT := \
    probes/text/text_part.c \
    probes/text/text_stop.c
