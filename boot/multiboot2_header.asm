; multiboot2_header.asm - the headers by which loaders recognise the file.
;
; GRUB finds the multiboot2 header within the first 32 KiB and enters at start_multiboot2
; (the ELF entry point). QEMU's -kernel finds the PVH note and enters at start_pvh. Both
; enter in 32-bit protected mode without paging.

MULTIBOOT2_MAGIC equ 0xe85250d6
ARCHITECTURE_I386 equ 0
TAG_END equ 0
TAG_INFORMATION_REQUEST equ 1

TAG_MODULE equ 3
TAG_MMAP equ 6
TAG_RSDP_OLD equ 14
TAG_RSDP_NEW equ 15
OPTIONAL equ 1

section .boot.header progbits alloc noexec nowrite align=8

; Source: Multiboot2 Specification 2.0, "OS image format".
multiboot2_header:
    dd MULTIBOOT2_MAGIC
    dd ARCHITECTURE_I386
    dd .end - multiboot2_header
    dd 0x100000000 - (MULTIBOOT2_MAGIC + ARCHITECTURE_I386 + (.end - multiboot2_header))

.request:
    dw TAG_INFORMATION_REQUEST, OPTIONAL
    dd .request_end - .request
    dd TAG_MMAP, TAG_MODULE, TAG_RSDP_OLD, TAG_RSDP_NEW
.request_end:
    align 8, db 0

    dw TAG_END, 0
    dd 8
.end:

; Source: Xen, "x86/HVM direct boot ABI"; type XEN_ELFNOTE_PHYS32_ENTRY of elfnote.h.
XEN_ELFNOTE_PHYS32_ENTRY equ 18

extern start_pvh

section .note.Xen note alloc noexec nowrite align=4
    dd .name_end - .name
    dd .desc_end - .desc
    dd XEN_ELFNOTE_PHYS32_ENTRY
.name:
    db "Xen", 0
.name_end:
.desc:
    dd start_pvh
.desc_end:
