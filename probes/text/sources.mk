LATE_TEXT := \
    probes/text/text_part.c
