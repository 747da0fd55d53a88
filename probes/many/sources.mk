MANY := \
    probes/many/walk.c \
    probes/many/census.c \
    probes/many/mass.c \
    probes/many/place_text.c
