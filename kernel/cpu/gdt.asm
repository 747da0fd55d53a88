; gdt.asm - reloads the segment registers; CS changes only with a far jump or return.
%include "kernel/base/proc.inc"

section .text

; void gdt_reload_segments(uint16_t code, uint16_t data)
; In: edi = code selector, esi = data selector, of a table that is already loaded
;
; FS and GS keep the null selector that every CPU starts with. Only their bases are used,
; and loading the selector would clear the base. Without the base of GS, a trap could not
; find the area of its CPU.
proc gdt_reload_segments
    mov ds, esi
    mov es, esi
    mov ss, esi
    pop rax
    push rdi
    push rax
    retfq
endproc gdt_reload_segments
