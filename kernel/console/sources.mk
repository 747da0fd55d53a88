CONSOLE := \
    kernel/console/shell.c \
    kernel/console/shell_run.c \
    kernel/console/shell_beside.c \
    kernel/console/shell_output.c \
    kernel/console/shell_table.c \
    kernel/console/shell_files.c \
    kernel/console/shell_filters.c \
    kernel/console/shell_system.c \
    kernel/console/shell_power.c \
    kernel/console/shell_parse.c \
    kernel/console/shell_machine.c \
    kernel/console/shell_line.c \
    kernel/console/shell_history.c \
    kernel/console/shell_complete.c \
    kernel/console/shell_suggest.c \
    kernel/console/shell_text.c
