WORK := \
    kernel/work/work.c \
    kernel/work/work_threads.c \
    kernel/work/work_files.c \
    kernel/work/work_memory.c \
    kernel/work/work_text.c \
    kernel/work/work_compute.c \
    kernel/work/work_machine.c \
    kernel/work/work_special.c
