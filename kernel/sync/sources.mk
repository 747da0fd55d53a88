SYNC := \
    kernel/sync/held.c \
    kernel/sync/spinlock.c \
    kernel/sync/mutex.c \
    kernel/sync/wait_check.c \
    kernel/sync/wait.c \
    kernel/sync/quiesce.c \
    kernel/sync/stop_machine.c
