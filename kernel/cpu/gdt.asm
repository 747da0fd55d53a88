; gdt.asm - segment registers can only be reloaded by going somewhere.
%include "kernel/base/proc.inc"

section .text

; void gdt_reload_segments(uint16_t code, uint16_t data)
; In: edi = code selector, esi = data selector, of a table that is already loaded
;
; FS and GS keep the null selector that every CPU starts with: what counts of them is their
; base, and loading the selector would clear it, that of GS with a trap's way to its CPU's
; area.
proc gdt_reload_segments
    mov ds, esi
    mov es, esi
    mov ss, esi
    pop rax
    push rdi
    push rax
    retfq
endproc gdt_reload_segments
