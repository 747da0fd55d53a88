; trampoline.asm - the places where the engine hands over to others and comes back.
%include "kernel/base/proc.inc"

section .text

; int plat_call_handler(void *p, struct pt_regs *regs, unsigned long arg,
;                       void (*fn)(void), uintptr_t *escape)
; In:   rdi, rsi, rdx = what @fn is called with; rcx = @fn; r8 = where to keep the way out
; Out:  eax = what @fn returned, or PLAT_ESCAPED
; A fault inside @fn can be ended by loading rsp with *escape and going to .escaped: all
; that the caller needs is on the stack from there on.
proc plat_call_handler
    push rbp
    mov rbp, rsp
    push rbx
    push r12
    push r13
    push r14
    push r15
    sub rsp, 8
    mov [r8], rsp
    call rcx
.out:
    add rsp, 8
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbx
    pop rbp
    ret
.escaped:
    mov eax, -0x7fffffff            ; PLAT_ESCAPED
    jmp .out
endproc plat_call_handler

section .rodata
global plat_handler_escaped
plat_handler_escaped:
    dq plat_call_handler.escaped
