; jprobe_call.asm - calls a function with the arguments of another function's call.

%include "asm_offsets.inc"
%include "kernel/base/proc.inc"

SAVED equ 5 * 8                 ; bytes of callee-saved registers below rbp

section .text

; void plat_jprobe_call(uintptr_t fn, const struct pt_regs *regs, size_t words,
;                       uintptr_t *save_sp)
; In:   rdi = fn, the function to call
;       rsi = regs, the image at the entry of the other function
;       rdx = how many words of its stack to copy, from the word above its return address on
;       rcx = save_sp, the variable that receives the argument of plat_jprobe_leave()
; Out:  fn has returned, or plat_jprobe_leave() was called
;
; fn must find its stack as aligned as the other function's stack was. So the words are
; copied to an address that equals regs.sp + 8 modulo 16; the call pushes the return address
; below.
proc plat_jprobe_call
    push rbp
    mov rbp, rsp
    push rbx
    push r12
    push r13
    push r14
    push r15
    mov [rcx], rsp
    mov r10, rdi
    mov r11, rsi
    mov rcx, rdx
    mov rsi, [r11 + REGS_SP]
    add rsi, 8
    lea rax, [rdx * 8 + 16]
    sub rsp, rax
    and rsp, -16
    mov rax, rsi
    and eax, 15
    add rsp, rax
    mov rdi, rsp
    rep movsq
    mov rdi, [r11 + REGS_DI]
    mov rsi, [r11 + REGS_DI - 8]
    mov rdx, [r11 + REGS_AX + 16]
    mov rcx, [r11 + REGS_AX + 8]
    mov rax, [r11 + REGS_AX]
    mov r8, [r11 + REGS_AX - 8]
    mov r9, [r11 + REGS_AX - 16]
    call r10
    lea rsp, [rbp - SAVED]
jprobe_call_leave:
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbx
    pop rbp
    ret
endproc plat_jprobe_call

; _Noreturn void plat_jprobe_leave(uintptr_t sp)
; In:   rdi = the value that plat_jprobe_call() has stored at save_sp
; Out:  plat_jprobe_call() returns to its caller
proc plat_jprobe_leave
    mov rsp, rdi
    jmp jprobe_call_leave
endproc plat_jprobe_leave
