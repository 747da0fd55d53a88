TRUTH := \
    tests/truth/truth.c \
    tests/truth/truth_module.c \
    tests/truth/truth_window.c \
    tests/truth/truth_nmi.c
