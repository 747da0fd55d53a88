; marker_enter.asm - calls marker_run() from the cold part of a marker.

%include "kernel/base/proc.inc"

section .text

; MARK() calls this, but does not tell the compiler of a call: so no register may change.
; In:   rax = address of the words: a struct marker_site *, and the arguments behind it
; Out:  every register as before, but the flags
proc marker_enter
    push rbp
    mov rbp, rsp
    push rax
    push rcx
    push rdx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    and rsp, -16
    mov rdi, rax
    mov rsi, rbp
    call marker_run
    lea rsp, [rbp - 9 * 8]
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rax
    pop rbp
    ret
endproc marker_enter

extern marker_run               ; void marker_run(const uint64_t *words,
                                ; const uintptr_t *frame)
