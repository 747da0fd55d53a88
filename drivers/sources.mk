DRIVERS := \
    drivers/serial.c \
    drivers/vga_text.c \
    drivers/debugcon.c \
    drivers/pic.c \
    drivers/pit.c \
    drivers/acpi.c \
    drivers/acpi_madt.c \
    drivers/power.c \
    drivers/fw_cfg.c
