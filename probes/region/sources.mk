REGION := \
    probes/region/region.c \
    probes/region/region_copy.c \
    probes/region/region_open.c \
    probes/region/region_watch.c \
    probes/region/region_picture.c \
    probes/region/targets.c \
    probes/region/find_targets.c
