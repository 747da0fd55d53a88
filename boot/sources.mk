BOOT := \
    boot/multiboot2_header.asm \
    boot/start.asm \
    boot/cpu_check.asm \
    boot/ap_start.asm \
    boot/boot_info.c \
    boot/boot_map.c \
    boot/boot_option.c
