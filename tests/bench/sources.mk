BENCH := \
    tests/bench/targets.asm
