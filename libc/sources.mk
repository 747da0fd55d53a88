LIBC := \
    libc/string.c \
    libc/strtol.c \
    libc/extra.c \
    libc/glob.c \
    libc/qsort.c \
    libc/vsnprintf.c \
    libc/snprintf.c \
    libc/err.c
