; copy_nofault.asm - copies memory, and returns -EFAULT if an address is bad.
;
; Each instruction that accesses the caller's memory has an entry in the fix-up table. The
; routines run in any context, traps included, and use no other memory.

%include "kernel/base/proc.inc"
%include "kernel/mm/extable.inc"

EFAULT equ 14

bits 64
section .text

; int copy_nofault(void *dst, const void *src, size_t len)
; In:   rdi, rsi, rdx
; Out:  eax = 0 or -EFAULT
; A `rep` counts, and costs an emulator, an instruction for each round: words are copied
; as such.
proc copy_nofault
    mov rcx, rdx
    test dl, 7
    jnz .copy
    shr rcx, 3
.copy_words:
    rep movsq
    xor eax, eax
    ret
.copy:
    rep movsb
    xor eax, eax
    ret
.bad:
    frame call
    mov eax, -EFAULT
    ret
    extable .copy_words, .bad
    extable .copy, .bad
endproc copy_nofault
nokprobe copy_nofault

; void touch_by_stack(uintptr_t addr)
; In:   rdi
; Uses: rbp, which is restored, as the base of an address that is relative to SS
proc touch_by_stack
    push rbp
    mov rbp, rdi
.touch:
    mov rbp, [rbp]
.touched:
    pop rbp
    ret
    extable .touch, .touched
endproc touch_by_stack
