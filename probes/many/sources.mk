MANY := \
    probes/many/walk.c \
    probes/many/census.c \
    probes/many/mass.c
