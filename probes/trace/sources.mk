TRACE := \
    probes/trace/error.c \
    probes/trace/def_words.c \
    probes/trace/def.c \
    probes/trace/def_list.c \
    probes/trace/fetch_type.c \
    probes/trace/fetch_parse.c \
    probes/trace/fetch.c \
    probes/trace/filter_field.c \
    probes/trace/filter_parse.c \
    probes/trace/filter.c \
    probes/trace/trigger.c \
    probes/trace/hist_parse.c \
    probes/trace/hist.c \
    probes/trace/hist_print.c \
    probes/trace/ring.c \
    probes/trace/page.c \
    probes/trace/page_merge.c \
    probes/trace/event.c \
    probes/trace/print.c \
    probes/trace/format.c \
    probes/trace/files/tracefs.c \
    probes/trace/files/buffer.c \
    probes/trace/files/files.c \
    probes/trace/files/per_cpu.c \
    probes/trace/files/detach.c \
    probes/trace/files/options.c \
    probes/trace/files/tracer.c
