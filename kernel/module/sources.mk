MODULE := \
    kernel/module/elf_check.c \
    kernel/module/elf_link.c
