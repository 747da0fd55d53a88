PROBE_BENCH := \
    probes/bench/bench.c \
    probes/bench/targets.asm \
    probes/bench/bench_loop.c \
    probes/bench/bench_kind.c \
    probes/bench/bench_probed.c \
    probes/bench/bench_condition.c

# The module that the command loads.
BENCH_MODULE := \
    probes/bench/bench_run.c \
    probes/bench/bench_goal.c \
    probes/bench/bench_print.c \
    probes/bench/bench_hit.c \
    probes/bench/bench_among.c \
    probes/bench/bench_crowd.c \
    probes/bench/bench_scale.c \
    probes/bench/bench_cache.c \
    probes/bench/bench_counted.c \
    probes/bench/bench_starve.c \
    probes/bench/bench_marker.c \
    probes/bench/bench_events.c \
    probes/bench/bench_text.c
