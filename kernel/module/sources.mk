MODULE := \
    kernel/module/elf_check.c \
    kernel/module/elf_link.c \
    kernel/module/module.c \
    kernel/module/build.c \
    kernel/module/symbols.c \
    kernel/module/inside.c \
    kernel/module/boot.c \
    kernel/module/init_text.c \
    kernel/module/commands.c
