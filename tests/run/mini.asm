; mini.asm - the smallest guest: prompt on COM1, then does what one letter on COM3 says.
;
; Booted by QEMU through its PVH note, in 32-bit mode with paging off. Ends by triple
; fault (t), poweroff (o), reset (r), or not at all (h): what the launcher must tell apart
; on the real QEMU.

COM1        equ 0x3f8
COM3        equ 0x3e8
LINE_STATUS equ 5               ; register offset: bit 0 data ready

section .note.Xen note alloc noexec nowrite align=4
        dd 4, 4, 18             ; name and desc length, XEN_ELFNOTE_PHYS32_ENTRY
        db "Xen", 0
        dd _start

section .text
global _start
_start:
        mov   esi, prompt
.print: lodsb
        test  al, al
        jz    .wait
        mov   dx, COM1
        out   dx, al
        jmp   .print

.wait:  mov   dx, COM3 + LINE_STATUS
        in    al, dx
        test  al, 1
        jz    .wait
        mov   dx, COM3
        in    al, dx
        cmp   al, 't'
        je    .triple
        cmp   al, 'o'
        je    .off
        cmp   al, 'r'
        je    .reset
        cmp   al, 'h'
        jne   .wait
.hang:  cli
        hlt
        jmp   .hang

.triple:
        lidt  [no_idt]
        int3

.off:   mov   al, 0x10
        out   0xf4, al
        jmp   .hang

.reset: mov   al, 0xfe          ; keyboard controller: pulse the reset line
        out   0x64, al
        jmp   .hang

section .data
prompt: db 13, 10, "sonde> ", 0
no_idt: dw 0
        dd 0
