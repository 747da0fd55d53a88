; gdt.asm - segment registers can only be reloaded by going somewhere.
%include "kernel/base/proc.inc"

section .text

; void gdt_reload_segments(uint16_t code, uint16_t data)
; In: edi = code selector, esi = data selector, of a table that is already loaded
proc gdt_reload_segments
    mov ds, esi
    mov es, esi
    mov ss, esi
    xor eax, eax
    mov fs, eax
    mov gs, eax
    pop rax
    push rdi
    push rax
    retfq
endproc gdt_reload_segments
