TEXT_ROOM := \
    probes/text/text_part.c \
    probes/text/text_engine.c \
    probes/text/text_whole.c \
    probes/text/text_stop.c \
    probes/text/text_word.c \
    probes/text/text_history.c \
    probes/text/text_phases.c
