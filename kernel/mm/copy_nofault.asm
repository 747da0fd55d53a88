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

; long strncpy_nofault(char *dst, const char *src, size_t size)
; In:   rdi, rsi, rdx
; Out:  rax = bytes stored with the NUL, or -EFAULT
; Uses: rcx = bytes stored so far, r8b = the byte on its way
proc strncpy_nofault
    xor ecx, ecx
    test rdx, rdx
    jz .done
.next:
.load:
    mov r8b, [rsi + rcx]
.store:
    mov [rdi + rcx], r8b
    inc rcx
    test r8b, r8b
    jz .done
    cmp rcx, rdx
    jb .next
    mov byte [rdi + rcx - 1], 0 ; cannot fault: this byte was just written
.done:
    mov rax, rcx
    ret
.bad_load:
    frame call
    mov byte [rdi], 0
    mov rax, -EFAULT
    ret
.bad_store:
    frame call
    mov rax, -EFAULT
    ret
    extable .load, .bad_load
    extable .store, .bad_store
    extable .bad_load, .bad_store
endproc strncpy_nofault

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
