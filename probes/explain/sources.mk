EXPLAIN := \
    probes/explain/explain.c \
    probes/explain/explain_text.c \
    probes/explain/totals.c \
    probes/explain/explain_jump.c
