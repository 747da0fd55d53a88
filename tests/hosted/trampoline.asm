; trampoline.asm - functions that a return probe follows return to here; see
; probes/returns/kretprobe_trampoline.asm. Signals may come between any two instructions,
; but their frames lie on another stack.
%include "kernel/base/proc.inc"
%include "kernel/base/registers.inc"

extern posix_return             ; void posix_return(struct pt_regs *)
extern posix_return_resume      ; void posix_return_resume(struct pt_regs *)

; struct pt_regs
REGS_AUX equ 15 * 8
REGS_ORIG_AX equ 16 * 8
REGS_IP equ 17 * 8
REGS_FLAGS equ 19 * 8
REGS_SP equ 20 * 8

bits 64
section .text.image progbits alloc exec nowrite align=16

; In:   rsp = behind the return address
; Out:  at the return address, with the registers and flags of the image
proc kretprobe_trampoline
    push 0                      ; ss
    push rsp
    pushfq
    push 0                      ; cs
    push 0                      ; ip
    push 0
    push 0
    PUSH EACH_REGISTER_DOWN
    add qword [rsp + REGS_SP], 8
    cld
    mov rbx, rsp
    and rsp, -16
    mov rdi, rbx
    call posix_return
    mov rsp, rbx
return_leave:
    mov rax, [rsp + REGS_SP]
    mov rcx, [rsp + REGS_IP]
    mov rdx, [rsp + REGS_FLAGS]
    sub rax, 16
    mov [rax + 8], rcx
    mov [rax], rdx
    mov [rsp + REGS_ORIG_AX], rax
    POP EACH_REGISTER_DOWN
    mov rsp, [rsp + REGS_ORIG_AX - REGS_AUX]
    popfq
    ret
endproc kretprobe_trampoline
nokprobe kretprobe_trampoline

; A return handler has faulted and is given up.
; In:   rsp = the image of the return
proc return_resume_hit
    mov rbx, rsp
    and rsp, -16
    mov rdi, rbx
    call posix_return_resume
    mov rsp, rbx
    jmp return_leave
endproc return_resume_hit
nokprobe return_resume_hit
